//! The run while it lives: where it is in the queue, or how far it is.

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use tokdyno_domain::{
    meter::{Phase, Progress},
    run::RunState,
    text,
};

use super::data::RunData;
use crate::{AppError, api, browser, components::dialog::ConfirmDialog, live::Link};

/// Element id of the question before a run is stopped.
const DIALOG: &str = "cancel-run";

/// Width and height of the live curve's drawing, in its own units.
const CURVE: (f64, f64) = (240.0, 48.0);

/// Progress, speed and the way to stop it; nothing once the run is over.
#[component]
pub(super) fn Live(data: RunData) -> impl IntoView {
    let state = data.state();
    let lives = Memo::new(move |_| !state.get().is_over());
    view! {
        <Show when=move || lives.get()>
            <section class="panel run-live" aria-labelledby="live-title">
                <div class="run-live-head">
                    <h2 id="live-title">
                        {move || {
                            if state.get() == RunState::Queued { "Waiting" } else { "Measuring" }
                        }}
                    </h2>
                    <Cancel data/>
                </div>
                {move || match state.get() {
                    RunState::Queued => view! { <Queued data/> }.into_any(),
                    _ => view! { <Running data/> }.into_any(),
                }}
                <p class="muted run-link">
                    {move || {
                        (data.link.get() == Link::Paused || data.trouble.get().is_some())
                            .then_some("Live updates paused; this page tries again by itself.")
                    }}
                </p>
            </section>
        </Show>
    }
}

/// Its place in the queue, and why it waits.
#[component]
fn Queued(data: RunData) -> impl IntoView {
    let place = data.summary(|summary| summary.queue_place);
    view! {
        <p class="run-queue" role="status">
            {move || match place.get() {
                None | Some(0) => "Next in line: it begins as soon as a worker is free.".to_owned(),
                Some(before) => {
                    format!(
                        "{} first.",
                        if before == 1 {
                            "One measurement comes".to_owned()
                        } else {
                            format!("{before} measurements come")
                        },
                    )
                }
            }}
        </p>
        <p class="muted">
            "Measurements run one after another, and never two against one endpoint: they would slow each other down, and the figures with them."
        </p>
    }
}

/// Stage, requests, speed, time left.
#[component]
fn Running(data: RunData) -> impl IntoView {
    let progress = data.progress;
    let said = Memo::new(move |_| {
        progress.with(|progress| {
            progress.as_ref().map_or_else(
                || "The meter is starting: it asks the server who it is.".to_owned(),
                describe,
            )
        })
    });
    let speed = move || {
        progress.with(|progress| {
            text::optional(progress.as_ref().and_then(|progress| progress.current_tps))
        })
    };
    let item = move |label: &'static str, value: fn(&Progress) -> String| {
        view! {
            <div>
                <dt>{label}</dt>
                <dd>
                    {move || {
                        progress
                            .with(|progress| {
                                progress.as_ref().map_or_else(|| text::NO_FIGURE.to_owned(), value)
                            })
                    }}
                </dd>
            </div>
        }
    };
    view! {
        <p role="status" class="run-phase">
            {move || said.get()}
        </p>
        <progress
            class="run-bar"
            max="1"
            aria-label="Progress of the run"
            prop:value=move || progress.with(|p| p.as_ref().map_or(0.0, fraction))
            value=progress
                .with_untracked(|p| p.as_ref().map_or(0.0, fraction))
                .to_string()
        ></progress>
        <div class="run-live-body">
            <div class="run-speed">
                <span class="run-speed-figure">{speed}</span>
                <span class="run-speed-unit">"tok/s now"</span>
            </div>
            <Curve data/>
            <dl class="facts run-counts">
                {item("Requests of this stage", requests)}
                {item("Failed", |progress| text::count(progress.failed))}
                {item("In flight", |progress| progress.in_flight.to_string())}
                {item("Elapsed", |progress| text::duration(progress.elapsed_s))}
                {item("Left, about", left)}
            </dl>
        </div>
    }
}

/// The last two minutes of tok/s, as far as this page has seen them.
#[component]
fn Curve(data: RunData) -> impl IntoView {
    let points = move || data.samples.with(|samples| polyline(samples));
    view! {
        <svg
            class="run-curve"
            viewBox=format!("0 0 {} {}", CURVE.0, CURVE.1)
            preserveAspectRatio="none"
            role="img"
            aria-label="Tokens per second over the last two minutes"
        >
            <polyline points=points fill="none" vector-effect="non-scaling-stroke"></polyline>
        </svg>
    }
}

