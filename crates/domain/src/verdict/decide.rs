//! From figures to a word.

use std::collections::BTreeSet;

use super::{ANALYSIS_VERSION, Basis, Question, Side, Verdict, VerdictKind, sentence::Said};
use crate::statistics::{
    Advice, CONFIDENCE, Components, Family, Launch, LogEstimate, Planning, over_blocks,
    over_launches, with_history, within_launches,
};

/// A pair before the level of its test is known.
pub(super) enum Assessment {
    /// Nothing to be tested.
    Settled(Box<Verdict>),
    /// An estimate whose error is known.
    Testable(Box<Test>),
}

pub(super) struct Test {
    estimate: LogEstimate,
    verdict: Verdict,
    said: Said,
    planning: Planning,
}

/// The errors at which a pair is judged.
pub(super) struct Level {
    /// Of its own test, which its interval goes by.
    pub(super) tested: f64,
    /// Corrected for the whole family at once.
    pub(super) simultaneous: f64,
    pub(super) family: Option<Family>,
}

impl Assessment {
    pub(super) fn p_value(&self) -> Option<f64> {
        match self {
            Self::Settled(_) => None,
            // An estimate without a p value is never certain.
            Self::Testable(test) => Some(test.estimate.p_value().unwrap_or(1.0)),
        }
    }
}

pub(super) fn assess(
    question: &Question<'_>,
    first: &Side<'_>,
    second: &Side<'_>,
    comparable: Result<(), String>,
) -> Assessment {
    let within =
        within_launches(first.launches, second.launches).map(|estimate| estimate.ratio(CONFIDENCE));
    let verdict = Verdict {
        kind: VerdictKind::NotEstablished,
        relevant: false,
        metric: question.metric.to_owned(),
        within_launch: within,
        across_launches: None,
        basis: None,
        confidence: None,
        family: None,
        looks: question.looks,
        better: Some(question.better),
        delta: Some(question.delta),
        advice: None,
        sentence: String::new(),
        analysis_version: ANALYSIS_VERSION,
    };
    let settled = |kind: VerdictKind, advice: Option<Advice>, sentence: String| {
        Assessment::Settled(Box::new(Verdict {
            kind,
            advice,
            sentence,
            ..verdict.clone()
        }))
    };
    let metric = question.metric;
    for side in [first, second] {
        if let Some(why) = side.failed {
            let sentence = format!("{metric}: {} failed: {why}.", side.name);
            return settled(VerdictKind::Failed, None, sentence);
        }
    }
    let Some(within) = within else {
        let who = if first.launches.is_empty() {
            first
        } else {
            second
        };
        let sentence = format!("{metric}: {} has no figure.", who.name);
        return settled(VerdictKind::Missing, None, sentence);
    };
    let (found, basis) = estimate(question, first, second);
    let said = Said::new(question, first, second, within);
    let plainly = || said.ratio(found.as_ref(), basis.as_ref());
    if let Err(why) = comparable {
        let sentence = format!("{} Not comparable: {why}.", plainly());
        return settled(VerdictKind::NotComparable, None, sentence);
    }
    for side in [first, second] {
        if let Some(objection) = side.objection {
            let sentence = format!("{} Not established: {} {objection}.", plainly(), side.name);
            return settled(VerdictKind::NotEstablished, None, sentence);
        }
    }
    if let Some(looks) = question.looks.filter(|looks| !looks.is_declared()) {
        let sentence = format!(
            "{} Not established: look {} is not one of the {} that were declared.",
            plainly(),
            looks.this,
            looks.planned
        );
        return settled(VerdictKind::NotEstablished, None, sentence);
    }
    let launches = (count(first.launches), count(second.launches));
    let (Some(estimate), Some(basis)) = (found, basis.clone()) else {
        let advice = Advice::first_restarts(launches, question.minutes_per_launch);
        let sentence = said.one_launch(&advice);
        return settled(VerdictKind::NotEstablished, Some(advice), sentence);
    };
    if estimate.spread.is_none() {
        let sentence = format!("{} Without an interval: not established.", plainly());
        return settled(VerdictKind::NotEstablished, None, sentence);
    }
    let planning = planning(question, first, second, &estimate, &basis);
    Assessment::Testable(Box::new(Test {
        estimate,
        verdict: Verdict {
            basis: Some(basis),
            ..verdict
        },
        said,
        planning,
    }))
}

