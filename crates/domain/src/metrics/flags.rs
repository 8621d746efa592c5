//! What a reader must know about a stage.

mod sentence;

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
    /// Running counts fell, or do not add up to the server's count at the end.
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
    /// The measuring thread stood still: nothing was read and nothing sent.
    ClientStopped {
        /// For how long in all, in ms.
        stood_ms: f64,
        /// Share of the stage, 0 to 1.
        share: f64,
    },
    /// Replies that said `[DONE]` and whose body did not end.
    BodiesLeftOpen {
        /// How many.
        requests: u64,
        /// Of how many that succeeded.
        of: u64,
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
    /// A 99th percentile was stated for fewer requests than it needs, and left out.
    FewForP99 {
        /// How many requests succeeded.
        requests: u64,
    },
    /// Replies that say the same over and over.
    LoopingReplies {
        /// How many.
        requests: u64,
        /// Of how many that were looked at.
        of: u64,
        /// The engine was speculating: a drafter guesses a loop nearly always.
        speculative: bool,
    },
    /// The server sends many tokens in one chunk.
    BundledTokens {
        /// Tokens per chunk, on average.
        per_chunk: f64,
    },
    /// The engine kept requests waiting for the whole of the stage.
    EngineQueue {
        /// Requests it worked on, at most.
        running: u32,
        /// Requests that waited, at most.
        waiting: u32,
        /// C.
        asked: u32,
    },
    /// Fewer requests reached the engine than were in flight.
    HeldBack {
        /// Requests that it worked on or kept waiting, at most.
        at_engine: u32,
        /// Requests in flight, on average.
        in_flight: f64,
    },
    /// Another life of the engine, or another engine, answered than before.
    EngineRestarted {
        /// Index of the last stage before.
        after: u32,
    },
    /// The first repeat of a level was slower than all others.
    SlowBeginning {
        /// By which share of the others' mean.
        slower: f64,
        /// By which share the mean over all repeats is too low.
        bias: f64,
    },
    /// Clocks of GPUs moved under load.
    ClockDrift {
        /// Which GPUs.
        gpus: Vec<u32>,
        /// Lowest tenth, in MHz.
        low_mhz: u32,
        /// Highest tenth, in MHz.
        high_mhz: u32,
    },
    /// Clocks of GPUs were held down.
    ClocksHeldDown {
        /// Which GPUs.
        gpus: Vec<u32>,
        /// Why, in the driver's words.
        reasons: Vec<String>,
        /// Share of the samples, 0 to 1.
        share: f64,
    },
    /// A GPU came near the heat at which it slows down.
    HotGpu {
        /// Which.
        gpu: u32,
        /// Its highest temperature, in °C.
        celsius: u32,
    },
    /// A GPU was much hotter, or cooler, than in the first repeat of the level.
    TemperatureDrift {
        /// Which.
        gpu: u32,
        /// Median in the first repeat, in °C.
        from: u32,
        /// Median in this one, in °C.
        to: u32,
    },
    /// Processes of others came to the GPUs.
    OtherProcesses {
        /// Each in words: number, name, whose.
        processes: Vec<String>,
        /// GPU memory that they held at most, in MiB.
        mib: u64,
        /// Share of the samples, 0 to 1.
        share: f64,
    },
    /// The engine worked on more requests than the client had in flight.
    OtherRequests {
        /// How many more, at most.
        most: u64,
        /// Share of the samples, 0 to 1.
        share: f64,
    },
}

/// Share of a stage for which the measuring thread may stand still before no verdict
/// rests on it.
const STOPPED_SHARE: f64 = 0.05;

/// And how long, in ms: short stages lose this share to a busy scheduler, which strikes
/// all repeats alike and stands in their spread.
const STOPPED_MS: f64 = 500.0;

impl StageFlag {
    /// Does this forbid comparing the stage with others?
    #[must_use]
    pub const fn forbids_verdict(&self) -> bool {
        if let Self::ClientStopped { stood_ms, share } = self {
            return *share > STOPPED_SHARE && *stood_ms >= STOPPED_MS;
        }
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
                | Self::BodiesLeftOpen { .. }
                | Self::ForeignRequests { .. }
                | Self::LoopingReplies {
                    speculative: true,
                    ..
                }
                | Self::EngineRestarted { .. }
                | Self::OtherProcesses { .. }
                | Self::OtherRequests { .. }
        )
    }

    /// Was it seen in the samples of the host? They stay with the run: no file holds
    /// them, so such a flag cannot be worked out from one.
    #[must_use]
    pub const fn is_of_host(&self) -> bool {
        matches!(
            self,
            Self::ClockDrift { .. }
                | Self::ClocksHeldDown { .. }
                | Self::HotGpu { .. }
                | Self::TemperatureDrift { .. }
                | Self::OtherProcesses { .. }
                | Self::OtherRequests { .. }
        )
    }

    /// Adds it to flags, or puts it in the place of the one of its kind.
    pub fn put(self, flags: &mut Vec<Self>) {
        let kind = std::mem::discriminant(&self);
        match flags
            .iter_mut()
            .find(|other| std::mem::discriminant(*other) == kind)
        {
            Some(other) => *other = self,
            None => flags.push(self),
        }
    }
}
