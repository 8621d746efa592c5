use tokdyno_domain::{
    metrics::{Distribution, StageFigures, StageFlag},
    workload::LoadLevel,
};

use super::*;
use crate::bench::{Circumstances, Collected, Subject};

fn rule(text: &str) -> Rule {
    text.parse().expect("a rule")
}

fn refused(text: &str) -> String {
    text.parse::<Rule>().expect_err("refused").to_string()
}

/// Single stream of 5, C = 8 of 200, 4 requests per second for a minute.
fn workload() -> Workload {
    let level = |kind, size| LoadLevel { kind, size };
    let rate = StageKind::OpenLoop {
        rate: Thousandths::new(4.0).expect("a rate"),
        arrivals: tokdyno_domain::workload::Arrivals::Poisson,
    };
    Workload::with_levels(
        "w",
        vec![
            level(StageKind::SingleStream, StageSize::Requests { requests: 5 }),
            level(
                StageKind::ClosedLoop { concurrency: 8 },
                StageSize::Requests { requests: 200 },
            ),
            level(rate, StageSize::Duration { seconds: 60.0 }),
        ],
    )
}

fn result(tpot_p99: [Option<f64>; 3]) -> ResultFile {
    let subject = Subject {
        info: None,
        notes: Vec::new(),
    };
    let around = Circumstances::new("http://h".to_owned(), &subject, workload());
    let outcome = tokdyno_domain::meter::MeterOutcome::Complete;
    let mut result = Collected::default().result(outcome, around);
    for (plan, p99) in workload().plan().into_iter().zip(tpot_p99) {
        result.stages.push(ResultStage {
            index: plan.index,
            kind: plan.level.kind,
            repeat: plan.repeat,
            complete: true,
            figures: StageFigures {
                completed: 98,
                failed: 2,
                output_tps: Some(100.0 * f64::from(plan.index + 1)),
                tpot_ms: Distribution {
                    p99,
                    ..Distribution::default()
                },
                ..StageFigures::default()
            },
            conditions: tokdyno_domain::conditions::StageConditions::default(),
            histograms: None,
            records: Vec::new(),
        });
    }
    result
}

fn judged(text: &str) -> (bool, String) {
    let judgement = rule(text).judge(&result([None, Some(11.0), Some(13.0)]));
    (judgement.broken, judgement.sentence)
}

#[test]
fn a_named_level_is_held_to_its_own_figure() {
    assert_eq!(
        judged("c8.tpot_p99>12"),
        (
            false,
            "c8.tpot_p99>12: ok, 11.00 ms in stage 2 (C = 8).".to_owned()
        )
    );
    assert!(judged("r4.tpot_p99 > 12").0);
    assert!(judged("c8.output_tps<=200").0 && !judged("c8.output_tps<200").0);
    assert!(!judged("single.output_tps>=100.5").0);
    assert!(judged("c8.failure_share>=0.02").0 && !judged("failures>2").0);
}

#[test]
fn without_a_level_the_worst_stage_that_can_have_the_figure_counts() {
    let (broken, sentence) = judged("tpot_p99>12");
    assert!(broken);
    assert_eq!(
        sentence,
        "tpot_p99>12: BROKEN, 13.00 ms in stage 3 (4 req/s (Poisson))."
    );
    let (broken, sentence) = judged("output_tps<100");
    assert!(
        !broken && sentence.contains("100.0 tok/s in stage 1"),
        "{sentence}"
    );
}

#[test]
fn what_is_not_defined_breaks_the_rule() {
    let (broken, sentence) = judged("c8.ttft_p50>1");
    assert!(broken);
    assert!(
        sentence.contains("not defined in stage 2 (C = 8)"),
        "{sentence}"
    );
    // 60 seconds could have brought a hundred requests, so this one is missing.
    let missing = rule("tpot_p99>12").judge(&result([None, Some(1.0), None]));
    assert!(missing.broken, "{}", missing.sentence);
    let mut short = result([None, Some(1.0), Some(1.0)]);
    short.stages.truncate(2);
    assert!(rule("tpot_p99>12").judge(&short).broken);
    short.skipped = vec![2];
    assert!(
        !rule("tpot_p99>12").judge(&short).broken,
        "left out by a rule of the workload"
    );
    assert!(
        rule("r4.tpot_p99>12").judge(&short).broken,
        "and yet it was asked for"
    );
}

#[test]
fn a_stage_without_verdict_breaks_every_rule_but_those_on_counts() {
    let mut result = result([None, Some(11.0), Some(1.0)]);
    let flag = StageFlag::Failures {
        failed: 2,
        requests: 100,
    };
    let harmless = StageFlag::NoDone { requests: 1 };
    result.stages[1].figures.flags = vec![harmless, flag.clone()];
    let judged = |text: &str| rule(text).judge(&result);
    for text in ["c8.tpot_p99>12", "tpot_p99>12", "output_tps<1"] {
        let Judgement { broken, sentence } = judged(text);
        assert!(broken, "{sentence}");
        let says = "BROKEN, because no verdict may rest on stage 2 (C = 8). 2 of 100 requests";
        assert!(sentence.contains(says), "{sentence}");
        assert!(sentence.ends_with(&flag.sentence()), "{sentence}");
    }
    assert!(!judged("r4.tpot_p99>12").broken, "another stage");
    for text in [
        "c8.requests>0",
        "completed<98",
        "failures>2",
        "failure_share>0.02",
    ] {
        let Judgement { broken, sentence } = judged(text);
        assert!(!broken, "{sentence}");
    }
    assert!(judged("failures>1").broken);
    result.stages[1].figures.flags = vec![StageFlag::NoDone { requests: 1 }];
    assert!(!rule("c8.tpot_p99>12").judge(&result).broken);
    result.stages[1].figures.completed = 0;
    let none = rule("c8.tpot_p99>12").judge(&result);
    assert!(
        none.broken && none.sentence.contains("No request succeeded"),
        "{}",
        none.sentence
    );
}

#[test]
fn rules_that_can_never_be_met_are_refused_beforehand() {
    let check = |text: &str| {
        rule(text)
            .check(&workload())
            .map_err(|error| error.to_string())
    };
    for fine in [
        "c8.tpot_p99>1",
        "tpot_p99>1",
        "single.tpot_p50>1",
        "r4.ttft_intended_p50>1",
    ] {
        assert_eq!(check(fine), Ok(()), "{fine}");
    }
    for (text, says) in [
        ("single.tpot_p99>1", "at least 100 requests"),
        ("c9.tpot_p99>1", "not measured"),
        ("ramp.tpot_p99>1", "not measured"),
        ("r5.tpot_p99>1", "not measured"),
        ("c8.ttft_intended_p50>1", "intended time"),
        ("goodput<1", "--goodput"),
        ("r4.steady_output_tps<1", "steady state"),
    ] {
        let error = check(text).expect_err(text);
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn what_is_no_rule_says_why() {
    assert!(refused("tpot_p99=12").contains("is no rule"));
    assert!(refused("tpot_p99>twelve").contains("`twelve` is no number"));
    assert!(refused("tpot_p99>inf").contains("is no number"));
    assert!(refused("x8.tpot_p99>1").contains("`x8` is no load level"));
    assert!(refused("tpot>1").contains("Near it are tpot_mean, tpot_min, tpot_p50."));
    assert!(refused("outptu_tps<1").contains("output_tps"));
    assert!(refused("nonsense<1").contains("--help-metrics"));
    assert!(!refused("nonsense<1").contains("Near it"));
}
