//! The stages of a run as a table: a line per stage.

use tokdyno_domain::{
    conditions::Speculation,
    metrics::{Distribution, StageFlag},
    views::run::{RunView, StageView},
    workload::{Arrivals, StageKind, Thousandths},
};
use tokdyno_figures::csv_field;

type Column = (&'static str, fn(&StageView) -> Option<f64>);

const COLUMNS: [Column; 36] = [
    ("completed", |stage| Some(stage.completed as f64)),
    ("failed", |stage| Some(stage.failed as f64)),
    ("cancelled", |stage| Some(stage.cancelled as f64)),
    ("duration_s", |stage| stage.duration_s),
    ("output_tokens", |stage| Some(stage.output_tokens as f64)),
    ("output_tps", |stage| stage.output_tps),
    ("steady_output_tps", |stage| stage.steady_output_tps),
    ("peak_output_tps", |stage| stage.peak_output_tps),
    ("request_throughput", |stage| stage.request_throughput),
    ("achieved_concurrency", |stage| stage.achieved_concurrency),
    ("peak_in_flight", |stage| {
        stage.peak_in_flight.map(f64::from)
    }),
    ("goodput", |stage| stage.goodput?.requests_per_s),
    ("ttft_ms_mean", |stage| stage.ttft_ms.mean),
    ("ttft_ms_p50", |stage| stage.ttft_ms.p50),
    ("ttft_ms_p90", |stage| stage.ttft_ms.p90),
    ("ttft_ms_p95", |stage| stage.ttft_ms.p95),
    ("ttft_ms_p99", |stage| stage.ttft_ms.p99),
    ("ttft_intended_ms_p50", |stage| stage.ttft_intended_ms.p50),
    ("ttft_intended_ms_p99", |stage| stage.ttft_intended_ms.p99),
    ("first_answer_ms_p50", |stage| stage.first_answer_ms.p50),
    ("first_answer_ms_p99", |stage| stage.first_answer_ms.p99),
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
    ("accept_length", |stage| speculation(stage)?.accept_length()),
    ("accept_rate", |stage| speculation(stage)?.accept_rate()),
    ("prefix_hit_rate", |stage| {
        stage.conditions.engine.as_ref()?.prefix_hit_rate()
    }),
];

fn mean(distribution: &Distribution) -> Option<f64> {
    distribution.mean
}

fn speculation(stage: &StageView) -> Option<&Speculation> {
    stage.conditions.engine.as_ref()?.speculation.as_ref()
}

/// Concurrency, rate, the rate at the end, arrivals, burstiness and speed, each empty
/// where the kind has none.
fn shape(kind: StageKind) -> [String; 6] {
    let number = |value: Option<Thousandths>| value.map_or_else(String::new, |v| v.to_string());
    let (rate, rate_to, arrivals, speed) = match kind {
        StageKind::SingleStream | StageKind::ClosedLoop { .. } => (None, None, None, None),
        StageKind::OpenLoop { rate, arrivals } => (Some(rate), None, Some(arrivals), None),
        StageKind::Ramp { from, to, arrivals } => (Some(from), Some(to), Some(arrivals), None),
        StageKind::Replay { speed } => (None, None, None, Some(speed)),
    };
    let (word, burstiness) = match arrivals {
        None => ("", None),
        Some(Arrivals::Constant) => ("constant", None),
        Some(Arrivals::Poisson) => ("poisson", None),
        Some(Arrivals::Gamma { burstiness }) => ("gamma", Some(burstiness)),
    };
    [
        kind.concurrency()
            .map_or_else(String::new, |concurrency| concurrency.to_string()),
        number(rate),
        number(rate_to),
        word.to_owned(),
        number(burstiness),
        number(speed),
    ]
}

/// A line per stage, in their order. A figure that is not defined is left empty.
pub(crate) fn csv<C>(view: &RunView<C>) -> String {
    let mut text = String::from(
        "run,configuration,stage,kind,concurrency,rate,rate_to,arrivals,burstiness,speed,repeat,complete,source",
    );
    for (name, _) in COLUMNS {
        text.push(',');
        text.push_str(name);
    }
    text.push_str(",flags\n");
    for stage in &view.stages {
        text.push_str(&format!(
            "{},{},{},{},{},{},{},{}",
            view.summary.id,
            csv_field(&view.summary.configuration),
            stage.index,
            stage.kind.word(),
            shape(stage.kind).join(","),
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
