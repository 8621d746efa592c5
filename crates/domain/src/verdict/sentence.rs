//! A verdict in plain words.

use super::{Basis, Question, Side, Verdict, VerdictKind, decide::count};
use crate::{
    source::Source,
    statistics::{Advice, Better, CONFIDENCE, Launch, LogEstimate, Looks, RatioInterval},
    text,
};

/// What a sentence needs to know of a pair.
pub(super) struct Said {
    metric: String,
    names: (String, String),
    launches: (u32, u32),
    repeats: (u32, u32),
    source: Source,
    within: RatioInterval,
    pub(super) better: Better,
    delta: f64,
    looks: Option<Looks>,
}

impl Said {
    pub(super) fn new(
        question: &Question<'_>,
        first: &Side<'_>,
        second: &Side<'_>,
        within: RatioInterval,
    ) -> Self {
        let repeats = |launches: &[Launch]| launches.iter().map(Launch::repeats).sum();
        Self {
            metric: question.metric.to_owned(),
            names: (first.name.to_owned(), second.name.to_owned()),
            launches: (count(first.launches), count(second.launches)),
            repeats: (repeats(first.launches), repeats(second.launches)),
            source: first.source.max(second.source),
            within,
            better: question.better,
            delta: question.delta,
            looks: question.looks,
        }
    }

    fn head(&self, ratio: f64) -> String {
        format!(
            "{}: {} against {} is {}",
            self.metric,
            self.names.1,
            self.names.0,
            text::change(ratio)
        )
    }

    /// The ratio with what is known of its error, without a verdict.
    pub(super) fn ratio(&self, estimate: Option<&LogEstimate>, basis: Option<&Basis>) -> String {
        match (estimate, basis) {
            (Some(estimate), Some(basis)) => {
                let interval = estimate.ratio(CONFIDENCE);
                format!(
                    "{} ({}).",
                    self.head(interval.ratio),
                    self.spread(&interval, CONFIDENCE, basis)
                )
            }
            _ => format!("{}.", self.within_launches()),
        }
    }

    /// One launch on a side, and nothing known of how much launches vary.
    pub(super) fn one_launch(&self, advice: &Advice) -> String {
        let who = match (self.launches.0 < 2, self.launches.1 < 2) {
            (true, true) => "one launch each".to_owned(),
            (true, false) => format!("{} rests on one launch", self.names.0),
            _ => format!("{} rests on one launch", self.names.1),
        };
        format!(
            "{}, {who}, launch-to-launch variation unknown: not established. {}",
            self.within_launches(),
            advice.sentence(&self.names.0, &self.names.1)
        )
    }

    /// The verdict with its reasons.
    pub(super) fn decided(&self, verdict: &Verdict, interval: &RatioInterval) -> String {
        let spread = match (&verdict.basis, verdict.confidence) {
            (Some(basis), Some(confidence)) => self.spread(interval, confidence, basis),
            _ => String::new(),
        };
        let family = verdict.family.as_ref().map_or_else(String::new, |family| {
            format!(
                ", corrected for {}: {}",
                text::plural(u64::from(family.size), "pair", "pairs"),
                family.name
            )
        });
        let delta = text::percent(self.delta);
        let how_much = match verdict.kind {
            VerdictKind::Better | VerdictKind::Worse if verdict.relevant => {
                format!(", and by more than {delta}")
            }
            VerdictKind::Better | VerdictKind::Worse => {
                format!(", though perhaps by less than {delta}")
            }
            VerdictKind::NoClearChange => format!(", the difference is below {delta}"),
            _ => String::new(),
        };
        let way = match (self.better, verdict.kind) {
            (Better::Lower, VerdictKind::Better | VerdictKind::Worse) => " (less is better)",
            _ => "",
        };
        let advice = verdict.advice.as_ref().map_or_else(String::new, |advice| {
            format!(" {}", advice.sentence(&self.names.0, &self.names.1))
        });
        format!(
            "{} ({spread}{family}). Verdict: {}{way}{how_much}.{advice}",
            self.head(interval.ratio),
            verdict.kind.words()
        )
    }

    /// The interval that speaks of the configurations, and what it rests on.
    fn spread(&self, interval: &RatioInterval, confidence: f64, basis: &Basis) -> String {
        let over = match basis {
            Basis::Launches { .. } | Basis::History { .. } => {
                let launches = |count: u32| text::plural(u64::from(count), "launch", "launches");
                format!(
                    "over {} and {}",
                    launches(self.launches.0),
                    launches(self.launches.1)
                )
            }
            Basis::Blocks { blocks } => {
                format!(
                    "over {}",
                    text::plural(u64::from(*blocks), "block", "blocks")
                )
            }
        };
        let (Some(low), Some(high)) = (interval.low, interval.high) else {
            return format!("{over}, all values alike, no interval");
        };
        let borrowed = match basis {
            Basis::History { label } => {
                format!(", launch-to-launch variation taken from {label}")
            }
            _ => String::new(),
        };
        let look = self.looks.map_or_else(String::new, |looks| {
            format!(", look {} of {}", looks.this, looks.planned)
        });
        format!("{} {over}{borrowed}{look}", ends(low, high, confidence))
    }

    /// The ratio of these very launches.
    fn within_launches(&self) -> String {
        let head = self.head(self.within.ratio);
        let repeats = |count: u32| text::plural(u64::from(count), "repeat", "repeats");
        match (self.within.low, self.within.high) {
            (Some(low), Some(high)) => format!(
                "{head} within these launches ({} over {} and {})",
                ends(low, high, CONFIDENCE),
                repeats(self.repeats.0),
                repeats(self.repeats.1)
            ),
            _ if self.repeats.0 == self.launches.0 || self.repeats.1 == self.launches.1 => {
                format!("{head} as {}", self.source.word())
            }
            _ => format!("{head} within these launches (all repeats alike, no interval)"),
        }
    }
}

fn ends(low: f64, high: f64, confidence: f64) -> String {
    format!(
        "{} interval {} to {}",
        text::percent(confidence),
        text::change(low),
        text::change(high)
    )
}
