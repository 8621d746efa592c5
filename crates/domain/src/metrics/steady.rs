//! Throughput while all slots are busy.

use super::{
    NS_PER_MS, Traced,
    chunks::{TOKEN, arrivals},
};

/// Throughput of the middle of a stage: from the C-th send to the first moment
/// at which a slot was left without a successor. None below 2C requests, without
/// chunk times, or where that window is shorter than three median latencies.
///
/// Only loads of fixed concurrency have it: the window is where *all slots* were
/// busy, and an open loop has no slots. What it delivers in the middle follows from
/// the rate that was chosen, not from what the engine can do.
pub(super) fn steady_output_tps(
    concurrency: u32,
    requests: &[Traced],
    median_e2el_ms: Option<f64>,
) -> Option<f64> {
    let slots = concurrency as usize;
    if requests.len() < slots.saturating_mul(2)
        || requests.iter().any(|(record, _)| record.is_cancelled())
    {
        return None;
    }
    let mut sends: Vec<u64> = requests.iter().map(|(record, _)| record.sent_ns).collect();
    sends.sort_unstable();
    let from = *sends.get(slots.checked_sub(1)?)?;
    let mut ends: Vec<u64> = requests
        .iter()
        .map(|(record, _)| record.sent_ns.saturating_add(record.end_ns))
        .collect();
    ends.sort_unstable();
    // Every end but the last C is followed by a send in its slot.
    let to = *ends.get(requests.len() - slots)?;
    let window_ms = to.checked_sub(from)? as f64 / NS_PER_MS;
    if window_ms < 3.0 * median_e2el_ms? {
        return None;
    }
    let mut tokens = 0_u64;
    for traced in requests.iter().filter(|(record, _)| record.is_success()) {
        for arrival in arrivals(traced)? {
            if arrival.at_ns > from && arrival.at_ns <= to {
                tokens = tokens.saturating_add(arrival.tokens);
            }
        }
    }
    Some(tokens as f64 / TOKEN as f64 * 1000.0 / window_ms)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{asked, record};
    use crate::{
        metrics::{Traced, stage_figures},
        record::ChunkTrace,
        workload::{Arrivals, StageKind, Thousandths},
    };

    /// Two slots, a token each 10 ms, 10 tokens a request, back to back.
    fn back_to_back() -> Vec<Traced> {
        (0..20)
            .map(|seq| {
                let sent = u64::from(seq / 2) * 100 + u64::from(seq % 2) * 5;
                let trace = ChunkTrace {
                    gaps_us: vec![10_000; 10],
                    tokens: vec![1; 10],
                };
                (record(seq, sent, 10, 100, 10), Some(trace))
            })
            .collect()
    }

    #[test]
    fn the_steady_window_leaves_out_ramp_and_drain() {
        let requests = back_to_back();
        let kind = StageKind::ClosedLoop { concurrency: 2 };
        let figures = stage_figures(&asked(kind), &requests);
        let steady = figures.steady_output_tps.expect("a steady figure");
        assert!((steady - 200.0).abs() < 2.0, "{steady}");
        let few = stage_figures(&asked(kind), &requests[..3]);
        assert_eq!(few.steady_output_tps, None);
    }

    #[test]
    fn an_open_loop_has_no_slots_to_be_steady() {
        let kind = StageKind::OpenLoop {
            rate: Thousandths::ONE,
            arrivals: Arrivals::Poisson,
        };
        let figures = stage_figures(&asked(kind), &back_to_back());
        assert_eq!(figures.steady_output_tps, None);
        assert_eq!(figures.peak_in_flight, Some(2));
    }

    #[test]
    fn replies_of_one_chunk_count_whole_in_the_steady_window() {
        // Two slots, 10 tokens in one chunk each 100 ms, no running usage.
        let requests: Vec<Traced> = (0..20)
            .map(|seq| {
                let sent = u64::from(seq / 2) * 100 + u64::from(seq % 2) * 5;
                let trace = ChunkTrace {
                    gaps_us: vec![100_000],
                    tokens: vec![],
                };
                let mut record = record(seq, sent, 100, 100, 10);
                record.chunks = 1;
                (record, Some(trace))
            })
            .collect();
        let kind = StageKind::ClosedLoop { concurrency: 2 };
        let steady = stage_figures(&asked(kind), &requests).steady_output_tps;
        // A window of 895 ms holds 17 or 18 of the replies.
        let steady = steady.expect("a steady figure");
        assert!((185.0..=205.0).contains(&steady), "{steady}");
    }
}
