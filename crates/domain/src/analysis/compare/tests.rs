use super::*;
use crate::{
    analysis::samples::{closed, launched, mismatched, recorded, run, single},
    founding::CONFIGURATIONS,
    run::RunState,
    verdict::VerdictKind,
};

#[test]
fn two_to_twelve_runs() {
    let one = run(1, "a", vec![single(0, 90.0)]);
    assert!(
        compare(std::slice::from_ref(&one))
            .expect_err("a refusal")
            .starts_with("1 run cannot")
    );
    assert!(compare(&vec![one.clone(); 13]).is_err());
    assert!(compare(&vec![one; 12]).is_ok());
}

#[test]
fn a_large_gap_within_one_launch_is_stated_and_not_established() {
    let slow = run(
        1,
        "untuned",
        vec![single(0, 63.5), single(1, 63.7), closed(128, 0, 2370.0)],
    );
    let fast = run(
        2,
        "tuned",
        vec![single(0, 89.9), single(1, 90.1), closed(128, 0, 2320.0)],
    );
    let view = compare(&[slow, fast]).expect("a comparison");
    // The names say that something was changed, which the servers do not tell.
    assert_eq!(view.class.kind, ClassKind::Confounded);
    assert_eq!(view.verdicts.len(), 2);
    assert_eq!(view.verdicts[0].kind, VerdictKind::NotEstablished);
    assert!(
        view.verdicts[0].sentence.contains("+41.5 %"),
        "{}",
        view.verdicts[0].sentence
    );
    assert!(
        view.verdicts[1].sentence.contains("−2.1 %"),
        "{}",
        view.verdicts[1].sentence
    );
    let ratio = view.rows[0].cells[1]
        .and_then(|cell| cell.ratio)
        .expect("a ratio");
    assert!((ratio - 90.0 / 63.6).abs() < 1e-9);
    assert_eq!(view.rows[0].cells[0].and_then(|cell| cell.ratio), None);
}

#[test]
fn the_same_configuration_twice_is_a_repetition() {
    let runs = [
        run(1, "a", vec![single(0, 90.0)]),
        run(2, "a", vec![single(0, 91.0)]),
    ];
    let view = compare(&runs).expect("a comparison");
    assert_eq!(view.class.kind, ClassKind::Repeat);
    assert!(
        view.class.sentence.ends_with("2 runs of 1 launch."),
        "{}",
        view.class.sentence
    );
}

#[test]
fn workloads_that_differ_are_not_compared() {
    let one = run(1, "a", vec![single(0, 63.6)]);
    let mut other = run(2, "b", vec![single(0, 90.0)]);
    other.summary.workload_hash = crate::ids::ContentHash::of(b"another");
    let view = compare(&[one, other]).expect("a comparison");
    assert_eq!(view.class.kind, ClassKind::Invalid);
    assert_eq!(view.verdicts[0].kind, VerdictKind::NotComparable);
    let said = view.differences[0].values[0]
        .as_deref()
        .expect("a workload");
    assert!(said.starts_with("256 tokens ("), "{said}");
}

#[test]
fn curves_that_cross_say_where() {
    let one = run(
        1,
        "a",
        vec![
            closed(1, 0, 80.0),
            closed(4, 0, 200.0),
            closed(16, 0, 400.0),
        ],
    );
    let other = run(
        2,
        "b",
        vec![
            closed(1, 0, 90.0),
            closed(4, 0, 220.0),
            closed(16, 0, 400.0 / 1.1),
        ],
    );
    let sentence = compare(&[one.clone(), other])
        .expect("a comparison")
        .crossovers
        .remove(0);
    // 1.1 at C = 4 and 1/1.1 at C = 16: the middle in log C is 8.
    assert!(
        sentence.contains("as measured, b is faster up to about C = 8, a above")
            && sentence.contains("no difference established at any C")
            && sentence.contains("no interval"),
        "{sentence}"
    );
    let faster = run(
        3,
        "c",
        vec![
            closed(1, 0, 160.0),
            closed(4, 0, 400.0),
            closed(16, 0, 800.0),
        ],
    );
    let sentence = compare(&[one, faster])
        .expect("a comparison")
        .crossovers
        .remove(0);
    assert!(
        sentence.contains("do not cross")
            && sentence.contains("no difference established at any C")
            && !sentence.contains("leads"),
        "{sentence}"
    );
}

