//! The load levels at which a schedule says when requests are sent.

use leptos::prelude::*;
use tokdyno_domain::{text, views::run::LevelView};

use super::data::RunData;
use crate::components::{badges::SourceBadge, figures::EstimateCell, table::TableBox};

/// A row per rate, ramp or replay.
#[component]
pub(super) fn Rates(data: RunData) -> impl IntoView {
    let levels = data.part(|view| {
        view.levels
            .iter()
            .filter(|level| level.kind.is_open())
            .cloned()
            .collect::<Vec<_>>()
    });
    let has_bounds = Memo::new(move |_| {
        levels.with(|levels| levels.iter().any(|level| level.goodput.is_some()))
    });
    view! {
        <Show when=move || levels.with(|levels| !levels.is_empty())>
            <section aria-labelledby="rates-title">
                <h2 id="rates-title">"Load at given rates"</h2>
                <TableBox label="Figures at each rate">
                    <table class="data run-levels">
                        <thead>
                            <tr>
                                <th scope="col">"Asked"</th>
                                <th scope="col">"Source"</th>
                                <th scope="col" class="num">"Answered, req/s"</th>
                                <Show when=move || has_bounds.get()>
                                    <th scope="col" class="num">"Goodput, req/s"</th>
                                </Show>
                                <th scope="col" class="num">"TTFT p50, ms"</th>
                                <th scope="col" class="num">"TTFT p99, ms"</th>
                                <th scope="col" class="num">"From schedule p50, ms"</th>
                                <th scope="col" class="num">"From schedule p99, ms"</th>
                                <th scope="col" class="num">"TPOT, ms"</th>
                                <th scope="col" class="num">"Output, tok/s"</th>
                                <th scope="col" class="num">"In flight at most"</th>
                                <th scope="col" class="num">"Requests"</th>
                                <th scope="col" class="num">"Failed"</th>
                            </tr>
                        </thead>
                        <tbody>
                            {move || {
                                let bounds = has_bounds.get();
                                levels.with(|levels| {
                                    levels.iter().map(|level| row(level, bounds)).collect_view()
                                })
                            }}
                        </tbody>
                    </table>
                </TableBox>
                <p class="muted">
                    "Mean over repeats, smallest to largest below. “From schedule” counts from the moment at which a request was to be sent, so that waiting for its turn is part of it."
                </p>
            </section>
        </Show>
    }
}

fn row(level: &LevelView, bounds: bool) -> impl IntoView + use<> {
    let doubtful = level.is_doubtful();
    let cell = move |estimate| {
        view! {
            <td class="num">
                <EstimateCell estimate doubtful/>
            </td>
        }
    };
    let peak = level.peak_in_flight.map_or_else(
        || text::NO_FIGURE.to_owned(),
        |peak| text::count(peak.into()),
    );
    view! {
        <tr class:doubtful=doubtful>
            <th scope="row">{level.kind.to_string()}</th>
            <td>
                <SourceBadge source=level.source/>
            </td>
            {cell(level.request_throughput)}
            {bounds.then(|| cell(level.goodput))}
            {cell(level.ttft_ms)}
            {cell(level.ttft_p99_ms)}
            {cell(level.ttft_intended_ms)}
            {cell(level.ttft_intended_p99_ms)}
            {cell(level.tpot_ms)}
            {cell(level.output_tps)}
            <td class="num">{peak}</td>
            <td class="num">{text::count(level.completed)}</td>
            <td class="num">{text::count(level.failed)}</td>
        </tr>
    }
}
