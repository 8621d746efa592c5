//! An attribution in plain words.

use super::{super::table::Table, Attribution, Part, StepAttribution, StepStanding};
use crate::{
    statistics::{Better, LogShare},
    text,
    verdict::VerdictKind,
};

/// A step has the whole of it if its share is the whole give or take this much, beyond
/// doubt.
const WHOLE: f64 = 0.1;

pub(super) fn sentence(table: &Table<'_>, attribution: &Attribution) -> String {
    let label = &table.label;
    let total = &attribution.total;
    match total.verdict.kind {
        VerdictKind::Better | VerdictKind::Worse => {}
        VerdictKind::NoClearChange => {
            return format!(
                "From A to B there is no clear change of the {label} ({}). {}",
                interval(total),
                steps(attribution)
            );
        }
        _ => {
            return format!(
                "What the steps from A to B do together is not established: {} {}",
                total.verdict.sentence,
                steps(attribution)
            );
        }
    }
    let word = match (table.better, total.verdict.kind) {
        (Better::Higher, VerdictKind::Better) => "gain",
        (Better::Higher, _) => "loss",
        _ => "change",
    };
    let change = ratio(total);
    if let Some(whole) = whole(attribution) {
        let rest: Vec<&StepAttribution> = attribution
            .steps
            .iter()
            .filter(|step| step.step != whole.step)
            .collect();
        let rest = if rest.is_empty() {
            String::new()
        } else {
            let said: Vec<String> = rest.into_iter().map(said).collect();
            format!("; {}", said.join("; "))
        };
        return format!(
            "The whole {label} {word} of {change} comes from {}{rest}.",
            name(&whole.step)
        );
    }
    format!(
        "From A to B the {label} {word} is {change}. {}{}",
        steps(attribution),
        advice(table, attribution)
    )
}

/// The step that has the whole of it: the only one that does anything, and its share is
/// all of it.
fn whole(attribution: &Attribution) -> Option<&StepAttribution> {
    let mut others = attribution
        .steps
        .iter()
        .filter(|step| step.standing != StepStanding::Nothing);
    let only = others.next()?;
    if others.next().is_some() || only.standing != StepStanding::Changes {
        return None;
    }
    let is_all = |share: LogShare| share.low >= 1.0 - WHOLE && share.high <= 1.0 + WHOLE;
    only.added
        .as_ref()
        .and_then(|part| part.share)
        .is_some_and(is_all)
        .then_some(only)
}

fn steps(attribution: &Attribution) -> String {
    let said: Vec<String> = attribution.steps.iter().map(said).collect();
    let text = said.join("; ");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), letters.as_str())
    })
}

fn said(step: &StepAttribution) -> String {
    let name = name(&step.step);
    match (step.standing, &step.added) {
        (StepStanding::Nothing, _) => format!("from {name} comes nothing ({})", widest(step)),
        (StepStanding::Depends, _) => {
            let ways = [("alone", &step.alone), ("with all others", &step.left_out)];
            let parts: Vec<String> = ways
                .into_iter()
                .filter_map(|(way, part)| Some(format!("{} {way}", ratio(part.as_ref()?))))
                .collect();
            format!(
                "what comes from {name} depends on the other steps, so the order matters: {}",
                parts.join(", ")
            )
        }
        (StepStanding::Changes, Some(part)) => {
            let share = part.share.map_or_else(String::new, |share| {
                format!(
                    ", {} of it ({} to {})",
                    whole_percent(share.share),
                    whole_percent(share.low).trim_end_matches(" %"),
                    whole_percent(share.high)
                )
            });
            format!("from {name} comes {}{share}", ratio(part))
        }
        (_, Some(part)) => match part.verdict.kind {
            VerdictKind::Failed | VerdictKind::Missing => {
                format!("what comes from {name} is not established: a cell has no figure")
            }
            _ => format!(
                "what comes from {name} is not established ({})",
                interval(part)
            ),
        },
        (_, None) => format!("what comes from {name} was not measured"),
    }
}

/// What would settle the first step that is open.
fn advice(table: &Table<'_>, attribution: &Attribution) -> String {
    attribution
        .steps
        .iter()
        .filter(|step| step.standing == StepStanding::NotEstablished)
        .flat_map(|step| [&step.added, &step.alone, &step.left_out])
        .flatten()
        .find_map(|part| {
            let advice = part.verdict.advice?;
            let (from, to) = (table.title(part.from), table.title(part.to));
            Some(format!(
                " To tell {from} and {to} apart: {}",
                advice.sentence(from, to)
            ))
        })
        .unwrap_or_default()
}

/// What one types is set off from the sentence.
fn name(step: &str) -> String {
    if step.starts_with('-') || step.contains('=') {
        format!("`{step}`")
    } else {
        step.to_owned()
    }
}

fn whole_percent(share: f64) -> String {
    let percent = (share * 100.0).round();
    let sign = if percent < 0.0 { "−" } else { "" };
    format!("{sign}{:.0} %", percent.abs())
}

/// `+41.5 % (+38.0 to +44.9 %)`.
fn ratio(part: &Part) -> String {
    part.ratio.map_or_else(
        || text::NO_FIGURE.to_owned(),
        |ratio| format!("{} ({})", text::change(ratio.ratio), interval(part)),
    )
}

/// `−0.4 to +0.5 %`.
fn interval(part: &Part) -> String {
    part.ratio
        .and_then(|ratio| ratio.low.zip(ratio.high))
        .map_or_else(|| "no interval".to_owned(), ends)
}

/// From the lowest end to the highest of the ways in which the step was measured.
fn widest(step: &StepAttribution) -> String {
    [&step.added, &step.alone, &step.left_out]
        .into_iter()
        .flatten()
        .filter_map(|part| part.ratio?.low.zip(part.ratio?.high))
        .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
        .map_or_else(|| "no interval".to_owned(), ends)
}

fn ends((low, high): (f64, f64)) -> String {
    let low = text::change(low);
    format!("{} to {}", low.trim_end_matches(" %"), text::change(high))
}
