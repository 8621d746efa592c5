//! What a reader must know about a stage.

use serde::{Deserialize, Serialize};

/// Something a reader must know about a stage before believing it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "flag")]
pub enum StageFlag {
    /// More than 1 % of the requests failed.
    Failures {
        /// How many failed.
        failed: u64,
        /// Of how many.
        requests: u64,
    },
    /// The server sent no usage: tokens were counted by chunk.
    CountedByChunk {
        /// How many requests.
        requests: u64,
    },
    /// n₁ unknown: TPOT is approximate.
    ApproximateTpot {
        /// How many requests.
        requests: u64,
    },
    /// Streams without `[DONE]` that were otherwise complete.
    NoDone {
        /// How many requests.
        requests: u64,
    },
    /// Requests whose length is not the one asked for.
    LengthMismatch {
        /// How many requests.
        requests: u64,
        /// Tokens asked for, where all requests ask the same.
        asked: Option<u32>,
    },
    /// Fewer requests in flight than asked (achieved below 90 % of C, or of half
    /// the requests where that is less).
    LowConcurrency {
        /// Σ (end − sent) / duration.
        achieved: f64,
        /// C.
        asked: u32,
    },
    /// The stage did not run to its end.
    Partial,
    /// More requests in flight than asked: requests and times contradict each other.
    HighConcurrency {
        /// Σ (end − sent) / duration.
        achieved: f64,
        /// Most at any moment.
        peak: u32,
        /// C.
        asked: u32,
    },
    /// A time to first token that is not positive.
    NotPositiveTtft {
        /// How many requests.
        requests: u64,
    },
    /// Times of a request that run backwards.
    TimesNotMonotonic {
        /// How many requests.
        requests: u64,
    },
    /// The tokens of the chunks do not add up to the server's usage.
    UsageInconsistent {
        /// How many requests.
        requests: u64,
    },
    /// The busiest second delivered fewer tokens than the average one.
    PeakBelowMean {
        /// `peak_output_tps`.
        peak: f64,
        /// Tokens / duration in whole seconds, rounded up.
        mean: f64,
    },
    /// Prompts whose length is not the one asked for.
    PromptLengthMismatch {
        /// How many requests.
        requests: u64,
        /// The prompt tokens asked for, where all requests ask the same.
        asked: Option<u32>,
    },
    /// Requests of an open loop left later than their schedule said.
    ScheduleLag {
        /// 99th percentile of the lag, in ms.
        p99_ms: f64,
    },
    /// The stage ended with requests that were never sent.
    Unsent {
        /// How many.
        requests: u64,
    },
    /// More chunks came per second than this machine was seen to time truthfully.
    BeyondCertificate {
        /// Chunks per second of the stage.
        needed: f64,
        /// Chunks per second that held.
        certified: f64,
    },
    /// The measuring thread had hardly any time to spare.
    ClientBusy {
        /// Its processor time / duration, 0 to 1.
        share: f64,
    },
    /// The hypervisor gave the measuring machine's processors to others.
    ClientStolen {
        /// Share of the processors' time, 0 to 1.
        share: f64,
    },
    /// The measuring thread was woken late.
    ClientLag {
        /// 99th percentile, in ms.
        p99_ms: f64,
    },
    /// A counter of the engine fell during the stage.
    EngineCountersFell,
    /// The engine runs fewer requests at once than were sent at once.
    EngineCap {
        /// Most requests it runs at once.
        cap: u64,
        /// Requests in flight.
        in_flight: u32,
    },
    /// The engine finished more requests than we sent.
    ForeignRequests {
        /// How many more.
        requests: u64,
    },
    /// Prompts meant to be cold were found in the prefix cache.
    CacheHits {
        /// Share of the prompt tokens, 0 to 1.
        share: f64,
    },
    /// The prefix cache was to be cleared and was not.
    CacheNotCleared {
        /// Why.
        reason: String,
    },
}

