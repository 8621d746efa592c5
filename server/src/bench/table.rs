//! What is said of a result on a terminal.

mod around;
mod failures;
mod grid;

use std::collections::BTreeSet;

use tokdyno_domain::{
    meter::MeterOutcome,
    result_file::{ResultFile, ResultStage},
    statistics::Estimate,
    text,
    workload::StageKind,
};

use self::grid::{Column, Grid};
use super::terminal::name;

/// The whole report: a heading, a line per stage, the single stream over its
/// repeats, what went on around the stages, and what a reader must know. Tables
/// leave columns out where a line has room for `width` characters only.
pub(crate) fn report(result: &ResultFile, width: Option<usize>) -> String {
    let mut out = heading(result);
    if result.stages.is_empty() {
        out.push_str("\nNo request was finished, so there is nothing to show.\n");
    } else {
        let (open, closed): (Vec<_>, Vec<_>) =
            result.stages.iter().partition(|stage| stage.kind.is_open());
        for grid in [closed_grid(&closed), open_grid(&open)] {
            if !grid.is_empty() {
                out.push('\n');
                out.push_str(&grid.fitted(width));
            }
        }
        if let Some(single) = single_stream(&result.stages) {
            out.push('\n');
            out.push_str(&single);
        }
        out.push_str(&left_out(result));
        out.push_str(&failures::said(&result.stages));
        out.push_str(&around::said(&result.stages));
        out.push_str(&remarks(&result.stages));
    }
    match &result.outcome {
        MeterOutcome::Complete => {}
        MeterOutcome::Cancelled => out.push_str(
            "\nStopped before the end: the figures rest on what was finished until then.\n",
        ),
        MeterOutcome::Failed { reason } => out.push_str(&format!("\nFailed: {reason}\n")),
    }
    if result.endpoint.simulated {
        out.push_str(
            "\n*** SIMULATED: these figures come from the stand-in engine and say nothing about a real GPU. ***\n",
        );
    }
    out
}

/// What to say where not one request succeeded.
pub(crate) fn nothing_succeeded(result: &ResultFile) -> String {
    let why = failures::reasons(&result.stages);
    let why = why.first().map_or_else(
        || "The table says how far it came".to_owned(),
        |reason| {
            format!(
                "Most often ({}): {}",
                failures::requests(reason.requests),
                reason.sentence.trim_end_matches('.')
            )
        },
    );
    format!("Not one request succeeded. {why}. Look at the server's log.")
}

/// Engine and version in words.
pub(crate) fn engine(result: &ResultFile) -> String {
    let endpoint = &result.endpoint;
    endpoint.engine.map_or_else(
        || "unknown engine".to_owned(),
        |engine| match &endpoint.engine_version {
            Some(version) => format!("{engine} {}", name(version)),
            None => engine.name().to_owned(),
        },
    )
}

fn heading(result: &ResultFile) -> String {
    let simulated = if result.endpoint.simulated {
        " · SIMULATED"
    } else {
        ""
    };
    let mut out = String::new();
    if let Some(configuration) = &result.configuration {
        out.push_str(&format!("{}\n", name(configuration)));
    }
    let workload = &result.workload;
    // Not known where it ended before it began.
    let model = match result.endpoint.model.as_str() {
        "" => String::new(),
        model => format!(" · {}", name(model)),
    };
    out.push_str(&format!(
        "{} · {}{model}{simulated}\n{}\n{}; seed {}\n",
        result.endpoint.url,
        engine(result),
        workload.describe(),
        name(&workload.prompts.title()),
        workload.seed,
    ));
    out
}

const CLOSED: [Column; 11] = [
    Column::needed("stage"),
    Column::needed("C"),
    Column::spare("repeat", 2),
    Column::needed("ok/failed"),
    Column::needed("output tok/s"),
    Column::spare("steady", 4),
    Column::spare("TTFT p50 ms", 1),
    Column::spare("p99", 3),
    Column::needed("TPOT p50 ms"),
    Column::spare("e2e tok/s p50", 5),
    Column::needed(""),
];

fn closed_grid(stages: &[&ResultStage]) -> Grid {
    let rows = stages.iter().map(|stage| {
        let figures = &stage.figures;
        let kind = match stage.kind {
            StageKind::SingleStream => "single",
            _ => "loop",
        };
        vec![
            format!("{} {kind}", stage.index + 1),
            stage
                .kind
                .concurrency()
                .map_or_else(String::new, |concurrency| concurrency.to_string()),
            (stage.repeat + 1).to_string(),
            answered(stage),
            text::optional(figures.output_tps),
            text::optional(figures.steady_output_tps),
            text::optional(figures.ttft_ms.p50),
            text::optional(figures.ttft_ms.p99),
            text::optional(figures.tpot_ms.p50),
            text::optional(figures.e2e_tps.p50),
            mark(stage),
        ]
    });
    Grid::new(&CLOSED, rows.collect())
}

