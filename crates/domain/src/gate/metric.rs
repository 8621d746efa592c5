//! The metrics by name: what each means in a sentence, and where it stands in a
//! result. `docs/metrics.md` defines them.

use std::fmt;

use crate::{
    metrics::{Distribution, cached_share},
    source::Source,
    statistics::Better,
    views::run::StageView,
};

/// A metric of a stage.
#[derive(Debug)]
pub struct Metric {
    /// Its name, that of the field.
    pub name: &'static str,
    /// Its unit; empty for a plain number.
    pub unit: &'static str,
    /// What it is, in a sentence.
    pub meaning: &'static str,
    /// Which way is better, of what is compared as a ratio.
    pub better: Option<Better>,
    /// Where it stands.
    pub place: Place,
}

/// Where a metric stands in a stage.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// One value per request or token; a statistic of them is asked for.
    Distribution(fn(&StageView) -> &Distribution),
    /// One value per stage.
    Value(fn(&StageView) -> Option<f64>),
}

/// A statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The smallest.
    Min,
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile; not defined below 100 requests.
    P99,
    /// The largest.
    Max,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Mean,
        Self::Min,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::Max,
    ];

    /// The word at the end of a name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    /// Its value; none where it is not defined.
    #[must_use]
    pub const fn of(self, distribution: &Distribution) -> Option<f64> {
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

/// What a rule is about: a metric, of a distribution with its statistic.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The metric.
    pub metric: &'static Metric,
    /// Which statistic; none of a metric with one value per stage.
    pub statistic: Option<Statistic>,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        // A metric is known by its name.
        self.metric.name == other.metric.name && self.statistic == other.statistic
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric.name)?;
        match self.statistic {
            Some(statistic) => write!(f, "_{}", statistic.word()),
            None => Ok(()),
        }
    }
}

impl Figure {
    /// Its value in a stage; none where it is not defined.
    #[must_use]
    pub fn of(&self, stage: &StageView) -> Option<f64> {
        match (self.metric.place, self.statistic) {
            (Place::Value(value), _) => value(stage),
            (Place::Distribution(of), Some(statistic)) => statistic.of(of(stage)),
            (Place::Distribution(_), None) => None,
        }
    }
}

impl Metric {
    /// Does it count requests?
    #[must_use]
    pub fn is_count(&self) -> bool {
        matches!(
            self.name,
            "requests" | "completed" | "failures" | "failure_share"
        )
    }

    /// The figure of this name, if it is one of this metric.
    pub(super) fn figure(&'static self, name: &str) -> Option<Figure> {
        let statistic = match self.place {
            Place::Value(_) => (name == self.name).then_some(None),
            Place::Distribution(_) => {
                let word = name.strip_prefix(self.name)?.strip_prefix('_')?;
                Statistic::ALL
                    .iter()
                    .find(|statistic| statistic.word() == word)
                    .map(|statistic| Some(*statistic))
            }
        }?;
        Some(Figure {
            metric: self,
            statistic,
        })
    }
}

/// Every name that a rule may use.
pub(super) fn names() -> Vec<String> {
    METRICS
        .iter()
        .flat_map(|metric| match metric.place {
            Place::Value(_) => vec![metric.name.to_owned()],
            Place::Distribution(_) => Statistic::ALL
                .iter()
                .map(|statistic| format!("{}_{}", metric.name, statistic.word()))
                .collect(),
        })
        .collect()
}

macro_rules! distribution {
    ($name:literal, $unit:literal, $better:ident, $field:ident, $meaning:literal) => {
        Metric {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            better: Some(Better::$better),
            place: Place::Distribution(|stage| &stage.$field),
        }
    };
}

macro_rules! value {
    ($name:literal, $unit:literal, $better:expr, $meaning:literal, $place:expr) => {
        Metric {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            better: $better,
            place: Place::Value($place),
        }
    };
}

