//! Rules on runs and comparisons.

mod against;
mod bounds;
mod parsing;

use super::*;
use crate::{
    analysis::{
        History, RunFacts,
        samples::{closed, launched, recorded, run, single},
    },
    views::run::StageView,
    workload::{LoadLevel, StageSize, Workload},
};

fn rule(text: &str) -> Rule {
    text.parse().expect("a rule")
}

/// With a workload that plans the stages there are.
fn measured(facts: RunFacts) -> Measured {
    let repeats = facts.stages.iter().map(|stage| stage.repeat + 1).max();
    let levels: Vec<LoadLevel> = facts
        .stages
        .iter()
        .filter(|stage| stage.repeat == 0)
        .map(|stage| LoadLevel {
            kind: stage.kind,
            size: StageSize::Requests { requests: 200 },
        })
        .collect();
    Measured {
        workload: Workload {
            repeats: repeats.unwrap_or(1),
            ..Workload::with_levels("w", levels)
        },
        facts,
        skipped: Vec::new(),
    }
}

fn gate(rules: &[&str], runs: Vec<RunFacts>) -> GateOutcome {
    let rules: Vec<Rule> = rules.iter().map(|text| rule(text)).collect();
    let runs: Vec<Measured> = runs.into_iter().map(measured).collect();
    evaluate(&rules, &runs, &History::default()).expect("judged")
}

/// What one rule came to.
fn one(text: &str, runs: Vec<RunFacts>) -> Judgement {
    let outcome = gate(&[text], runs);
    let [judgement] = &outcome.judgements[..] else {
        panic!("one judgement: {outcome:?}")
    };
    assert_eq!(judgement.outcome, outcome.outcome);
    judgement.clone()
}

fn stages(single_tps: f64, output_tps: f64) -> Vec<StageView> {
    vec![single(0, single_tps), closed(8, 0, output_tps)]
}
