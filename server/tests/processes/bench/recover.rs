//! A measurement that dies loses no finished request.

use std::{process::Stdio, time::Duration};

use super::{bench, json, measure, names};
use crate::support::{DataDir, Simulator, kill_nine, tokdyno, wait_for};

#[test]
fn what_a_killed_measurement_finished_is_recovered() {
    let simulator = Simulator::start(5);
    let folder = DataDir::new();
    let path = folder.path().join("r.json");
    let events = folder.path().join("r.json.events.jsonl");
    let (result, spool) = (
        path.to_str().expect("a path"),
        events.to_str().expect("a path"),
    );
    let mut child = tokdyno(&["bench", "--url", &simulator.url, "--certify", "off"])
        .args(["--single-stream-only", "--requests", "100000"])
        .args(["--output-tokens", "8", "--warmup", "0", "--seed", "7"])
        .args(["--name", "tuned", "--json", result])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    wait_for("finished requests", || {
        (simulator.completed() >= 10).then_some(())
    });

    // While it lives, nobody else may touch its files.
    let during = bench(&["--recover", spool, "--json", result]);
    assert_eq!(during.code, Some(1), "{during:?}");
    assert!(during.stderr.contains("at this moment"), "{during:?}");

    let finished = simulator.completed();
    std::thread::sleep(Duration::from_secs(1));
    kill_nine(i32::try_from(child.id()).expect("a pid"));
    child.wait().expect("waited");
    assert!(!path.exists(), "no half-written file");

    // Measuring over it is refused, with the way out.
    let again = measure(&simulator, &["--single-stream-only", "--json", result]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(
        again.stderr.contains(&format!("--recover {spool}")),
        "{again:?}"
    );

    let recovered = bench(&["--recover", spool, "--json", result]);
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert!(recovered.stdout.contains("interrupted"), "{recovered:?}");
    assert_eq!(names(&folder), ["r.json"], "the events are in the result");
    let written = json(&path);
    assert_eq!(written["outcome"], "failed");
    assert!(
        written["reason"]
            .as_str()
            .expect("a reason")
            .starts_with("interrupted")
    );
    assert_eq!(written["configuration"], "tuned");
    assert_eq!(written["workload"]["seed"], 7);
    assert_eq!(written["endpoint"]["simulated"], true);
    assert_eq!(written["endpoint"]["engine"], "sglang");
    let stage = &written["stages"][0];
    assert_eq!(stage["complete"], false);
    let completed = stage["completed"].as_u64().expect("a number");
    assert!(
        completed >= finished,
        "{completed} recovered, {finished} finished a second before"
    );
    assert_eq!(
        stage["records"].as_array().expect("records").len() as u64,
        stage["requests"].as_u64().expect("a number")
    );
    // It is a result like any other.
    let compared = bench(&["--compare", result, result]);
    assert_eq!(compared.code, Some(0), "{compared:?}");
}

#[test]
fn what_is_no_spool_says_why() {
    let folder = DataDir::new();
    let at = |name: &str| {
        let path = folder.path().join(name);
        path.to_str().expect("a path").to_owned()
    };
    let result = at("r.json");
    for (spool, sentence) in [
        (at("r.json"), "is no file of events"),
        (at("r.json.events.jsonl"), "cannot be read"),
    ] {
        let finished = bench(&["--recover", &spool, "--json", &result]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains(sentence), "{finished:?}");
    }
    assert!(names(&folder).is_empty(), "nothing is made");
}
