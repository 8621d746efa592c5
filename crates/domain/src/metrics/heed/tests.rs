//! What goes on around a stage, and what of it is flagged.

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
fn a_measuring_thread_that_stood_still_is_flagged() {
    let stood = |stood_still_ms: Option<f64>, wake_lag_max_ms: Option<f64>| {
        let conditions = StageConditions {
            client: Some(ClientLoad {
                stood_still_ms,
                wake_lag_max_ms,
                ..ClientLoad::default()
            }),
            ..StageConditions::default()
        };
        heeded(CLOSED, &conditions)
    };
    let flag = |stood_ms: f64, share: f64| StageFlag::ClientStopped { stood_ms, share };
    // Of a stage of 2 s. What is shorter than 50 ms was not summed up.
    assert_eq!(stood(Some(0.0), Some(49.0)), []);
    assert_eq!(stood(None, Some(49.0)), []);
    assert_eq!(stood(Some(60.0), Some(60.0)), [flag(60.0, 0.03)]);
    assert_eq!(stood(Some(900.0), Some(60.0)), [flag(900.0, 0.45)]);
    assert_eq!(stood(None, Some(900.0)), [flag(900.0, 0.45)]);
    assert_eq!(stood(Some(5000.0), Some(5000.0)), [flag(5000.0, 1.0)]);
    assert_eq!(stood(None, None), []);
    // Two hundredths of a long stage.
    let mut long = StageFigures {
        duration_s: Some(100.0),
        ..StageFigures::default()
    };
    long.heed_client(&ClientLoad {
        stood_still_ms: Some(2000.0),
        ..ClientLoad::default()
    });
    assert_eq!(long.flags, []);
}

#[test]
fn a_client_that_was_stopped_supports_no_verdict() {
    let forbids = |stood_ms, share| StageFlag::ClientStopped { stood_ms, share }.forbids_verdict();
    assert!(forbids(885.0, 0.0885));
    assert!(!forbids(885.0, 0.03), "moves little");
    assert!(!forbids(120.0, 0.12), "a busy machine and a short stage");
}

#[test]
fn replies_that_do_not_end_explain_the_low_concurrency() {
    let conditions = |left_open: u64| StageConditions {
        replies: Some(RepliesSeen {
            left_open,
            ..RepliesSeen::default()
        }),
        ..StageConditions::default()
    };
    let low = StageFlag::LowConcurrency {
        achieved: 0.3,
        asked: 8,
    };
    let flags = |left_open: u64| {
        let mut figures = StageFigures {
            requests: 200,
            completed: 200,
            flags: vec![low.clone()],
            ..StageFigures::default()
        };
        figures.heed(&asked(CLOSED), &conditions(left_open));
        figures.flags
    };
    assert_eq!(flags(2), std::slice::from_ref(&low), "one in a hundred");
    let open = StageFlag::BodiesLeftOpen {
        requests: 3,
        of: 200,
    };
    assert!(open.forbids_verdict());
    assert_eq!(flags(3), [open]);
}

#[test]
fn counts_that_were_not_kept_are_told_all_the_same() {
    let conditions = StageConditions {
        replies: Some(RepliesSeen {
            odd_usage: 5,
            ..RepliesSeen::default()
        }),
        ..StageConditions::default()
    };
    let odd = StageFlag::UsageInconsistent { requests: 5 };
    assert_eq!(heeded(CLOSED, &conditions), std::slice::from_ref(&odd));
    // Of which the requests show two.
    let mut figures = StageFigures {
        flags: vec![StageFlag::UsageInconsistent { requests: 2 }],
        ..StageFigures::default()
    };
    figures.heed(&asked(CLOSED), &conditions);
    assert_eq!(figures.flags, [odd]);
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
