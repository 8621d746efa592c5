//! The shapes of load, each once, against the stand-in.

use super::{json, measure};
use crate::support::{DataDir, Finished, Simulator};

/// Measures, and gives the program's end and the result.
fn measured(simulator: &Simulator, arguments: &[&str]) -> (Finished, serde_json::Value) {
    let folder = DataDir::new();
    let path = folder.path().join("r.json");
    let file = ["--json", path.to_str().expect("a path")];
    let finished = measure(simulator, &[arguments, &file].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let result = json(&path);
    assert_eq!(result["outcome"], "complete");
    (finished, result)
}

#[test]
fn rates_and_ramps() {
    let simulator = Simulator::start(2);
    let (finished, result) = measured(
        &simulator,
        &[
            "--rate",
            "20",
            "--ramp",
            "10:30",
            "--arrivals",
            "constant",
            "--requests",
            "20",
            "--output-tokens",
            "4",
            "--goodput",
            "ttft:60000",
        ],
    );
    let stages = result["stages"].as_array().expect("stages");
    assert_eq!(stages.len(), 2);
    assert_eq!(
        (&stages[0]["kind"], &stages[0]["rate"]),
        (&"open_loop".into(), &20.0.into())
    );
    assert_eq!(
        (&stages[1]["kind"], &stages[1]["to"]),
        (&"ramp".into(), &30.0.into())
    );
    for stage in stages {
        assert_eq!(stage["completed"], 20);
        assert_eq!(stage["goodput"]["good"], 20);
        assert!(stage["ttft_intended_ms"]["p50"].is_number());
        assert!(stage["records"][3]["record"]["intended_ns"].is_number());
    }
    for expected in [
        "20 req/s (evenly spaced)",
        "TTFT* p50 ms",
        "Goodput (TTFT up to 60000 ms)",
    ] {
        assert!(
            finished.stdout.contains(expected),
            "{expected}: {finished:?}"
        );
    }
}

#[test]
fn a_ladder_ends_where_throughput_does() {
    let simulator = Simulator::start(2);
    // A gain of a half is out of reach long before a thousand slots: the steps of
    // the stand-in take longer the more requests they carry.
    let (finished, result) = measured(
        &simulator,
        &[
            "--saturation",
            "--max-concurrency",
            "64",
            "--min-gain",
            "50",
            "--no-single-stream",
            "--output-tokens",
            "4",
        ],
    );
    let stages = result["stages"].as_array().expect("stages").len();
    let skipped = result["skipped"].as_array().map_or(0, Vec::len);
    assert_eq!(stages + skipped, 7, "{finished:?}");
    assert_eq!(result["workload"]["saturation"]["min_gain_percent"], 50);
    assert_eq!(
        skipped > 0,
        finished.stdout.contains("these were left out"),
        "{finished:?}"
    );
}

#[test]
fn a_trace_is_replayed_at_its_times() {
    let simulator = Simulator::start(2);
    let folder = DataDir::new();
    let trace = folder.path().join("t.jsonl");
    let lines: String = (0..6)
        .map(|i| {
            format!(
                "{{\"timestamp\": {}, \"input_length\": 30, \"output_length\": {}}}\n",
                i * 100,
                i + 2
            )
        })
        .collect();
    std::fs::write(&trace, lines).expect("written");
    let trace = trace.to_str().expect("a path");
    let (_, result) = measured(&simulator, &["--replay", trace, "--speed", "2"]);
    let stage = &result["stages"][0];
    assert_eq!(
        (&stage["kind"], &stage["speed"]),
        (&"replay".into(), &2.0.into())
    );
    assert_eq!(stage["completed"], 6);
    let last = stage["records"]
        .as_array()
        .expect("records")
        .last()
        .expect("one");
    assert_eq!(last["record"]["asked_tokens"], 7);
    assert_eq!(last["record"]["completion_tokens"], 7);
}

#[test]
fn prompts_of_every_kind_are_sent() {
    let simulator = Simulator::start(2);
    let folder = DataDir::new();
    let talk = folder.path().join("talk.json");
    std::fs::write(
        &talk,
        r#"[{"conversations": [{"from": "human", "value": "One?"}, {"from": "gpt", "value": "1"}, {"from": "human", "value": "Two?"}]}]"#,
    )
    .expect("written");
    let talk = talk.to_str().expect("a path");
    let common = [
        "--no-single-stream",
        "--concurrency",
        "2",
        "--requests",
        "6",
    ];
    let size = ["--output-tokens", "4", "--warmup", "0"];
    for (prompts, set, api) in [
        (&["--random-prompts", "64"][..], "random", "completions"),
        (
            &["--shared-prefix", "2:48:16"],
            "shared_prefix",
            "completions",
        ),
        (&["--conversations", talk], "conversations", "chat"),
        (&["--prompts", talk], "chats", "chat"),
        (
            &[
                "--chat",
                "--thinking",
                "off",
                "--extra-body",
                r#"{"top_k": 1}"#,
                "--reset-cache",
            ],
            "varied",
            "chat",
        ),
    ] {
        let (finished, result) = measured(&simulator, &[&common[..], &size, prompts].concat());
        let workload = &result["workload"];
        assert_eq!(
            (&workload["prompts"]["set"], &workload["api"]),
            (&set.into(), &api.into())
        );
        assert_eq!(result["stages"][0]["failed"], 0, "{finished:?}");
    }
}
