use super::*;
use crate::{
    analysis::samples::{launched, mismatched},
    conditions::{EngineReport, Speculation},
    metrics::{Distribution, StageFlag},
    source::Source,
    workload::StageKind,
};

fn run_of(stages: Vec<StageView>) -> Vec<RunFacts> {
    vec![run(1, "tuned", stages)]
}

fn with_p99(p99: [Option<f64>; 2]) -> Vec<RunFacts> {
    let mut of = stages(90.0, 200.0);
    for (stage, p99) in of.iter_mut().zip(p99) {
        stage.tpot_ms = Distribution {
            p99,
            ..Distribution::default()
        };
        (stage.completed, stage.failed) = (198, 2);
    }
    run_of(of)
}

#[test]
fn a_named_level_is_held_to_its_own_figure() {
    let seen = |text| one(text, with_p99([Some(13.0), Some(11.0)]));
    let kept = seen("c8.tpot_p99 <= 12");
    assert_eq!(kept.outcome, Outcome::Holds);
    assert_eq!(kept.sentence, "11.00 ms in stage 1 (C = 8).");
    assert_eq!((kept.of.as_str(), kept.value), ("tuned", Some(11.0)));
    assert_eq!(seen("single.tpot_p99 < 13").outcome, Outcome::Broken);
    assert_eq!(seen("c8.output_tps >= 200").outcome, Outcome::Holds);
    assert_eq!(seen("c8.output_tps > 200").outcome, Outcome::Broken);
    assert_eq!(seen("c8.failure_share < 0.02").outcome, Outcome::Holds);
    assert_eq!(seen("failures <= 1").outcome, Outcome::Broken);
}

#[test]
fn without_a_level_the_stage_nearest_to_breaking_it_speaks() {
    let seen = |text| one(text, with_p99([Some(13.0), Some(11.0)]));
    let broken = seen("tpot_p99 <= 12");
    assert_eq!(broken.outcome, Outcome::Broken);
    assert_eq!(broken.sentence, "13.00 ms in stage 1 (single stream).");
    let repeats = run_of(vec![single(0, 90.0), single(1, 84.0)]);
    let broken = one("single.e2e_tps_p50 >= 85", repeats);
    assert_eq!(
        (broken.outcome, broken.value),
        (Outcome::Broken, Some(84.0))
    );
}

#[test]
fn a_launch_that_did_not_run_as_asked_leaves_every_bound_open() {
    let asked = launched(1, "tuned", 1, stages(90.0, 200.0));
    let as_asked = one("c8.output_tps >= 150", vec![asked.clone()]);
    assert_eq!(as_asked.outcome, Outcome::Holds);
    let open = one("c8.output_tps >= 150", vec![mismatched(asked)]);
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(open.sentence.contains("--tp-size"), "{}", open.sentence);
}

#[test]
fn what_is_missing_leaves_a_rule_open() {
    let open = one("c8.accept_length >= 2", run_of(stages(90.0, 200.0)));
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(
        open.sentence.contains("not defined in stage 1 (C = 8)"),
        "{}",
        open.sentence
    );
    let open = one("c9.output_tps >= 2", run_of(stages(90.0, 200.0)));
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(open.sentence.contains("not measured"), "{}", open.sentence);
    let open = one("goodput >= 2", run_of(stages(90.0, 200.0)));
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(open.sentence.contains("--goodput"), "{}", open.sentence);

    let mut short = measured(run(1, "a", stages(90.0, 200.0)));
    short.facts.stages.truncate(1);
    let judge = |run: &Measured, text| {
        evaluate(
            &[rule(text)],
            std::slice::from_ref(run),
            &History::default(),
        )
    };
    let outcome = |run: &Measured, text| judge(run, text).expect("judged").outcome;
    assert_eq!(outcome(&short, "tpot_p50 <= 100"), Outcome::NotEstablished);
    short.skipped = vec![1];
    assert_eq!(
        outcome(&short, "tpot_p50 <= 100"),
        Outcome::Holds,
        "left out by a rule of the workload"
    );
    assert_eq!(
        outcome(&short, "c8.tpot_p50 <= 100"),
        Outcome::NotEstablished,
        "and yet it was asked for"
    );
}

#[test]
fn acceptance_is_held_to_its_bound() {
    let mut of = stages(90.0, 200.0);
    of[1].conditions.engine = Some(EngineReport {
        speculation: Some(Speculation {
            steps: 100,
            drafted: Some(300),
            accepted: 120,
            accepted_at: vec![],
        }),
        ..EngineReport::default()
    });
    let seen = |text| one(text, run_of(of.clone())).outcome;
    assert_eq!(seen("c8.accept_length >= 2.2"), Outcome::Holds);
    assert_eq!(seen("c8.accept_length >= 2.3"), Outcome::Broken);
    assert_eq!(seen("c8.accept_rate >= 0.4"), Outcome::Holds);
    assert_eq!(
        seen("accept_rate >= 0.4"),
        Outcome::NotEstablished,
        "the single stream tells none"
    );
}

