//! Latencies of the stage so far.

use tokdyno_domain::{
    histogram::{Histogram, Unit},
    metrics::{P99_NEEDS, request_figures},
    record::RequestRecord,
    text,
};

/// Times to first token and per output token of the requests finished so far.
#[derive(Debug)]
pub(super) struct Latencies {
    ttft: Histogram,
    tpot: Histogram,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            ttft: Histogram::new(Unit::Micros),
            tpot: Histogram::new(Unit::Nanos),
        }
    }
}

impl Latencies {
    /// Counts a request.
    pub(super) fn take(&mut self, record: &RequestRecord) {
        if let Some(figures) = request_figures(record) {
            self.ttft.record_ms(figures.ttft_ms);
            if let Some(tpot) = figures.tpot_ms {
                self.tpot.record_ms(tpot);
            }
        }
    }

    /// `TTFT p50 20.1 · p99 31.0 ms   TPOT p50 11.11 · p99 12.50 ms`
    pub(super) fn line(&self) -> String {
        let parts = [("TTFT", &self.ttft), ("TPOT", &self.tpot)];
        parts
            .iter()
            .map(|(name, times)| {
                let p99 = if times.len() >= P99_NEEDS as u64 {
                    format!(" · p99 {}", text::optional(times.quantile_ms(0.99)))
                } else {
                    String::new()
                };
                format!(
                    "{name} p50 {}{p99} ms",
                    text::optional(times.quantile_ms(0.5))
                )
            })
            .collect::<Vec<_>>()
            .join("   ")
    }
}