/// The button that stops the run. A plain form until WASM has loaded, then it asks.
#[component]
fn Cancel(data: RunData) -> impl IntoView {
    let asked = data.summary(|summary| summary.cancel_requested);
    let error = RwSignal::new(None::<AppError>);
    let stop = move |()| {
        spawn_local(async move {
            match api::cancel_run(data.id).await {
                Ok(()) => {
                    error.try_set(None);
                    data.refresh();
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <form
            method="post"
            action=api::CancelRun::url()
            class="run-cancel"
            on:submit=move |event| {
                event.prevent_default();
                browser::open_dialog(DIALOG);
            }
        >
            <input type="hidden" name="run" value=data.id.to_string()/>
            <button type="submit" class="button" disabled=move || asked.get()>
                {move || if asked.get() { "Stopping …" } else { "Cancel run" }}
            </button>
        </form>
        <ConfirmDialog
            id=DIALOG
            title="Cancel this run?"
            confirm="Cancel run"
            on_confirm=Callback::new(stop)
        >
            <p>
                "Requests in flight are dropped. What was finished is kept and shown. It cannot be resumed."
            </p>
        </ConfirmDialog>
        {move || {
            error
                .get()
                .map(|error| view! { <p class="field-error" role="alert">{error.sentence}</p> })
        }}
    }
}

/// `Stage 2 of 5, measuring`.
fn describe(progress: &Progress) -> String {
    let phase = match progress.phase {
        Phase::WarmUp => "warming up",
        Phase::Measuring => "measuring",
        Phase::Draining => "waiting for the last replies",
    };
    format!(
        "Stage {} of {}, {phase}.",
        (progress.stage + 1).min(progress.stages.max(1)),
        progress.stages
    )
}

fn requests(progress: &Progress) -> String {
    match progress.planned {
        Some(planned) => format!("{} of {}", text::count(progress.done), text::count(planned)),
        None => text::count(progress.done),
    }
}

fn left(progress: &Progress) -> String {
    progress
        .left_s
        .map_or_else(|| text::NO_FIGURE.to_owned(), text::duration)
}

/// How much of the run is done, from 0 to 1: by time where the meter can tell what is
/// left, else by stages.
pub(in crate::pages) fn fraction(progress: &Progress) -> f64 {
    if let Some(left) = progress.left_s {
        let whole = progress.elapsed_s + left;
        if whole > 0.0 {
            return (progress.elapsed_s / whole).clamp(0.0, 1.0);
        }
    }
    let within = match progress.planned {
        Some(planned) if planned > 0 => progress.done as f64 / planned as f64,
        _ => 0.0,
    };
    ((f64::from(progress.stage) + within) / f64::from(progress.stages.max(1))).clamp(0.0, 1.0)
}

/// Points of the curve, from zero up, the newest at the right edge.
fn polyline(samples: &[(f64, f64)]) -> String {
    use std::fmt::Write as _;

    let (Some((first, _)), Some((last, _))) = (samples.first(), samples.last()) else {
        return String::new();
    };
    let top = samples.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
    let span = last - first;
    if top <= 0.0 || span <= 0.0 {
        return String::new();
    }
    let mut points = String::new();
    for (at, speed) in samples {
        let x = (at - first) / span * CURVE.0;
        // A little air above, so that the line's upper half is not cut off.
        let y = CURVE.1 - speed / top * (CURVE.1 - 4.0) - 1.0;
        // Writing to a text cannot fail.
        let _ = write!(points, "{x:.1},{y:.1} ");
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> Progress {
        Progress {
            stage: 1,
            stages: 4,
            phase: Phase::Measuring,
            done: 16,
            failed: 0,
            planned: Some(32),
            in_flight: 8,
            current_tps: Some(100.0),
            elapsed_s: 30.0,
            left_s: None,
        }
    }

    #[test]
    fn progress_goes_by_time_where_it_is_known() {
        let mut now = progress();
        assert!((fraction(&now) - 1.5 / 4.0).abs() < 1e-12);
        now.left_s = Some(10.0);
        assert!((fraction(&now) - 0.75).abs() < 1e-12);
        now.left_s = None;
        now.planned = None;
        assert!((fraction(&now) - 0.25).abs() < 1e-12);
        now.stages = 0;
        assert!(fraction(&now) <= 1.0);
    }

    #[test]
    fn stages_are_counted_from_one() {
        assert_eq!(describe(&progress()), "Stage 2 of 4, measuring.");
        assert_eq!(requests(&progress()), "16 of 32");
    }

    #[test]
    fn the_curve_spans_its_drawing() {
        assert_eq!(polyline(&[]), "");
        assert_eq!(polyline(&[(1.0, 5.0)]), "");
        assert_eq!(
            polyline(&[(1.0, 50.0), (3.0, 100.0)]),
            "0.0,25.0 240.0,3.0 "
        );
    }
}