const OPEN: [Column; 12] = [
    Column::needed("stage"),
    Column::spare("repeat", 4),
    Column::needed("ok/failed"),
    Column::needed("req/s"),
    Column::spare("output tok/s", 1),
    Column::spare("in flight", 6),
    Column::spare("at most", 7),
    Column::needed("TTFT* p50 ms"),
    Column::spare("p99", 2),
    Column::spare("TTFT p50 ms", 5),
    Column::spare("TPOT p50 ms", 3),
    Column::needed(""),
];

fn open_grid(stages: &[&ResultStage]) -> Grid {
    let rows = stages.iter().map(|stage| {
        let figures = &stage.figures;
        vec![
            format!("{} {}", stage.index + 1, stage.kind),
            (stage.repeat + 1).to_string(),
            answered(stage),
            text::optional(figures.request_throughput),
            text::optional(figures.output_tps),
            text::optional(figures.achieved_concurrency),
            figures
                .peak_in_flight
                .map_or_else(|| text::NO_FIGURE.to_owned(), |peak| peak.to_string()),
            text::optional(figures.ttft_intended_ms.p50),
            text::optional(figures.ttft_intended_ms.p99),
            text::optional(figures.ttft_ms.p50),
            text::optional(figures.tpot_ms.p50),
            mark(stage),
        ]
    });
    Grid::new(&OPEN, rows.collect())
        .noted("* from the moment a request was to be sent (ttft_intended), not when it left.")
}

fn answered(stage: &ResultStage) -> String {
    format!(
        "{}/{}",
        text::count(stage.figures.completed),
        text::count(stage.figures.failed)
    )
}

fn mark(stage: &ResultStage) -> String {
    if stage.figures.flags.is_empty() {
        String::new()
    } else {
        "!".to_owned()
    }
}

/// Per repeat the median `e2e_tps`, then the mean over repeats: never pooled. Repeats
/// on which no verdict may rest are left out.
fn single_stream(stages: &[ResultStage]) -> Option<String> {
    let (sound, others): (Vec<&ResultStage>, Vec<_>) = stages
        .iter()
        .filter(|stage| stage.complete && stage.kind == StageKind::SingleStream)
        .partition(|stage| stage.figures.supports_verdict());
    let of = |figure: fn(&ResultStage) -> Option<f64>| {
        Estimate::of(sound.iter().filter_map(|stage| figure(stage)))
    };
    let Some(speed) = of(|stage| stage.figures.e2e_tps.p50) else {
        return (!others.is_empty())
            .then(|| "Single stream: no repeat supports a figure.\n".to_owned());
    };
    let decode = of(|stage| stage.figures.decode_tps.p50);
    let spread = if speed.n > 1 {
        format!(
            ", {} to {} over {} repeats",
            text::figure(speed.low),
            text::figure(speed.high),
            speed.n
        )
    } else {
        ", one repeat: its spread is unknown".to_owned()
    };
    let decode = decode.map_or_else(String::new, |decode| {
        format!("; decoding alone {} tok/s", text::figure(decode.mean))
    });
    let left_out = if others.is_empty() {
        String::new()
    } else {
        let repeats = text::plural(others.len() as u64, "repeat", "repeats");
        format!("; {repeats} left out, on which no verdict may rest")
    };
    Some(format!(
        "Single stream: {} tok/s{spread}{decode}{left_out}.\n",
        text::figure(speed.mean)
    ))
}

/// Levels that the rule of saturation left out.
fn left_out(result: &ResultFile) -> String {
    let levels: BTreeSet<StageKind> = result
        .workload
        .plan()
        .iter()
        .filter(|stage| result.skipped.contains(&stage.index))
        .map(|stage| stage.level.kind)
        .collect();
    if levels.is_empty() {
        return String::new();
    }
    format!(
        "\nThroughput rose no more, so these were left out: {}.\n",
        levels
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    )
}

/// Every flag in a sentence, with the stages it stands at.
fn remarks(stages: &[ResultStage]) -> String {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for stage in stages {
        let place = (stage.index + 1).to_string();
        for flag in &stage.figures.flags {
            let sentence = flag.sentence();
            match said.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, places)) if places.contains(&place) => {}
                Some((_, places)) => places.push(place.clone()),
                None => said.push((sentence, vec![place.clone()])),
            }
        }
    }
    let mut out = String::new();
    for (sentence, places) in said {
        if out.is_empty() {
            out.push('\n');
        }
        let stages = if places.len() == 1 { "stage" } else { "stages" };
        out.push_str(&format!("! {stages} {}: {sentence}\n", places.join(", ")));
    }
    out
}

#[cfg(test)]
mod tests;
