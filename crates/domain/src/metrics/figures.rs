//! The figures of a stage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Distribution, StageFlag};
use crate::{goodput::Goodput, record::FailureKind};

/// The figures of a stage. Field names are those of the result file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StageFigures {
    /// Requests sent.
    pub requests: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed, those cancelled by us not counted.
    pub failed: u64,
    /// Requests cancelled by us.
    pub cancelled: u64,
    /// Failures by kind.
    #[serde(default)]
    pub failures: BTreeMap<FailureKind, u64>,
    /// Last token of any successful request − first sent, in seconds.
    pub duration_s: Option<f64>,
    /// Σ prompt tokens of the successful requests, where the server told.
    pub prompt_tokens: Option<u64>,
    /// Σ n of the successful requests.
    pub output_tokens: u64,
    /// Σ cached prompt tokens, where the server told.
    pub cached_tokens: Option<u64>,
    /// `output_tokens` / `duration_s`, in tok/s.
    pub output_tps: Option<f64>,
    /// Tokens per second between the C-th send and the first slot without a
    /// successor; none if the stage is too short for one.
    pub steady_output_tps: Option<f64>,
    /// Largest number of tokens that arrived within one second, in tok/s; none
    /// without chunk times or for a stage shorter than that.
    #[serde(default)]
    pub peak_output_tps: Option<f64>,
    /// Successful requests / `duration_s`, in requests per second.
    #[serde(default)]
    pub request_throughput: Option<f64>,
    /// Σ (end − sent) over all requests / (last end − first sent).
    pub achieved_concurrency: Option<f64>,
    /// Most requests in flight at any moment.
    #[serde(default)]
    pub peak_in_flight: Option<u32>,
    /// Token chunks of the successful requests.
    #[serde(default)]
    pub chunks: u64,
    /// Share of token chunks that came in one read with their predecessor.
    pub coalesced_share: Option<f64>,
    /// Time to first token, in ms.
    pub ttft_ms: Distribution,
    /// Open loop: first token chunk − scheduled start, in ms.
    #[serde(default)]
    pub ttft_intended_ms: Distribution,
    /// First chunk of answer text (not reasoning) − sent, in ms.
    #[serde(default)]
    pub first_answer_ms: Distribution,
    /// Time per output token, in ms.
    pub tpot_ms: Distribution,
    /// Gap between token chunks ÷ tokens, in ms; needs per-chunk counts.
    pub itl_ms: Distribution,
    /// Gap between token chunks, in ms.
    pub icl_ms: Distribution,
    /// End-to-end latency, in ms.
    pub e2el_ms: Distribution,
    /// n / e2el of each request, in tok/s.
    pub e2e_tps: Distribution,
    /// 1000 / tpot of each request, in tok/s.
    pub decode_tps: Distribution,
    /// Goodput, where bounds were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// What a reader must know.
    #[serde(default)]
    pub flags: Vec<StageFlag>,
}

impl StageFigures {
    /// Token chunks per second that the measuring machine had to read.
    #[must_use]
    pub fn chunks_per_s(&self) -> Option<f64> {
        self.duration_s
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| self.chunks as f64 / seconds)
    }

    /// May a verdict rest on this stage?
    #[must_use]
    pub fn supports_verdict(&self) -> bool {
        self.completed > 0 && !self.flags.iter().any(StageFlag::forbids_verdict)
    }
}

/// Prompt tokens from the prefix cache / prompt tokens, 0 to 1, where the server tells
/// both.
#[must_use]
pub fn cached_share(cached: Option<u64>, prompt: Option<u64>) -> Option<f64> {
    let prompt = prompt.filter(|tokens| *tokens > 0)?;
    Some(cached? as f64 / prompt as f64)
}
