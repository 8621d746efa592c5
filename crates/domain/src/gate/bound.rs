//! Bounds: every stage of a run is held to them.

use super::{Comparison, Judgement, Measured, Outcome, Rule};
use crate::{
    metrics::StageFlag,
    source::Source,
    text,
    views::run::StageView,
    workload::{StageKind, StagePlan},
};

/// Judges a run by a bound. The stage nearest to breaking it speaks. A single sound
/// stage beyond the bound breaks it; a figure that is missing, or of a stage on which
/// no verdict may rest, leaves it open.
#[must_use]
pub fn judge_bound(rule: &Rule, comparison: Comparison, bound: f64, run: &Measured) -> Judgement {
    let mut worst: Option<(f64, String)> = None;
    let mut open: Option<String> = None;
    for planned in run.workload.plan() {
        // Without a level, stages that cannot have the figure are not meant.
        let passed_over = rule.level.is_none()
            && (rule.obstacle_at(&planned, &run.workload).is_some()
                || run.skipped.contains(&planned.index));
        if !rule.is_meant(&planned) || passed_over {
            continue;
        }
        match figure(rule, &planned, run) {
            Ok((value, place)) => {
                let is_worst = worst
                    .as_ref()
                    .is_none_or(|(worst, _)| comparison.is_worse(value, *worst));
                if is_worst {
                    worst = Some((value, place));
                }
            }
            Err(why) => {
                open.get_or_insert(why);
            }
        }
    }
    let value = worst.as_ref().map(|(value, _)| *value);
    let (outcome, sentence) = match (worst, open) {
        (Some((value, place)), _) if !comparison.holds(value, bound) => {
            (Outcome::Broken, seen(rule, value, &place))
        }
        (_, Some(why)) => (Outcome::NotEstablished, why),
        (Some((value, place)), None) => (Outcome::Holds, seen(rule, value, &place)),
        (None, None) => (Outcome::NotEstablished, nothing_meant(rule, run)),
    };
    Judgement {
        rule: rule.to_string(),
        of: run.facts.summary.configuration.clone(),
        outcome,
        sentence,
        value,
        interval: None,
        verdict: None,
    }
}

/// The figure of a stage and where it stands, or why there is none to go by.
fn figure(rule: &Rule, planned: &StagePlan, run: &Measured) -> Result<(f64, String), String> {
    if let Some(mismatch) = run.facts.summary.mismatch() {
        return Err(format!(
            "No verdict may rest on run {}. {mismatch}",
            run.facts.summary.id
        ));
    }
    let place = |index: u32, kind: StageKind| format!("stage {} ({kind})", index + 1);
    let stage = run
        .facts
        .stages
        .iter()
        .find(|stage| stage.kind == planned.level.kind && stage.repeat == planned.repeat)
        .ok_or_else(|| {
            nobody_knows(&format!(
                "{} was not measured",
                place(planned.index, planned.level.kind)
            ))
        })?;
    let place = place(stage.index, stage.kind);
    let value = rule
        .figure
        .of(stage)
        .ok_or_else(|| nobody_knows(&format!("it is not defined in {place}")))?;
    // What forbids a verdict on speed is the very thing that a count asks for.
    if !rule.figure.metric.is_count()
        && let Some(why) = objection(stage)
    {
        return Err(format!("No verdict may rest on {place}. {why}"));
    }
    Ok((value, place))
}

/// Why no verdict may rest on a stage, if so.
fn objection(stage: &StageView) -> Option<String> {
    if stage.source == Source::Estimated {
        return Some("Its figures were not measured: they are somebody's estimate.".to_owned());
    }
    if stage.disputed {
        return Some("Notes disagree about its figures.".to_owned());
    }
    let has_requests = matches!(stage.source, Source::Measured | Source::Simulated);
    if has_requests && stage.completed == 0 {
        return Some("No request succeeded.".to_owned());
    }
    stage
        .flags
        .iter()
        .find(|flag| flag.forbids_verdict())
        .map(StageFlag::sentence)
}

fn seen(rule: &Rule, value: f64, place: &str) -> String {
    let unit = match rule.figure.metric.unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    format!("{}{unit} in {place}.", text::figure(value))
}

fn nobody_knows(why: &str) -> String {
    format!("Nobody can say that it is met: {why}.")
}

fn nothing_meant(rule: &Rule, run: &Measured) -> String {
    rule.obstacle(&run.workload).map_or_else(
        || nobody_knows("no stage was measured"),
        |obstacle| format!("The rule {obstacle}."),
    )
}
