//! `tokdyno gate`: result files and runs of a server held to rules, with the exit codes
//! that a pipeline goes by.

use crate::support::{DataDir, Finished, Server, Simulator, post, tokdyno};

fn gate(arguments: &[&str]) -> Finished {
    Finished::of(tokdyno(&[&["gate"], arguments].concat()))
}

fn ends(arguments: &[&str], code: i32, says: &str) {
    let finished = gate(arguments);
    assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
    assert!(
        finished.stdout.contains(says) || finished.stderr.contains(says),
        "{says}: {finished:?}"
    );
}

/// Measures the stand-in with a few short requests into a file.
fn measured(folder: &DataDir, step_ms: u32, name: &str) -> String {
    let simulator = Simulator::start(step_ms);
    let path = folder.path().join(format!("{name}.json"));
    let file = path.to_str().expect("a path").to_owned();
    let finished = Finished::of(tokdyno(&[
        "bench",
        "--url",
        &simulator.url,
        "--certify",
        "off",
        "--single-stream-only",
        "--requests",
        "2",
        "--repeats",
        "3",
        "--output-tokens",
        "8",
        "--name",
        name,
        "--json",
        &file,
    ]));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    file
}

#[test]
fn files_are_held_to_rules() {
    let folder = DataDir::new();
    let (slow, fast) = (measured(&folder, 40, "slow"), measured(&folder, 5, "fast"));
    let rule = |rule: &'static str, more: &[&str]| -> Vec<String> {
        let all = [&["--rule", rule], more].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    let ends = |arguments: Vec<String>, code: i32, says: &str| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        ends(&arguments, code, says);
    };
    ends(rule("failures <= 0", &[&fast]), 0, "The gate holds: 1 hold");
    ends(rule("failures <= 0", &[&fast]), 0, "SIMULATED");
    ends(rule("single.e2e_tps_p50 <= 0.001", &[&fast]), 4, "BROKEN");
    ends(rule("c8.output_tps >= 1", &[&fast]), 5, "NOT ESTABLISHED");
    ends(
        rule("c8.output_tps >= 1", &["--not-established-passes", &fast]),
        0,
        "The gate is not established",
    );
    // A file is one launch, so nothing is known of the next start.
    let against = "e2e_tps not worse than 2 %";
    ends(
        rule(against, &["--baseline", &slow, &fast]),
        5,
        "launch-to-launch variation unknown",
    );
    let within = "e2e_tps not worse than 2 % within launches";
    ends(
        rule(within, &["--baseline", &slow, &fast]),
        0,
        "within these launches",
    );
    ends(rule(within, &[&fast, &slow]), 4, "worse by more than 2 %");

    ends(rule(against, &[&fast]), 2, "needs a baseline");
    ends(
        rule("speed >= 1", &[&fast]),
        2,
        "There is no metric `speed`",
    );
    ends(
        rule("failures <= 0", &["--record", &fast]),
        2,
        "tokdyno import",
    );
    ends(
        rule("failures <= 0", &["run", "x"]),
        2,
        "not a run's number",
    );
    ends(rule("failures <= 0", &["missing.json"]), 1, "missing.json");

    let finished = gate(&["--json", "--rule", within, "--baseline", &fast, &slow]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let said: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON alone");
    assert_eq!(said["outcome"], "broken");
    assert_eq!(said["simulated"], true);
    assert_eq!(said["gate"], serde_json::Value::Null);
    let judgement = &said["judgements"][0];
    assert_eq!(
        judgement["rule"],
        "e2e_tps_p50 not worse than 2 % within launches"
    );
    assert!(judgement["interval"]["high"].as_f64().expect("an end") < 0.98);
    assert!(judgement["verdict"]["kind"].is_string(), "{said}");
}

#[test]
fn runs_of_a_server_are_judged_recorded_and_decided() {
    let data = DataDir::new();
    let file = measured(&data, 5, "fast");
    let server = Server::start(data.path(), &["--no-founding"]);
    let url = format!("http://{}", server.address);
    let imported = std::fs::read(&file).expect("a result");
    let reply = post(&server.address, "/api/v1/import", &[], &imported);
    assert_eq!(reply.status, 201, "{reply:?}");
    let run = reply.json()["run"].to_string();
    let at = ["--server", &url, "--rule", "failures <= 0"];
    let on_server = |more: &[&str]| gate(&[&at[..], more].concat());

    let tried = on_server(&["run", &run]);
    assert_eq!(tried.code, Some(0), "{tried:?}");
    let recorded = on_server(&[
        "--record",
        "--rule",
        "single.e2e_tps_p50 <= 0.001",
        "run",
        &run,
    ]);
    assert_eq!(recorded.code, Some(4), "{recorded:?}");
    assert!(
        recorded.stdout.contains("Recorded as gate 1."),
        "{recorded:?}"
    );
    let against = on_server(&["--rule", "e2e_tps not worse than 2 %", "run", &run]);
    assert_eq!(against.code, Some(2), "{against:?}");
    let nobody = on_server(&["run", "99"]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(nobody.stderr.contains("no run 99"), "{nobody:?}");

    let decide = |reason: &str| {
        let body = serde_json::json!({"decision": "accepted", "reason": reason}).to_string();
        post(
            &server.address,
            "/api/v1/gates/1/decision",
            &[],
            body.as_bytes(),
        )
    };
    assert_eq!(decide(" ").status, 422);
    assert_eq!(decide("only a rehearsal").status, 200);
    assert_eq!(decide("again").status, 409);
    let listed = server.get(&format!("/api/v1/gates?runs={run}"));
    let gates = listed.json();
    assert_eq!(gates.as_array().map(Vec::len), Some(1), "{gates}");
    assert_eq!(gates[0]["outcome"]["outcome"], "broken");
    assert_eq!(gates[0]["decision"]["kind"], "accepted");
    assert_eq!(gates[0]["decision"]["reason"], "only a rehearsal");
    // As the forms of the page send it.
    let sent = |function: &str, body: &str| {
        let headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
        ];
        let path = format!("/api/fn/{function}");
        post(&server.address, &path, &headers, body.as_bytes())
    };
    let rules = "failures+%3C%3D+0%0D%0Ac8.output_tps+%3E%3D+1";
    let body = format!("form%5Bruns%5D%5B0%5D={run}&form%5Brules%5D={rules}");
    let second = sent("record_gate", &body);
    assert_eq!(second.status, 200, "{second:?}");
    assert_eq!(second.json()["outcome"]["outcome"], "not_established");
    let body = format!("form%5Bruns%5D%5B0%5D={run}&form%5Brules%5D=speed");
    let bad = sent("record_gate", &body);
    assert_eq!(bad.status, 422, "{bad:?}");
    assert!(bad.body.contains("Line 1: `speed` is no rule"), "{bad:?}");
    let rejected = sent(
        "decide_gate",
        "gate=2&decision=rejected&reason=not+measured",
    );
    assert_eq!(rejected.status, 200, "{rejected:?}");
    assert_eq!(rejected.json()["decision"]["kind"], "rejected");
    let page = server.get(&format!("/runs/{run}"));
    assert_eq!(page.status, 200);
    for expected in [
        "Gate 1",
        "only a rehearsal",
        "override",
        "Gate 2",
        "not measured",
    ] {
        assert!(page.body.contains(expected), "{expected}");
    }
}
