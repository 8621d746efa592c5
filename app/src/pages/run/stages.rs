//! Every stage by itself: a load level in one repeat, with its distributions.

use leptos::prelude::*;
use tokdyno_domain::{
    goodput::Goodput,
    metrics::{Distribution, StageFlag},
    text,
    views::run::StageView,
};

use super::data::RunData;
use crate::components::table::TableBox;

/// A row per stage, and below it the percentiles.
#[component]
pub(super) fn Stages(data: RunData) -> impl IntoView {
    let stages = data.part(|view| view.stages.clone());
    let measured = data.part(|view| view.stages.iter().any(|stage| stage.ttft_ms.count > 0));
    view! {
        <Show when=move || stages.with(|stages| !stages.is_empty())>
            <details class="section-fold">
                <summary>
                    <h2>
                        {move || {
                            format!(
                                "Stages ({})",
                                text::count(stages.with(Vec::len) as u64),
                            )
                        }}
                    </h2>
                </summary>
                <TableBox label="Stages">
                    <table class="data">
                        <thead>
                            <tr>
                                <th scope="col">"Stage"</th>
                                <th scope="col" class="num">"Repeat"</th>
                                <th scope="col" class="num">"Requests"</th>
                                <th scope="col" class="num">"Failed"</th>
                                <th scope="col" class="num">"Stopped"</th>
                                <th scope="col" class="num">"Seconds"</th>
                                <th scope="col" class="num">"Tokens"</th>
                                <th scope="col" class="num">"Output, tok/s"</th>
                                <th scope="col" class="num">"Steady, tok/s"</th>
                                <th scope="col" class="num">"Peak, tok/s"</th>
                                <th scope="col" class="num">"Answered, req/s"</th>
                                <th scope="col" class="num">"In flight"</th>
                                <th scope="col" class="num">"At most"</th>
                                <th scope="col">"Remarks"</th>
                            </tr>
                        </thead>
                        <tbody>{move || stages.get().into_iter().map(row).collect_view()}</tbody>
                    </table>
                </TableBox>
            </details>
        </Show>
        <Show when=move || measured.get()>
            <details class="section-fold">
                <summary>
                    <h2>"Distributions per stage"</h2>
                </summary>
                <TableBox label="Distributions">
                    <table class="data">
                        <thead>
                            <tr>
                                <th scope="col">"Stage"</th>
                                <th scope="col">"Metric"</th>
                                <th scope="col" class="num">"n"</th>
                                <th scope="col" class="num">"Mean"</th>
                                <th scope="col" class="num">"Min"</th>
                                <th scope="col" class="num">"p50"</th>
                                <th scope="col" class="num">"p90"</th>
                                <th scope="col" class="num">"p95"</th>
                                <th scope="col" class="num">"p99"</th>
                                <th scope="col" class="num">"Max"</th>
                            </tr>
                        </thead>
                        <tbody>
                            {move || {
                                stages.with(|stages| stages.iter().flat_map(distributions).collect_view())
                            }}
                        </tbody>
                    </table>
                </TableBox>
                <p class="muted">
                    "Over the successful requests of a stage. Below 100 requests there is no p99: it would be the maximum under another name."
                </p>
            </details>
        </Show>
    }
}

fn row(stage: StageView) -> impl IntoView {
    let doubtful = stage.disputed
        || stage.remark.is_some()
        || stage.flags.iter().any(StageFlag::forbids_verdict);
    let mut remarks: Vec<String> = stage.flags.iter().map(StageFlag::sentence).collect();
    remarks.extend(stage.remark);
    if let Some(goodput) = &stage.goodput {
        remarks.push(good(goodput, stage.completed));
    }
    remarks.extend(stage.conditions.ended_early);
    if stage.disputed {
        remarks.push("Notes disagree about this figure.".to_owned());
    }
    view! {
        <tr class:doubtful=doubtful>
            <th scope="row">
                {stage.kind.to_string()} {(!stage.complete).then_some(" (not to its end)")}
            </th>
            <td class="num">{stage.repeat + 1}</td>
            <td class="num">{text::count(stage.completed)}</td>
            <td class="num">{text::count(stage.failed)}</td>
            <td class="num">{text::count(stage.cancelled)}</td>
            <td class="num">{text::optional(stage.duration_s)}</td>
            <td class="num">{text::count(stage.output_tokens)}</td>
            <td class="num">{text::optional(stage.output_tps)}</td>
            <td class="num">{text::optional(stage.steady_output_tps)}</td>
            <td class="num">{text::optional(stage.peak_output_tps)}</td>
            <td class="num">{text::optional(stage.request_throughput)}</td>
            <td class="num">{text::optional(stage.achieved_concurrency)}</td>
            <td class="num">
                {stage
                    .peak_in_flight
                    .map_or_else(|| text::NO_FIGURE.to_owned(), |peak| text::count(peak.into()))}
            </td>
            <td class="remark">{remarks.join(" ")}</td>
        </tr>
    }
}

/// `31 of 40 requests were good; 2 lack a bounded figure.`
fn good(goodput: &Goodput, completed: u64) -> String {
    let lacking = match goodput.undefined {
        0 => String::new(),
        lacking => format!("; {} lack a bounded figure", text::count(lacking)),
    };
    format!(
        "{} of {} met the bounds{lacking}.",
        text::count(goodput.good),
        text::plural(completed, "request", "requests"),
    )
}

fn distributions(stage: &StageView) -> Vec<AnyView> {
    let name = format!("{}, repeat {}", stage.kind, stage.repeat + 1);
    [
        ("TTFT, ms", stage.ttft_ms),
        ("TTFT from schedule, ms", stage.ttft_intended_ms),
        ("First answer text, ms", stage.first_answer_ms),
        ("TPOT, ms", stage.tpot_ms),
        ("Between tokens, ms", stage.itl_ms),
        ("End to end, ms", stage.e2el_ms),
        ("Speed, tok/s", stage.e2e_tps),
        ("After the first token, tok/s", stage.decode_tps),
    ]
    .into_iter()
    .filter(|(_, distribution)| distribution.count > 0)
    .map(|(metric, distribution)| distribution_row(name.clone(), metric, &distribution).into_any())
    .collect()
}

fn distribution_row(
    stage: String,
    metric: &'static str,
    distribution: &Distribution,
) -> impl IntoView + use<> {
    let figures = [
        distribution.mean,
        distribution.min,
        distribution.p50,
        distribution.p90,
        distribution.p95,
        distribution.p99,
        distribution.max,
    ];
    view! {
        <tr>
            <th scope="row">{stage}</th>
            <td>{metric}</td>
            <td class="num">{text::count(distribution.count)}</td>
            {figures.map(|figure| view! { <td class="num">{text::optional(figure)}</td> })}
        </tr>
    }
}
