//! What went on around a stage: what the engine said of itself meanwhile, how the
//! measuring machine fared, and what this machine can time truthfully at all.
//!
//! None of it follows from the request records, so it travels beside the figures.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// Seconds by which the start of one and the same process may seem to move: it is
/// worked out from the machine's clock, which may be set meanwhile.
pub const SAME_START_S: f64 = 2.0;

/// A measuring thread that is woken so many milliseconds late, or more, stood still. It
/// asks to be woken each 20 ms, so what is shorter and takes over 2.5 % of a stage comes
/// more than once in a hundred wakings: the 99th percentile sees it.
pub const STOOD_STILL_MS: f64 = 50.0;

/// All of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StageConditions {
    /// What the engine said, where it says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineReport>,
    /// How the measuring machine fared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientLoad>,
    /// What the measuring machine can do at this concurrency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// How clearing the prefix cache before the stage went, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_reset: Option<CacheReset>,
    /// Requests that were planned and never sent (the stage ended early).
    #[serde(default)]
    pub unsent: u64,
    /// Why the stage ended before its time, where it did so by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// What the successful replies were like, where there is anything to say of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<RepliesSeen>,
}

/// What the measuring process saw of the successful replies while they came, and what
/// their records do not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RepliesSeen {
    /// Those whose text was long enough to be judged. It is not kept.
    pub judged: u64,
    /// Of these, those that say the same over and over.
    pub looping: u64,
    /// Those that said `[DONE]` and whose body did not end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_open: u64,
    /// Those whose running counts fell, or do not add up to the count at the end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub odd_usage: u64,
}

/// What the engine's metrics said, before, during and after a stage (warm-up
/// not included). Differences are of counters within one life of the engine;
/// where a counter fell, there is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EngineReport {
    /// Readings taken while the stage ran.
    pub samples: u32,
    /// Requests the engine was working on, mean over the readings.
    pub running_mean: Option<f64>,
    /// The same, at most.
    pub running_max: Option<f64>,
    /// Requests that waited in the engine's queue, at most.
    pub waiting_max: Option<f64>,
    /// Share of the KV cache in use, 0 to 1, at most.
    pub kv_use_max: Option<f64>,
    /// Most requests it works on at once, as it says itself.
    pub max_running: Option<u64>,
    /// Requests it finished, ours or not.
    pub finished: Option<u64>,
    /// Prompt tokens it took in.
    pub prompt_tokens: Option<u64>,
    /// Tokens it generated.
    pub generation_tokens: Option<u64>,
    /// Tokens looked up in the prefix cache.
    pub prefix_queries: Option<u64>,
    /// Tokens found there.
    pub prefix_hits: Option<u64>,
    /// Requests it threw out of the KV cache to make room (preempted, retracted).
    pub preemptions: Option<u64>,
    /// Time to first token by its own clock, mean, in ms.
    pub ttft_mean_ms: Option<f64>,
    /// End-to-end latency by its own clock, mean, in ms.
    pub e2el_mean_ms: Option<f64>,
    /// Speculative decoding, where it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speculation: Option<Speculation>,
    /// A counter fell in between: the engine was restarted or its counts cleared.
    #[serde(default)]
    pub counters_fell: bool,
    /// Tokens it had generated since its start, at the first reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated_before: Option<u64>,
    /// The same at the last reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated_after: Option<u64>,
    /// When its process began, at the last reading, in seconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_started_s: Option<f64>,
}

/// Counts of speculative decoding over a stage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Speculation {
    /// Verify steps (vLLM: drafts).
    pub steps: u64,
    /// Tokens drafted, where counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafted: Option<u64>,
    /// Drafted tokens accepted, the bonus token of each step not included.
    pub accepted: u64,
    /// Accepted tokens by place in the draft, where counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_at: Vec<u64>,
}

impl Speculation {
    /// Tokens per verify step, the bonus included: 1 + accepted / steps. None
    /// without steps.
    #[must_use]
    pub fn accept_length(&self) -> Option<f64> {
        (self.steps > 0).then(|| 1.0 + self.accepted as f64 / self.steps as f64)
    }