/// All metrics, latencies first.
pub const METRICS: &[Metric] = &[
    distribution!(
        "ttft",
        "ms",
        Lower,
        ttft_ms,
        "Time to first token: from just before the request is written until its first token chunk."
    ),
    distribution!(
        "ttft_intended",
        "ms",
        Lower,
        ttft_intended_ms,
        "At a rate: from the moment the request was to be sent until its first token chunk."
    ),
    distribution!(
        "first_answer",
        "ms",
        Lower,
        first_answer_ms,
        "From sent until the first chunk of answer text, reasoning not counted."
    ),
    distribution!(
        "tpot",
        "ms",
        Lower,
        tpot_ms,
        "Time per output token after the first chunk: (e2el - ttft) / (n - n1)."
    ),
    distribution!(
        "itl",
        "ms",
        Lower,
        itl_ms,
        "Gap between successive token chunks divided by the tokens of the later one."
    ),
    distribution!(
        "icl",
        "ms",
        Lower,
        icl_ms,
        "Gap between successive token chunks, whatever they carry."
    ),
    distribution!(
        "e2el",
        "ms",
        Lower,
        e2el_ms,
        "End-to-end latency: from sent until the last token chunk."
    ),
    distribution!(
        "e2e_tps",
        "tok/s",
        Higher,
        e2e_tps,
        "Speed of a request: its tokens / e2el. Its median is the single-stream speed of a repeat."
    ),
    distribution!(
        "decode_tps",
        "tok/s",
        Higher,
        decode_tps,
        "Speed of decoding alone: 1000 / tpot. Its median is the speed per user."
    ),
    value!(
        "output_tps",
        "tok/s",
        Some(Better::Higher),
        "Output throughput: tokens of all successful requests / (their last token - first sent).",
        |stage| stage.output_tps
    ),
    value!(
        "steady_output_tps",
        "tok/s",
        Some(Better::Higher),
        "The same while all slots were busy; none for stages too short for it.",
        |stage| stage.steady_output_tps
    ),
    value!(
        "peak_output_tps",
        "tok/s",
        Some(Better::Higher),
        "Most tokens that arrived within one second.",
        |stage| stage.peak_output_tps
    ),
    value!(
        "request_throughput",
        "req/s",
        Some(Better::Higher),
        "Successful requests per second of the stage.",
        |stage| stage.request_throughput
    ),
    value!(
        "goodput",
        "req/s",
        Some(Better::Higher),
        "Successful requests that met every bound of --goodput, per second of the stage.",
        |stage| stage.goodput?.requests_per_s
    ),
    value!(
        "achieved_concurrency",
        "",
        None,
        "Requests in flight on average, failed ones included.",
        |stage| stage.achieved_concurrency
    ),
    value!(
        "peak_in_flight",
        "",
        None,
        "Most requests in flight at any moment.",
        |stage| stage.peak_in_flight.map(f64::from)
    ),
    value!("requests", "", None, "Requests sent.", |stage| {
        counted(stage, stage.completed + stage.failed + stage.cancelled)
    }),
    value!("completed", "", None, "Requests that succeeded.", |stage| {
        counted(stage, stage.completed)
    }),
    value!(
        "failures",
        "",
        None,
        "Requests that failed, those stopped by us not counted.",
        |stage| counted(stage, stage.failed)
    ),
    value!(
        "failure_share",
        "",
        None,
        "Failed requests / (successful + failed), 0 to 1.",
        failure_share
    ),
    value!(
        "duration",
        "s",
        None,
        "From the first request sent to the last token of a successful one.",
        |stage| stage.duration_s
    ),
    value!(
        "cached_share",
        "",
        None,
        "Prompt tokens that came from the prefix cache, by the replies' own count, 0 to 1.",
        |stage| cached_share(stage.cached_tokens, stage.prompt_tokens)
    ),
    value!(
        "prefix_hit_rate",
        "",
        None,
        "The same by the engine's metrics: tokens found in the prefix cache per token looked up.",
        |stage| stage.conditions.engine.as_ref()?.prefix_hit_rate()
    ),
    value!(
        "accept_length",
        "",
        Some(Better::Higher),
        "Speculative decoding: 1 + accepted / verify steps, the tokens that a step yields.",
        |stage| {
            let engine = stage.conditions.engine.as_ref()?;
            engine.speculation.as_ref()?.accept_length()
        }
    ),
    value!(
        "accept_rate",
        "",
        Some(Better::Higher),
        "Speculative decoding: accepted / drafted tokens, the bonus token not counted, 0 to 1.",
        |stage| {
            let engine = stage.conditions.engine.as_ref()?;
            engine.speculation.as_ref()?.accept_rate()
        }
    ),
];

/// A count of requests; nobody counted them of figures that were typed in.
fn counted(stage: &StageView, count: u64) -> Option<f64> {
    (!matches!(stage.source, Source::Recorded | Source::Estimated)).then_some(count as f64)
}

fn failure_share(stage: &StageView) -> Option<f64> {
    let judged = stage.completed + stage.failed;
    (judged > 0).then(|| stage.failed as f64 / judged as f64)
}

/// A line for each metric, as `--help-metrics` prints them.
#[must_use]
pub fn explained() -> String {
    let mut out = String::new();
    for metric in METRICS {
        let unit = match metric.unit {
            "" => String::new(),
            unit => format!(" ({unit})"),
        };
        out.push_str(&format!("{}{unit}: {}\n", metric.name, metric.meaning));
    }
    let words: Vec<&str> = Statistic::ALL.map(Statistic::word).to_vec();
    out.push_str(&format!(
        "\nOf those with a value per request (ttft to decode_tps) a rule takes a statistic: ttft_p50, and so on with {}. \
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
