//! The run's name, what it measured, and, where it did not finish, why.

use leptos::{prelude::*, task::spawn_local};
use leptos_meta::Title;
use tokdyno_domain::{
    engine::EngineKind,
    run::RunState,
    text,
    timestamp::Timestamp,
    views::{measure::MAX_NAME, run::RunSummary},
};

use super::data::RunData;
use crate::{
    AppError, api, browser,
    components::{
        badges::{SourceBadge, StampBadge, StateBadge},
        dialog::{CloseButton, Dialog},
        effective::InertBadges,
        icon::{Glyph, Icon},
        time::RelativeTime,
    },
};

/// Element id of the dialog for another name.
const DIALOG: &str = "rename-run";

/// Name, badges, facts, and the reason of an end before its time.
#[component]
pub(super) fn Head(data: RunData) -> impl IntoView {
    let id = data.id;
    let configuration = data.summary(|summary| summary.configuration.clone());
    let state = data.state();
    let source = data.summary(RunSummary::known_source);
    let engine = data.summary(engine_title);
    let model = data.summary(|summary| summary.model.clone());
    let stamp = data.summary(|summary| {
        let launch = summary.launch.as_ref()?;
        Some((launch.launch, launch.stamp.clone()?))
    });
    let inert = data.part(|view| view.host.as_ref()?.effective.clone());
    view! {
        <Title text=move || format!("{} · run {id}", configuration.get())/>
        <header class="run-head">
            <nav aria-label="Breadcrumb" class="breadcrumb">
                <a href="/runs">"Runs"</a>
                <span aria-hidden="true">" / "</span>
                <span>{format!("run {id}")}</span>
            </nav>
            <div class="run-title">
                <h1>{move || configuration.get()}</h1>
                <Rename data/>
            </div>
            <p class="run-badges">
                {move || view! { <StateBadge state=state.get()/> }}
                {move || source.get().map(|source| view! { <SourceBadge source/> })}
                {move || {
                    stamp
                        .get()
                        .map(|(launch, stamp)| view! { <StampBadge stamp=stamp launch=launch/> })
                }}
                {move || inert.get().map(|effective| view! { <InertBadges effective=effective/> })}
                <span class="run-engine">{move || engine.get()}</span>
                <span class="run-model">{move || model.get()}</span>
            </p>
            <Reason data/>
            <Facts data/>
        </header>
    }
}

/// Endpoint, hardware, workload, times.
#[component]
fn Facts(data: RunData) -> impl IntoView {
    let endpoint = data.summary(|summary| summary.endpoint.clone());
    let hardware = data.summary(|summary| summary.hardware.clone());
    let workload = data.summary(|summary| {
        (
            summary.workload_name.clone(),
            summary.workload_text.clone(),
            summary.workload_hash.short().to_owned(),
        )
    });
    let created = data.summary(|summary| summary.created_at);
    let span = data.summary(took);
    view! {
        <dl class="facts">
            <div>
                <dt>"Endpoint"</dt>
                <dd>
                    {move || {
                        endpoint.get().unwrap_or_else(|| "none: the figures were recorded".to_owned())
                    }}
                </dd>
            </div>
            <div>
                <dt>"Hardware"</dt>
                <dd>
                    {move || {
                        let hardware = hardware.get();
                        if hardware.is_empty() { "not stated".to_owned() } else { hardware }
                    }}
                </dd>
            </div>
            <div>
                <dt>"Workload"</dt>
                <dd>
                    {move || {
                        let (name, text, hash) = workload.get();
                        view! {
                            <span>{format!("{name}: {text} ")}</span>
                            <code title="First digits of the workload's hash: equal digits, equal workload.">
                                {hash}
                            </code>
                        }
                    }}
                </dd>
            </div>
            <div>
                <dt>"Asked for"</dt>
                <dd>{move || view! { <RelativeTime at=created.get()/> }}</dd>
            </div>
            <div>
                <dt>"Took"</dt>
                <dd>{move || span.get()}</dd>
            </div>
        </dl>
    }
}

