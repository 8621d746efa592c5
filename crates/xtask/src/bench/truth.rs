//! The stand-in's log of when it really read each request and sent each token.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// What the stand-in wrote about a request. Its first line is about the engine.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Truth {
    received_ns: u64,
    pub(super) tokens: u64,
    outcome: String,
    first_sent_ns: Option<u64>,
    last_sent_ns: Option<u64>,
    /// µs: the first since receipt, the others since their predecessor.
    #[serde(default)]
    sent_us: Vec<i64>,
    chunk_tokens: Vec<u64>,
}

/// A sample in short, in ms; none where there was nothing to summarise.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Summary {
    pub(super) mean: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// The truth of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) tokens: u64,
    pub(super) ttft: Summary,
    pub(super) tpot: Summary,
    /// Weighted by tokens, as the product defines it.
    pub(super) itl: Summary,
}

impl Truth {
    fn ttft_ms(&self) -> Option<f64> {
        Some(milliseconds(self.received_ns, self.first_sent_ns?))
    }

    /// As the product defines it: the tokens after the first chunk's.
    fn tpot_ms(&self) -> Option<f64> {
        let after_first = self.tokens.checked_sub(*self.chunk_tokens.first()?)?;
        (after_first > 0).then_some(())?;
        Some(milliseconds(self.first_sent_ns?, self.last_sent_ns?) / after_first as f64)
    }

    /// The gap before each chunk but the first, in equal parts for its tokens.
    fn itl_ms(&self) -> impl Iterator<Item = f64> + '_ {
        self.sent_us
            .iter()
            .zip(&self.chunk_tokens)
            .skip(1)
            .flat_map(|(gap, tokens)| {
                let share = *gap as f64 / 1000.0 / *tokens as f64;
                std::iter::repeat_n(share, usize::try_from(*tokens).unwrap_or(0))
            })
    }
}

impl Summary {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Self {
            mean: (!sorted.is_empty()).then_some(mean),
            p50: percentile(&sorted, 0.5),
            p99: percentile(&sorted, 0.99),
        }
    }
}

impl Figures {
    fn of(truths: &[Truth]) -> Self {
        Self {
            tokens: truths.iter().map(|truth| truth.tokens).sum(),
            ttft: Summary::of(truths.iter().filter_map(Truth::ttft_ms)),
            tpot: Summary::of(truths.iter().filter_map(Truth::tpot_ms)),
            itl: Summary::of(truths.iter().flat_map(Truth::itl_ms)),
        }
    }

    /// Of the last `requests` complete replies of so many tokens: what came
    /// before was the check of the address and the warm-up.
    ///
    /// # Errors
    /// The log cannot be read, or fewer were answered.
    pub(super) fn read(log: &Path, requests: usize, tokens: u64) -> Result<Self> {
        Ok(Self::of(&last(log, requests, tokens)?))
    }
}

fn last(log: &Path, requests: usize, tokens: u64) -> Result<Vec<Truth>> {
    let text = std::fs::read_to_string(log)?;
    let mut truths: Vec<Truth> = text
        .lines()
        .skip(1)
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .context("the stand-in's log cannot be read")?;
    truths.retain(|truth| truth.outcome == "complete" && truth.tokens == tokens);
    truths.sort_by_key(|truth| truth.received_ns);
    if truths.len() < requests {
        bail!(
            "the stand-in answered {} of {requests} requests in full",
            truths.len()
        );
    }
    Ok(truths.split_off(truths.len() - requests))
}

fn milliseconds(from_ns: u64, to_ns: u64) -> f64 {
    (to_ns as f64 - from_ns as f64) / 1e6
}

/// Linear interpolation between the two nearest ranks.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let below = sorted.get(place.floor() as usize)?;
    let above = sorted.get(place.ceil() as usize)?;
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(chunk_tokens: Vec<u64>) -> Truth {
        Truth {
            received_ns: 1_000_000,
            tokens: chunk_tokens.iter().sum(),
            outcome: "complete".into(),
            first_sent_ns: Some(3_000_000),
            last_sent_ns: Some(23_000_000),
            sent_us: vec![2000, 5000, 15_000],
            chunk_tokens,
        }
    }

    #[test]
    fn truth_follows_the_definitions() {
        let parts = truth(vec![1, 5, 5]);
        assert_eq!(parts.ttft_ms(), Some(2.0));
        assert_eq!(parts.tpot_ms(), Some(2.0));
        let itl: Vec<f64> = parts.itl_ms().collect();
        assert_eq!(itl, [[1.0; 5], [3.0; 5]].concat());
        assert_eq!(truth(vec![11]).tpot_ms(), None);
    }

    #[test]
    fn summaries_interpolate_and_have_no_figure_for_nothing() {
        let summary = Summary::of([1.0, 2.0, 3.0, 4.0].into_iter());
        assert_eq!(summary.p50, Some(2.5));
        assert_eq!(Summary::of(std::iter::empty()), Summary::default());
    }

    #[test]
    fn only_the_last_complete_replies_count() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let line = |received: u64, tokens: u64, outcome: &str| {
            format!(
                r#"{{"received_ns":{received},"tokens":{tokens},"outcome":"{outcome}","first_sent_ns":9,"last_sent_ns":9,"chunk_tokens":[1]}}"#
            )
        };
        let lines = [
            r#"{"log":"tokdyno-stand-in"}"#.to_owned(),
            line(3, 128, "complete"),
            line(1, 128, "complete"),
            line(2, 1, "complete"),
            line(4, 128, "cut"),
            line(5, 128, "complete"),
        ];
        std::fs::write(&log, lines.join("\n")).unwrap();
        let times: Vec<u64> = last(&log, 2, 128)
            .unwrap()
            .iter()
            .map(|truth| truth.received_ns)
            .collect();
        assert_eq!(times, [3, 5]);
        assert!(last(&log, 4, 128).is_err());
    }
}
