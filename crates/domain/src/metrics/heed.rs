//! What went on around a stage, held against its figures.

use super::{StageAsked, StageFigures, StageFlag};
use crate::conditions::{CacheReset, ClientLoad, EngineReport, StageConditions};

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
mod tests {
    use super::{super::testing::asked, *};
    use crate::{
        conditions::Certificate,
        timestamp::Timestamp,
        workload::{Arrivals, StageKind, Thousandths},
    };

    const CLOSED: StageKind = StageKind::ClosedLoop { concurrency: 8 };

    fn heeded(kind: StageKind, conditions: &StageConditions) -> Vec<StageFlag> {
        let mut figures = StageFigures {
            requests: 32,
            completed: 30,
            failed: 1,
            cancelled: 1,
            duration_s: Some(2.0),
            chunks: 2000,
            peak_in_flight: Some(20),
            ..StageFigures::default()
        };
        figures.heed(&asked(kind), conditions);
        let once = figures.flags.clone();
        figures.heed(&asked(kind), conditions);
        assert_eq!(figures.flags, once, "twice is as good as once");
        once
    }

    #[test]
    fn nothing_known_is_nothing_to_heed() {
        assert_eq!(heeded(CLOSED, &StageConditions::default()), []);
    }

    #[test]
    fn a_rate_beyond_the_certificate_is_flagged_limit_or_not() {
        let conditions = |chunks_per_s: f64, is_limit: bool| StageConditions {
            certificate: Some(Certificate {
                at: Timestamp(0),
                concurrency: 8,
                chunks_per_s,
                is_limit,
                ttft_error_p50_ms: 0.0,
                ttft_error_p99_ms: 0.0,
                tpot_error: 0.0,
                remembered: false,
            }),
            ..StageConditions::default()
        };
        for is_limit in [false, true] {
            assert_eq!(heeded(CLOSED, &conditions(1000.0, is_limit)), []);
            assert_eq!(
                heeded(CLOSED, &conditions(999.0, is_limit)),
                [StageFlag::BeyondCertificate {
                    needed: 1000.0,
                    certified: 999.0
                }]
            );
        }
    }

    #[test]
    fn a_measuring_machine_in_trouble_is_flagged() {
        let client = |client: ClientLoad| StageConditions {
            client: Some(client),
            ..StageConditions::default()
        };
        let at_the_bounds = ClientLoad {
            thread_busy: Some(THREAD_BUSY),
            stolen: Some(STOLEN),
            wake_lag_p99_ms: Some(WAKE_LAG_MS),
            send_lag_p99_ms: Some(SEND_LAG_MS),
            ..ClientLoad::default()
        };
        assert_eq!(heeded(CLOSED, &client(at_the_bounds)), []);
        let beyond = ClientLoad {
            thread_busy: Some(0.95),
            stolen: Some(0.02),
            wake_lag_p99_ms: Some(6.0),
            send_lag_p99_ms: Some(11.0),
            ..ClientLoad::default()
        };
        assert_eq!(
            heeded(CLOSED, &client(beyond)),
            [
                StageFlag::ScheduleLag { p99_ms: 11.0 },
                StageFlag::ClientBusy { share: 0.95 },
                StageFlag::ClientStolen { share: 0.02 },
                StageFlag::ClientLag { p99_ms: 6.0 },
            ]
        );
    }

    #[test]
    fn what_the_engine_says_is_held_against_the_stage() {
        let engine = |cap, finished, counters_fell| StageConditions {
            engine: Some(EngineReport {
                max_running: cap,
                finished,
                counters_fell,
                ..EngineReport::default()
            }),
            ..StageConditions::default()
        };
        assert_eq!(heeded(CLOSED, &engine(Some(8), Some(32), false)), []);
        assert_eq!(
            heeded(CLOSED, &engine(Some(7), Some(35), true)),
            [
                StageFlag::EngineCountersFell,
                StageFlag::EngineCap {
                    cap: 7,
                    in_flight: 8
                },
                StageFlag::ForeignRequests { requests: 3 },
            ]
        );
        let open = StageKind::OpenLoop {
            rate: Thousandths::ONE,
            arrivals: Arrivals::Constant,
        };
        assert_eq!(
            heeded(open, &engine(Some(16), None, false)),
            [StageFlag::EngineCap {
                cap: 16,
                in_flight: 20
            }]
        );
    }

    #[test]
    fn a_stage_that_was_not_as_planned_says_so() {
        let conditions = StageConditions {
            unsent: 4,
            cache_reset: Some(CacheReset::Refused {
                reason: "No.".to_owned(),
            }),
            ..StageConditions::default()
        };
        assert_eq!(
            heeded(CLOSED, &conditions),
            [
                StageFlag::Unsent { requests: 4 },
                StageFlag::CacheNotCleared {
                    reason: "No.".to_owned()
                },
            ]
        );
        let cleared = StageConditions {
            cache_reset: Some(CacheReset::Cleared),
            ..StageConditions::default()
        };
        assert_eq!(heeded(CLOSED, &cleared), []);
    }
}
