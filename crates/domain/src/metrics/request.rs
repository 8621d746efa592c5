//! What a single request yields.

use serde::{Deserialize, Serialize};

use super::NS_PER_MS;
use crate::record::RequestRecord;

/// What one successful request yields. Undefined is none, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestFigures {
    /// First token chunk − sent, in ms.
    pub ttft_ms: f64,
    /// Last token chunk − sent, in ms.
    pub e2el_ms: f64,
    /// (e2el − ttft) / (n − n₁), in ms.
    pub tpot_ms: Option<f64>,
    /// n₁ was not told and had to be taken as 1.
    pub tpot_approximate: bool,
    /// 1000 / tpot, in tok/s.
    pub decode_tps: Option<f64>,
    /// n / e2el, in tok/s.
    pub e2e_tps: Option<f64>,
}

/// The figures of a request; none for a failed one.
#[must_use]
pub fn request_figures(record: &RequestRecord) -> Option<RequestFigures> {
    if !record.is_success() {
        return None;
    }
    let (ttft_ns, e2el_ns) = (record.ttft_ns?, record.e2el_ns?);
    let tokens = record.completion_tokens?;
    let ttft_ms = ttft_ns as f64 / NS_PER_MS;
    let e2el_ms = e2el_ns as f64 / NS_PER_MS;
    // One token a chunk leaves no doubt about the first chunk; fewer chunks than
    // tokens do, unless running usage told.
    // A first chunk with which the running count had not risen yet tells nothing.
    let (first, tpot_approximate) = match record.first_chunk_tokens.filter(|first| *first > 0) {
        Some(first) => (first, false),
        None => (1, record.chunks < tokens),
    };
    let tpot_ms = (tokens > first && !record.in_one_read())
        .then(|| (e2el_ms - ttft_ms) / f64::from(tokens - first))
        .filter(|tpot| *tpot > 0.0);
    Some(RequestFigures {
        ttft_ms,
        e2el_ms,
        tpot_ms,
        tpot_approximate: tpot_ms.is_some() && tpot_approximate,
        decode_tps: tpot_ms.map(|tpot| 1000.0 / tpot),
        e2e_tps: (e2el_ms > 0.0).then(|| f64::from(tokens) * 1000.0 / e2el_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{close, record},
        *,
    };

    #[test]
    fn the_founding_arithmetic() {
        // 256 tokens in 2844 ms are 90.0 tok/s, time to first token included.
        let figures = request_figures(&record(0, 0, 30, 2844, 256)).expect("figures");
        close(figures.e2e_tps, 256.0 / 2.844);
        close(figures.tpot_ms, (2844.0 - 30.0) / 255.0);
        assert!(!figures.tpot_approximate);
    }

    #[test]
    fn several_tokens_in_a_chunk() {
        let mut packed = record(0, 0, 50, 130, 12);
        packed.chunks = 3;
        let figures = request_figures(&packed).expect("figures");
        assert!(
            figures.tpot_approximate,
            "n1 unknown and fewer chunks than tokens"
        );
        close(figures.tpot_ms, 80.0 / 11.0);
        packed.first_chunk_tokens = Some(4);
        let figures = request_figures(&packed).expect("figures");
        assert!(!figures.tpot_approximate);
        close(figures.tpot_ms, 10.0);
        close(figures.decode_tps, 100.0);
    }

    #[test]
    fn a_first_chunk_without_a_count_is_approximate() {
        let mut late = record(0, 0, 50, 140, 10);
        late.chunks = 5;
        late.first_chunk_tokens = Some(0);
        let figures = request_figures(&late).expect("figures");
        assert!(figures.tpot_approximate);
        close(figures.tpot_ms, 90.0 / 9.0);
    }

    #[test]
    fn undefined_is_none() {
        let one_token = request_figures(&record(0, 0, 50, 50, 1)).expect("figures");
        assert_eq!(one_token.tpot_ms, None);
        let mut at_once = record(0, 0, 50, 51, 8);
        at_once.coalesced_chunks = 7;
        assert_eq!(request_figures(&at_once).expect("figures").tpot_ms, None);
    }
}
