//! The metrics by name: what each means in a sentence, and where it stands in a
//! result. `docs/metrics.md` defines them.

use tokdyno_domain::{
    metrics::{Distribution, StageFigures},
    result_file::ResultStage,
};

/// A metric of a stage.
#[derive(Debug)]
pub(crate) struct Metric {
    /// Its name, that of the field.
    pub(crate) name: &'static str,
    /// Its unit; empty for a plain number.
    pub(crate) unit: &'static str,
    /// What it is, in a sentence.
    pub(crate) meaning: &'static str,
    /// Where it stands.
    pub(crate) place: Place,
}

/// Where a metric stands in a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// One value per request or token; a statistic of them is asked for.
    Distribution(fn(&StageFigures) -> &Distribution),
    /// One value per stage.
    Value(fn(&ResultStage) -> Option<f64>),
}

/// A statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistic {
    Mean,
    Min,
    P50,
    P90,
    P95,
    P99,
    Max,
}

impl Statistic {
    /// All of them, by the word at the end of a name.
    pub(crate) const ALL: [(&'static str, Self); 7] = [
        ("mean", Self::Mean),
        ("min", Self::Min),
        ("p50", Self::P50),
        ("p90", Self::P90),
        ("p95", Self::P95),
        ("p99", Self::P99),
        ("max", Self::Max),
    ];

    /// Its value; none where it is not defined.
    pub(crate) const fn of(self, distribution: &Distribution) -> Option<f64> {
        match self {
            Self::Mean => distribution.mean,
            Self::Min => distribution.min,
            Self::P50 => distribution.p50,
            Self::P90 => distribution.p90,
            Self::P95 => distribution.p95,
            Self::P99 => distribution.p99,
            Self::Max => distribution.max,
        }
    }
}

macro_rules! distribution {
    ($name:literal, $unit:literal, $field:ident, $meaning:literal) => {
        Metric {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            place: Place::Distribution(|figures| &figures.$field),
        }
    };
}

macro_rules! value {
    ($name:literal, $unit:literal, $meaning:literal, $place:expr) => {
        Metric {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            place: Place::Value($place),
        }
    };
}

/// All metrics, latencies first.
pub(crate) const METRICS: &[Metric] = &[
    distribution!(
        "ttft",
        "ms",
        ttft_ms,
        "Time to first token: from just before the request is written until its first token chunk."
    ),
    distribution!(
        "ttft_intended",
        "ms",
        ttft_intended_ms,
        "At a rate: from the moment the request was to be sent until its first token chunk."
    ),
    distribution!(
        "first_answer",
        "ms",
        first_answer_ms,
        "From sent until the first chunk of answer text, reasoning not counted."
    ),
    distribution!(
        "tpot",
        "ms",
        tpot_ms,
        "Time per output token after the first chunk: (e2el - ttft) / (n - n1)."
    ),
    distribution!(
        "itl",
        "ms",
        itl_ms,
        "Gap between successive token chunks divided by the tokens of the later one."
    ),
    distribution!(
        "icl",
        "ms",
        icl_ms,
        "Gap between successive token chunks, whatever they carry."
    ),
    distribution!(
        "e2el",
        "ms",
        e2el_ms,
        "End-to-end latency: from sent until the last token chunk."
    ),
    distribution!(
        "e2e_tps",
        "tok/s",
        e2e_tps,
        "Speed of a request: its tokens / e2el. Its median is the single-stream speed of a repeat."
    ),
    distribution!(
        "decode_tps",
        "tok/s",
        decode_tps,
        "Speed of decoding alone: 1000 / tpot. Its median is the speed per user."
    ),
    value!(
        "output_tps",
        "tok/s",
        "Output throughput: tokens of all successful requests / (their last token - first sent).",
        |stage| stage.figures.output_tps
    ),
    value!(
        "steady_output_tps",
        "tok/s",
        "The same while all slots were busy; none for stages too short for it.",
        |stage| stage.figures.steady_output_tps
    ),
    value!(
        "peak_output_tps",
        "tok/s",
        "Most tokens that arrived within one second.",
        |stage| stage.figures.peak_output_tps
    ),
    value!(
        "request_throughput",
        "req/s",
        "Successful requests per second of the stage.",
        |stage| stage.figures.request_throughput
    ),
    value!(
        "goodput",
        "req/s",
        "Successful requests that met every bound of --goodput, per second of the stage.",
        |stage| stage.figures.goodput?.requests_per_s
    ),
    value!(
        "achieved_concurrency",
        "",
        "Requests in flight on average, failed ones included.",
        |stage| stage.figures.achieved_concurrency
    ),
    value!(
        "peak_in_flight",
        "",
        "Most requests in flight at any moment.",
        |stage| stage.figures.peak_in_flight.map(f64::from)
    ),
    value!("requests", "", "Requests sent.", |stage| Some(
        stage.figures.requests as f64
    )),
    value!("completed", "", "Requests that succeeded.", |stage| Some(
        stage.figures.completed as f64
    )),
    value!(
        "failures",
        "",
        "Requests that failed, those stopped by us not counted.",
        |stage| Some(stage.figures.failed as f64)
    ),
    value!(
        "failure_share",
        "",
        "Failed requests / (successful + failed), 0 to 1.",
        failure_share
    ),
    value!(
        "duration",
        "s",
        "From the first request sent to the last token of a successful one.",
        |stage| stage.figures.duration_s
    ),
    value!(
        "cached_share",
        "",
        "Prompt tokens that came from the prefix cache, by the replies' own count, 0 to 1.",
        cached_share
    ),
    value!(
        "prefix_hit_rate",
        "",
        "The same by the engine's metrics: tokens found in the prefix cache per token looked up.",
        |stage| stage.conditions.engine.as_ref()?.prefix_hit_rate()
    ),
    value!(
        "accept_length",
        "",
        "Speculative decoding: 1 + accepted / verify steps, the tokens that a step yields.",
        |stage| {
            let engine = stage.conditions.engine.as_ref()?;
            engine.speculation.as_ref()?.accept_length()
        }
    ),
    value!(
        "accept_rate",
        "",
        "Speculative decoding: accepted / drafted tokens, the bonus token not counted, 0 to 1.",
        |stage| {
            let engine = stage.conditions.engine.as_ref()?;
            engine.speculation.as_ref()?.accept_rate()
        }
    ),
];

/// Prompt tokens from the cache / prompt tokens, where the server tells both.
pub(crate) fn cached_share(stage: &ResultStage) -> Option<f64> {
    let cached = stage.figures.cached_tokens?;
    let prompt = stage.figures.prompt_tokens.filter(|tokens| *tokens > 0)?;
    Some(cached as f64 / prompt as f64)
}

fn failure_share(stage: &ResultStage) -> Option<f64> {
    let judged = stage.figures.completed + stage.figures.failed;
    (judged > 0).then(|| stage.figures.failed as f64 / judged as f64)
}

/// A line for each metric, as `--help-metrics` prints them.
pub(crate) fn explained() -> String {
    let mut out = String::new();
    for metric in METRICS {
        let unit = match metric.unit {
            "" => String::new(),
            unit => format!(" ({unit})"),
        };
        out.push_str(&format!("{}{unit}: {}\n", metric.name, metric.meaning));
    }
    let words: Vec<&str> = Statistic::ALL.iter().map(|(word, _)| *word).collect();
    out.push_str(&format!(
        "\nOf those with a value per request (ttft to decode_tps) --fail-if takes a statistic: ttft_p50, and so on with {}. \
         p99 is not defined below 100 requests. n are the tokens of a reply by the server's count, n1 those of its first chunk.\n",
        words.join(", ")
    ));
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_a_line_of_its_own() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len(), "no name twice");
        let text = explained();
        for metric in METRICS {
            let line = text
                .lines()
                .find(|line| line.split([' ', ':']).next() == Some(metric.name))
                .expect("a line");
            assert!(line.ends_with('.'), "{line}");
        }
    }
}
