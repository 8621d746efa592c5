//! A gate over a run, or over a comparison.

use super::{Demand, GateOutcome, Judgement, Outcome, Rule, bound::judge_bound, margin::Asked};
use crate::{
    analysis::{History, Judged, RunFacts, judged},
    comparison::RUNS,
    metrics::METRIC_VERSION,
    source::Source,
    statistics::ANALYSIS_VERSION,
    workload::Workload,
};

/// A run as a gate looks at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What is known of it.
    pub facts: RunFacts,
    /// What was sent.
    pub workload: Workload,
    /// Stages of the plan that a rule of the workload left out.
    pub skipped: Vec<u32>,
}

/// Why a gate cannot be judged at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// A rule on the baseline, and there is none.
    #[error(
        "The rule `{0}` needs a baseline. Name the run that it is held against as well, the baseline first."
    )]
    NoBaseline(String),
    /// No run, or more than can be compared.
    #[error(
        "A gate is about one run, or about up to {} that are compared; these are {count}. Name fewer, or at least one.",
        RUNS.end()
    )]
    Runs {
        /// How many there are.
        count: usize,
    },
}

/// Judges one run, or several of which the first is the baseline. Bounds are asked of
/// all but the runs of the baseline's configuration; a run alone has no baseline. Where a
/// configuration has a single launch, the history of its host stands in for what that
/// cannot tell.
///
/// # Errors
/// [`GateError`], a sentence with the remedy.
pub fn evaluate(
    rules: &[Rule],
    runs: &[Measured],
    history: &History<'_>,
) -> Result<GateOutcome, GateError> {
    if runs.is_empty() || runs.len() > *RUNS.end() {
        return Err(GateError::Runs { count: runs.len() });
    }
    let facts: Vec<RunFacts> = runs.iter().map(|run| run.facts.clone()).collect();
    let groups = if runs.len() > 1 {
        judged(&facts)
    } else {
        Vec::new()
    };
    let candidates = candidates(runs, &groups);
    let others: Vec<String> = groups
        .iter()
        .skip(1)
        .map(|group| group.name.clone())
        .collect();
    let asked = rules
        .iter()
        .map(|rule| match rule.demand {
            Demand::Bound { .. } => Ok(None),
            Demand::NotWorse { .. } if runs.len() < 2 => {
                Err(GateError::NoBaseline(rule.to_string()))
            }
            Demand::NotWorse {
                percent,
                within_launches,
            } => Ok(Some(Asked::of(
                rule,
                percent,
                within_launches,
                &facts,
                history,
            ))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let pairs = asked.iter().flatten().map(Asked::pairs).sum();
    let judgements: Vec<Judgement> = rules
        .iter()
        .zip(&asked)
        .flat_map(|(rule, asked)| match (rule.demand, asked) {
            (_, Some(asked)) => asked.judge(pairs, &others),
            (Demand::Bound { comparison, bound }, None) => candidates
                .iter()
                .map(|(name, run)| Judgement {
                    of: name.clone(),
                    ..judge_bound(rule, comparison, bound, run)
                })
                .collect(),
            (Demand::NotWorse { .. }, None) => Vec::new(),
        })
        .collect();
    Ok(GateOutcome {
        outcome: judgements
            .iter()
            .map(|judgement| judgement.outcome)
            .max()
            .unwrap_or(Outcome::NotEstablished),
        judgements,
        simulated: facts
            .iter()
            .any(|run| run.summary.source == Source::Simulated),
        metric_version: METRIC_VERSION,
        analysis_version: ANALYSIS_VERSION,
    })
}

/// The runs that bounds are asked of, with what they are called.
fn candidates<'a>(runs: &'a [Measured], groups: &[Judged]) -> Vec<(String, &'a Measured)> {
    if groups.is_empty() {
        return runs
            .iter()
            .map(|run| (run.facts.summary.configuration.clone(), run))
            .collect();
    }
    groups
        .iter()
        .skip(1)
        .flat_map(|group| {
            group.places.iter().filter_map(|place| {
                let run = runs.get(*place)?;
                let name = if group.places.len() > 1 {
                    format!("{} (run {})", group.name, run.facts.summary.id)
                } else {
                    group.name.clone()
                };
                Some((name, run))
            })
        })
        .collect()
}
