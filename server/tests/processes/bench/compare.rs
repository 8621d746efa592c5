//! Two results beside each other.

use super::{bench, measure};
use crate::support::{DataDir, Simulator};

#[test]
fn results_are_compared_with_all_that_differs() {
    let folder = DataDir::new();
    let at = |name: &str| {
        let path = folder.path().join(name);
        path.to_str().expect("a path").to_owned()
    };
    let measured = |step_ms: u32, name: &str, tokens: &str| {
        let simulator = Simulator::start(step_ms);
        let file = at(&format!("{name}.json"));
        let shape = ["--single-stream-only", "--requests", "2", "--repeats", "2"];
        let kept = ["--output-tokens", tokens, "--name", name, "--json", &file];
        let finished = measure(&simulator, &[&shape[..], &kept].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        file
    };
    let slow = measured(20, "slow", "8");
    let fast = measured(5, "fast", "8");
    let finished = bench(&["--compare", &slow, &fast]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for expected in [
        "run 1: ",
        "SIMULATED",
        "single-stream speed (e2e_tps), tok/s",
        "fast [SIMULATED] against slow [SIMULATED]",
        "one launch each, launch-to-launch variation unknown: not established.",
    ] {
        assert!(
            finished.stdout.contains(expected),
            "{expected}: {finished:?}"
        );
    }

    let over = bench(&["--compare", &slow, &fast, "--json", &fast]);
    assert_eq!(over.code, Some(2), "{over:?}");
    assert!(
        over.stderr.contains("one of the files that are read"),
        "{over:?}"
    );

    let other = measured(5, "other", "4");
    let finished = bench(&["--compare", &fast, &other, "--json", "-"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let object: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON alone");
    assert_eq!(object["simulated"], true);
    assert_eq!(object["class"]["kind"], "invalid");
    assert_eq!(object["workload_differences"][0]["field"], "output_tokens");
    assert_eq!(object["workload_differences"][0]["values"][1], 4);
    assert_eq!(object["verdicts"][0]["kind"], "not_comparable");
    assert!(finished.stderr.contains("Not comparable"), "{finished:?}");

    let finished = bench(&["--compare", &fast, &at("missing.json")]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("missing.json"), "{finished:?}");
}
