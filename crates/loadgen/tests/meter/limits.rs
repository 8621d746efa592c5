//! What machines grant: open files, and connections.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    open_loops::open,
    program::{code, events},
    support::{Server, json, level, paced, proper, run},
};
use tokdyno_domain::{
    meter::{MeterEventKind, MeterOutcome, MeterSpec},
    metrics::StageFlag,
    record::FailureKind,
    workload::Arrivals,
};

/// Runs the meter under `ulimit` arguments; its exit code and what it said.
fn under(limit: &str, spec: &MeterSpec) -> (i32, String) {
    let script = format!("ulimit {limit} && exec \"$0\"");
    let mut child = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_tokdyno-meter")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let line = serde_json::to_string(spec).expect("a line");
    writeln!(child.stdin.as_mut().expect("its input"), "{line}").expect("written");
    let mut said = String::new();
    child
        .stdout
        .take()
        .expect("its output")
        .read_to_string(&mut said)
        .expect("text");
    (code(&mut child), said)
}

#[test]
fn a_limit_that_may_be_raised_is_raised() {
    let server = Server::start(proper);
    let (code, said) = under("-Sn 100", &server.spec(vec![level(150, 300)]));
    assert_eq!(code, 0, "{said}");
    let failed = events(&said)
        .into_iter()
        .find_map(|event| match event.kind {
            MeterEventKind::StageFinished { figures, .. } => {
                Some((figures.completed, figures.failed))
            }
            _ => None,
        });
    assert_eq!(failed, Some((300, 0)));
}

#[test]
fn a_limit_that_is_too_low_is_named_before_anything_is_sent() {
    let server = Server::start(proper);
    let (code, said) = under("-n 100", &server.spec(vec![level(150, 300)]));
    assert_eq!(code, 2, "{said}");
    let [only] = events(&said).try_into().expect("one event");
    let MeterEventKind::Finished {
        outcome: MeterOutcome::Failed { reason },
    } = only.kind
    else {
        panic!("{said}");
    };
    assert!(
        reason.contains("ulimit -n 214") && reason.contains("150"),
        "{reason}"
    );
    assert_eq!(server.asked.lock().expect("no panic").len(), 0);
}

#[test]
fn a_slot_without_a_connection_takes_nothing_from_the_others() {
    // The model list and one slot get a connection; nobody else does.
    let server = Server::start_for(2, |asked, stream| {
        if asked.route == "GET /v1/models" {
            return json(stream, 200, r#"{"data":[{"id":"tiny"}]}"#);
        }
        paced(asked, stream, Duration::from_millis(60))
    });
    let mut spec = server.spec(vec![level(2, 24)]);
    spec.workload.warmup_requests = Some(0);
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let figures = told.figures()[0];
    assert_eq!(figures.requests, 24);
    assert!(figures.completed >= 3, "{figures:?}");
    assert_eq!(
        figures.failures.get(&FailureKind::Connect).copied(),
        Some(24 - figures.completed)
    );
}

#[test]
fn an_open_loop_ends_where_no_further_connection_may_be_opened() {
    let server = Server::start(|asked, stream| {
        if asked.number > 0 {
            std::thread::sleep(Duration::from_secs(4));
        }
        proper(asked, stream)
    });
    // Room for 36 connections, which are in use after 1.2 s.
    let mut spec = server.spec(vec![open(30.0, Arrivals::Constant, 100)]);
    spec.workload.warmup_requests = Some(0);
    let (code, said) = under("-n 100", &spec);
    assert_eq!(code, 0, "{said}");
    let finished = events(&said)
        .into_iter()
        .find_map(|event| match event.kind {
            MeterEventKind::StageFinished {
                figures,
                conditions,
                ..
            } => Some((figures, conditions)),
            _ => None,
        });
    let (figures, conditions) = finished.expect("a stage");
    assert_eq!((figures.completed, figures.failed), (36, 0));
    assert_eq!(conditions.unsent, 64);
    let reason = conditions.ended_early.expect("a reason");
    assert!(reason.starts_with("36 requests"), "{reason}");
    assert!(reason.contains("ulimit -n"), "{reason}");
    assert!(figures.flags.contains(&StageFlag::Partial));
}
