//! Open loops: requests leave at their time, whatever is in flight.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::support::{
    Server, Then, Told, done, event, json, paced, proper, run, run_with, stream_head, text, total,
};
use tokdyno_domain::{
    conditions::StageConditions,
    meter::{Certify, MeterEventKind, MeterOutcome, Phase},
    prompts::{PromptSet, TraceRequest},
    record::{FailureKind, RequestRecord},
    workload::{Arrivals, LoadLevel, StageKind, StageSize, Thousandths},
};
use tokdyno_loadgen::CancelFlag;

fn number(value: f64) -> Thousandths {
    Thousandths::new(value).expect("in range")
}

/// An open loop with so many requests.
pub(crate) fn open(rate: f64, arrivals: Arrivals, requests: u32) -> LoadLevel {
    LoadLevel {
        kind: StageKind::OpenLoop {
            rate: number(rate),
            arrivals,
        },
        size: StageSize::Requests { requests },
    }
}

fn conditions(told: &Told) -> &StageConditions {
    told.conditions()[0]
}

/// When they were to be sent, since the first one, in ms.
fn intended_ms(told: &Told) -> Vec<u64> {
    let mut intended: Vec<u64> = told
        .records()
        .iter()
        .map(|record| record.intended_ns.expect("a schedule"))
        .collect();
    intended.sort_unstable();
    let first = intended[0];
    intended
        .into_iter()
        .map(|at_ns| (at_ns - first + 500_000) / 1_000_000)
        .collect()
}

fn never_early(records: &[&RequestRecord]) {
    for record in records {
        let intended = record.intended_ns.expect("a schedule");
        let connecting = record.connect_ns.unwrap_or(0);
        assert!(record.sent_ns >= intended + connecting, "{record:?}");
    }
}

