//! The stages of a run as a table: a line per stage.

use tokdyno_domain::{
    metrics::{Distribution, StageFlag},
    views::run::{RunView, StageView},
    workload::StageKind,
};
use tokdyno_figures::csv_field;

type Column = (&'static str, fn(&StageView) -> Option<f64>);

const COLUMNS: [Column; 25] = [
    ("completed", |stage| Some(stage.completed as f64)),
    ("failed", |stage| Some(stage.failed as f64)),
    ("cancelled", |stage| Some(stage.cancelled as f64)),
    ("duration_s", |stage| stage.duration_s),
    ("output_tokens", |stage| Some(stage.output_tokens as f64)),
    ("output_tps", |stage| stage.output_tps),
    ("steady_output_tps", |stage| stage.steady_output_tps),
    ("achieved_concurrency", |stage| stage.achieved_concurrency),
    ("ttft_ms_mean", |stage| stage.ttft_ms.mean),
    ("ttft_ms_p50", |stage| stage.ttft_ms.p50),
    ("ttft_ms_p90", |stage| stage.ttft_ms.p90),
    ("ttft_ms_p95", |stage| stage.ttft_ms.p95),
    ("ttft_ms_p99", |stage| stage.ttft_ms.p99),
    ("tpot_ms_mean", |stage| stage.tpot_ms.mean),
    ("tpot_ms_p50", |stage| stage.tpot_ms.p50),
    ("tpot_ms_p90", |stage| stage.tpot_ms.p90),
    ("tpot_ms_p95", |stage| stage.tpot_ms.p95),
    ("tpot_ms_p99", |stage| stage.tpot_ms.p99),
    ("e2el_ms_mean", |stage| stage.e2el_ms.mean),
    ("e2el_ms_p50", |stage| stage.e2el_ms.p50),
    ("e2el_ms_p99", |stage| stage.e2el_ms.p99),
    ("e2e_tps_mean", |stage| mean(&stage.e2e_tps)),
    ("e2e_tps_p50", |stage| stage.e2e_tps.p50),
    ("decode_tps_mean", |stage| mean(&stage.decode_tps)),
    ("decode_tps_p50", |stage| stage.decode_tps.p50),
];

fn mean(distribution: &Distribution) -> Option<f64> {
    distribution.mean
}

/// A line per stage, in their order. A figure that is not defined is left empty.
pub(crate) fn csv<C>(view: &RunView<C>) -> String {
    let mut text = String::from("run,configuration,stage,kind,concurrency,repeat,complete,source");
    for (name, _) in COLUMNS {
        text.push(',');
        text.push_str(name);
    }
    text.push_str(",flags\n");
    for stage in &view.stages {
        let kind = match stage.kind {
            StageKind::SingleStream => "single_stream",
            StageKind::ClosedLoop { .. } => "closed_loop",
        };
        text.push_str(&format!(
            "{},{},{},{kind},{},{},{},{}",
            view.summary.id,
            csv_field(&view.summary.configuration),
            stage.index,
            stage.kind.concurrency(),
            stage.repeat,
            stage.complete,
            stage.source,
        ));
        for (_, value) in COLUMNS {
            text.push(',');
            if let Some(value) = value(stage).filter(|value| value.is_finite()) {
                text.push_str(&value.to_string());
            }
        }
        let flags: Vec<String> = stage.flags.iter().map(StageFlag::sentence).collect();
        text.push(',');
        text.push_str(&csv_field(&flags.join(" ")));
        text.push('\n');
    }
    text
}
