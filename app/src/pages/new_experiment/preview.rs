//! What the experiment would do and cost, as the server works it out while one types.
#![expect(
    clippy::needless_pass_by_value,
    reason = "properties of components are owned"
)]

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::{Estimate, Fit, Step},
    text,
    timestamp::Timestamp,
    views::experiments::{ExperimentPreview, PreviewCell},
};

use crate::{
    components::{ClockTime, ErrorNote},
    refresh::Asked,
};

/// Cells, launches, time and cautions.
#[component]
pub(super) fn Preview(
    asked: Asked<ExperimentPreview>,
    /// A field is wrong, so there is nothing to work out.
    incomplete: Signal<bool>,
    /// The server found something wrong that stands beside its field.
    refused: Signal<bool>,
) -> impl IntoView {
    let said = move || {
        if incomplete.get() || refused.get() {
            "The plan is not complete: see the field that is marked."
        } else if asked.waiting.get() {
            "Working it out …"
        } else {
            ""
        }
    };
    let cells = Memo::new(move |_| {
        asked.answer.with(|answer| {
            answer
                .as_ref()
                .map(|preview| preview.cells.clone())
                .unwrap_or_default()
        })
    });
    let stale = move || asked.waiting.get() || incomplete.get() || refused.get();
    let trouble = Signal::derive(move || asked.trouble.get().filter(|_| !refused.get()));
    view! {
        <section class="panel stack experiment-preview" aria-labelledby="preview-title">
            <h2 id="preview-title">"What it comes to"</h2>
            <p class="muted" role="status">
                {said}
            </p>
            <div class="stack" class:is-stale=stale>
                {move || asked.answer.get().map(|preview| view! { <Plan preview/> })}
                <Cells cells/>
            </div>
            <ErrorNote error=trouble/>
        </section>
    }
}

#[component]
fn Plan(preview: ExperimentPreview) -> impl IntoView {
    let counted = counted(&preview);
    let ExperimentPreview {
        steps,
        launches,
        measured,
        estimate,
        cautions,
        ..
    } = preview;
    view! {
        <p class="plan-count">
            <strong>{counted}</strong>
        </p>
        <Cost estimate=estimate.clone() limited=estimate.fit != Fit::All/>
        <Fits fit=estimate.fit to_come=launches.saturating_sub(measured)/>
        {(!cautions.is_empty())
            .then(|| {
                view! {
                    <ul class="plan-cautions">
                        {cautions
                            .into_iter()
                            .map(|caution| view! { <li class="caution">{caution}</li> })
                            .collect_view()}
                    </ul>
                }
            })}
        <Steps steps/>
    }
}

/// `9 configurations, 27 launches; 3 of them were measured before and are taken over.`
fn counted(preview: &ExperimentPreview) -> String {
    let cells = text::plural(
        preview.cells.len() as u64,
        "configuration",
        "configurations",
    );
    let launches = text::plural(preview.launches.into(), "launch", "launches");
    match preview.measured {
        0 => format!("{cells}, {launches}."),
        measured => format!(
            "{cells}, {launches}; {} measured before and taken over.",
            if measured == 1 {
                "1 of them was".to_owned()
            } else {
                format!("{} of them were", text::count(measured.into()))
            }
        ),
    }
}

/// Hours, GPU minutes, and when it is over.
#[component]
pub(in super::super) fn Cost(
    estimate: Estimate,
    /// Not all of it fits, so it is not over when everything would be.
    limited: bool,
) -> impl IntoView {
    let Estimate {
        loads,
        seconds,
        gpu_minutes,
        finish,
        unknown,
        ..
    } = estimate;
    let (Some(seconds), Some(gpu_minutes), Some(finish)) = (seconds, gpu_minutes, finish) else {
        let unknown = format!(
            "How long it takes is not known: of {} nothing alike ran on this host before. The first launch will tell.",
            text::plural(unknown.into(), "launch", "launches")
        );
        return view! { <p class="muted">{unknown}</p> }.into_any();
    };
    let finish = (!limited).then(|| {
        view! {
            <div>
                <dt>"Over at"</dt>
                <dd>
                    <ClockTime at=finish/>
                    <span class="row-note">{finish.exact()}</span>
                </dd>
            </div>
        }
    });
    view! {
        <dl class="facts">
            <div>
                <dt>"Loads of an engine"</dt>
                <dd>{text::count(loads.into())}</dd>
            </div>
            <div>
                <dt>"Time"</dt>
                <dd>{text::duration(seconds)}</dd>
            </div>
            <div>
                <dt>"GPU minutes"</dt>
                <dd>{text::figure(gpu_minutes)}</dd>
            </div>
            {finish}
        </dl>
    }
    .into_any()
}

