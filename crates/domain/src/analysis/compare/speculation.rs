//! What speculative decoding brings: how long drafts are accepted, and from which
//! accept length on it pays.
//!
//! A verify step yields as many tokens as are accepted, the bonus included; a step
//! without speculation yields one. So the time of a verify step is the accept length
//! times the time per token, and the accept length at which both ways are equally fast
//! is the time of a verify step over that of a plain one. In the model of Leviathan,
//! Kalman, Matias (2023), *Fast Inference from Transformers via Speculative Decoding*,
//! Theorem 3.8, that quotient is γc + 1 for drafts of γ tokens that cost c each; here it
//! is measured, so that what verification itself costs under load is in it.

mod chart;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{groups::Group, verdicts::comparable};
use crate::{
    conditions::Speculation,
    statistics::{CONFIDENCE, Launch, LogEstimate, RatioInterval, over_launches, within_launches},
    text,
    views::{
        compare::{BreakEven, SpeculationLevel, SpeculationView},
        run::StageView,
    },
    workload::StageKind,
};

pub(super) use chart::chart;

/// Every configuration that speculates, with each of the same model that does not; by
/// itself where there is none.
pub(super) fn views(groups: &[Group<'_>]) -> Vec<SpeculationView> {
    let mut views = Vec::new();
    for group in groups.iter().filter(|group| speculates(group)) {
        let bases: Vec<&Group<'_>> = groups
            .iter()
            .filter(|other| is_plain(other) && same_model(group, other))
            .filter(|other| comparable(group, other).is_ok())
            .collect();
        if bases.is_empty() {
            views.extend(view(group, None));
        }
        views.extend(bases.into_iter().filter_map(|base| view(group, Some(base))));
    }
    views
}

fn view(group: &Group<'_>, base: Option<&Group<'_>>) -> Option<SpeculationView> {
    let levels: Vec<SpeculationLevel> = group
        .kinds()
        .into_iter()
        .filter_map(|kind| level(group, base, kind))
        .collect();
    (!levels.is_empty()).then(|| SpeculationView {
        name: group.name.clone(),
        runs: group.run_ids(),
        base: base.map(|base| (base.name.clone(), base.run_ids())),
        levels,
    })
}

fn level(group: &Group<'_>, base: Option<&Group<'_>>, kind: StageKind) -> Option<SpeculationLevel> {
    let figure = group.figure(kind, accept_length);
    let accept_length = figure.estimate()?;
    Some(SpeculationLevel {
        kind,
        accept_length,
        doubtful: figure.objection.is_some(),
        accepted_at: accepted_at(group, kind),
        break_even: base.and_then(|base| break_even(group, base, kind, accept_length.mean)),
    })
}

/// A verify step against a plain one.
fn break_even(
    group: &Group<'_>,
    base: &Group<'_>,
    kind: StageKind,
    accept_length: f64,
) -> Option<BreakEven> {
    let (step, plain) = (
        group.figure(kind, step_ms),
        base.figure(kind, plain_step_ms),
    );
    if step.objection.or(plain.objection).is_some() {
        return None;
    }
    let (verify, without) = (step.launches(), plain.launches());
    let several = verify.len() > 1 && without.len() > 1;
    let ratio = |first: &[Launch], second: &[Launch]| -> Option<LogEstimate> {
        if several {
            over_launches(first, second)
        } else {
            within_launches(first, second)
        }
    };
    let needed = ratio(&without, &verify)?.ratio(CONFIDENCE);
    // It pays where a token takes less time with it, which is where the accept length
    // that was seen lies above the one that is needed.
    let per_token = group.figure(kind, plain_step_ms).launches();
    let gain = ratio(&per_token, &without)?.ratio(CONFIDENCE);
    let pays = match (several, gain.low, gain.high) {
        (true, Some(low), _) if low > 1.0 => Some(true),
        (true, _, Some(high)) if high < 1.0 => Some(false),
        _ => None,
    };
    let launches = (verify.len() as u64, without.len() as u64);
    Some(BreakEven {
        step_ms: step.estimate()?.mean,
        plain_step_ms: plain.estimate()?.mean,
        sentence: sentence(kind, &needed, accept_length, &gain, pays, launches),
        accept_length: needed,
        pays,
    })
}

fn sentence(
    kind: StageKind,
    needed: &RatioInterval,
    seen: f64,
    gain: &RatioInterval,
    pays: Option<bool>,
    (verify, plain): (u64, u64),
) -> String {
    let several = verify > 1 && plain > 1;
    let over = if several {
        format!(
            "over {} and {plain}",
            text::plural(verify, "launch", "launches")
        )
    } else {
        "within these launches, launch-to-launch variation unknown".to_owned()
    };
    let interval = match (needed.low, needed.high) {
        (Some(low), Some(high)) => format!(
            "{} interval {low:.2} to {high:.2} {over}",
            text::percent(CONFIDENCE)
        ),
        _ if several => "no interval: all values alike".to_owned(),
        _ => "no interval: one launch, launch-to-launch variation unknown".to_owned(),
    };
    let verdict = match pays {
        Some(true) => "speculation pays",
        Some(false) => "speculation does not pay",
        None => "whether it pays is not established",
    };
    format!(
        "At {kind} it pays from an accept length of {:.2} on ({interval}). Seen: {seen:.2}, {} in speed after the first token: {verdict}.",
        needed.ratio,
        text::change(gain.ratio)
    )
}

/// Time of a verify step, in ms: the accept length times the mean time per token.
/// With replies of equal length that is exact: the accept length over a stage is then
/// the harmonic mean of its requests' lengths, and a time per token goes with one over
/// such a length.
fn step_ms(stage: &StageView) -> Option<f64> {
    Some(accept_length(stage)? * stage.tpot_ms.mean?)
}

/// Time of a step that yields one token, in ms; of one that speculates, per token.
fn plain_step_ms(stage: &StageView) -> Option<f64> {
    stage.tpot_ms.mean
}

fn accept_length(stage: &StageView) -> Option<f64> {
    speculation(stage)?.accept_length()
}

fn speculation(stage: &StageView) -> Option<&Speculation> {
    stage
        .conditions
        .engine
        .as_ref()
        .filter(|engine| !engine.counters_fell)
        .and_then(|engine| engine.speculation.as_ref())
        .filter(|speculation| speculation.steps > 0)
}

fn accepted_at(group: &Group<'_>, kind: StageKind) -> Vec<f64> {
    let counted: Vec<&Speculation> = group
        .all_stages()
        .filter(|stage| stage.kind == kind && stage.complete)
        .filter_map(speculation)
        .collect();
    let places = counted.first().map_or(0, |first| first.accepted_at.len());
    // Counts of other lengths are of other settings.
    if counted.iter().any(|one| one.accepted_at.len() != places) {
        return Vec::new();
    }
    let steps: u64 = counted.iter().map(|one| one.steps).sum();
    (0..places)
        .map(|place| {
            let accepted = counted.iter().filter_map(|one| one.accepted_at.get(place));
            accepted.sum::<u64>() as f64 / steps as f64
        })
        .collect()
}

fn speculates(group: &Group<'_>) -> bool {
    group.all_stages().any(|stage| speculation(stage).is_some())
}

/// The engine told of itself, and neither its counts nor its settings are of
/// speculation. Where it tells nothing, nobody knows; nor where counters fell, since
/// its counts of speculation were left out with them.
fn is_plain(group: &Group<'_>) -> bool {
    let mut reports = group
        .all_stages()
        .filter_map(|stage| stage.conditions.engine.as_ref())
        .peekable();
    reports.peek().is_some()
        && reports.all(|engine| !engine.counters_fell)
        && !speculates(group)
        && !group
            .columns()
            .any(|column| names_speculation(&column.run.settings))
}

/// Settings that turn speculation on, as engines report them and as flags.
const TURNS_ON: [&str; 6] = [
    "speculative_algorithm",
    "--speculative-algorithm",
    "speculative_config",
    "--speculative-config",
    "-sc",
    "--spec-method",
];

/// Do the settings turn speculation on? Engines list what is not set too.
fn names_speculation(settings: &BTreeMap<String, String>) -> bool {
    settings.iter().any(|(name, value)| {
        (TURNS_ON.contains(&name.as_str()) || name.starts_with("speculative_config."))
            && !UNSET.contains(&value.trim().to_ascii_lowercase().as_str())
    })
}

/// How engines write what is not set.
const UNSET: [&str; 4] = ["", "none", "null", "{}"];

fn same_model(one: &Group<'_>, other: &Group<'_>) -> bool {
    one.summary().model == other.summary().model
}
