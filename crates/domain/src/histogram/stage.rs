//! The histograms of a stage.

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{Histogram, Unit};
use crate::{
    meter::RequestEvent,
    metrics::{Traced, gaps, request_figures},
    record::{ChunkTrace, RequestRecord},
};

/// The times of a stage's successful requests. Definitions: `docs/metrics.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageHistograms {
    /// Time to first token, in µs.
    #[serde(deserialize_with = "micros")]
    pub ttft: Histogram,
    /// Time per output token of each request, in ns.
    #[serde(deserialize_with = "nanos")]
    pub tpot: Histogram,
    /// Gap between token chunks ÷ tokens, once per token, in ns.
    #[serde(deserialize_with = "nanos")]
    pub itl: Histogram,
    /// Gap between token chunks, in ns.
    #[serde(deserialize_with = "nanos")]
    pub icl: Histogram,
    /// End-to-end latency, in µs.
    #[serde(deserialize_with = "micros")]
    pub e2el: Histogram,
}

impl Default for StageHistograms {
    fn default() -> Self {
        Self {
            ttft: Histogram::new(Unit::Micros),
            tpot: Histogram::new(Unit::Nanos),
            itl: Histogram::new(Unit::Nanos),
            icl: Histogram::new(Unit::Nanos),
            e2el: Histogram::new(Unit::Micros),
        }
    }
}

impl StageHistograms {
    /// Of these requests, in any order.
    #[must_use]
    pub fn of(requests: &[Traced]) -> Self {
        let mut all = Self::default();
        for (record, trace) in requests {
            all.note(record, trace.as_ref());
        }
        all
    }

    /// Of the requests as events and files carry them; none of none.
    #[must_use]
    pub fn of_events(requests: &[RequestEvent]) -> Option<Self> {
        let mut all = Self::default();
        for request in requests {
            all.note(&request.record, request.trace.as_ref());
        }
        (!requests.is_empty()).then_some(all)
    }

    fn note(&mut self, record: &RequestRecord, trace: Option<&ChunkTrace>) {
        let Some(request) = request_figures(record) else {
            return;
        };
        self.ttft.record_ms(request.ttft_ms);
        self.e2el.record_ms(request.e2el_ms);
        if let Some(tpot_ms) = request.tpot_ms {
            self.tpot.record_ms(tpot_ms);
        }
        for gap in trace.into_iter().flat_map(|trace| gaps(record, trace)) {
            self.icl.record_n_ms(gap.ms / gap.chunks as f64, gap.chunks);
            if gap.tokens > 0 {
                self.itl.record_n_ms(gap.ms / gap.tokens as f64, gap.tokens);
            }
        }
    }

    /// Adds all that another stage's histograms have counted.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.ttft, &other.ttft),
            (&mut self.tpot, &other.tpot),
            (&mut self.itl, &other.itl),
            (&mut self.icl, &other.icl),
            (&mut self.e2el, &other.e2el),
        ] {
            own.merge(other);
        }
    }
}

fn micros<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
    in_unit(Unit::Micros, deserializer)
}

fn nanos<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
    in_unit(Unit::Nanos, deserializer)
}

fn in_unit<'de, D: Deserializer<'de>>(unit: Unit, deserializer: D) -> Result<Histogram, D::Error> {
    let histogram = Histogram::deserialize(deserializer)?;
    if histogram.unit() == unit {
        Ok(histogram)
    } else {
        Err(D::Error::custom(format!(
            "the histogram counts in {} and should in {}",
            histogram.unit().word(),
            unit.word()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::testing::record;

    fn request(seq: u32) -> Traced {
        let trace = ChunkTrace {
            gaps_us: vec![20_000, 10_000, 0, 5_000 + seq],
            tokens: vec![1, 2, 2, 1],
        };
        let mut record = record(seq, 0, 20, 35 + u64::from(seq), 6);
        record.chunks = 4;
        (record, Some(trace))
    }

    #[test]
    fn parts_of_a_stage_merge_to_the_whole() {
        let requests: Vec<Traced> = (0..40).map(request).collect();
        let whole = StageHistograms::of(&requests);
        assert_eq!(whole.ttft.len(), 40);
        assert_eq!(whole.icl.len(), 120);
        assert_eq!(whole.itl.len(), 200);
        let itl = whole.itl.quantile_ms(0.5).expect("a quantile");
        assert!((itl / 2.5 - 1.0).abs() < 1e-3, "{itl}");
        let mut parts = StageHistograms::of(&requests[..7]);
        parts.merge(&StageHistograms::of(&requests[7..]));
        assert_eq!(parts, whole);
    }

    #[test]
    fn written_and_read_they_are_the_same_in_their_units() {
        let whole = StageHistograms::of(&[request(0), request(1)]);
        let mut value = serde_json::to_value(&whole).expect("serialises");
        let back: StageHistograms = serde_json::from_value(value.clone()).expect("reads back");
        assert_eq!(back, whole);
        value["ttft"]["unit"] = "ns".into();
        let error = serde_json::from_value::<StageHistograms>(value).expect_err("a refusal");
        assert!(
            error.to_string().contains("in ns and should in us"),
            "{error}"
        );
    }
}