/// What of it fits budget and time.
#[component]
fn Fits(fit: Fit, to_come: u32) -> impl IntoView {
    match fit {
        Fit::All => ().into_any(),
        Fit::Only { trials, until } => only(trials, until, to_come).into_any(),
        Fit::None => view! {
            <p class="caution">
                "Not even the first launch fits the budget and the time that are given, or nothing is known of how long it takes. The experiment would pause at once."
            </p>
        }
        .into_any(),
    }
}

fn only(trials: u32, until: Timestamp, to_come: u32) -> impl IntoView {
    let fits = format!(
        "{} of {} fit the budget and the time that are given; the last of them ends at about ",
        text::count(trials.into()),
        text::plural(to_come.into(), "launch", "launches")
    );
    view! {
        <p class="caution">
            {fits} <ClockTime at=until/> ". The experiment then pauses, and can be resumed."
        </p>
    }
}

/// The steps of an ablation, as they are put together.
#[component]
fn Steps(steps: Vec<Step>) -> impl IntoView {
    (!steps.is_empty()).then(|| {
        view! {
            <div>
                <h3>"Steps"</h3>
                <ol class="plan-steps">
                    {steps
                        .into_iter()
                        .map(|step| {
                            view! {
                                <li>
                                    <strong>{step.label}</strong>
                                    <ul>
                                        {step
                                            .changes
                                            .iter()
                                            .map(|change| {
                                                view! {
                                                    <li>
                                                        <code>{change.to_string()}</code>
                                                    </li>
                                                }
                                            })
                                            .collect_view()}
                                    </ul>
                                </li>
                            }
                        })
                        .collect_view()}
                </ol>
            </div>
        }
    })
}

/// Every configuration with its command. The fold stays as it is while one types.
#[component]
fn Cells(cells: Memo<Vec<PreviewCell>>) -> impl IntoView {
    let count = Memo::new(move |_| cells.with(Vec::len) as u64);
    view! {
        <Show when=move || { count.get() > 0 }>
            <details class="fold">
                <summary>
                    {move || text::plural(count.get(), "configuration", "configurations")}
                    " with their commands"
                </summary>
                <ol class="plan-cells">
                    {move || cells.get().into_iter().enumerate().map(cell).collect_view()}
                </ol>
            </details>
        </Show>
    }
}

fn cell((place, cell): (usize, PreviewCell)) -> impl IntoView {
    let first = (place == 0)
        .then(|| view! { <span class="muted">" the others are compared with it"</span> });
    view! {
        <li>
            <p>
                <strong>{cell.title}</strong>
                {first}
            </p>
            <pre class="verbatim" tabindex="0">
                {cell.command}
            </pre>
        </li>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_over_is_counted() {
        let preview = |launches, measured| ExperimentPreview {
            cells: Vec::new(),
            steps: Vec::new(),
            launches,
            measured,
            estimate: Estimate {
                loads: launches - measured,
                seconds: None,
                gpu_minutes: None,
                finish: None,
                unknown: launches - measured,
                fit: Fit::All,
                left_out: 0.0,
            },
            cautions: Vec::new(),
        };
        assert_eq!(counted(&preview(1, 0)), "0 configurations, 1 launch.");
        assert_eq!(
            counted(&preview(27, 1)),
            "0 configurations, 27 launches; 1 of them was measured before and taken over."
        );
        assert_eq!(
            counted(&preview(27, 3)),
            "0 configurations, 27 launches; 3 of them were measured before and taken over."
        );
    }
}
