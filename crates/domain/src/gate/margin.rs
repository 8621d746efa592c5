//! Rules on the baseline: not worse by more than so many percent.

use super::{Judgement, Outcome, Rule};
use crate::{
    analysis::{Contest, History, RunFacts, contests},
    statistics::{Better, CONFIDENCE, RELEVANT_EFFECT, RatioInterval, within_launches},
    text,
    verdict::{Basis, Question, Verdict, VerdictKind, judge, judge_at},
};

/// A rule with the pairs that it asks about.
pub(super) struct Asked<'a> {
    rule: &'a Rule,
    percent: f64,
    within_launches: bool,
    contests: Vec<Contest>,
}

impl<'a> Asked<'a> {
    /// What the rule asks about these runs, the baseline first.
    pub(super) fn of(
        rule: &'a Rule,
        percent: f64,
        within_launches: bool,
        runs: &[RunFacts],
        history: &History<'_>,
    ) -> Self {
        Self {
            rule,
            percent,
            within_launches,
            contests: contests(
                runs,
                history,
                |kind| rule.level.is_none_or(|level| level.is(kind)),
                |stage| rule.figure.of(stage),
            ),
        }
    }

    /// How many pairs it asks about.
    pub(super) fn pairs(&self) -> usize {
        self.contests.len()
    }

    /// What it comes to, of `pairs` in the whole gate; `others` are the names of those
    /// it was asked of.
    ///
    /// A gate holds only where all of its rules do, so each may be tested at the full
    /// level (Berger 1982, *Technometrics* 24: 295–300). A rule is called broken by an
    /// interval corrected for all pairs of the gate (Bonferroni): else one of many that
    /// are all just kept would often be called so.
    pub(super) fn judge(&self, pairs: usize, others: &[String]) -> Vec<Judgement> {
        if self.contests.is_empty() {
            let why = "Nobody can say that it is met: no such figure was measured on either side.";
            return others
                .iter()
                .map(|name| self.judgement(name, Outcome::NotEstablished, why.to_owned()))
                .collect();
        }
        self.contests
            .iter()
            .map(|contest| self.one(contest, pairs))
            .collect()
    }

    fn one(&self, contest: &Contest, pairs: usize) -> Judgement {
        let metric = format!("{}, {}", self.rule.figure, contest.kind);
        let share = self.percent / 100.0;
        let question = Question {
            delta: if share > 0.0 { share } else { RELEVANT_EFFECT },
            history: contest.history.as_ref(),
            minutes_per_launch: contest.minutes,
            ..Question::of(&metric, self.better())
        };
        let (first, second) = (contest.baseline.side(), contest.other.side());
        let comparable = || contest.comparable.clone();
        let own = judge(&question, &first, &second, comparable());
        let corrected_error = (1.0 - CONFIDENCE) / pairs.max(1) as f64;
        let (decided, interval, verdict) = if self.within_launches && contest.is_sound() {
            let interval = |error: f64| {
                within_launches(first.launches, second.launches)
                    .map(|estimate| (estimate.ratio(1.0 - error), 1.0 - error))
            };
            let (outcome, interval) =
                self.decide(interval(1.0 - CONFIDENCE), interval(corrected_error));
            (outcome, interval, own)
        } else {
            let corrected = judge_at(&question, &first, &second, comparable(), corrected_error);
            let (outcome, interval) = self.decide(over(&own), over(&corrected));
            let verdict = if outcome == Outcome::Holds {
                own
            } else {
                corrected
            };
            (outcome, interval, verdict)
        };
        let sentence = match interval {
            Some(interval) => self.sentence(contest, &metric, decided, interval, &verdict),
            None => verdict.sentence.clone(),
        };
        Judgement {
            interval: interval.map(|(interval, _)| interval),
            verdict: Some(verdict),
            ..self.judgement(&contest.other.name, decided, sentence)
        }
    }

