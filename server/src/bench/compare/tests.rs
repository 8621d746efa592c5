use tokdyno_domain::{
    conditions::StageConditions,
    meter::MeterOutcome,
    metrics::{Distribution, StageFigures},
    result_file::ResultStage,
    verdict::VerdictKind,
    workload::{Preset, StageKind},
};

use super::*;
use crate::bench::{Circumstances, Collected, Subject};

fn result(name: &str, speeds: &[f64]) -> (String, ResultFile) {
    let subject = Subject {
        info: None,
        notes: Vec::new(),
    };
    let around = Circumstances {
        configuration: Some(name.to_owned()),
        ..Circumstances::new(
            "http://gpu1:8000".to_owned(),
            &subject,
            Preset::Standard.workload(),
        )
    };
    let mut result = Collected::default().result(MeterOutcome::Complete, around);
    for (speed, repeat) in speeds.iter().zip(0..) {
        result.stages.push(ResultStage {
            index: repeat * 5,
            kind: StageKind::SingleStream,
            repeat,
            complete: true,
            figures: StageFigures {
                requests: 5,
                completed: 5,
                e2e_tps: Distribution::of(vec![*speed]),
                ..StageFigures::default()
            },
            conditions: StageConditions::default(),
            histograms: None,
            records: Vec::new(),
        });
    }
    (format!("{name}.json"), result)
}

fn compared(one: (String, ResultFile), other: (String, ResultFile)) -> Compared {
    of_results(&[one, other]).expect("a comparison")
}

#[test]
fn one_launch_each_is_a_ratio_and_no_verdict() {
    let compared = compared(
        result("untuned", &[63.5, 63.7]),
        result("tuned", &[89.9, 90.1]),
    );
    assert_eq!(compared.verdicts[0].kind, VerdictKind::NotEstablished);
    let text = compared.text();
    assert!(
        text.contains("run 1: untuned.json · untuned · http://gpu1:8000"),
        "{text}"
    );
    let row = text
        .lines()
        .find(|line| line.contains("single-stream speed"))
        .expect("a row");
    assert!(
        row.contains("63.6") && row.contains("90.0") && row.ends_with("+41.5 %"),
        "{row}"
    );
    assert!(text.contains("not established"), "{text}");
    assert!(!text.contains("SIMULATED"), "{text}");
}

#[test]
fn other_workloads_are_not_compared_and_their_fields_are_named() {
    let one = result("a", &[63.6]);
    let mut other = result("b", &[90.0]);
    other.1.workload.output_tokens = 128;
    other.1.workload.seed = 99;
    let compared = compared(one, other);
    assert_eq!(compared.verdicts[0].kind, VerdictKind::NotComparable);
    assert_eq!(
        compared.workload_differences,
        [FieldDifference {
            field: "output_tokens".to_owned(),
            values: [256.into(), 128.into()]
        }]
    );
    let text = compared.text();
    assert!(
        text.contains("workload, output_tokens: 256 | 128"),
        "{text}"
    );
    assert!(text.contains("Not comparable"), "{text}");
}

#[test]
fn simulated_figures_are_marked_wherever_they_stand() {
    let mut one = result("a", &[63.6]);
    let mut other = result("b", &[90.0]);
    one.1.endpoint.simulated = true;
    other.1.endpoint.simulated = true;
    let compared = compared(one, other);
    let text = compared.text();
    for expected in [
        "· SIMULATED\n",
        "single stream [SIMULATED]",
        "b [SIMULATED] against a [SIMULATED]",
        "*** SIMULATED",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let object = serde_json::to_value(&compared).expect("an object");
    assert_eq!(object["simulated"], true);
    assert_eq!(object["results"][1]["simulated"], true);
    assert_eq!(object["rows"][0]["kind"], "single_stream");
}

#[test]
fn a_simulated_result_is_not_compared_with_a_measured_one() {
    let mut other = result("b", &[90.0]);
    other.1.endpoint.simulated = true;
    let compared = compared(result("a", &[63.6]), other);
    assert_eq!(compared.verdicts[0].kind, VerdictKind::NotComparable);
}

#[test]
fn files_that_are_no_results_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.json");
    std::fs::write(&path, "{}").expect("written");
    let error = compare(&[path.clone(), path])
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("r.json: ") && error.contains("no Tokdyno result"),
        "{error}"
    );
    let missing = PathBuf::from("/nowhere/r.json");
    let error = compare(&[missing.clone(), missing]).expect_err("refused");
    assert!(matches!(error, CompareError::Read { .. }), "{error}");
}
