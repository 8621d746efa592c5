//! Rules on the command line, and the exit codes that follow from them.

use super::{bench, measure};
use crate::support::Simulator;

#[test]
fn a_broken_rule_has_an_exit_code_of_its_own() {
    let simulator = Simulator::start(2);
    let run = |rules: &[&str]| {
        let shape = [
            "--no-single-stream",
            "--concurrency",
            "2",
            "--requests",
            "4",
        ];
        let size = ["--output-tokens", "4"];
        measure(&simulator, &[&shape[..], &size, rules].concat())
    };
    let kept = run(&[
        "--fail-if",
        "c2.output_tps<0.001",
        "--fail-if",
        "failures>0",
    ]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert!(
        kept.stdout.contains("c2.output_tps<0.001: ok, "),
        "{kept:?}"
    );
    assert!(
        kept.stdout.contains("failures>0: ok, 0 in stage 1"),
        "{kept:?}"
    );
    let broken = run(&["--fail-if", "output_tps>0.001", "--fail-if", "failures>0"]);
    assert_eq!(broken.code, Some(4), "{broken:?}");
    assert!(
        broken.stdout.contains("output_tps>0.001: BROKEN, "),
        "{broken:?}"
    );
    assert!(broken.stdout.contains("failures>0: ok"), "{broken:?}");
    // The stand-in speculates only where it is told to.
    let undefined = run(&["--fail-if", "accept_length<1"]);
    assert_eq!(undefined.code, Some(4), "{undefined:?}");
    assert!(
        undefined.stdout.contains("not defined in stage 1"),
        "{undefined:?}"
    );
}

#[test]
fn metrics_are_explained_without_a_server() {
    let explained = bench(&["--help-metrics"]);
    assert_eq!(explained.code, Some(0), "{explained:?}");
    for name in [
        "ttft (ms): ",
        "tpot (ms): ",
        "output_tps (tok/s): ",
        "goodput (req/s): ",
    ] {
        assert!(explained.stdout.contains(name), "{name}: {explained:?}");
    }
}
