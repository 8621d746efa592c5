//! What a figure is called, and which figures are judged.

use super::super::figures::{FigureKey, TrialFigures};
use crate::{statistics::Better, workload::StageKind};

/// Every figure that was measured: those that are judged first, by load level.
pub(super) fn keys(figures: &[TrialFigures]) -> Vec<FigureKey> {
    let mut keys: Vec<FigureKey> = figures
        .iter()
        .flat_map(|trial| trial.figures.keys().cloned())
        .collect();
    keys.sort_unstable_by_key(|key| (!is_judged(key), key.level, key.metric.clone()));
    keys.dedup();
    keys
}

/// The figures on which verdicts are given: the speed for one user, and the throughput
/// at each concurrency. The others are shown with intervals alone, since every further
/// family of verdicts is a further chance to err.
pub(super) fn is_judged(key: &FigureKey) -> bool {
    is_single_stream(key) || is_throughput(key)
}

pub(super) fn is_single_stream(key: &FigureKey) -> bool {
    key.level == StageKind::SingleStream && key.metric == "e2e_tps"
}

pub(super) fn is_throughput(key: &FigureKey) -> bool {
    matches!(key.level, StageKind::ClosedLoop { .. }) && key.metric == "output_tps"
}

/// What people call it.
pub(super) fn label(key: &FigureKey) -> String {
    if is_single_stream(key) {
        "single-stream speed".to_owned()
    } else if is_throughput(key) {
        format!("output throughput at {}", key.level)
    } else {
        format!("{} at {}", key.metric, key.level)
    }
}

/// Which question it answers, at the start of a sentence.
pub(super) fn occasion(key: &FigureKey) -> String {
    match key.level {
        StageKind::SingleStream => "For one user".to_owned(),
        level => format!("At {level}"),
    }
}

/// Part of an element's id.
pub(super) fn slug(key: &FigureKey) -> String {
    match key.level {
        StageKind::SingleStream => "single-stream".to_owned(),
        StageKind::ClosedLoop { concurrency } => format!("c{concurrency}"),
        // `12.5 req/s (Poisson)` and the like, as far as an id may hold it.
        level => level
            .to_string()
            .replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"),
    }
}

/// The unit; empty where the metric's name does not tell.
pub(super) fn unit(metric: &str) -> &'static str {
    if metric.ends_with("_tps") {
        "tok/s"
    } else if is_latency(metric) {
        "ms"
    } else {
        ""
    }
}

/// Latencies are better short; everything else is a speed.
pub(super) fn better(metric: &str) -> Better {
    if is_latency(metric) {
        Better::Lower
    } else {
        Better::Higher
    }
}

fn is_latency(metric: &str) -> bool {
    const LATENCIES: [&str; 5] = ["ttft", "e2el", "tpot", "itl", "icl"];
    metric.ends_with("_ms")
        || LATENCIES
            .iter()
            .any(|name| metric.split('_').next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_unit_and_direction() {
        for (metric, unit_of, better_of) in [
            ("e2e_tps", "tok/s", Better::Higher),
            ("ttft", "ms", Better::Lower),
            ("ttft_p90", "ms", Better::Lower),
            ("tpot_ms", "ms", Better::Lower),
            ("achieved_concurrency", "", Better::Higher),
        ] {
            assert_eq!((unit(metric), better(metric)), (unit_of, better_of));
        }
    }
}
