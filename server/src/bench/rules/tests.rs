use tokdyno_domain::{
    metrics::{Distribution, StageFigures, StageFlag},
    result_file::ResultStage,
    workload::{Arrivals, LoadLevel, StageKind, StageSize, Thousandths},
};

use super::*;
use crate::bench::{Circumstances, Collected, Subject};

fn rule(text: &str) -> FailIf {
    text.parse().expect("a rule")
}

fn refused(text: &str) -> String {
    text.parse::<FailIf>().expect_err("refused").to_string()
}

/// Single stream of 5, C = 8 of 200, 4 requests per second for a minute.
fn workload() -> Workload {
    let level = |kind, size| LoadLevel { kind, size };
    let rate = StageKind::OpenLoop {
        rate: Thousandths::new(4.0).expect("a rate"),
        arrivals: Arrivals::Poisson,
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

fn judged_of(text: &str, result: &ResultFile) -> (bool, String) {
    let [judgement] = &judge(&[rule(text)], result)[..] else {
        panic!("one judgement")
    };
    (judgement.broken, judgement.sentence.clone())
}

fn judged(text: &str) -> (bool, String) {
    judged_of(text, &result([None, Some(11.0), Some(13.0)]))
}

#[test]
fn what_a_rule_forbids_breaks_it() {
    assert_eq!(
        judged("c8.tpot_p99>12"),
        (
            false,
            "c8.tpot_p99>12: ok, 11.00 ms in stage 2 (C = 8).".to_owned()
        )
    );
    assert_eq!(
        judged("tpot_p99>12"),
        (
            true,
            "tpot_p99>12: BROKEN, 13.00 ms in stage 3 (4 req/s (Poisson)).".to_owned()
        )
    );
    assert!(judged("r4.tpot_p99 > 12").0);
    assert!(judged("c8.output_tps<=200").0 && !judged("c8.output_tps<200").0);
    assert!(!judged("single.output_tps>=100.5").0);
    assert!(judged("c8.failure_share>=0.02").0 && !judged("failures>2").0);
    let (broken, sentence) = judged("output_tps<100");
    assert!(
        !broken && sentence.contains("100.0 tok/s in stage 1"),
        "{sentence}"
    );
}

#[test]
fn what_is_not_established_breaks_a_rule() {
    let (broken, sentence) = judged("c8.ttft_p50>1");
    assert!(broken);
    assert!(
        sentence.contains(
            "BROKEN. Nobody can say that it is met: it is not defined in stage 2 (C = 8)."
        ),
        "{sentence}"
    );
    // 60 seconds could have brought a hundred requests, so this one is missing.
    assert!(judged_of("tpot_p99>12", &result([None, Some(1.0), None])).0);
    let mut short = result([None, Some(1.0), Some(1.0)]);
    short.stages.truncate(2);
    assert!(judged_of("tpot_p99>12", &short).0);
    short.skipped = vec![2];
    assert!(
        !judged_of("tpot_p99>12", &short).0,
        "left out by a rule of the workload"
    );
    assert!(
        judged_of("r4.tpot_p99>12", &short).0,
        "and yet it was asked for"
    );
    let mut flagged = result([None, Some(11.0), Some(1.0)]);
    let flag = StageFlag::Failures {
        failed: 2,
        requests: 100,
    };
    flagged.stages[1].figures.flags = vec![flag.clone()];
    let (broken, sentence) = judged_of("c8.tpot_p99>12", &flagged);
    assert!(broken);
    assert!(
        sentence.contains("BROKEN. No verdict may rest on stage 2 (C = 8). 2 of 100 requests")
            && sentence.ends_with(&flag.sentence()),
        "{sentence}"
    );
    assert!(!judged_of("failures>2", &flagged).0, "counts are judged");
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
        assert!(
            error.contains(says) && error.contains(&format!("`{text}`")),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_is_no_rule_here_says_why() {
    assert!(refused("tpot_p99=12").contains("is no rule"));
    assert!(refused("output_tps not worse than 2 %").contains("tokdyno gate"));
}
