use super::*;
use crate::{
    analysis::{
        RunFacts, compare,
        samples::{closed, launched},
    },
    chart::ChartSpec,
    conditions::{EngineReport, StageConditions},
    metrics::Distribution,
    views::compare::CompareView,
};

/// A stage at C = 8 whose engine told of itself.
fn told(repeat: u32, tpot_ms: f64, speculation: Option<Speculation>) -> StageView {
    StageView {
        tpot_ms: Distribution::of(vec![tpot_ms]),
        conditions: StageConditions {
            engine: Some(EngineReport {
                speculation,
                ..EngineReport::default()
            }),
            ..StageConditions::default()
        },
        ..closed(8, repeat, 100.0)
    }
}

fn drafts(accepted_at: &[u64]) -> Option<Speculation> {
    Some(Speculation {
        steps: 100,
        drafted: Some(100 * accepted_at.len() as u64),
        accepted: accepted_at.iter().sum(),
        accepted_at: accepted_at.to_vec(),
    })
}

fn plain(id: i64, tpot_ms: f64) -> RunFacts {
    launched(id, "plain", id, vec![told(0, tpot_ms, None)])
}

fn speculative(id: i64, tpot_ms: f64, accepted_at: &[u64]) -> RunFacts {
    let mut facts = launched(
        id,
        "drafter",
        id,
        vec![told(0, tpot_ms, drafts(accepted_at))],
    );
    facts
        .settings
        .insert("speculative_algorithm".to_owned(), "EAGLE3".to_owned());
    facts
}

fn compared(runs: &[RunFacts]) -> CompareView<ChartSpec> {
    compare(runs).expect("a comparison")
}

#[test]
fn it_pays_from_where_a_verify_step_is_made_up_for() {
    // 1.5 tokens a step of 30 ms are 20 ms a token: twice as slow as 10 ms.
    let view = compared(&[plain(1, 10.0), speculative(2, 20.0, &[40, 10])]);
    let found = &view.speculation[0];
    assert_eq!(
        (
            found.name.as_str(),
            found.base.as_ref().map(|base| base.0.as_str())
        ),
        ("drafter", Some("plain"))
    );
    let level = &found.levels[0];
    assert_eq!(level.accept_length.mean, 1.5);
    assert_eq!(level.accepted_at, [0.4, 0.1]);
    let needed = level.break_even.as_ref().expect("a quotient");
    assert!((needed.step_ms - 30.0).abs() < 1e-9);
    assert!((needed.accept_length.ratio - 3.0).abs() < 1e-9);
    assert_eq!(needed.pays, None, "one launch each");
    assert_eq!(
        needed.sentence,
        "At C = 8 it pays from an accept length of 3.00 on (no interval: one launch, launch-to-launch variation unknown). Seen: 1.50, −50.0 % in speed after the first token: whether it pays is not established."
    );
    let chart = view
        .charts
        .iter()
        .find(|chart| chart.id == "break-even")
        .expect("a chart");
    let ends: Vec<(&str, f64)> = chart
        .series
        .iter()
        .map(|series| (series.name.as_str(), series.points[0].y))
        .collect();
    assert_eq!(ends[0], ("drafter: seen", 1.5));
    assert_eq!(ends[1].0, "drafter: needed against plain");
    assert!((ends[1].1 - 3.0).abs() < 1e-9);
}

#[test]
fn launches_decide_whether_it_pays() {
    let bases = [plain(1, 10.0), plain(2, 10.05), plain(3, 9.98)];
    let with = |tpot_ms: f64| {
        let mut runs = bases.to_vec();
        runs.extend(
            [4, 5, 6]
                .map(|id| speculative(id, tpot_ms * (1.0 + 0.002 * (id - 5) as f64), &[80, 40])),
        );
        let view = compared(&runs);
        let level = view.speculation[0].levels[0].clone();
        level.break_even.expect("a quotient")
    };
    let good = with(8.0);
    assert_eq!(good.pays, Some(true), "{}", good.sentence);
    assert!(
        good.sentence.contains("interval 1.") && good.sentence.contains("over 3 launches and 3"),
        "{}",
        good.sentence
    );
    // 2.2 tokens a step of 17.6 ms.
    assert!((good.accept_length.ratio - 1.76).abs() < 0.01);
    let bad = with(12.0);
    assert_eq!(bad.pays, Some(false), "{}", bad.sentence);
    assert!(bad.accept_length.ratio > 2.2);
    assert_eq!(with(10.01).pays, None);
}

#[test]
fn without_a_plain_one_there_is_only_the_acceptance() {
    let other = speculative(2, 9.0, &[90, 50]);
    let mut alone = other.clone();
    alone.summary.configuration = "longer".to_owned();
    alone.settings.insert("steps".to_owned(), "5".to_owned());
    let view = compared(&[speculative(1, 20.0, &[40, 10]), alone]);
    assert_eq!(view.speculation.len(), 2);
    assert!(
        view.speculation
            .iter()
            .all(|view| view.base.is_none() && view.levels[0].break_even.is_none())
    );
    // An engine that tells nothing may speculate or not.
    let mut silent = plain(3, 10.0);
    for stage in &mut silent.stages {
        stage.conditions.engine = None;
    }
    let view = compared(&[silent, other.clone()]);
    assert_eq!(view.speculation[0].base, None);
    // Nor is another model's speed a measure.
    let mut foreign = plain(4, 10.0);
    foreign.summary.model = "another".to_owned();
    assert_eq!(compared(&[foreign, other]).speculation[0].base, None);
    assert!(
        compared(&[plain(1, 10.0), plain(2, 10.0)])
            .speculation
            .is_empty()
    );
}

#[test]
fn without_counts_an_engine_may_speculate_all_the_same() {
    let drafter = speculative(2, 20.0, &[40, 10]);
    let base_of = |base: RunFacts| {
        let view = compared(&[base, drafter.clone()]);
        view.speculation[0].base.as_ref().map(|base| base.0.clone())
    };
    let with = |name: &str, value: &str| {
        let mut facts = plain(1, 10.0);
        facts.settings.insert(name.to_owned(), value.to_owned());
        facts
    };
    for (name, value) in [
        ("speculative_algorithm", "None"),
        ("speculative_config", "null"),
        // SGLang lists it whether it speculates or not.
        ("speculative_accept_threshold_single", "1.0"),
    ] {
        assert_eq!(
            base_of(with(name, value)).as_deref(),
            Some("plain"),
            "{name}"
        );
    }
    for (name, value) in [
        ("speculative_algorithm", "NGRAM"),
        ("--speculative-algorithm", "EAGLE3"),
        ("speculative_config.method", "eagle3"),
        ("--speculative-config", r#"{"method":"mtp"}"#),
        ("-sc", r#"{"method":"mtp"}"#),
        ("--spec-method", "ngram"),
    ] {
        assert_eq!(base_of(with(name, value)), None, "{name}");
    }
    // What counters said before they fell is not known.
    let mut fallen = launched(
        1,
        "plain",
        1,
        vec![told(0, 10.0, None), told(1, 10.0, None)],
    );
    if let Some(engine) = &mut fallen.stages[1].conditions.engine {
        engine.counters_fell = true;
    }
    assert_eq!(base_of(fallen), None);
}
