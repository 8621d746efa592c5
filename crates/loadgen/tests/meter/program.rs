//! The program itself: its input, its output, its exit codes.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{Server, Then, event, level, paced, proper, stream_head, text};
use rustix::process::{Pid, Signal, kill_process};
use tokdyno_domain::{
    meter::{MeterEvent, MeterEventKind, MeterOutcome, MeterSpec},
    metrics::StageFlag,
};

fn start() -> Child {
    Command::new(env!("CARGO_BIN_EXE_tokdyno-meter"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program")
}

fn start_with(spec: &MeterSpec) -> Child {
    let mut child = start();
    let line = serde_json::to_string(spec).expect("a line");
    let input = child.stdin.as_mut().expect("its input");
    writeln!(input, "{line}").expect("written");
    child
}

pub(crate) fn events(lines: &str) -> Vec<MeterEvent> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event"))
        .collect()
}

/// Waits for the end, but not for ever.
pub(crate) fn code(child: &mut Child) -> i32 {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code().expect("no signal");
        }
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().expect("killed");
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn output(child: &mut Child) -> String {
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("its output")
        .read_to_string(&mut text)
        .expect("text");
    text
}

/// Replies that never end, after the trial and the warm-up.
fn endless() -> Server {
    Server::start(|asked, stream| {
        if asked.number < 4 {
            return proper(asked, stream);
        }
        stream_head(stream);
        event(stream, &text(Some(1)));
        std::thread::sleep(Duration::from_secs(30));
        Then::Close
    })
}

/// Reads events until two requests are over.
fn until_two_are_over(child: &mut Child) -> (String, BufReader<std::process::ChildStdout>) {
    let mut reader = BufReader::new(child.stdout.take().expect("its output"));
    let mut lines = String::new();
    let mut over = 0;
    while over < 2 {
        let before = lines.len();
        assert!(
            reader.read_line(&mut lines).expect("a line") > 0,
            "it ended: {lines}"
        );
        over += u32::from(lines[before..].contains(r#""event":"request""#));
    }
    (lines, reader)
}

#[test]
fn output_and_spool_are_the_same() {
    let server = Server::start(proper);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("spool");
    let mut spec = server.spec(vec![level(1, 2), level(2, 4)]);
    spec.spool = Some(path.to_str().expect("a path").to_owned());
    let mut child = start_with(&spec);
    let told = output(&mut child);
    assert_eq!(code(&mut child), 0);
    assert_eq!(std::fs::read_to_string(&path).expect("a spool"), told);
    let told = events(&told);
    let seqs: Vec<u64> = told.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=told.len() as u64).collect::<Vec<_>>());
    assert_eq!(
        told.iter()
            .filter(|event| matches!(event.kind, MeterEventKind::Request(_)))
            .count(),
        6
    );

    // A second run into the same file is refused, and leaves it alone.
    let before = std::fs::read_to_string(&path).expect("a spool");
    let mut child = start_with(&spec);
    let told = events(&output(&mut child));
    assert_eq!(code(&mut child), 2);
    assert!(
        matches!(&told[0].kind, MeterEventKind::Finished { outcome: MeterOutcome::Failed { reason } } if reason.contains("already holds"))
    );
    assert_eq!(std::fs::read_to_string(&path).expect("a spool"), before);
}

#[test]
fn the_word_cancels() {
    let server = endless();
    let mut child = start_with(&server.spec(vec![level(1, 50)]));
    let (mut lines, mut reader) = until_two_are_over(&mut child);
    writeln!(child.stdin.as_mut().expect("its input"), "cancel").expect("written");
    reader.read_to_string(&mut lines).expect("text");
    assert_eq!(code(&mut child), 3);
    let told = events(&lines);
    assert_eq!(
        told.last().expect("an event").kind,
        MeterEventKind::Finished {
            outcome: MeterOutcome::Cancelled
        }
    );
    assert!(matches!(
        told[told.len() - 2].kind,
        MeterEventKind::StageFinished { .. }
    ));
}

#[test]
fn a_meter_that_is_stopped_for_a_while_says_so() {
    let server = Server::start(|asked, stream| paced(asked, stream, Duration::from_millis(5)));
    let mut child = start_with(&server.spec(vec![level(1, 30)]));
    let (mut lines, mut reader) = until_two_are_over(&mut child);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).expect("stopped");
    std::thread::sleep(Duration::from_millis(700));
    kill_process(pid, Signal::CONT).expect("woken");
    reader.read_to_string(&mut lines).expect("text");
    assert_eq!(code(&mut child), 0);
    let flag = events(&lines)
        .into_iter()
        .find_map(|event| match event.kind {
            MeterEventKind::StageFinished { figures, .. } => {
                let stopped = |flag: &StageFlag| matches!(flag, StageFlag::ClientStopped { .. });
                figures.flags.into_iter().find(stopped)
            }
            _ => None,
        })
        .expect("a flag");
    assert!(flag.forbids_verdict(), "{flag:?}");
    let said = flag.sentence();
    assert!(said.contains("stood still for"), "{said}");
}

