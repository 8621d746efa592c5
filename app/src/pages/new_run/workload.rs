//! What is sent: a preset, or field by field.

use leptos::{html, prelude::*, task::spawn_local};
use tokdyno_domain::{
    text,
    workload::{Api, Preset, Workload},
};

use super::{
    file::read_chosen,
    form::{Field, Form, Prompts, Wrong},
    note::{Note, invalid, note_id},
    plan::{Speeds, rough_seconds, sentence},
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
                {card(form, None, "custom", "Every number by hand.")}
            </div>
            <Show when=move || form.preset.get().is_none()>
                <Custom form wrong/>
            </Show>
            <div class="measure-pair">
                <ApiChoice form/>
                <PromptChoice form wrong/>
            </div>
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

/// The numbers by hand.
#[component]
fn Custom(form: Form, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    view! {
        <div class="measure-fields">
            {field(
                Field::Single,
                "Single-stream requests",
                "One after another. Blank leaves the single stream out.",
                form.single,
                true,
                wrong,
            )}
            {field(
                Field::Concurrencies,
                "Concurrencies",
                "Requests in flight at once, with commas: 1, 8, 32. Blank for none.",
                form.concurrencies,
                false,
                wrong,
            )}
            {field(
                Field::Requests,
                "Requests per stage",
                "Blank takes four per slot, which gives a steady figure.",
                form.requests,
                true,
                wrong,
            )}
            {field(
                Field::Tokens,
                "Output tokens per request",
                "Asked for with ignore_eos, so that all replies are of one length.",
                form.tokens,
                true,
                wrong,
            )}
            {field(
                Field::Repeats,
                "Repeats",
                "All levels, this often. Three or more show the spread.",
                form.repeats,
                true,
                wrong,
            )}
            {field(
                Field::Warmup,
                "Warm-up requests per stage",
                "Sent first and thrown away. Blank takes one per slot.",
                form.warmup,
                true,
                wrong,
            )}
        </div>
    }
}

fn field(
    field: Field,
    label: &'static str,
    help: &'static str,
    value: RwSignal<String>,
    is_number: bool,
    wrong: Signal<Option<Wrong>>,
) -> impl IntoView {
    let help_id = format!("{}-help", field.id());
    view! {
        <div class="field">
            <label for=field.id()>{label}</label>
            <input
                id=field.id()
                type="text"
                inputmode=is_number.then_some("numeric")
                autocomplete="off"
                aria-describedby=format!("{help_id} {}", note_id(field))
                aria-invalid=invalid(field, wrong)
                value=value.get_untracked()
                prop:value=value
                on:input=move |event| value.set(event_target_value(&event))
            />
            <span id=help_id class="muted">
                {help}
            </span>
            <Note field wrong/>
        </div>
    }
}

/// Which route.
#[component]
fn ApiChoice(form: Form) -> impl IntoView {
    let choice = move |api: Api, id: &'static str, label: &'static str| {
        view! {
            <p class="choice">
                <input
                    id=id
                    type="radio"
                    name="api"
                    checked=form.api.get_untracked() == api
                    prop:checked=move || form.api.get() == api
                    on:change=move |_| form.api.set(api)
                />
                <label for=id>
                    {label} " " <code>{api.path()}</code>
                </label>
            </p>
        }
    };
    view! {
        <fieldset class="choices">
            <legend>"Route"</legend>
            {choice(Api::Completions, "api-completions", "Completions")}
            {choice(Api::Chat, "api-chat", "Chat")}
        </fieldset>
    }
}

/// Which prompts.
#[component]
fn PromptChoice(form: Form, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    let input = NodeRef::<html::Input>::new();
    let trouble = RwSignal::new(None::<String>);
    let choice = move |prompts: Prompts, id: &'static str, label: &'static str| {
        view! {
            <p class="choice">
                <input
                    id=id
                    type="radio"
                    name="prompts"
                    checked=form.prompts.get_untracked() == prompts
                    prop:checked=move || form.prompts.get() == prompts
                    on:change=move |_| form.prompts.set(prompts)
                />
                <label for=id>{label}</label>
            </p>
        }
    };
    let read = move |_| {
        let Some(input) = input.get_untracked() else {
            return;
        };
        spawn_local(async move {
            match read_chosen(input).await {
                Ok(chosen) => {
                    trouble.try_set(None);
                    form.file.try_set(chosen);
                }
                Err(sentence) => {
                    trouble.try_set(Some(sentence));
                }
            }
        });
    };
    view! {
        <fieldset class="choices">
            <legend>"Prompts"</legend>
            {choice(Prompts::Varied, "prompts-varied", "Varied questions, none sent twice")}
            {choice(Prompts::Founding, "prompts-founding", "The three founding prompts")}
            {choice(Prompts::File, "prompts-file", "From a file")}
            <Show when=move || form.prompts.get() == Prompts::File>
                <div class="field">
                    <label for=Field::Prompts.id()>"Prompt file: a prompt on each line, or JSONL"</label>
                    <input
                        id=Field::Prompts.id()
                        type="file"
                        accept=".txt,.jsonl,.json,text/plain"
                        aria-describedby=note_id(Field::Prompts)
                        aria-invalid=invalid(Field::Prompts, wrong)
                        node_ref=input
                        on:change=read
                    />
                    <span class="field-error" role="alert">
                        {move || trouble.get()}
                    </span>
                    <Note field=Field::Prompts wrong/>
                </div>
            </Show>
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
