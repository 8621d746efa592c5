//! What comes from which step of an ablation: shares as bars, and each step three ways.

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::results::{Attribution, Interaction, Part, StepAttribution},
    statistics::LogShare,
    text,
};

use super::{data::ExperimentData, effects::name, number::Change, traces::Traces};
use crate::components::{StandingBadge, TableBox, VerdictBadge};

/// Width of the drawing of a share, in its own units: from −60 to 160 %.
const BAR: (f64, f64) = (-0.6, 1.6);

/// A table per figure.
#[component]
pub(super) fn Attributions(data: ExperimentData) -> impl IntoView {
    let found = data.found(|found| found.attributions.clone());
    view! {
        {move || {
            found
                .get()
                .into_iter()
                .map(|found| view! { <Table data found/> })
                .collect_view()
        }}
    }
}

#[component]
fn Table(data: ExperimentData, found: Attribution) -> impl IntoView {
    let title = format!("{}: what comes from which step", name(&found.key));
    let heading = title.clone();
    let total = found.total;
    let rows = found
        .steps
        .into_iter()
        .map(|step| view! { <Step data step/> })
        .collect_view();
    view! {
        <section class="section attribution" aria-label=title.clone()>
            <h2>{heading}</h2>
            <p>{found.sentence}</p>
            <TableBox label=format!("{}: the steps", name(&found.key))>
                <table class="data">
                    <thead>
                        <tr>
                            <th scope="col">"Step"</th>
                            <th scope="col">"Share of the total"</th>
                            <th scope="col">"Added in the order of the chain"</th>
                            <th scope="col">"Alone"</th>
                            <th scope="col">"Left out"</th>
                            <th scope="col">"What may be said"</th>
                        </tr>
                    </thead>
                    <tbody>
                        {rows}
                        <tr>
                            <th scope="row">"All of them"</th>
                            <td>"100 %"</td>
                            <td>
                                <Way data part=Some(total)/>
                            </td>
                            <td></td>
                            <td></td>
                            <td></td>
                        </tr>
                    </tbody>
                </table>
            </TableBox>
            <Interactions interactions=found.interactions/>
        </section>
    }
}

#[component]
fn Step(data: ExperimentData, step: StepAttribution) -> impl IntoView {
    let share = step.added.as_ref().and_then(|part| part.share);
    view! {
        <tr>
            <th scope="row">{step.step}</th>
            <td>
                <Share share/>
            </td>
            <td>
                <Way data part=step.added/>
            </td>
            <td>
                <Way data part=step.alone/>
            </td>
            <td>
                <Way data part=step.left_out/>
            </td>
            <td>
                <StandingBadge standing=step.standing/>
            </td>
        </tr>
    }
}

/// A ratio with its interval, its verdict, and the runs of both cells.
#[component]
fn Way(data: ExperimentData, part: Option<Part>) -> impl IntoView {
    let Some(part) = part else {
        return view! { <span class="muted">{text::NO_FIGURE}</span> }.into_any();
    };
    view! {
        <Change ratio=part.ratio/>
        <span class="row-note" title=part.verdict.sentence>
            <VerdictBadge kind=part.verdict.kind/>
        </span>
        <span class="row-note">
            <Traces data cell=part.to/>
            " against "
            <Traces data cell=part.from/>
        </span>
    }
    .into_any()
}

/// A share of the total as a bar with its interval, and in figures.
#[component]
fn Share(share: Option<LogShare>) -> impl IntoView {
    let Some(share) = share else {
        return view! { <span class="muted">{text::NO_FIGURE}</span> }.into_any();
    };
    let place = |value: f64| (value.clamp(BAR.0, BAR.1) - BAR.0) / (BAR.1 - BAR.0) * 220.0;
    let (zero, end) = (place(0.0), place(share.share));
    let (low, high) = (place(share.low), place(share.high));
    view! {
        <span class="figure">{text::share(share.share)}</span>
        <svg class="share-bar" viewBox="0 0 220 16" aria-hidden="true" focusable="false">
            <rect
                class="share-part"
                x=format!("{:.1}", zero.min(end))
                y="3"
                width=format!("{:.1}", (zero - end).abs())
                height="10"
            ></rect>
            <path class="share-ends" d=format!("M{low:.1} 8H{high:.1}M{low:.1} 4v8M{high:.1} 4v8")></path>
            <path class="share-zero" d=format!("M{zero:.1} 0v16")></path>
        </svg>
        <span class="interval">
            {format!("{} to {}", text::share(share.low), text::share(share.high))}
        </span>
    }
    .into_any()
}

/// Whether steps depend on each other.
#[component]
fn Interactions(interactions: Vec<Interaction>) -> impl IntoView {
    (!interactions.is_empty()).then(|| {
        view! {
            <details class="fold">
                <summary>"Do the steps depend on each other?"</summary>
                <ul class="verdicts">
                    {interactions
                        .into_iter()
                        .map(|found| {
                            let order = if found.matters() {
                                "The order matters. "
                            } else {
                                ""
                            };
                            view! {
                                <li class="verdict">
                                    <VerdictBadge kind=found.verdict.kind/>
                                    <p>
                                        <strong>{found.step}</strong>
                                        ": "
                                        {order}
                                        {found.verdict.sentence}
                                    </p>
                                </li>
                            }
                        })
                        .collect_view()}
                </ul>
            </details>
        }
    })
}
