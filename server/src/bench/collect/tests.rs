use tokdyno_domain::{
    record::{Failure, FailureKind, RequestRecord, TokenCount},
    workload::{LoadLevel, StageKind, StageSize},
};

use super::*;

/// The first moment of 2026, in microseconds.
const NEW_YEAR: i64 = 1_767_225_600_000_000;

fn record(stage: u32, seq: u32, failure: Option<Failure>) -> RequestRecord {
    RequestRecord {
        stage,
        seq,
        prompt: u64::from(seq),
        sent_ns: u64::from(seq) * 3_000_000_000,
        intended_ns: None,
        turn: None,
        asked_tokens: None,
        connect_ns: None,
        headers_ns: Some(1),
        ttft_ns: failure.is_none().then_some(20_000_000),
        first_answer_ns: None,
        e2el_ns: failure.is_none().then_some(2_844_000_000),
        end_ns: 2_845_000_000,
        prompt_tokens: Some(18),
        completion_tokens: failure.is_none().then_some(256),
        first_chunk_tokens: failure.is_none().then_some(1),
        cached_tokens: None,
        reasoning_tokens: None,
        chunks: 256,
        coalesced_chunks: 0,
        counted_by: TokenCount::Usage,
        done_seen: true,
        finish_reason: Some("length".to_owned()),
        simulated: seq == 0,
        failure,
    }
}

fn workload() -> Workload {
    let level = |kind| LoadLevel {
        kind,
        size: StageSize::Requests { requests: 2 },
    };
    Workload::with_levels(
        "two",
        vec![
            level(StageKind::SingleStream),
            level(StageKind::ClosedLoop { concurrency: 2 }),
        ],
    )
}

fn collected(events: Vec<MeterEventKind>) -> Collected {
    let mut collected = Collected::default();
    for (seq, kind) in (1_i64..).zip(events) {
        collected.take(MeterEvent {
            seq: seq.unsigned_abs(),
            at: Timestamp(NEW_YEAR + seq * 1_000_000),
            kind,
        });
    }
    collected
}

fn request(stage: u32, seq: u32, failure: Option<Failure>) -> MeterEventKind {
    MeterEventKind::Request(Box::new(RequestEvent {
        record: record(stage, seq, failure),
        trace: None,
    }))
}

#[test]
fn a_clock_that_is_set_back_ends_no_measurement_before_its_begin() {
    let mut collected = collected(vec![request(0, 0, None)]);
    let began = collected.first;
    collected.take(MeterEvent {
        seq: 2,
        at: Timestamp(NEW_YEAR - 1_000_000),
        kind: MeterEventKind::Finished {
            outcome: MeterOutcome::Complete,
        },
    });
    assert_eq!(collected.last, began);
}

#[test]
fn a_measurement_is_checked_as_a_whole() {
    let subject = Subject {
        info: None,
        notes: Vec::new(),
    };
    let flags = |limit: &str| {
        let plan = workload().plan();
        let collected = collected(vec![
            MeterEventKind::StageStarted { stage: plan[1] },
            request(1, 0, None),
            request(1, 1, None),
        ]);
        let mut around = Circumstances::new("http://127.0.0.1:1".to_owned(), &subject, workload());
        let setting = ("max_running_requests".to_owned(), limit.to_owned());
        around.settings.extend([setting]);
        let mut result = collected.result(MeterOutcome::Cancelled, around);
        result.stages.remove(0).figures.flags
    };
    let cap = StageFlag::EngineCap {
        cap: 1,
        in_flight: 2,
    };
    assert!(!flags("2").contains(&cap));
    assert!(flags("1").contains(&cap));
}

#[test]
fn a_cancelled_measurement_keeps_what_there_is_and_reads_back() {
    let plan = workload().plan();
    let cancelled = Failure {
        kind: FailureKind::Cancelled,
        message: "Stopped.".to_owned(),
        http_status: None,
    };
    let collected = collected(vec![
        MeterEventKind::StageStarted { stage: plan[0] },
        // Out of order, as they come when several are in flight.
        request(0, 1, Some(cancelled)),
        request(0, 0, None),
        MeterEventKind::StageStarted { stage: plan[1] },
    ]);
    let subject = Subject {
        info: None,
        notes: Vec::new(),
    };
    let around = Circumstances {
        configuration: Some("tuned".to_owned()),
        ..Circumstances::new("http://127.0.0.1:1".to_owned(), &subject, workload())
    };
    let result = collected.result(MeterOutcome::Cancelled, around);
    assert_eq!(result.stages.len(), 1, "the second stage has no request");
    let stage = &result.stages[0];
    assert!(!stage.complete);
    assert_eq!((stage.figures.completed, stage.figures.cancelled), (1, 1));
    assert_eq!(stage.records[0].record.seq, 0);
    assert!(result.endpoint.simulated, "a reply carried the marker");
    assert_eq!(
        (result.started_at.0, result.finished_at.0),
        (NEW_YEAR + 1_000_000, NEW_YEAR + 4_000_000)
    );

    let bytes = serde_json::to_vec(&result).expect("serialises");
    let read = ResultFile::parse(&bytes).expect("our own file is importable");
    assert_eq!(read.stages.len(), 1);
    assert_eq!(read.configuration.as_deref(), Some("tuned"));
}