/// What is known of the configurations, and from what.
fn estimate(
    question: &Question<'_>,
    first: &Side<'_>,
    second: &Side<'_>,
) -> (Option<LogEstimate>, Option<Basis>) {
    if let Some(places) = question.blocks {
        // A launch is in one block: counted twice it would be two.
        let mut taken = (BTreeSet::new(), BTreeSet::new());
        let blocks: Vec<(&Launch, &Launch)> = places
            .iter()
            .filter(|(one, other)| taken.0.insert(*one) && taken.1.insert(*other))
            .filter_map(|(one, other)| {
                Some((first.launches.get(*one)?, second.launches.get(*other)?))
            })
            .collect();
        if blocks.len() > 1 {
            let blocks_n = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
            return (
                over_blocks(&blocks),
                Some(Basis::Blocks { blocks: blocks_n }),
            );
        }
    }
    let launches = (count(first.launches), count(second.launches));
    if launches.0 > 1 && launches.1 > 1 {
        return (
            over_launches(first.launches, second.launches),
            Some(Basis::Launches {
                first: launches.0,
                second: launches.1,
            }),
        );
    }
    question.history.map_or((None, None), |history| {
        (
            with_history(first.launches, second.launches, history),
            Some(Basis::History {
                label: history.label.clone(),
            }),
        )
    })
}

/// What further launches are planned with: the variance that was seen, of a side's
/// launches from the components pooled over both.
fn planning(
    question: &Question<'_>,
    first: &Side<'_>,
    second: &Side<'_>,
    estimate: &LogEstimate,
    basis: &Basis,
) -> Planning {
    let square_error = estimate
        .spread
        .map_or(0.0, |spread| spread.standard_error.powi(2));
    let launches = (count(first.launches), count(second.launches));
    let (variance, launches, blocked) = match basis {
        Basis::Blocks { blocks } => {
            let variance = square_error * f64::from(*blocks);
            (variance, (*blocks, *blocks), true)
        }
        Basis::Launches { .. } => {
            let sides = [first.launches, second.launches];
            let all = || sides.into_iter().flatten();
            let repeats = all().map(|launch| f64::from(launch.repeats())).sum::<f64>()
                / all().count().max(1) as f64;
            let variance =
                Components::of(&sides).map_or(0.0, |components| components.of_launch(repeats));
            (variance, launches, false)
        }
        Basis::History { .. } => {
            let sum = f64::from(launches.0).recip() + f64::from(launches.1).recip();
            (square_error / sum, launches, false)
        }
    };
    Planning {
        centre: estimate.centre,
        variance,
        launches,
        blocked,
        delta: question.delta,
        error: 1.0 - CONFIDENCE,
        minutes_per_launch: question.minutes_per_launch,
    }
}

impl Test {
    pub(super) fn decide(self, level: &Level) -> Verdict {
        let Self {
            estimate,
            verdict,
            said,
            planning,
        } = self;
        let confidence = 1.0 - level.tested;
        let interval = estimate.ratio(confidence);
        let delta = planning.delta;
        let simultaneous = estimate.ends(1.0 - level.simultaneous);
        let direction = match estimate.ends(confidence) {
            Some((low, _)) if low > 0.0 => Some(1.0),
            Some((_, high)) if high < 0.0 => Some(-1.0),
            _ => None,
        };
        // Within ± δ either way round: the lower end is ln(1 / (1 + δ)).
        let is_near = |(low, high): (f64, f64)| low.abs().max(high.abs()) < delta.ln_1p();
        let kind = match direction.map(|direction| said.better.turned(direction)) {
            Some(turned) if turned > 0.0 => VerdictKind::Better,
            Some(_) => VerdictKind::Worse,
            None if simultaneous.is_some_and(is_near) => VerdictKind::NoClearChange,
            None => VerdictKind::NotEstablished,
        };
        // Beyond δ either way round: by more than that share of the smaller and of
        // the larger figure.
        let beyond = -(-delta).ln_1p();
        let relevant = direction.is_some()
            && simultaneous.is_some_and(|(low, high)| low > beyond || high < -beyond);
        let advice = (kind == VerdictKind::NotEstablished).then(|| {
            Planning {
                error: level.tested,
                ..planning
            }
            .advice()
        });
        let verdict = Verdict {
            kind,
            relevant,
            across_launches: Some(interval),
            confidence: Some(confidence),
            family: level.family.clone(),
            advice,
            ..verdict
        };
        Verdict {
            sentence: said.decided(&verdict, &interval),
            ..verdict
        }
    }
}

pub(super) fn count(launches: &[Launch]) -> u32 {
    u32::try_from(launches.len()).unwrap_or(u32::MAX)
}