    /// Accepted / drafted, 0 to 1 (strict: no bonus). None without drafted tokens.
    #[must_use]
    pub fn accept_rate(&self) -> Option<f64> {
        self.drafted
            .filter(|drafted| *drafted > 0)
            .map(|drafted| self.accepted as f64 / drafted as f64)
    }

    /// Share of steps in which the draft was accepted up to each place.
    #[must_use]
    pub fn rates_at(&self) -> Vec<f64> {
        if self.steps == 0 {
            return Vec::new();
        }
        self.accepted_at
            .iter()
            .map(|accepted| *accepted as f64 / self.steps as f64)
            .collect()
    }
}

impl EngineReport {
    /// Prefix-cache hits per token looked up, 0 to 1.
    #[must_use]
    pub fn prefix_hit_rate(&self) -> Option<f64> {
        let queries = self.prefix_queries.filter(|queries| *queries > 0)?;
        Some(self.prefix_hits? as f64 / queries as f64)
    }
}

/// The measuring machine during a stage (warm-up not included).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientLoad {
    /// Processor time of the measuring thread / duration, 0 to 1.
    pub thread_busy: Option<f64>,
    /// Share of all processors' time that the hypervisor gave to others, 0 to 1.
    pub stolen: Option<f64>,
    /// How much later than asked the measuring thread was woken, 99th percentile,
    /// in ms.
    pub wake_lag_p99_ms: Option<f64>,
    /// The same, at most, in ms.
    pub wake_lag_max_ms: Option<f64>,
    /// All its lags of [`STOOD_STILL_MS`] or more together, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stood_still_ms: Option<f64>,
    /// Share of reads whose time came from the kernel, 0 to 1.
    pub kernel_times: Option<f64>,
    /// How much later than scheduled requests of an open loop were sent, 99th
    /// percentile, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag_p99_ms: Option<f64>,
    /// Frequency governor of the processors, where readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

/// What this machine timed truthfully against a server of its own, in the same
/// process, whose schedule is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// When.
    pub at: Timestamp,
    /// Streams read at once.
    pub concurrency: u32,
    /// Chunks per second up to which all times were true: the fastest step that
    /// held.
    pub chunks_per_s: f64,
    /// The next step failed; otherwise the machine may be able to do more.
    pub is_limit: bool,
    /// At that step: first token as measured − as sent, median, in ms.
    pub ttft_error_p50_ms: f64,
    /// The same, 99th percentile.
    pub ttft_error_p99_ms: f64,
    /// Time per output token as measured / as sent − 1.
    pub tpot_error: f64,
    /// It was taken from an earlier run on this machine.
    #[serde(default)]
    pub remembered: bool,
}

/// How clearing the prefix cache went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum CacheReset {
    /// Cleared.
    Cleared,
    /// The engine has no way to, or said no.
    Refused {
        /// A sentence with cause and remedy.
        reason: String,
    },
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptance_follows_from_counts() {
        let speculation = Speculation {
            steps: 100,
            drafted: Some(300),
            accepted: 68,
            accepted_at: vec![50, 15, 3],
        };
        let length = speculation.accept_length().expect("a length");
        assert!((length - 1.68).abs() < 1e-12, "{length}");
        assert_eq!(speculation.accept_rate(), Some(68.0 / 300.0));
        assert_eq!(speculation.rates_at(), [0.5, 0.15, 0.03]);
        let nothing = Speculation::default();
        assert_eq!(nothing.accept_length(), None);
        assert_eq!(nothing.accept_rate(), None);
        assert!(nothing.rates_at().is_empty());
    }

    #[test]
    fn no_lookups_no_hit_rate() {
        let report = |queries, hits| EngineReport {
            prefix_queries: queries,
            prefix_hits: hits,
            ..EngineReport::default()
        };
        assert_eq!(report(Some(0), Some(0)).prefix_hit_rate(), None);
        assert_eq!(report(None, Some(1)).prefix_hit_rate(), None);
        assert_eq!(report(Some(200), Some(50)).prefix_hit_rate(), Some(0.25));
    }
}
