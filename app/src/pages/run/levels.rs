//! The load levels, repeats taken together.

use leptos::prelude::*;
use tokdyno_domain::{text, views::run::LevelView};

use super::data::RunData;
use crate::components::{badges::SourceBadge, figures::EstimateCell, table::TableBox};

/// A row per level with a number of requests in flight.
#[component]
pub(super) fn Levels(data: RunData) -> impl IntoView {
    let levels = data.part(|view| {
        view.levels
            .iter()
            .filter(|level| !level.kind.is_open())
            .cloned()
            .collect::<Vec<_>>()
    });
    let has_bounds = Memo::new(move |_| {
        levels.with(|levels| levels.iter().any(|level| level.goodput.is_some()))
    });
    view! {
        <Show when=move || levels.with(|levels| !levels.is_empty())>
            <section aria-labelledby="levels-title">
                <h2 id="levels-title">"Load levels"</h2>
                <TableBox label="Figures of each load level">
                    <table class="data run-levels">
                        <thead>
                            <tr>
                                <th scope="col">"Level"</th>
                                <th scope="col">"Source"</th>
                                <th scope="col" class="num">"Output, tok/s"</th>
                                <th scope="col" class="num">"Steady, tok/s"</th>
                                <th scope="col" class="num">"Each user, tok/s"</th>
                                <th scope="col" class="num">"TTFT, ms"</th>
                                <th scope="col" class="num">"TPOT, ms"</th>
                                <th scope="col" class="num">"In flight"</th>
                                <Show when=move || has_bounds.get()>
                                    <th scope="col" class="num">"Goodput, req/s"</th>
                                </Show>
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
                    "Mean over repeats, smallest to largest below. A single stream's output is the median speed of a request, time to first token included; TTFT, TPOT and each user's speed are medians."
                </p>
            </section>
        </Show>
    }
}

fn row(level: &LevelView, bounds: bool) -> impl IntoView + use<> {
    let doubtful = level.is_doubtful();
    view! {
        <tr class:doubtful=doubtful>
            <th scope="row">
                {level.kind.to_string()} {level.disputed.then_some(" (disputed)")}
            </th>
            <td>
                <SourceBadge source=level.source/>
            </td>
            <td class="num">
                <EstimateCell estimate=level.single_stream.or(level.output_tps) doubtful/>
            </td>
            <td class="num">
                <EstimateCell estimate=level.steady_output_tps doubtful/>
            </td>
            <td class="num">
                <EstimateCell estimate=level.decode_tps doubtful/>
            </td>
            <td class="num">
                <EstimateCell estimate=level.ttft_ms doubtful/>
            </td>
            <td class="num">
                <EstimateCell estimate=level.tpot_ms doubtful/>
            </td>
            <td class="num">
                <EstimateCell estimate=level.achieved_concurrency doubtful/>
            </td>
            {bounds
                .then(|| {
                    view! {
                        <td class="num">
                            <EstimateCell estimate=level.goodput doubtful/>
                        </td>
                    }
                })}
            <td class="num">{text::count(level.completed)}</td>
            <td class="num">{text::count(level.failed)}</td>
        </tr>
    }
}
