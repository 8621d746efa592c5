//! What went on around a stage, held against its figures.

use super::{StageAsked, StageFigures, StageFlag};
use crate::conditions::{
    CacheReset, ClientLoad, EngineReport, RepliesSeen, STOOD_STILL_MS, StageConditions,
};

/// Latest that requests of an open loop may leave, 99th percentile, in ms: as much
/// as a quick first token takes, so that waiting here would be taken for the
/// server's.
const SEND_LAG_MS: f64 = 10.0;

/// Busiest that the measuring thread may be: above it, reads queue up before it.
const THREAD_BUSY: f64 = 0.9;

/// Share of the processors' time that may go to neighbours. One hundredth is a
/// scheduler's slice now and then; more of it lands on enough reads to move a 99th
/// percentile.
const STOLEN: f64 = 0.01;

/// Latest that the measuring thread may be woken, 99th percentile, in ms: a good
/// part of the time a token takes on a fast server.
const WAKE_LAG_MS: f64 = 5.0;

/// Share of the stage for which the measuring thread may stand still: a closed loop
/// loses as much of its throughput.
const STOOD_SHARE: f64 = 0.02;

/// Share of the replies that may leave their body open: as many as may fail.
const LEFT_OPEN_SHARE: f64 = 0.01;

impl StageFigures {
    /// Appends the flags that follow from what went on around the stage. A flag
    /// that is there already is brought up to date, so that heeding twice is as good
    /// as once.
    pub fn heed(&mut self, asked: &StageAsked, conditions: &StageConditions) {
        if conditions.unsent > 0 {
            self.flag(StageFlag::Unsent {
                requests: conditions.unsent,
            });
        }
        if let (Some(certificate), Some(needed)) = (&conditions.certificate, self.chunks_per_s())
            // Beyond the fastest step that held nothing is known, whether or not the
            // next one was tried.
            && needed > certificate.chunks_per_s
        {
            self.flag(StageFlag::BeyondCertificate {
                needed,
                certified: certificate.chunks_per_s,
            });
        }
        if let Some(client) = &conditions.client {
            self.heed_client(client);
        }
        if let Some(replies) = &conditions.replies {
            self.heed_replies(replies);
        }
        if let Some(engine) = &conditions.engine {
            self.heed_engine(asked, engine);
        }
        if let Some(CacheReset::Refused { reason }) = &conditions.cache_reset {
            self.flag(StageFlag::CacheNotCleared {
                reason: reason.clone(),
            });
        }
    }

    fn heed_client(&mut self, client: &ClientLoad) {
        let above = |value: Option<f64>, most: f64| value.filter(|value| *value > most);
        if let Some(p99_ms) = above(client.send_lag_p99_ms, SEND_LAG_MS) {
            self.flag(StageFlag::ScheduleLag { p99_ms });
        }
        if let Some(share) = above(client.thread_busy, THREAD_BUSY) {
            self.flag(StageFlag::ClientBusy { share });
        }
        if let Some(share) = above(client.stolen, STOLEN) {
            self.flag(StageFlag::ClientStolen { share });
        }
        if let Some(p99_ms) = above(client.wake_lag_p99_ms, WAKE_LAG_MS) {
            self.flag(StageFlag::ClientLag { p99_ms });
        }
        // Where the sum is not told, the longest lag is the least that it can be.
        let stood_ms = client.stood_still_ms.or(client.wake_lag_max_ms);
        if let (Some(stood_ms), Some(duration_s)) = (stood_ms, self.duration_s)
            && stood_ms >= STOOD_STILL_MS
            && stood_ms > STOOD_SHARE * duration_s * 1000.0
        {
            self.flag(StageFlag::ClientStopped {
                stood_ms,
                // A stage ends with its last token, its watch with its last reply.
                share: (stood_ms / (duration_s * 1000.0)).min(1.0),
            });
        }
    }

    fn heed_replies(&mut self, replies: &RepliesSeen) {
        if replies.left_open as f64 > LEFT_OPEN_SHARE * self.completed as f64 {
            self.flag(StageFlag::BodiesLeftOpen {
                requests: replies.left_open,
                of: self.completed,
            });
            // Whose remedy, more requests, would change nothing.
            self.flags
                .retain(|flag| !matches!(flag, StageFlag::LowConcurrency { .. }));
        }
        if replies.odd_usage > 0 {
            // The requests show a part of them at most: counts that cannot be used are
            // not kept.
            self.flag(StageFlag::UsageInconsistent {
                requests: replies.odd_usage,
            });
        }
    }

    fn heed_engine(&mut self, asked: &StageAsked, engine: &EngineReport) {
        if engine.counters_fell {
            self.flag(StageFlag::EngineCountersFell);
        }
        // In an open loop, as many as there really were at once.
        if let Some(cap) = engine.max_running
            && let Some(in_flight) = asked.kind.concurrency().or(self.peak_in_flight)
            && cap < u64::from(in_flight)
        {
            self.flag(StageFlag::EngineCap { cap, in_flight });
        }
        // Counted after the warm-up. Those that failed or were cancelled may have
        // been finished by the engine all the same.
        if let Some(more) = engine
            .finished
            .and_then(|finished| finished.checked_sub(self.requests))
            && more > 0
        {
            self.flag(StageFlag::ForeignRequests { requests: more });
        }
    }

    /// Adds a flag, or puts it in the place of the one of its kind.
    pub(crate) fn flag(&mut self, flag: StageFlag) {
        flag.put(&mut self.flags);
    }
}

#[cfg(test)]
mod tests;
