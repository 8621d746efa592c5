//! What may be said of two configurations: one word, one sentence, one object,
//! the same on page, picture, file and terminal.

mod decide;
mod sentence;

use serde::{Deserialize, Serialize};

use crate::{
    source::Source,
    statistics::{
        ANALYSIS_VERSION, Advice, Better, CONFIDENCE, Family, Launch, Looks, PooledHistory,
        RELEVANT_EFFECT, RatioInterval, holm,
    },
};
use decide::{Assessment, Level, assess};

/// The word of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Better, beyond doubt. Whether by as much as matters, [`Verdict::relevant`]
    /// says.
    Better,
    /// Worse, beyond doubt. Whether by as much as matters, [`Verdict::relevant`]
    /// says.
    Worse,
    /// The interval lies within the effect that matters.
    NoClearChange,
    /// The data do not decide it.
    NotEstablished,
    /// The two were not measured alike.
    NotComparable,
    /// A side has no figure.
    Missing,
    /// A side has no figure because its run or launch failed.
    Failed,
}

impl VerdictKind {
    /// The words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoClearChange => "no clear change",
            Self::NotEstablished => "not established",
            Self::NotComparable => "not comparable",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }
}

/// One side of a comparison, for one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<'a> {
    /// Name of the configuration.
    pub name: &'a str,
    /// Its launches, each with a figure per repeat.
    pub launches: &'a [Launch],
    /// Where the figures come from; of several sources, the least trustworthy.
    pub source: Source,
    /// Why no verdict may rest on it, if so, as in `is flagged`.
    pub objection: Option<&'a str>,
    /// Why it failed, if it did.
    pub failed: Option<&'a str>,
}

/// What is asked of two sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Question<'a> {
    /// The metric, as in `output_tps at C = 128`.
    pub metric: &'a str,
    /// Which way is better.
    pub better: Better,
    /// Smallest effect that matters, as a share.
    pub delta: f64,
    /// Of a plan laid out in blocks beforehand: the places, from 0, of the launches
    /// of each block, first side before second. Launches in no block are left out.
    pub blocks: Option<&'a [(usize, usize)]>,
    /// Of a plan that may end early: which look this is.
    pub looks: Option<Looks>,
    /// How much launches varied on this host before.
    pub history: Option<&'a PooledHistory>,
    /// Minutes that a launch with its measurement takes on this host.
    pub minutes_per_launch: Option<f64>,
}

impl<'a> Question<'a> {
    /// Is more of it better or worse, by as much as usually matters? Without plan
    /// or history.
    #[must_use]
    pub const fn of(metric: &'a str, better: Better) -> Self {
        Self {
            metric,
            better,
            delta: RELEVANT_EFFECT,
            blocks: None,
            looks: None,
            history: None,
            minutes_per_launch: None,
        }
    }
}

/// A pair to be judged with others.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair<'a> {
    /// What is asked.
    pub question: Question<'a>,
    /// The one that is compared with.
    pub first: Side<'a>,
    /// The one that is compared.
    pub second: Side<'a>,
    /// Or why the two cannot be compared.
    pub comparable: Result<(), String>,
}

/// What an interval rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Basis {
    /// The launches of both sides, by Welch's t.
    Launches {
        /// Of the first.
        first: u32,
        /// Of the second.
        second: u32,
    },
    /// Blocks laid down beforehand, by paired t.
    Blocks {
        /// How many.
        blocks: u32,
    },
    /// Launches of which a side has only one, and how much launches varied before.
    History {
        /// What the history was taken from.
        label: String,
    },
}

/// A verdict on one metric, second against first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The word.
    pub kind: VerdictKind,
    /// The whole interval lies beyond the effect that matters.
    #[serde(default)]
    pub relevant: bool,
    /// The metric, as in `output_tps at C = 128`.
    pub metric: String,
    /// Second over first within the launches there were, its interval from the
    /// spread of their repeats at [`CONFIDENCE`]: it says nothing of the next
    /// launches. Until analysis version 2 it was over launches where both sides had
    /// several.
    pub within_launch: Option<RatioInterval>,
    /// Second over first for the configurations, with the interval that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across_launches: Option<RatioInterval>,
    /// What that interval rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// The confidence of that interval: the level at which the pair was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The family in which it was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The look of the plan at which it was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
    /// Which way is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// Smallest effect that matters, as a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// How to go on where it is not established.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// The sentence.
    pub sentence: String,
    /// Rules by which it was reached.
    pub analysis_version: u32,
}

/// Judges one pair, which is a family of its own.
///
/// With one launch a side no verdict about the *configurations* is possible,
/// unless the host's history says how much launches vary: the result within these
/// launches is stated with its interval, and that the variation from launch to
/// launch is unknown.
#[must_use]
pub fn judge(
    question: &Question<'_>,
    first: &Side<'_>,
    second: &Side<'_>,
    comparable: Result<(), String>,
) -> Verdict {
    judge_at(question, first, second, comparable, error_of(question))
}

/// The same with an interval that is wrong with this chance only, such as one of
/// several that are to hold at once.
#[must_use]
pub fn judge_at(
    question: &Question<'_>,
    first: &Side<'_>,
    second: &Side<'_>,
    comparable: Result<(), String>,
    error: f64,
) -> Verdict {
    match assess(question, first, second, comparable) {
        Assessment::Settled(verdict) => *verdict,
        Assessment::Testable(test) => test.decide(&Level {
            tested: error,
            simultaneous: error,
            family: None,
        }),
    }
}

/// Judges pairs that are one family: with the chance that a single verdict may be
/// wrong, *any* of them may (Holm). Only pairs that can be tested count. Each is
/// reported with the interval at the level at which it was tested, so that interval
/// and verdict agree; *relevant* and *no clear change* want more, an interval
/// corrected for all pairs at once (Bonferroni). Pairs at different looks share the
/// error of the strictest.
#[must_use]
pub fn judge_family(name: &str, pairs: Vec<Pair<'_>>) -> Vec<Verdict> {
    let error = pairs
        .iter()
        .map(|pair| error_of(&pair.question))
        .fold(1.0 - CONFIDENCE, f64::min);
    let assessments: Vec<Assessment> = pairs
        .into_iter()
        .map(|pair| assess(&pair.question, &pair.first, &pair.second, pair.comparable))
        .collect();
    let p_values: Vec<f64> = assessments.iter().filter_map(Assessment::p_value).collect();
    let size = u32::try_from(p_values.len()).unwrap_or(u32::MAX);
    let mut tested = holm(&p_values, error).into_iter();
    let level = |tested: f64| Level {
        tested,
        simultaneous: error / f64::from(size.max(1)),
        family: (size > 1).then(|| Family {
            name: name.to_owned(),
            size,
        }),
    };
    assessments
        .into_iter()
        .map(|assessment| match assessment {
            Assessment::Settled(verdict) => *verdict,
            Assessment::Testable(test) => {
                let tested = tested.next().map_or(error, |tested| tested.error);
                test.decide(&level(tested))
            }
        })
        .collect()
}

fn error_of(question: &Question<'_>) -> f64 {
    question.looks.map_or(1.0 - CONFIDENCE, Looks::error)
}

#[cfg(test)]
mod tests;
