//! Two sides and their verdict.

use super::table::Table;
use crate::{
    statistics::{Advice, Launch, LogEstimate, over_blocks, over_launches},
    verdict::{Pair, Question, Side, Verdict, judge_family},
};

/// One side, with a value per block.
pub(super) struct Entrant {
    pub(super) name: String,
    pub(super) launches: Vec<Launch>,
    pub(super) objection: Option<String>,
    pub(super) failed: bool,
}

/// Two sides that are judged against each other, second against first.
pub(super) struct Contest {
    pub(super) first: Entrant,
    pub(super) second: Entrant,
    /// Places of the launches of each block.
    pub(super) blocks: Vec<(usize, usize)>,
    /// Launches behind each value of a side: several where a value is a mean over
    /// combinations.
    pub(super) launches_per_value: u32,
}

impl Entrant {
    fn side<'a>(&'a self, table: &Table<'_>) -> Side<'a> {
        Side {
            name: &self.name,
            launches: &self.launches,
            source: table.findings.source,
            objection: self.objection.as_deref(),
            failed: self.failed.then_some("no launch of it could be measured"),
        }
    }
}

impl Contest {
    /// A contest of values that each stand for a whole block.
    pub(super) fn of_blocks(first: Entrant, second: Entrant, launches_per_value: u32) -> Self {
        let count = first.launches.len().min(second.launches.len());
        Self {
            first,
            second,
            blocks: (0..count).map(|place| (place, place)).collect(),
            launches_per_value,
        }
    }

    /// The ratio as a verdict goes by it: in blocks where there are two or more.
    pub(super) fn estimate(&self) -> Option<LogEstimate> {
        let (first, second) = (&self.first.launches, &self.second.launches);
        let blocks: Vec<(&Launch, &Launch)> = self
            .blocks
            .iter()
            .filter_map(|(one, other)| Some((first.get(*one)?, second.get(*other)?)))
            .collect();
        if blocks.len() > 1 {
            over_blocks(&blocks)
        } else {
            over_launches(first, second)
        }
    }

    fn pair<'a>(&'a self, table: &'a Table<'_>) -> Pair<'a> {
        let question = Question {
            delta: table.findings.spec.relevant_effect,
            blocks: Some(&self.blocks),
            looks: table.standing.looks,
            minutes_per_launch: table.findings.minutes_per_launch,
            ..Question::of(&table.label, table.better)
        };
        Pair {
            question,
            first: self.first.side(table),
            second: self.second.side(table),
            comparable: Ok(()),
        }
    }

    /// Advice counts values; a reader wants to know of launches.
    fn count_launches(&self, verdict: &mut Verdict) {
        let times = self.launches_per_value;
        let Some(advice) = verdict.advice.filter(|_| times > 1) else {
            return;
        };
        let minutes = |minutes: Option<f64>| minutes.map(|minutes| minutes * f64::from(times));
        let scaled = match advice {
            Advice::Restarts {
                first,
                second,
                minutes: all,
                within,
            } => Advice::Restarts {
                first: first.saturating_mul(times),
                second: second.saturating_mul(times),
                minutes: minutes(all),
                within,
            },
            Advice::Hopeless { more_than, within } => Advice::Hopeless {
                more_than: more_than.saturating_mul(times),
                within,
            },
            Advice::FirstRestarts {
                first,
                second,
                minutes: all,
            } => Advice::FirstRestarts {
                first: first.saturating_mul(times),
                second: second.saturating_mul(times),
                minutes: minutes(all),
            },
        };
        let say = |advice: &Advice| advice.sentence(&self.first.name, &self.second.name);
        if let Some(start) = verdict.sentence.strip_suffix(&say(&advice)) {
            verdict.sentence = format!("{start}{}", say(&scaled));
        }
        verdict.advice = Some(scaled);
    }
}

/// Judges contests as one family.
pub(super) fn judge(table: &Table<'_>, family: &str, contests: &[Contest]) -> Vec<Verdict> {
    let pairs = contests.iter().map(|contest| contest.pair(table)).collect();
    let mut verdicts = judge_family(&format!("{family}, {}", table.label), pairs);
    for (verdict, contest) in verdicts.iter_mut().zip(contests) {
        contest.count_launches(verdict);
    }
    verdicts
}