#[test]
fn a_parent_that_is_gone_cancels() {
    let server = endless();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("spool");
    let mut spec = server.spec(vec![level(1, 50)]);
    spec.spool = Some(path.to_str().expect("a path").to_owned());
    let mut child = start_with(&spec);
    let (_, reader) = until_two_are_over(&mut child);
    // Both ends at once, as when the parent dies.
    drop(reader);
    drop(child.stdin.take());
    assert_eq!(code(&mut child), 3);
    let told = events(&std::fs::read_to_string(&path).expect("a spool"));
    assert_eq!(
        told.last().expect("an event").kind,
        MeterEventKind::Finished {
            outcome: MeterOutcome::Cancelled
        }
    );
    let over: Vec<_> = told
        .iter()
        .filter_map(|event| match &event.kind {
            MeterEventKind::Request(request) => Some(&request.record),
            _ => None,
        })
        .collect();
    assert_eq!(over.iter().filter(|record| record.is_success()).count(), 2);
    assert_eq!(
        over.iter().filter(|record| record.is_cancelled()).count(),
        1
    );
}

#[test]
fn a_closed_output_loses_nothing_of_the_spool() {
    let server = Server::start(|asked, stream| paced(asked, stream, Duration::from_millis(5)));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("spool");
    let mut spec = server.spec(vec![level(2, 20)]);
    spec.spool = Some(path.to_str().expect("a path").to_owned());
    let mut child = start_with(&spec);
    drop(child.stdout.take());
    assert_eq!(code(&mut child), 0);
    let told = events(&std::fs::read_to_string(&path).expect("a spool"));
    assert_eq!(
        told.iter()
            .filter(|event| matches!(event.kind, MeterEventKind::Request(_)))
            .count(),
        20
    );
    assert_eq!(
        told.last().expect("an event").kind,
        MeterEventKind::Finished {
            outcome: MeterOutcome::Complete
        }
    );
}

#[test]
fn failures_and_bad_specifications_have_their_codes() {
    let mut child = start_with(&crate::support::spec(
        "http://127.0.0.1:1",
        vec![level(1, 1)],
    ));
    let told = events(&output(&mut child));
    assert_eq!(code(&mut child), 1);
    assert!(matches!(
        &told[0].kind,
        MeterEventKind::Finished {
            outcome: MeterOutcome::Failed { .. }
        }
    ));

    for line in ["", "{}", "not JSON"] {
        let mut child = start();
        writeln!(child.stdin.as_mut().expect("its input"), "{line}").expect("written");
        let told = events(&output(&mut child));
        assert_eq!(code(&mut child), 2, "{line}");
        assert_eq!(told.len(), 1);
    }

    let version = Command::new(env!("CARGO_BIN_EXE_tokdyno-meter"))
        .arg("--version")
        .output()
        .expect("output");
    assert_eq!(
        String::from_utf8_lossy(&version.stdout),
        format!("tokdyno-meter {}\n", env!("CARGO_PKG_VERSION"))
    );
    let other = Command::new(env!("CARGO_BIN_EXE_tokdyno-meter"))
        .arg("--help")
        .output()
        .expect("output");
    assert_eq!(other.status.code(), Some(2));
}
