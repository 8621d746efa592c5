//! The values of which a stage's distributions are made.

use super::{Distribution, NS_PER_MS, RequestFigures, StageFigures, chunks::gaps};
use crate::record::{ChunkTrace, RequestRecord};

#[derive(Default)]
pub(super) struct Samples {
    ttft: Vec<f64>,
    ttft_intended: Vec<f64>,
    first_answer: Vec<f64>,
    tpot: Vec<f64>,
    /// With the tokens that each stands for.
    itl: Vec<(f64, u64)>,
    /// Requests they came from.
    itl_requests: usize,
    /// With the chunks that each stands for.
    icl: Vec<(f64, u64)>,
    /// Requests they came from.
    icl_requests: usize,
    e2el: Vec<f64>,
    e2e_tps: Vec<f64>,
    decode_tps: Vec<f64>,
}

impl Samples {
    /// Takes in a successful request.
    pub(super) fn push(&mut self, record: &RequestRecord, request: &RequestFigures) {
        self.ttft.push(request.ttft_ms);
        self.ttft_intended.extend(ttft_intended_ms(record));
        self.first_answer
            .extend(record.first_answer_ns.map(|at| at as f64 / NS_PER_MS));
        self.e2el.push(request.e2el_ms);
        self.tpot.extend(request.tpot_ms);
        self.e2e_tps.extend(request.e2e_tps);
        self.decode_tps.extend(request.decode_tps);
    }

    /// Takes in its gaps. Chunks of one read share the gap before it evenly.
    pub(super) fn push_gaps(&mut self, record: &RequestRecord, trace: &ChunkTrace) {
        let before = (self.itl.len(), self.icl.len());
        for gap in gaps(record, trace) {
            self.icl.push((gap.ms / gap.chunks as f64, gap.chunks));
            if gap.tokens > 0 {
                self.itl.push((gap.ms / gap.tokens as f64, gap.tokens));
            }
        }
        self.itl_requests += usize::from(self.itl.len() > before.0);
        self.icl_requests += usize::from(self.icl.len() > before.1);
    }

    pub(super) fn summarise_into(self, figures: &mut StageFigures) {
        figures.ttft_ms = Distribution::of(self.ttft);
        figures.ttft_intended_ms = Distribution::of(self.ttft_intended);
        figures.first_answer_ms = Distribution::of(self.first_answer);
        figures.tpot_ms = Distribution::of(self.tpot);
        figures.itl_ms = Distribution::weighted(self.itl, self.itl_requests);
        figures.icl_ms = Distribution::weighted(self.icl, self.icl_requests);
        figures.e2el_ms = Distribution::of(self.e2el);
        figures.e2e_tps = Distribution::of(self.e2e_tps);
        figures.decode_tps = Distribution::of(self.decode_tps);
    }
}

/// First token chunk − scheduled start, in ms. None without a schedule, or if the
/// reply came before its request was due.
fn ttft_intended_ms(record: &RequestRecord) -> Option<f64> {
    let first_token = record.sent_ns.saturating_add(record.ttft_ns?);
    Some(first_token.checked_sub(record.intended_ns?)? as f64 / NS_PER_MS)
}
