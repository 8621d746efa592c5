//! What is sent: a preset, or field by field.

use leptos::prelude::*;
use tokdyno_domain::{
    text,
    workload::{Api, Preset, Workload},
};

use super::{
    field::Wrong,
    form::Form,
    input::choice,
    load::Custom,
    more::More,
    plan::{Speeds, rough_seconds, sentence},
    prompts::PromptChoice,
};

/// Preset cards, fields, prompts, and what it comes to.
#[component]
pub(in crate::pages) fn WorkloadFields(
    form: Form,
    speeds: Signal<Option<Speeds>>,
    wrong: Signal<Option<Wrong>>,
    workload: Memo<Result<Workload, Wrong>>,
) -> impl IntoView {
    view! {
        <fieldset class="panel">
            <legend>"Workload"</legend>
            <div class="presets" role="radiogroup" aria-label="Size">
                {Preset::ALL
                    .map(|preset| card(form, Some(preset), preset.word(), preset.meaning()))}
                {card(form, None, "custom", "Every number by hand: levels, rates, or up to saturation.")}
            </div>
            <Show when=move || form.preset.get().is_none()>
                <Custom load=form.load wrong/>
            </Show>
            <div class="measure-pair">
                <ApiChoice form/>
                <PromptChoice prompts=form.prompts wrong/>
            </div>
            <More more=form.more api=form.api wrong/>
            <Plan speeds workload/>
        </fieldset>
    }
}

fn card(
    form: Form,
    preset: Option<Preset>,
    word: &'static str,
    meaning: &'static str,
) -> impl IntoView {
    view! {
        <label class="preset">
            <input
                type="radio"
                name="preset"
                value=word
                checked=form.preset.get_untracked() == preset
                prop:checked=move || form.preset.get() == preset
                on:change=move |_| form.preset.set(preset)
            />
            <span class="preset-name">{word}</span>
            <span class="preset-meaning">{meaning}</span>
        </label>
    }
}

/// Which route.
#[component]
fn ApiChoice(form: Form) -> impl IntoView {
    let route = move |api: Api, id: &'static str, label: &'static str| {
        choice(
            "api",
            id,
            form.api,
            api,
            view! {
                {label}
                " "
                <code>{api.path()}</code>
            },
        )
    };
    view! {
        <fieldset class="choices">
            <legend>"Route"</legend>
            {route(Api::Completions, "api-completions", "Completions")}
            {route(Api::Chat, "api-chat", "Chat")}
        </fieldset>
    }
}

/// What it comes to, as one types.
#[component]
fn Plan(speeds: Signal<Option<Speeds>>, workload: Memo<Result<Workload, Wrong>>) -> impl IntoView {
    let described = move || {
        workload.with(|workload| match workload {
            Ok(workload) => format!("{}.", workload.describe()),
            Err(_) => "The workload is not complete: see the field that is marked.".to_owned(),
        })
    };
    let counted = move || workload.with(|workload| workload.as_ref().ok().map(sentence));
    let time = move || {
        let speeds = speeds.get()?;
        let seconds = workload.with(|workload| {
            workload
                .as_ref()
                .ok()
                .and_then(|workload| rough_seconds(workload, speeds))
        })?;
        Some(format!(
            "Roughly {} at the speeds last seen at this endpoint.",
            text::duration(seconds)
        ))
    };
    view! {
        <div class="plan" role="status">
            <p>
                <strong>{described}</strong>
            </p>
            <p>{counted}</p>
            <p class="muted">{time}</p>
        </div>
    }
}