#[test]
fn a_crossing_has_the_range_that_its_repeats_allow() {
    let side = |id, name: &str, at_4: [f64; 2], at_16: [f64; 2]| {
        let stages = [(4, at_4), (16, at_16)]
            .into_iter()
            .flat_map(|(c, speeds)| {
                (0..)
                    .zip(speeds)
                    .map(move |(repeat, speed)| closed(c, repeat, speed))
            });
        run(id, name, stages.collect())
    };
    let sentence = compare(&[
        side(1, "untuned", [200.0, 200.1], [400.0, 400.1]),
        side(2, "tuned", [220.0, 220.1], [363.6, 363.7]),
    ])
    .expect("a comparison")
    .crossovers
    .remove(0);
    assert_eq!(
        sentence,
        "By throughput, tuned is faster up to C = 8, untuned above (interpolated between measured points, pointwise 95 % intervals within these launches, launch-to-launch variation unknown)."
    );
}

#[test]
fn a_run_that_failed_is_said_to_have_failed() {
    let fine = run(1, "a", vec![single(0, 90.0)]);
    let mut failed = run(2, "b", vec![]);
    failed.summary.state = RunState::Failed;
    failed.summary.reason = Some("The server ran out of memory.".to_owned());
    let verdict = compare(&[fine, failed])
        .expect("a comparison")
        .verdicts
        .remove(0);
    assert_eq!(
        (verdict.kind, verdict.sentence.as_str()),
        (
            VerdictKind::Failed,
            "Single stream: b failed: The server ran out of memory."
        )
    );
}

#[test]
fn the_founding_gain_is_not_established() {
    let founding = |id: i64, name: &str| {
        let noted = CONFIGURATIONS
            .iter()
            .find(|configuration| configuration.name == name)
            .expect("a configuration of the notes");
        let figure = noted.single_stream.expect("a figure");
        let mut stage = single(0, figure.value);
        stage.source = figure.source;
        stage.completed = 0;
        let mut facts = run(id, noted.name, vec![stage]);
        facts.summary.engine = noted.engine;
        facts.settings.clear();
        facts
    };
    let [first, tuned] = [&CONFIGURATIONS[0], &CONFIGURATIONS[2]].map(|noted| noted.name);
    let view = compare(&[founding(1, first), founding(2, tuned)]).expect("a comparison");
    let verdict = &view.verdicts[0];
    assert_eq!(verdict.kind, VerdictKind::NotEstablished);
    assert!(
        verdict.sentence.contains(
            "is +9.1 % as recorded, one launch each, launch-to-launch variation unknown: not established."
        ),
        "{}",
        verdict.sentence
    );
}

#[test]
fn an_estimate_is_named_as_the_objection() {
    let one = run(1, "a", vec![recorded(128, 2370.0, Source::Recorded, false)]);
    let other = run(2, "b", vec![recorded(128, 2320.0, Source::Estimated, true)]);
    let verdict = compare(&[one, other])
        .expect("a comparison")
        .verdicts
        .remove(0);
    assert!(
        verdict
            .sentence
            .ends_with("Not established: b is disputed or estimated."),
        "{}",
        verdict.sentence
    );
}

#[test]
fn what_was_not_as_asked_is_named_as_the_objection() {
    let one = launched(1, "a", 1, vec![single(0, 60.0)]);
    let other = mismatched(launched(2, "b", 2, vec![single(0, 90.0)]));
    let view = compare(&[one, other]).expect("a comparison");
    let said = &view.verdicts[0].sentence;
    assert!(
        said.ends_with("Not established: b is mismatched."),
        "{said}"
    );
    let doubtful: Vec<Option<bool>> = view.rows[0]
        .cells
        .iter()
        .map(|cell| Some(cell.as_ref()?.doubtful))
        .collect();
    assert_eq!(doubtful, [Some(false), Some(true)]);
}

#[test]
fn simulated_and_measured_are_not_compared() {
    let one = run(1, "a", vec![single(0, 63.6)]);
    let mut other = run(2, "b", vec![single(0, 90.0)]);
    other.summary.source = Source::Simulated;
    let view = compare(&[one, other]).expect("a comparison");
    assert_eq!(view.verdicts[0].kind, VerdictKind::NotComparable);
    assert_eq!(
        (view.class.kind, view.charts.len()),
        (ClassKind::Invalid, 0)
    );
}

mod launches;
