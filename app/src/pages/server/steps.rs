//! The whole way of a launch as one list: what is done, what is under way, what is to
//! come.

use leptos::prelude::*;
use tokdyno_domain::{
    launch::LaunchState,
    text,
    views::servers::{Step, StepState},
};

use super::data::LaunchData;
use crate::{
    components::{Glyph, Icon},
    live::Link,
    pages::servers::loading,
};

/// The steps, and while it loads how far that is.
#[component]
pub(super) fn Steps(data: LaunchData) -> impl IntoView {
    let steps = data.part(|view| view.steps.clone());
    let link = data.link;
    view! {
        <section class="launch-steps" aria-labelledby="steps-title">
            <div class="run-live-head">
                <h2 id="steps-title">"Progress"</h2>
                <p class="muted run-link">
                    {move || match link.get() {
                        Link::Open => "Followed live.",
                        Link::Paused => "The live connection is interrupted; this page asks now and then.",
                        Link::Waiting => "",
                    }}
                </p>
            </div>
            <ol class="steps" aria-live="polite">
                {move || steps.get().into_iter().map(|step| item(data, step)).collect_view()}
            </ol>
        </section>
    }
}

fn item(data: LaunchData, step: Step) -> impl IntoView {
    let (class, glyph, word) = match step.state {
        StepState::ToCome => ("step", Glyph::Empty, "to come"),
        StepState::Now => ("step step-now", Glyph::Pulse, "under way"),
        StepState::Done => ("step step-done", Glyph::Check, "done"),
        StepState::Failed => ("step step-failed", Glyph::Cross, "failed"),
        StepState::Skipped => ("step", Glyph::Empty, "not reached"),
    };
    let loads = step.state == StepState::Now && step.name == "load";
    view! {
        <li class=class>
            <span class="step-mark">
                <Icon glyph=glyph/>
            </span>
            <div class="step-body">
                <p>
                    <strong class="step-name">{step.name}</strong>
                    " "
                    <span class="step-state">{word}</span>
                </p>
                {(!step.detail.is_empty()).then(|| view! { <p class="muted">{step.detail}</p> })}
                {loads.then(|| view! { <Loading data/> })}
                {step
                    .link
                    .map(|link| {
                        let text = if link.starts_with("/runs/") {
                            "To the run"
                        } else {
                            "To the server"
                        };
                        view! {
                            <p>
                                <a href=link>{text}</a>
                            </p>
                        }
                    })}
            </div>
        </li>
    }
}

/// Bar, stage, the newest line that told it, and how long it usually takes.
#[component]
fn Loading(data: LaunchData) -> impl IntoView {
    let far = data.summary(loading);
    let line = data.part(|view| view.stage_text.clone());
    let usual = data.part(|view| view.usual_load_s);
    let state = data.state();
    view! {
        <Show when=move || matches!(state.get(), LaunchState::Starting | LaunchState::Loading)>
            <progress
                class="run-bar"
                max="1"
                aria-label="Loading"
                value=far.with_untracked(|far| far.0.to_string())
                prop:value=move || far.with(|far| far.0)
            ></progress>
            <p>
                {move || far.with(|far| far.1.clone())}
                {move || {
                    usual
                        .get()
                        .map(|seconds| {
                            format!(
                                "; earlier launches of this profile here took about {}",
                                text::duration(seconds),
                            )
                        })
                }}
                "."
            </p>
            <p class="stage-line">
                <code>{move || line.get()}</code>
            </p>
        </Show>
    }
}
