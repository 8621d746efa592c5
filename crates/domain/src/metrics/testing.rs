//! What the tests of this module share.

use super::StageAsked;
use crate::{
    record::{RequestRecord, TokenCount},
    workload::StageKind,
};

/// A millisecond in nanoseconds.
pub(crate) const MS: u64 = 1_000_000;

/// A success of one token a chunk.
pub(crate) fn record(
    seq: u32,
    sent_ms: u64,
    ttft_ms: u64,
    e2el_ms: u64,
    tokens: u32,
) -> RequestRecord {
    RequestRecord {
        stage: 0,
        seq,
        prompt: seq.into(),
        sent_ns: sent_ms * MS,
        intended_ns: None,
        turn: None,
        asked_tokens: None,
        connect_ns: None,
        headers_ns: None,
        ttft_ns: Some(ttft_ms * MS),
        first_answer_ns: Some(ttft_ms * MS),
        e2el_ns: Some(e2el_ms * MS),
        end_ns: e2el_ms * MS,
        prompt_tokens: Some(18),
        completion_tokens: Some(tokens),
        first_chunk_tokens: None,
        cached_tokens: None,
        reasoning_tokens: None,
        chunks: tokens,
        coalesced_chunks: 0,
        counted_by: TokenCount::Usage,
        done_seen: true,
        finish_reason: Some("length".to_owned()),
        simulated: false,
        failure: None,
    }
}

/// Ten tokens, exactly, to the end.
pub(crate) fn asked(kind: StageKind) -> StageAsked {
    StageAsked {
        kind,
        output_tokens: 10,
        exact_length: true,
        complete: true,
        prompt_tokens: None,
        goodput: None,
        cold_prompts: true,
    }
}

/// Is the figure there, and this one but for rounding?
#[track_caller]
pub(crate) fn close(value: Option<f64>, expected: f64) {
    let value = value.expect("a figure");
    assert!(
        (value - expected).abs() < 1e-9 * expected.abs().max(1.0),
        "{value} is not {expected}"
    );
}
