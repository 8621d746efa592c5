//! What each level of a factor does: the main effects of a full grid, and the levels of
//! a plan that varies one thing at a time.

use serde::{Deserialize, Serialize};

use super::{
    super::{
        design::Design,
        factor::{Factor, Level},
        figures::FigureKey,
    },
    contest::{Contest, Entrant, judge},
    heat::combinations,
    lookup::find,
    table::Table,
};
use crate::{statistics::Launch, verdict::Verdict};

/// The effects of one factor on one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorEffects {
    /// The factor.
    pub factor: String,
    /// The figure.
    pub key: FigureKey,
    /// The level that others are compared with.
    pub base: String,
    /// The other levels.
    pub levels: Vec<LevelEffect>,
}

/// What a level does against the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelEffect {
    /// The level.
    pub level: String,
    /// Combinations of the other factors that it was averaged over.
    pub combinations: u32,
    /// Combinations that the design has. Those are left out whose cells were not
    /// measured, or come to the same command with both levels.
    pub of: u32,
    /// The mean ratio over these combinations, taken within blocks, with its verdict.
    /// All levels of all factors are one family.
    pub verdict: Verdict,
}

/// A level before it is judged.
pub(super) struct Question {
    factor: String,
    base: String,
    level: String,
    of: u32,
    combinations: u32,
    pub(super) contest: Contest,
}

pub(super) fn effects(table: &Table<'_>) -> Vec<FactorEffects> {
    let (metas, contests): (Vec<_>, Vec<Contest>) = questions(table)
        .into_iter()
        .map(|question| {
            let counts = (question.combinations, question.of);
            let names = (question.factor, question.base, question.level);
            ((names, counts), question.contest)
        })
        .unzip();
    let verdicts = judge(
        table,
        "every level against the first of its factor",
        &contests,
    );
    let mut all: Vec<FactorEffects> = Vec::new();
    for (((factor, base, level), (combinations, of)), verdict) in metas.into_iter().zip(verdicts) {
        let effect = LevelEffect {
            level,
            combinations,
            of,
            verdict,
        };
        match all.last_mut().filter(|last| last.factor == factor) {
            Some(last) => last.levels.push(effect),
            None => all.push(FactorEffects {
                factor,
                key: table.key.clone(),
                base,
                levels: vec![effect],
            }),
        }
    }
    all
}

/// Every level but the first of every factor.
pub(super) fn questions(table: &Table<'_>) -> Vec<Question> {
    let (Design::OneAtATime { factors } | Design::FullGrid { factors }) =
        &table.findings.spec.design
    else {
        return Vec::new();
    };
    let mut questions = Vec::new();
    for (place, factor) in factors.iter().enumerate() {
        let Some((base, others)) = factor.levels.split_first() else {
            continue;
        };
        for level in others {
            questions.push(question(table, (factors, place), base, level));
        }
    }
    questions
}

fn question(
    table: &Table<'_>,
    (factors, place): (&[Factor], usize),
    base: &Level,
    level: &Level,
) -> Question {
    let factor = &factors[place];
    let before = combinations(&factors[..place]);
    let after = combinations(&factors[place + 1..]);
    let cell = |start: &[(String, String)], level: &Level, end: &[(String, String)]| {
        let chosen = [(factor.name.clone(), level.label.clone())];
        find(
            table.findings.cells,
            &[start, chosen.as_slice(), end].concat(),
        )
    };
    let planned: Vec<(u32, u32)> = before
        .iter()
        .flat_map(|start| after.iter().map(move |end| (start, end)))
        .filter_map(|(start, end)| Some((cell(start, base, end)?, cell(start, level, end)?)))
        .collect();
    let names = (
        format!("{} {}", factor.name, base.label),
        format!("{} {}", factor.name, level.label),
    );
    let (contest, used) = averaged(table, &planned, names);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Question {
        factor: factor.name.clone(),
        base: base.label.clone(),
        level: level.label.clone(),
        of: count(planned.len()),
        combinations: count(used),
        contest,
    }
}

/// The mean ratio over pairs of cells, and how many of them could be used. Pairs with two
/// blocks or more are; a block counts if it has all of them, so that each block averages
/// over the same combinations.
fn averaged(
    table: &Table<'_>,
    planned: &[(u32, u32)],
    names: (String, String),
) -> (Contest, usize) {
    let differing: Vec<(u32, u32)> = planned
        .iter()
        .copied()
        .filter(|(one, other)| one != other)
        .collect();
    // A single pair is judged as any two cells are, also where it shares no blocks.
    if let [(one, other)] = differing.as_slice() {
        let mut contest = table.contest(*one, *other);
        (contest.first.name, contest.second.name) = names;
        let used = usize::from(contest.estimate().is_some());
        return (contest, used);
    }
    let used: Vec<(u32, u32)> = differing
        .iter()
        .copied()
        .filter(|(one, other)| table.shared_blocks(&[*one, *other]).len() > 1)
        .collect();
    let cells: Vec<u32> = used
        .iter()
        .flat_map(|(one, other)| [*one, *other])
        .collect();
    let blocks = table.shared_blocks(&cells);
    let entrant = |name: String, pick: fn(&(u32, u32)) -> u32| {
        let side: Vec<u32> = used.iter().map(pick).collect();
        let launches: Vec<Launch> = blocks
            .iter()
            .filter_map(|block| {
                let logs: Option<Vec<f64>> =
                    side.iter().map(|cell| table.log(*cell, *block)).collect();
                let logs = logs?;
                Launch::single((logs.iter().sum::<f64>() / logs.len() as f64).exp())
            })
            .collect();
        Entrant {
            name,
            launches,
            objection: table.objection(&side),
            failed: used.is_empty()
                && !differing.is_empty()
                && differing.iter().all(|pair| table.has_failed(pick(pair))),
        }
    };
    let launches_per_value = u32::try_from(used.len()).unwrap_or(u32::MAX);
    let contest = Contest::of_blocks(
        entrant(names.0, |pair| pair.0),
        entrant(names.1, |pair| pair.1),
        launches_per_value,
    );
    (contest, used.len())
}