impl StageFlag {
    /// What was seen, what it does to the figure, and what to do.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Failures { failed, requests } => format!(
                "{failed} of {requests} requests failed: no verdict rests on this stage. Look at the failures and measure again."
            ),
            Self::CountedByChunk { requests } => format!(
                "The server sent no usage for {requests} requests, so chunks were counted instead of tokens: not comparable with other runs. Let the server send usage (stream_options.include_usage)."
            ),
            Self::ApproximateTpot { requests } => format!(
                "{requests} requests packed several tokens into a chunk without running usage: TPOT is approximate. A server that sends continuous_usage_stats makes it exact."
            ),
            Self::NoDone { requests } => format!(
                "{requests} streams ended without [DONE], though finish reason and usage came: counted as successes."
            ),
            Self::LengthMismatch { requests, asked } => {
                let asked = asked.map_or_else(|| "as long as".to_owned(), |asked| format!("{asked} tokens long, as"));
                format!(
                    "{requests} replies are not {asked} asked: speeds of different lengths are not comparable. Check that the server honours ignore_eos and its context length."
                )
            }
            Self::LowConcurrency { achieved, asked } => format!(
                "On average {achieved:.1} of {asked} requests were in flight: throughput is understated. Ask for more requests per stage."
            ),
            Self::Partial => {
                "The stage did not run to its end: its figures rest on the requests that were finished.".to_owned()
            }
            Self::HighConcurrency {
                achieved,
                peak,
                asked,
            } => format!(
                "Up to {peak} requests were in flight, {achieved:.1} on average, where {asked} were asked for: times and requests contradict each other. Do not use this stage, and report it."
            ),
            Self::NotPositiveTtft { requests } => format!(
                "{requests} requests have a time to first token that is not positive, which no server can do. Do not use this stage, and report it."
            ),
            Self::TimesNotMonotonic { requests } => format!(
                "{requests} requests have times that run backwards. Do not use this stage, and report it."
            ),
            Self::UsageInconsistent { requests } => format!(
                "The running usage of {requests} requests does not add up to the usage at their end: times per token are approximate. Look whether a proxy changes the stream."
            ),
            Self::PeakBelowMean { peak, mean } => format!(
                "The busiest second delivered {peak:.1} tok/s, less than the average of {mean:.1}: tokens were not counted where they came. The peak is not to be used."
            ),
            Self::PromptLengthMismatch { requests, asked } => {
                let asked = asked.map_or_else(|| "as long as".to_owned(), |asked| format!("{asked} tokens long, as"));
                format!(
                    "{requests} prompts are not {asked} asked: times to first token are of other lengths. The server's tokenizer splits the words differently; choose a file of prompts."
                )
            }
            Self::ScheduleLag { p99_ms } => format!(
                "Requests left late, one in a hundred by {p99_ms:.1} ms or more: the load was not the one asked for. Use ttft_intended, or lower the rate."
            ),
            Self::Unsent { requests } => format!(
                "{requests} requests that were planned were never sent: the load was not the one asked for."
            ),
            Self::BeyondCertificate { needed, certified } => format!(
                "This machine was seen to time {certified:.0} chunks per second truthfully; the stage had {needed:.0}. Start the meter on another host, or lower the concurrency."
            ),
            Self::ClientBusy { share } => format!(
                "The measuring thread was busy {:.0} % of the time: it may have read late. Start the meter on another host, or lower the concurrency.",
                share * 100.0
            ),
            Self::ClientStolen { share } => format!(
                "The measuring machine lost {:.1} % of its processor time to its neighbours: times may be late. Measure from a machine that is not shared.",
                share * 100.0
            ),
            Self::ClientLag { p99_ms } => format!(
                "The measuring thread was woken late, one time in a hundred by {p99_ms:.1} ms or more: requests may have been sent late. Stop what else runs on this machine."
            ),
            Self::EngineCountersFell => {
                "A counter of the engine fell during the stage: it was restarted or its counts were cleared. Acceptance and cache figures are left out.".to_owned()
            }
            Self::EngineCap { cap, in_flight } => format!(
                "The engine runs at most {cap} requests at once and {in_flight} were sent: the rest waited in its queue, and their wait is part of the times. Raise its limit, or ask for {cap} at once."
            ),
            Self::ForeignRequests { requests } => format!(
                "The engine finished {requests} requests that were not ours: somebody else used it meanwhile. Measure again when it is free."
            ),
            Self::CacheHits { share } => format!(
                "{:.0} % of the prompt tokens came from the prefix cache, though every prompt was meant to be new: times to first token are too good. Clear the cache before each stage; a seed of its own helps only where prompts are drawn.",
                share * 100.0
            ),
            Self::CacheNotCleared { reason } => format!(
                "The prefix cache was not cleared before the stage: {reason}"
            ),
        }
    }

    /// Does this forbid comparing the stage with others?
    #[must_use]
    pub const fn forbids_verdict(&self) -> bool {
        matches!(
            self,
            Self::Failures { .. }
                | Self::CountedByChunk { .. }
                | Self::LengthMismatch { .. }
                | Self::Partial
                | Self::HighConcurrency { .. }
                | Self::NotPositiveTtft { .. }
                | Self::TimesNotMonotonic { .. }
                | Self::Unsent { .. }
                | Self::BeyondCertificate { .. }
                | Self::ForeignRequests { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_for_cache_hits_fits_all_prompts() {
        let said = StageFlag::CacheHits { share: 0.25 }.sentence();
        assert!(said.starts_with("25 % of the prompt tokens"), "{said}");
        // The seed changes nothing about listed prompts.
        assert!(said.contains("Clear the cache before each stage"), "{said}");
        assert!(said.contains("only where prompts are drawn"), "{said}");
    }
}