#[test]
fn requests_leave_at_their_time() {
    let server = Server::start(proper);
    let told = run(server.spec(vec![open(50.0, Arrivals::Constant, 30)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let records = told.records();
    assert_eq!(records.len(), 30);
    assert!(records.iter().all(|record| record.is_success()));
    assert_eq!(
        intended_ms(&told),
        (0..30).map(|n| n * 20).collect::<Vec<_>>()
    );
    never_early(&records);
    let mut seqs: Vec<u32> = records.iter().map(|record| record.seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (0..30).collect::<Vec<_>>());
    let conditions = conditions(&told);
    assert_eq!((conditions.unsent, &conditions.ended_early), (0, &None));
    let client = conditions.client.as_ref().expect("watched");
    assert!(client.send_lag_p99_ms.is_some_and(|lag| lag >= 0.0));
    // Warmed up in a closed loop of a second's worth.
    assert_eq!(server.bodies().len(), 1 + 50 + 30);
    for event in &told.events {
        if let MeterEventKind::Progress(progress) = &event.kind
            && progress.phase != Phase::WarmUp
        {
            assert_eq!(progress.planned, Some(30));
        }
    }
}

#[test]
fn a_slow_server_holds_nothing_back() {
    // Each reply takes half a second, and requests come every 10 ms.
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    let server = Server::start(move |asked, stream| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        stream_head(stream);
        std::thread::sleep(Duration::from_millis(500));
        inside.fetch_sub(1, Ordering::SeqCst);
        for token in 1..=asked.body["max_tokens"].as_u64().expect("a number") {
            event(stream, &text(u32::try_from(token).ok()));
        }
        done(stream)
    });
    let mut spec = server.spec(vec![open(100.0, Arrivals::Constant, 40)]);
    spec.workload.warmup_requests = Some(0);
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert_eq!(told.records().len(), 40);
    assert!(told.records().iter().all(|record| record.is_success()));
    never_early(&told.records());
    // All 40 are due before the first is answered.
    assert!(most.load(Ordering::SeqCst) >= 30, "{most:?}");
}

#[test]
fn a_connection_is_opened_where_none_is_idle() {
    // Two connections are there, and a reply takes longer than two gaps.
    let server = Server::start(|asked, stream| {
        if asked.number > 0 {
            std::thread::sleep(Duration::from_millis(1300));
        }
        proper(asked, stream)
    });
    let mut spec = server.spec(vec![open(2.0, Arrivals::Constant, 3)]);
    spec.workload.warmup_requests = Some(0);
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let mut records = told.records();
    records.sort_by_key(|record| record.intended_ns);
    let connected: Vec<bool> = records
        .iter()
        .map(|record| record.connect_ns.is_some())
        .collect();
    assert_eq!(connected, [false, false, true]);
    never_early(&records);
    // The model list, two opened before, and the third.
    assert_eq!(server.connections.load(Ordering::SeqCst), 4);
}

/// A trace with these times, and the level that replays so many of it.
fn replay(times_ms: &[u64], speed: f64, requests: u32) -> (LoadLevel, PromptSet) {
    let level = LoadLevel {
        kind: StageKind::Replay {
            speed: number(speed),
        },
        size: StageSize::Requests { requests },
    };
    let requests = times_ms
        .iter()
        .zip(1_u32..)
        .map(|(at_ms, place)| TraceRequest {
            at_ms: *at_ms,
            input_tokens: 10 * place,
            output_tokens: place,
        });
    let prompts = PromptSet::Trace {
        name: "t.jsonl".to_owned(),
        requests: requests.collect(),
    };
    (level, prompts)
}

#[test]
fn a_trace_is_replayed_with_its_times_and_lengths() {
    let server = Server::start(|asked, stream| {
        let words = asked.body["prompt"]
            .as_str()
            .expect("a text")
            .split(' ')
            .count();
        let count = asked.body["max_tokens"].as_u64().expect("a number");
        stream_head(stream);
        for token in 1..=count {
            event(
                stream,
                &format!(
                    r#"{{"choices":[{{"text":" a"}}],"usage":{{"prompt_tokens":{words},"completion_tokens":{token}}}}}"#
                ),
            );
        }
        done(stream)
    });
    let (level, prompts) = replay(&[0, 100, 150, 400], 2.0, 6);
    let mut spec = server.spec(vec![level]);
    spec.workload.prompts = prompts;
    // The second repeat begins in the middle of the trace's prompts.
    spec.workload.repeats = 2;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let mut prompts = std::collections::HashSet::new();
    for stage in 0..2 {
        let mut records: Vec<_> = told
            .records()
            .into_iter()
            .filter(|record| record.stage == stage)
            .collect();
        records.sort_by_key(|record| record.intended_ns);
        let first = records[0].intended_ns.expect("a schedule");
        let seen: Vec<(u64, u32, u32, u32)> = records
            .iter()
            .map(|record| {
                let after_ns = record.intended_ns.expect("a schedule") - first;
                (
                    (after_ns + 500_000) / 1_000_000,
                    record.prompt_tokens.expect("told"),
                    record.asked_tokens.expect("of its own"),
                    record.completion_tokens.expect("told"),
                )
            })
            .collect();
        // Twice as fast, and once more from the beginning after a mean gap.
        assert_eq!(
            seen,
            [
                (0, 10, 1, 1),
                (50, 20, 2, 2),
                (75, 30, 3, 3),
                (200, 40, 4, 4),
                (267, 10, 1, 1),
                (317, 20, 2, 2),
            ]
        );
        prompts.extend(records.iter().map(|record| record.prompt));
    }
    assert_eq!(prompts.len(), 12, "no prompt stands for two requests");
    let texts: std::collections::HashSet<String> = server
        .bodies()
        .iter()
        .map(|body| body["prompt"].to_string())
        .collect();
    assert_eq!(
        texts.len(),
        server.bodies().len(),
        "no prompt is sent twice"
    );
}

#[test]
fn a_stage_bounded_by_time_ends_and_drains() {
    let server = Server::start(|asked, stream| paced(asked, stream, Duration::from_millis(20)));
    let told = run(server.spec(vec![LoadLevel {
        kind: StageKind::Ramp {
            from: number(10.0),
            to: number(90.0),
            arrivals: Arrivals::Constant,
        },
        size: StageSize::Duration { seconds: 1.0 },
    }]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    // 10·1 + 80/2 = 50.
    assert_eq!(told.records().len(), 50);
    assert!(told.records().iter().all(|record| record.is_success()));
    let intended = intended_ms(&told);
    let in_first_half = intended.iter().filter(|at_ms| **at_ms < 500).count();
    assert_eq!(in_first_half, 15);
}

#[test]
fn a_server_that_never_answers_ends_in_counted_failures() {
    let server = Server::start(|asked, stream| {
        if asked.number == 0 {
            return proper(asked, stream);
        }
        stream_head(stream);
        event(stream, &text(Some(1)));
        std::thread::sleep(Duration::from_secs(4));
        Then::Close
    });
    let mut spec = server.spec(vec![open(200.0, Arrivals::Poisson, 60)]);
    spec.workload.warmup_requests = Some(0);
    spec.workload.idle_timeout_s = 1.0;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let figures = told.figures()[0];
    assert_eq!((figures.completed, figures.failed), (0, 60));
    assert_eq!(figures.failures.get(&FailureKind::Stalled), Some(&60));
    assert_eq!(conditions(&told).unsent, 0, "all were sent");
}

#[test]
fn a_server_that_goes_away_ends_the_run_and_counts_what_was_not_sent() {
    // The model list, the engine's metrics and 64 connections; then nobody listens.
    let server = Server::start_for(66, |asked, stream| {
        if asked.route == "GET /v1/models" {
            json(stream, 200, r#"{"data":[{"id":"tiny"}]}"#);
            return Then::Close;
        }
        if asked.number == 0 {
            return proper(asked, stream);
        }
        stream_head(stream);
        event(stream, &total(4));
        Then::Close
    });
    let mut spec = server.spec(vec![open(500.0, Arrivals::Constant, 1000)]);
    spec.workload.warmup_requests = Some(0);
    let told = run(spec);
    assert!(told.reason().contains("refused"), "{}", told.reason());
    let conditions = conditions(&told);
    let sent = told.records().len() as u64;
    assert!(sent < 1000, "{sent}");
    assert_eq!(conditions.unsent, 1000 - sent);
    assert_eq!(conditions.ended_early.as_deref(), Some(told.reason()));
}

#[test]
fn what_the_user_stops_is_not_called_unsent() {
    let server = Server::start(proper);
    let cancel = CancelFlag::new();
    let flag = cancel.clone();
    let told = run_with(
        server.spec(vec![open(20.0, Arrivals::Constant, 400)]),
        &cancel,
        move |event| {
            if let MeterEventKind::Request(_) = event.kind {
                flag.cancel();
            }
        },
    );
    assert_eq!(told.outcome, MeterOutcome::Cancelled);
    assert!(told.records().len() < 400);
    assert_eq!(conditions(&told).unsent, 0);
    assert_eq!(conditions(&told).ended_early, None);
}

#[test]
fn what_never_waits_tells_its_progress_too() {
    let server = Server::start(proper);
    // All are due at once.
    let (level, prompts) = replay(&[0; 200], 1.0, 200);
    let mut spec = server.spec(vec![level]);
    spec.workload.prompts = prompts;
    spec.workload.warmup_requests = Some(0);
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let told_while_sending = told.events.iter().any(|event| {
        matches!(&event.kind, MeterEventKind::Progress(progress)
            if progress.phase == Phase::Measuring)
    });
    assert!(told_while_sending);
}

#[test]
fn the_certificate_is_for_as_many_as_were_in_flight() {
    let server = Server::start(|asked, stream| {
        if asked.number > 0 {
            std::thread::sleep(Duration::from_millis(1500));
        }
        proper(asked, stream)
    });
    // Four a second begin with four connections; soon six are in flight.
    let mut spec = server.spec(vec![open(4.0, Arrivals::Constant, 6)]);
    spec.workload.warmup_requests = Some(0);
    spec.certify = Certify::Anew;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let peak = told.figures()[0].peak_in_flight.expect("some");
    assert!(peak > 4, "{peak}");
    let certificate = conditions(&told).certificate.as_ref().expect("one");
    assert!(certificate.concurrency >= peak, "{certificate:?}");
}
