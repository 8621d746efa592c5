//! What the experiment found, the answers first.

use leptos::prelude::*;
use tokdyno_domain::{experiment::results::Doubt, text};

use super::{
    attribution::Attributions,
    data::ExperimentData,
    effects::{BestCells, Effects, FrontTable},
    heat::HeatMaps,
};
use crate::components::chart::Charts;

/// Sentences, heat maps, effects, best cells, attribution, charts, doubts.
#[component]
pub(super) fn Results(data: ExperimentData) -> impl IntoView {
    let headline = data.found(|found| found.headline.clone());
    let any = data.part(|view| view.results.is_some());
    let over = data.summary(|summary| summary.state.is_over());
    let charts = Signal::from(data.found(|found| found.charts.clone()));
    let base = Some(format!("/experiments/{}/charts", data.id));
    let none = move || {
        if over.get() {
            "It ended without a figure. The launches below say why."
        } else {
            "There is no figure yet. The first one comes with the first launch that was measured; this page shows it by itself."
        }
    };
    view! {
        <section class="section" aria-labelledby="findings-title">
            <h2 id="findings-title">"Findings"</h2>
            <Show
                when=move || any.get()
                fallback=move || view! { <p class="muted">{none}</p> }
            >
                <ul class="sentences findings">
                    {move || {
                        headline
                            .get()
                            .into_iter()
                            .map(|sentence| view! { <li>{sentence}</li> })
                            .collect_view()
                    }}
                </ul>
            </Show>
        </section>
        <HeatMaps data/>
        <Attributions data/>
        <Effects data/>
        <BestCells data/>
        <Charts views=charts base/>
        <FrontTable data/>
        <Doubts data/>
    }
}

/// Runs on which no verdict rests, and why.
#[component]
fn Doubts(data: ExperimentData) -> impl IntoView {
    let doubts = data.part(|view| view.doubts.clone());
    let any = Memo::new(move |_| doubts.with(|doubts| !doubts.is_empty()));
    view! {
        <Show when=move || any.get()>
            <section class="section" aria-labelledby="doubts-title">
                <h2 id="doubts-title">"In doubt"</h2>
                <p class="muted">
                    {move || {
                        format!(
                            "No verdict rests on {}. Their figures are shown.",
                            text::plural(
                                doubts.with(Vec::len) as u64,
                                "figure of a run",
                                "figures of runs",
                            ),
                        )
                    }}
                </p>
                <ul class="sentences">
                    {move || doubts.get().into_iter().map(doubt).collect_view()}
                </ul>
            </section>
        </Show>
    }
}

fn doubt(doubt: Doubt) -> impl IntoView {
    let at = doubt
        .level
        .map_or_else(String::new, |level| format!(" at {level}"));
    view! {
        <li>
            <a href=format!("/runs/{}", doubt.run)>{format!("Run {}", doubt.run)}</a>
            {at}
            ": "
            {doubt.what}
            "."
        </li>
    }
}
