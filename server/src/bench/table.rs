//! What is said of a result on a terminal.

use std::collections::BTreeSet;

use tokdyno_domain::{
    meter::MeterOutcome,
    result_file::{ResultFile, ResultStage},
    statistics::Estimate,
    text,
    workload::StageKind,
};

/// The whole report: a heading, a line per stage, the single stream over its
/// repeats, and what a reader must know.
pub(crate) fn report(result: &ResultFile) -> String {
    let mut out = heading(result);
    out.push('\n');
    if result.stages.is_empty() {
        out.push_str("No request was finished, so there is nothing to show.\n");
    } else {
        out.push_str(&stages(&result.stages));
        if let Some(single) = single_stream(&result.stages) {
            out.push('\n');
            out.push_str(&single);
        }
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

fn heading(result: &ResultFile) -> String {
    let endpoint = &result.endpoint;
    let engine = endpoint.engine.map_or_else(
        || "unknown engine".to_owned(),
        |engine| match &endpoint.engine_version {
            Some(version) => format!("{engine} {version}"),
            None => engine.name().to_owned(),
        },
    );
    let simulated = if endpoint.simulated {
        " · SIMULATED"
    } else {
        ""
    };
    let mut out = String::new();
    if let Some(configuration) = &result.configuration {
        out.push_str(&format!("{configuration}\n"));
    }
    out.push_str(&format!(
        "{} · {engine} · {}{simulated}\n{}\n",
        endpoint.url,
        endpoint.model,
        result.workload.describe()
    ));
    out
}

const HEADINGS: [&str; 11] = [
    "stage",
    "C",
    "repeat",
    "ok/failed",
    "output tok/s",
    "steady",
    "TTFT p50 ms",
    "p99",
    "TPOT p50 ms",
    "e2e tok/s p50",
    "",
];

fn stages(stages: &[ResultStage]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    for stage in stages {
        let figures = &stage.figures;
        let kind = match stage.stage_kind() {
            StageKind::SingleStream => "single",
            StageKind::ClosedLoop { .. } => "loop",
        };
        rows.push(vec![
            format!("{} {kind}", stage.index + 1),
            stage.concurrency.to_string(),
            (stage.repeat + 1).to_string(),
            format!(
                "{}/{}",
                text::count(figures.completed),
                text::count(figures.failed)
            ),
            text::optional(figures.output_tps),
            text::optional(figures.steady_output_tps),
            text::optional(figures.ttft_ms.p50),
            text::optional(figures.ttft_ms.p99),
            text::optional(figures.tpot_ms.p50),
            text::optional(figures.e2e_tps.p50),
            if figures.flags.is_empty() {
                String::new()
            } else {
                "!".to_owned()
            },
        ]);
    }
    aligned(&rows)
}

/// The first column to the left, figures to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            match column {
                0 => line.push_str(&format!("{cell}{space}")),
                _ => line.push_str(&format!("  {space}{cell}")),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Per repeat the median `e2e_tps`, then the mean over repeats: never pooled.
fn single_stream(stages: &[ResultStage]) -> Option<String> {
    let of = |figure: fn(&ResultStage) -> Option<f64>| {
        Estimate::of(
            stages
                .iter()
                .filter(|stage| stage.complete && stage.stage_kind() == StageKind::SingleStream)
                .filter_map(figure),
        )
    };
    let speed = of(|stage| stage.figures.e2e_tps.p50)?;
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
    Some(format!(
        "Single stream: {} tok/s{spread}{decode}.\n",
        text::figure(speed.mean)
    ))
}

/// Every flag in a sentence, with the stages it stands at.
fn remarks(stages: &[ResultStage]) -> String {
    let mut said = BTreeSet::new();
    let mut out = String::new();
    for stage in stages {
        for flag in &stage.figures.flags {
            let line = format!("! stage {}: {}\n", stage.index + 1, flag.sentence());
            if said.insert(line.clone()) {
                if out.is_empty() {
                    out.push('\n');
                }
                out.push_str(&line);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        engine::EngineKind,
        meter::ClientInfo,
        metrics::{Distribution, METRIC_VERSION, StageFigures, StageFlag},
        result_file::{RESULT_SCHEMA, ResultEndpoint, ResultStageKind, TOOL},
        timestamp::Timestamp,
        workload::Preset,
    };

    use super::*;

    fn stage(index: u32, repeat: u32, speed: f64) -> ResultStage {
        ResultStage {
            index,
            kind: ResultStageKind::SingleStream,
            concurrency: 1,
            repeat,
            complete: true,
            figures: StageFigures {
                requests: 5,
                completed: 5,
                output_tps: Some(speed - 1.0),
                e2e_tps: Distribution::of(vec![speed]),
                decode_tps: Distribution::of(vec![speed + 1.0]),
                ..Default::default()
            },
            records: Vec::new(),
        }
    }

    fn result(stages: Vec<ResultStage>) -> ResultFile {
        ResultFile {
            schema_version: RESULT_SCHEMA,
            tool: TOOL.to_owned(),
            tool_version: "0".to_owned(),
            metric_version: METRIC_VERSION,
            started_at: Timestamp(0),
            finished_at: Timestamp(0),
            configuration: None,
            hardware: None,
            endpoint: ResultEndpoint {
                url: "http://gpu1:8000".to_owned(),
                model: "kimi".to_owned(),
                engine: Some(EngineKind::Sglang),
                engine_version: Some("0.5.3".to_owned()),
                settings: std::collections::BTreeMap::new(),
                simulated: false,
            },
            client: ClientInfo::default(),
            workload: Preset::Quick.workload(),
            outcome: MeterOutcome::Complete,
            stages,
        }
    }

    #[test]
    fn repeats_are_averaged_and_their_spread_is_shown() {
        let text = report(&result(vec![stage(0, 0, 80.0), stage(1, 1, 90.0)]));
        assert!(
            text.contains(
                "Single stream: 85.0 tok/s, 80.0 to 90.0 over 2 repeats; decoding alone 86.0 tok/s."
            ),
            "{text}"
        );
        assert!(
            text.contains("http://gpu1:8000 · SGLang 0.5.3 · kimi\n"),
            "{text}"
        );
        assert!(!text.contains("SIMULATED"));
    }

    #[test]
    fn columns_stand_below_their_headings() {
        let text = stages(&[stage(0, 0, 2320.0)]);
        let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        let end = |line: &[char], what: &str| {
            let line: String = line.iter().collect();
            let byte = line.find(what).expect("found") + what.len();
            line[..byte].chars().count()
        };
        assert_eq!(end(&lines[0], "output tok/s"), end(&lines[1], "2,319"));
        assert_eq!(end(&lines[0], "e2e tok/s p50"), end(&lines[1], "2,320"));
    }

    #[test]
    fn flags_simulation_and_endings_are_said() {
        let mut flagged = stage(0, 0, 80.0);
        flagged.figures.flags.push(StageFlag::Partial);
        flagged.complete = false;
        let mut result = result(vec![flagged]);
        result.outcome = MeterOutcome::Cancelled;
        result.endpoint.simulated = true;
        let text = report(&result);
        assert!(
            text.contains("! stage 1: The stage did not run to its end"),
            "{text}"
        );
        assert!(text.contains("Stopped before the end"), "{text}");
        assert!(text.contains("*** SIMULATED"), "{text}");
        assert!(
            !text.contains("Single stream: "),
            "a partial stage is no figure"
        );
        result.stages.clear();
        assert!(report(&result).contains("No request was finished"));
    }
}