    /// The outcome by the interval at the full level and by the corrected one, and the
    /// one of them that decides, with its confidence.
    fn decide(
        &self,
        own: Option<(RatioInterval, f64)>,
        corrected: Option<(RatioInterval, f64)>,
    ) -> (Outcome, Option<(RatioInterval, f64)>) {
        let holds = own.filter(|(interval, _)| self.keeps(interval) == Some(true));
        if holds.is_some() {
            return (Outcome::Holds, holds);
        }
        let breaks = |(interval, _): &(RatioInterval, f64)| self.keeps(interval) == Some(false);
        let outcome = if corrected.as_ref().is_some_and(breaks) {
            Outcome::Broken
        } else {
            Outcome::NotEstablished
        };
        let ends = |(interval, _): &(RatioInterval, f64)| interval.low.is_some();
        (outcome, corrected.filter(ends))
    }

    /// Does the whole interval keep the rule, or break it? None where it does neither.
    fn keeps(&self, interval: &RatioInterval) -> Option<bool> {
        let (low, high) = interval.low.zip(interval.high)?;
        let limit = self.limit();
        match self.better() {
            Better::Higher if low >= limit => Some(true),
            Better::Higher if high < limit => Some(false),
            Better::Lower if high <= limit => Some(true),
            Better::Lower if low > limit => Some(false),
            _ => None,
        }
    }

    /// The ratio to the baseline at which the rule is just kept.
    fn limit(&self) -> f64 {
        match self.better() {
            Better::Higher => 1.0 - self.percent / 100.0,
            Better::Lower => 1.0 + self.percent / 100.0,
        }
    }

    fn better(&self) -> Better {
        self.rule.figure.metric.better.unwrap_or_default()
    }

    fn sentence(
        &self,
        contest: &Contest,
        metric: &str,
        outcome: Outcome,
        (interval, confidence): (RatioInterval, f64),
        verdict: &Verdict,
    ) -> String {
        let (first, second) = (&contest.baseline, &contest.other);
        let count = |count: usize, one: &str, many: &str| text::plural(count as u64, one, many);
        let over = if self.within_launches {
            "within these launches".to_owned()
        } else {
            let borrowed = match &verdict.basis {
                Some(Basis::History { label }) => {
                    format!(", launch-to-launch variation taken from {label}")
                }
                _ => String::new(),
            };
            format!(
                "over {} and {}{borrowed}",
                count(first.launches.len(), "launch", "launches"),
                count(second.launches.len(), "launch", "launches")
            )
        };
        let ends = match (interval.low, interval.high) {
            (Some(low), Some(high)) => format!("{} to {}", text::change(low), text::change(high)),
            _ => text::NO_FIGURE.to_owned(),
        };
        let limit = text::percent(self.percent / 100.0);
        let (conclusion, advice) = match outcome {
            Outcome::Holds => (format!("not worse by more than {limit}"), None),
            Outcome::Broken => (format!("worse by more than {limit}"), None),
            Outcome::NotEstablished => (
                format!("whether it is worse by more than {limit} is not established"),
                verdict
                    .advice
                    .as_ref()
                    .filter(|_| {
                        verdict.kind == VerdictKind::NotEstablished && !self.within_launches
                    })
                    .map(|advice| advice.sentence(&first.name, &second.name)),
            ),
        };
        let advice = advice.map_or_else(String::new, |advice| format!(" {advice}"));
        format!(
            "{metric}: {} against {} is {} ({} interval {ends} {over}): {conclusion}.{advice}",
            second.name,
            first.name,
            text::change(interval.ratio),
            text::percent(confidence),
        )
    }

    fn judgement(&self, of: &str, outcome: Outcome, sentence: String) -> Judgement {
        Judgement {
            rule: self.rule.to_string(),
            of: of.to_owned(),
            outcome,
            sentence,
            value: None,
            interval: None,
            verdict: None,
        }
    }
}

/// The interval for the configurations, with its confidence.
fn over(verdict: &Verdict) -> Option<(RatioInterval, f64)> {
    verdict.across_launches.zip(verdict.confidence)
}