/// Why a run is not simply finished, and what was kept of it.
#[component]
fn Reason(data: RunData) -> impl IntoView {
    let said = data.part(|view| {
        let summary = &view.summary;
        let (title, class) = match summary.state {
            RunState::Failed => ("The run failed.", "banner banner-bad"),
            RunState::Interrupted => ("The run was interrupted.", "banner banner-warn"),
            RunState::Cancelled => ("The run was cancelled.", "banner banner-warn"),
            RunState::Queued | RunState::Running | RunState::Finished => return None,
        };
        let finished = view.stages.iter().filter(|stage| stage.complete).count() as u64;
        let kept = if view.records == 0 {
            "No request was finished, so there are no figures.".to_owned()
        } else {
            format!(
                "{} of {} are kept; figures of stages that did not run to their end are marked.",
                text::plural(view.records, "request", "requests"),
                text::plural(finished, "finished stage", "finished stages"),
            )
        };
        Some((
            title,
            class,
            summary.reason.clone().unwrap_or_default(),
            kept,
        ))
    });
    view! {
        {move || {
            said.get()
                .map(|(title, class, reason, kept)| {
                    view! {
                        <div class=class>
                            <p>
                                <strong>{title}</strong>
                                " "
                                {reason}
                            </p>
                            <p>{kept}</p>
                        </div>
                    }
                })
        }}
    }
}

/// Another name for the configuration, and what it runs on.
#[component]
fn Rename(data: RunData) -> impl IntoView {
    let configuration = RwSignal::new(String::new());
    let hardware = RwSignal::new(String::new());
    let error = RwSignal::new(None::<AppError>);
    let busy = RwSignal::new(false);
    let show = move |_| {
        data.view.with_untracked(|view| {
            configuration.set(view.summary.configuration.clone());
            hardware.set(view.summary.hardware.clone());
        });
        error.set(None);
        browser::open_dialog(DIALOG);
    };
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        busy.set(true);
        let (name, on) = (configuration.get_untracked(), hardware.get_untracked());
        spawn_local(async move {
            let answer = api::rename_run(data.id, name, on).await;
            busy.try_set(false);
            match answer {
                Ok(()) => {
                    browser::close_dialog(DIALOG);
                    data.refresh();
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <button type="button" class="button button-small script-only" on:click=show>
            <Icon glyph=Glyph::Pencil/>
            "Rename"
        </button>
        <Dialog id=DIALOG title="Rename">
            <form on:submit=save class="stack">
                <p class="field">
                    <label for="rename-configuration">"Configuration"</label>
                    <input
                        id="rename-configuration"
                        type="text"
                        required
                        maxlength=MAX_NAME.to_string()
                        bind:value=configuration
                    />
                </p>
                <p class="field">
                    <label for="rename-hardware">"Hardware"</label>
                    <input
                        id="rename-hardware"
                        type="text"
                        maxlength=MAX_NAME.to_string()
                        placeholder="8 × RTX PRO 6000"
                        bind:value=hardware
                    />
                </p>
                {move || {
                    error
                        .get()
                        .map(|error| {
                            view! { <p class="field-error" role="alert">{error.sentence}</p> }
                        })
                }}
                <div class="dialog-buttons">
                    <CloseButton dialog=DIALOG>"Leave as it is"</CloseButton>
                    <button type="submit" class="button button-primary" disabled=move || busy.get()>
                        "Save"
                    </button>
                </div>
            </form>
        </Dialog>
    }
}

/// Engine and version, or the engine alone.
pub(in crate::pages) fn engine_title(summary: &RunSummary) -> String {
    match (&summary.engine_version, summary.engine) {
        (Some(version), engine) => format!("{engine} {version}"),
        // Until the meter has asked, nobody knows who answers.
        (None, EngineKind::Other) if !summary.state.is_over() => "engine not known yet".to_owned(),
        (None, engine) => engine.name().to_owned(),
    }
}

/// How long it ran, or when it began.
fn took(summary: &RunSummary) -> String {
    span(summary.state, summary.started_at, summary.finished_at)
}

fn span(state: RunState, started: Option<Timestamp>, finished: Option<Timestamp>) -> String {
    match (started, finished) {
        (Some(from), Some(to)) => {
            let seconds = to.0.saturating_sub(from.0) as f64 / 1e6;
            format!("{}, from {}", text::duration(seconds), from.exact())
        }
        (Some(from), None) => format!("running since {}", from.exact()),
        // Recorded figures say nothing of it, and a cancelled run may never have begun.
        (None, _) if state.is_over() => "not known".to_owned(),
        (None, _) => "not begun".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_took() {
        let at = |seconds: i64| Some(Timestamp(1_795_968_039_000_000 + seconds * 1_000_000));
        assert_eq!(
            span(RunState::Finished, at(0), at(75)),
            "1 min 15 s, from 2026-11-29 16:00 UTC"
        );
        assert_eq!(
            span(RunState::Running, at(0), None),
            "running since 2026-11-29 16:00 UTC"
        );
        assert_eq!(span(RunState::Queued, None, None), "not begun");
        assert_eq!(span(RunState::Finished, None, None), "not known");
    }
}
