//! `tokdyno bench` as a process, against the stand-in engine.

mod compare;
mod lost;
mod odd;
mod recover;
mod rules;
mod schema;
mod shapes;

use std::{process::Stdio, time::Duration};

use crate::support::{DataDir, Finished, Simulator, send_interrupt, tokdyno};

fn bench(arguments: &[&str]) -> Finished {
    Finished::of(tokdyno(&[&["bench"], arguments].concat()))
}

/// Measures without certifying first, which is a matter of its own.
fn measure(simulator: &Simulator, arguments: &[&str]) -> Finished {
    let common = ["--url", &simulator.url, "--certify", "off"];
    bench(&[&common[..], arguments].concat())
}

fn json(path: &std::path::Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

fn names(folder: &DataDir) -> Vec<String> {
    std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
fn a_measurement_prints_a_table_and_writes_its_result() {
    let simulator = Simulator::start(2);
    let folder = DataDir::new();
    let path = folder.path().join("result.json");
    let path = path.to_str().expect("a path");
    let common = [
        "--url",
        &simulator.url,
        "--certify",
        "off",
        "--output-tokens",
        "8",
        "--repeats",
        "2",
    ];
    let single = ["--single-stream-only", "--requests", "3", "--json", path];
    let finished = bench(&[&common[..], &single].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for expected in [
        "Single stream: ",
        "over 2 repeats",
        "TTFT p50 ms",
        "3/0",
        "SIMULATED",
    ] {
        assert!(
            finished.stdout.contains(expected),
            "{expected}: {}",
            finished.stdout
        );
    }
    assert!(
        finished
            .stderr
            .contains("stage 2/2: single stream, 3 requests, 0 failed")
    );
    assert_eq!(names(&folder), ["result.json"], "nothing beside it is left");
    let result = json(path.as_ref());
    assert_eq!(result["schema_version"], 2);
    let seed = &result["workload"]["seed"];
    assert!(
        finished.stderr.contains(&format!("Seed {seed}: ")),
        "{finished:?}"
    );
    assert_eq!(result["outcome"], "complete");
    assert_eq!(result["endpoint"]["model"], "test-model");
    assert_eq!(result["endpoint"]["simulated"], true);
    let stages = result["stages"].as_array().expect("stages");
    assert_eq!(stages.len(), 2);
    for (repeat, stage) in stages.iter().enumerate() {
        assert_eq!(stage["repeat"], repeat);
        assert_eq!(stage["completed"], 3);
        assert_eq!(stage["output_tokens"], 24);
        for object in ["ttft_ms", "tpot_ms", "e2el_ms", "e2e_tps", "decode_tps"] {
            assert!(stage[object]["p50"].is_number(), "{object}");
            assert!(stage[object]["p99"].is_null(), "{object}");
        }
    }

    // To standard output: the result and nothing else.
    let finished = bench(
        &[
            &common[..],
            &["--no-single-stream", "--concurrency", "2"],
            &["--requests", "4", "--json", "-"],
        ]
        .concat(),
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let again: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON alone");
    assert_eq!(again["stages"][0]["concurrency"], 2);
    assert_ne!(
        again["workload"]["seed"], *seed,
        "no run sends the last one's prompts"
    );
    assert!(
        finished.stderr.contains("output tok/s"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_cancelled_measurement_keeps_what_is_finished() {
    let simulator = Simulator::start(10);
    let folder = DataDir::new();
    let path = folder.path().join("result.json");
    let child = tokdyno(&["bench", "--url", &simulator.url, "--single-stream-only"])
        .args([
            "--requests",
            "100000",
            "--output-tokens",
            "4",
            "--warmup",
            "0",
            "--certify",
            "off",
        ])
        .arg("--json")
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    // Long enough for a request of 40 ms, many times over; the end comes by the
    // signal, so the exact moment does not matter.
    std::thread::sleep(Duration::from_secs(4));
    assert!(!path.exists(), "no half-written file");
    send_interrupt(&child);
    let finished = Finished::wait(child);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(
        finished.stdout.contains("Stopped before the end"),
        "{finished:?}"
    );
    assert_eq!(names(&folder), ["result.json"], "nothing beside it is left");
    let result = json(&path);
    assert_eq!(result["outcome"], "cancelled");
    let stage = &result["stages"][0];
    assert!(
        stage["completed"].as_u64().expect("a number") > 0,
        "{finished:?}"
    );
    assert_eq!(stage["complete"], false);
}

#[test]
fn what_cannot_be_measured_says_why() {
    let simulator = Simulator::start(1);
    let folder = DataDir::new();
    let empty = folder.path().join("empty.txt");
    std::fs::write(&empty, "\n").expect("written");
    let empty = empty.to_str().expect("a path");
    let url = simulator.url.as_str();
    for (arguments, code, sentence) in [
        (
            &["--url", url, "--concurrency", "0"][..],
            2,
            "concurrency of 0",
        ),
        (&["--url", url, "--concurrency", "100000"], 2, "100000"),
        (&["--url", url, "--prompts", empty], 2, "holds no prompt"),
        (&["--url", "ftp://x"], 2, "Use http:// or https://"),
        (
            &["--url", url, "--api-key-env", "NOT_SET_HERE"],
            2,
            "NOT_SET_HERE",
        ),
        (
            &["--url", url, "--model", "other"],
            1,
            "It serves `test-model`",
        ),
        (&["--url", "http://127.0.0.1:9"], 1, "Nothing listens"),
        (
            &["--url", url, "--json", "/nowhere/r.json"],
            1,
            "Check the folder",
        ),
        (&["--quick"], 2, "--url"),
        (
            &["--url", url, "--fail-if", "tpot>12"],
            2,
            "Near it are tpot_mean",
        ),
        (
            &["--url", url, "--fail-if", "single.tpot_p99>12"],
            2,
            "at least 100 requests",
        ),
    ] {
        let finished = bench(arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
        assert!(
            finished.stderr.contains(sentence),
            "{arguments:?}: {finished:?}"
        );
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}
