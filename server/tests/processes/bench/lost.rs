//! What was measured is said whatever becomes of the files, and no file is said to
//! hold what it does not.

use std::{
    fs::File,
    path::Path,
    process::{Child, Command, Stdio},
};

use super::{bench, json, measure, names};
use crate::support::{DataDir, Finished, Simulator, send_interrupt, tokdyno, wait_for};

const ENDLESS: [&str; 7] = [
    "--single-stream-only",
    "--requests",
    "100000",
    "--output-tokens",
    "8",
    "--warmup",
    "0",
];
const SHORT: [&str; 5] = [
    "--single-stream-only",
    "--requests",
    "2",
    "--output-tokens",
    "4",
];

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// A measurement under way, ten requests of which are over.
fn under_way(simulator: &Simulator, result: &Path) -> Child {
    let child = tokdyno(&["bench", "--url", &simulator.url, "--certify", "off"])
        .args(ENDLESS)
        .args(["--json", text(result)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    wait_for("finished requests", || {
        (simulator.completed() >= 10).then_some(())
    });
    child
}

fn stopped(child: Child) -> Finished {
    send_interrupt(&child);
    Finished::wait(child)
}

#[test]
fn a_full_disk_costs_neither_the_table_nor_the_reason() {
    let simulator = Simulator::start(2);
    let folder = DataDir::new();
    let result = folder.path().join("r.json");
    // A limit on the length of files stands for the disk's end.
    let limited = r#"trap "" XFSZ; ulimit -f 64; exec "$0" "$@""#;
    let mut command = Command::new("sh");
    command
        .args(["-c", limited, env!("CARGO_BIN_EXE_tokdyno"), "bench"])
        .args(["--url", &simulator.url, "--certify", "off"])
        .args(ENDLESS)
        .args(["--json", text(&result)]);
    let finished = Finished::of(command);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for said in ["output tok/s", "Failed: The spool file"] {
        assert!(finished.stdout.contains(said), "{said}: {finished:?}");
    }
    for said in [
        "could not be written to the end. It holds what was finished before",
        "tokdyno: The spool file",
        "tokdyno: The result cannot be written",
    ] {
        assert!(finished.stderr.contains(said), "{said}: {finished:?}");
    }
    assert!(!finished.stderr.contains("is kept in"), "{finished:?}");

    // What was promised holds.
    let events = folder.path().join("r.json.events.jsonl");
    let recovered = bench(&["--recover", text(&events), "--json", text(&result)]);
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert_eq!(names(&folder), ["r.json"]);
    let reason = json(&result)["reason"].to_string();
    assert!(reason.contains("The spool file"), "{reason}");
}

#[test]
fn a_folder_that_goes_takes_no_table_along() {
    let simulator = Simulator::start(2);
    let folder = DataDir::new();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).expect("made");
    let child = under_way(&simulator, &inner.join("r.json"));
    std::fs::remove_dir_all(&inner).expect("removed");
    let finished = stopped(child);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stdout.contains("Stopped before the end"),
        "{finished:?}"
    );
    assert!(
        finished.stderr.contains("No file holds what was measured"),
        "{finished:?}"
    );
}

#[test]
fn a_place_that_was_taken_meanwhile_leaves_all_to_be_recovered() {
    let simulator = Simulator::start(2);
    let folder = DataDir::new();
    let result = folder.path().join("r.json");
    let child = under_way(&simulator, &result);
    std::fs::create_dir(&result).expect("made");
    let finished = stopped(child);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stdout.contains("Stopped before the end")
            && !finished.stdout.contains("The result is in"),
        "{finished:?}"
    );
    assert!(
        finished.stderr.contains("What was measured is kept in"),
        "{finished:?}"
    );
    let (events, other) = (
        folder.path().join("r.json.events.jsonl"),
        folder.path().join("other.json"),
    );
    let recovered = bench(&["--recover", text(&events), "--json", text(&other)]);
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert_eq!(json(&other)["outcome"], "cancelled");
}

#[test]
fn a_result_that_cannot_be_written_leaves_the_table() {
    let simulator = Simulator::start(1);
    let finished = measure(&simulator, &[&SHORT[..], &["--json", "/dev/full"]].concat());
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("output tok/s"), "{finished:?}");
    assert!(
        finished.stderr.contains("cannot be written to /dev/full"),
        "{finished:?}"
    );
}

#[test]
fn a_lost_table_is_a_failure_unless_nobody_reads_it() {
    let simulator = Simulator::start(1);
    let folder = DataDir::new();
    let result = folder.path().join("r.json");
    let to = |output: Stdio| {
        let child = tokdyno(&["bench", "--url", &simulator.url, "--certify", "off"])
            .args(SHORT)
            .args(["--json", text(&result)])
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let ended = child.wait_with_output().expect("ended");
        let said = String::from_utf8(ended.stderr).expect("text");
        (ended.status.code(), said)
    };
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("opened");
    let (code, said) = to(full.into());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("The table cannot be written"), "{said}");
    assert_eq!(names(&folder), ["r.json"], "the result is there");

    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let (code, said) = to(writer.into());
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("cannot be written"), "{said}");
}

#[test]
fn files_of_others_stay_as_they_are() {
    let simulator = Simulator::start(1);
    let folder = DataDir::new();
    let result = folder.path().join("r.json");
    for (name, says) in [
        ("r.json.spec.json", "is no file of a measurement"),
        ("r.json.events.jsonl", "holds what a measurement finished"),
    ] {
        let theirs = folder.path().join(name);
        std::fs::write(&theirs, "{\"mine\": 1}").expect("written");
        let finished = measure(
            &simulator,
            &[&SHORT[..], &["--json", text(&result)]].concat(),
        );
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains(says), "{finished:?}");
        assert_eq!(names(&folder), [name], "nothing is added");
        let left = std::fs::read_to_string(&theirs).expect("read");
        assert_eq!(left, "{\"mine\": 1}");
        std::fs::remove_file(&theirs).expect("removed");
    }
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let finished = measure(&simulator, &[&SHORT[..], &["--json", text(&pipe)]].concat());
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("a named pipe"), "{finished:?}");
    assert_eq!(finished.stdout, "", "nothing was measured");
}