#[test]
fn a_figure_in_doubt_neither_keeps_nor_breaks_a_rule() {
    let flag = StageFlag::Failures {
        failed: 2,
        requests: 200,
    };
    let mut runs = with_p99([Some(11.0), Some(11.0)]);
    runs[0].stages[1].flags = vec![StageFlag::NoDone { requests: 1 }, flag.clone()];
    for text in ["c8.tpot_p99 <= 12", "c8.tpot_p99 <= 1", "output_tps >= 1"] {
        let open = one(text, runs.clone());
        assert_eq!(open.outcome, Outcome::NotEstablished, "{text}");
        let says = format!(
            "No verdict may rest on stage 1 (C = 8). {}",
            flag.sentence()
        );
        if text.starts_with('c') {
            assert_eq!(open.sentence, says);
        }
    }
    // A sound stage beyond the bound breaks it all the same.
    assert_eq!(one("tpot_p99 <= 1", runs.clone()).outcome, Outcome::Broken);
    for text in ["c8.requests > 0", "failures <= 2", "failure_share <= 0.01"] {
        assert_eq!(one(text, runs.clone()).outcome, Outcome::Holds, "{text}");
    }
    runs[0].stages[1].flags = vec![StageFlag::NoDone { requests: 1 }];
    assert_eq!(
        one("c8.tpot_p99 <= 12", runs.clone()).outcome,
        Outcome::Holds
    );
    runs[0].stages[1].completed = 0;
    let open = one("c8.tpot_p99 <= 12", runs);
    assert!(
        open.sentence.ends_with("No request succeeded."),
        "{}",
        open.sentence
    );
}

#[test]
fn notes_can_keep_a_rule_and_estimates_cannot() {
    let at = |source, disputed| {
        one(
            "c128.output_tps >= 2000",
            run_of(vec![recorded(128, 2320.0, source, disputed)]),
        )
    };
    assert_eq!(at(Source::Recorded, false).outcome, Outcome::Holds);
    assert_eq!(at(Source::Recorded, true).outcome, Outcome::NotEstablished);
    let open = at(Source::Estimated, false);
    assert_eq!(open.outcome, Outcome::NotEstablished);
    assert!(open.sentence.contains("estimate"), "{}", open.sentence);
    // Nobody counted the failures of figures that were typed in.
    let typed = run_of(vec![recorded(128, 2320.0, Source::Recorded, false)]);
    assert_eq!(one("failures <= 0", typed).outcome, Outcome::NotEstablished);
}

#[test]
fn a_gate_is_as_bad_as_its_worst_rule() {
    let outcome = |rules: &[&str]| gate(rules, run_of(stages(90.0, 200.0))).outcome;
    assert_eq!(
        outcome(&["output_tps >= 1"]),
        Outcome::NotEstablished,
        "the single stream has none"
    );
    assert_eq!(
        outcome(&["c8.output_tps >= 1", "failures <= 0"]),
        Outcome::Holds
    );
    assert_eq!(
        outcome(&["c8.output_tps >= 1", "goodput > 1"]),
        Outcome::NotEstablished
    );
    assert_eq!(
        outcome(&["goodput > 1", "c8.output_tps >= 201"]),
        Outcome::Broken
    );
    let simulated = vec![recorded(8, 200.0, Source::Simulated, false)];
    assert!(gate(&["failures <= 0"], run_of(simulated)).simulated);
}

#[test]
fn no_p99_comes_of_few_requests_whatever_it_is_of() {
    let of = |requests| {
        Workload::with_levels(
            "w",
            vec![LoadLevel {
                kind: StageKind::SingleStream,
                size: StageSize::Requests { requests },
            }],
        )
    };
    // However many gaps there are, the slowest request has those beyond the percentile.
    for text in ["tpot_p99 <= 1", "itl_p99 <= 1", "icl_p99 <= 1"] {
        let never = rule(text).obstacle(&of(99)).map(|why| why.to_string());
        assert!(
            never.is_some_and(|why| why.contains("at least 100 requests")),
            "{text}"
        );
        assert_eq!(rule(text).obstacle(&of(100)), None, "{text}");
    }
    assert_eq!(rule("itl_p50 <= 1").obstacle(&of(5)), None);
}
