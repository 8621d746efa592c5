//! What results are worked out from, and how far the experiment has come.

use serde::{Deserialize, Serialize};

use super::super::{
    design::Cell,
    figures::TrialFigures,
    resume::{TrialStatus, given_up},
    settle::complete_blocks,
    spec::ExperimentSpec,
    state::TrialState,
};
use crate::{
    analysis::{RunFacts, levels},
    ids::RunId,
    source::Source,
    statistics::{CONFIDENCE, Looks},
    text,
    views::run::LevelView,
    workload::StageKind,
};

/// All that is known of an experiment.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'a> {
    /// What was ordered.
    pub spec: &'a ExperimentSpec,
    /// The configurations, by their place; others are compared with the first.
    pub cells: &'a [Cell],
    /// How the trials stand.
    pub trials: &'a [TrialStatus],
    /// What was measured. Figures of a trial that is neither *done* nor *skipped* are
    /// not used.
    pub figures: &'a [TrialFigures],
    /// Runs on which no verdict may rest.
    pub doubts: &'a [Doubt],
    /// Where the figures come from; of several sources, the least trustworthy.
    pub source: Source,
    /// Minutes that a launch with its measurement takes on this host.
    pub minutes_per_launch: Option<f64>,
}

/// Why no verdict may rest on a run's figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Which run.
    pub run: RunId,
    /// At which load level; at all of them if none.
    pub level: Option<StageKind>,
    /// In a few words, such as `3 % of its requests failed`.
    pub what: String,
}

impl Doubt {
    /// What is doubtful about a run, by the same rules as where runs are compared.
    #[must_use]
    pub fn of_run(facts: &RunFacts) -> Vec<Self> {
        let run = facts.summary.id;
        let mismatch = facts.summary.mismatch().map(|what| Self {
            run,
            level: None,
            what,
        });
        let flagged = levels(&facts.stages)
            .into_iter()
            .filter(LevelView::is_doubtful)
            .map(|level| Self {
                run,
                level: Some(level.kind),
                what: if level.flags.is_empty() {
                    "it is disputed, estimated or without a request that succeeded".to_owned()
                } else {
                    level.flags.join(" ")
                },
            });
        mismatch.into_iter().chain(flagged).collect()
    }
}

/// How far the experiment has come, which says at what confidence it may be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Launches that are still to come.
    pub to_come: u32,
    /// Launches in all.
    pub launches: u32,
    /// The look at which it is judged; none for a plan without looks.
    pub looks: Option<Looks>,
    /// Only blocks before this one count for verdicts, since what came later belongs to
    /// a look that is not yet due.
    pub blocks_before: Option<u32>,
}

impl Standing {
    pub(super) fn of(findings: &Findings<'_>) -> Self {
        let given_up = given_up(findings.trials);
        let to_come = findings
            .trials
            .iter()
            .filter(|status| !status.is_over() && !given_up.contains(&status.trial.cell))
            .count();
        let declared = findings
            .spec
            .early_stop
            .as_ref()
            .map_or(&[][..], |stop| &stop.looks);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let planned = count(declared.len() + 1);
        let mut standing = Self {
            to_come: count(to_come),
            launches: count(findings.trials.len()),
            looks: None,
            blocks_before: None,
        };
        if to_come == 0 {
            standing.looks = (planned > 1).then_some(Looks {
                planned,
                this: planned,
            });
            return standing;
        }
        let complete = complete_blocks(findings.trials);
        let last = (1..)
            .zip(declared)
            .take_while(|(_, blocks)| **blocks <= complete)
            .last();
        if let Some((this, blocks)) = last {
            standing.looks = Some(Looks { planned, this });
            standing.blocks_before = Some(*blocks);
        }
        standing
    }

    /// May verdicts be given? While launches are to come, only at a declared look.
    #[must_use]
    pub const fn is_judged(&self) -> bool {
        self.to_come == 0 || self.looks.is_some()
    }

    /// Confidence of an interval by itself.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        self.looks.map_or(CONFIDENCE, Looks::confidence)
    }

    /// Does a block count for verdicts?
    pub(super) fn counts(&self, block: u32) -> bool {
        self.blocks_before.is_none_or(|before| block < before)
    }

    /// What a reader must know first; none once everything is measured.
    pub(super) fn sentence(&self) -> Option<String> {
        if self.to_come == 0 {
            return None;
        }
        let to_come = format!(
            "{} of {} still to come",
            text::count(u64::from(self.to_come)),
            text::plural(u64::from(self.launches), "launch", "launches"),
        );
        Some(match (self.looks, self.blocks_before) {
            (Some(looks), Some(blocks)) => format!(
                "{to_come}. Verdicts are those of look {} of {}, after {}.",
                looks.this,
                looks.planned,
                text::plural(u64::from(blocks), "block", "blocks")
            ),
            _ => {
                format!("{to_come}. Nothing is judged before a look that was declared, or the end.")
            }
        })
    }
}

/// What there is of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// It has a figure.
    Measured,
    /// Its first launch is being measured.
    Running,
    /// Its turn is still to come.
    Planned,
    /// Its launches failed.
    Failed,
    /// Nothing more comes, and it has no such figure.
    Missing,
}

impl EntryState {
    /// Of a cell without a figure, by its trials.
    pub(super) fn without_figure(trials: &[TrialStatus], cell: u32) -> Self {
        let is_given_up = given_up(trials).contains(&cell);
        let any = |state: TrialState| {
            trials
                .iter()
                .any(|status| status.trial.cell == cell && status.state == state)
        };
        if is_given_up {
            Self::Failed
        } else if any(TrialState::Running) {
            Self::Running
        } else if any(TrialState::Planned) {
            Self::Planned
        } else if any(TrialState::Failed) {
            Self::Failed
        } else {
            Self::Missing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::samples::{closed, launched, mismatched, run, single},
        metrics::StageFlag,
    };

    #[test]
    fn a_flagged_level_is_a_doubt_and_a_sound_one_is_none() {
        let mut flagged = closed(8, 0, 100.0);
        flagged.flags = vec![StageFlag::Failures {
            failed: 3,
            requests: 100,
        }];
        let doubts = Doubt::of_run(&run(7, "a", vec![single(0, 80.0), flagged]));
        assert_eq!(doubts.len(), 1);
        assert_eq!(doubts[0].run, RunId(7));
        let level = StageKind::ClosedLoop { concurrency: 8 };
        assert_eq!(doubts[0].level, Some(level));
        assert!(doubts[0].what.contains("3 of 100 requests failed"));
    }

    #[test]
    fn a_launch_that_did_not_run_as_asked_is_a_doubt_at_every_level() {
        let facts = launched(7, "a", 7, vec![single(0, 80.0), closed(8, 0, 100.0)]);
        assert_eq!(Doubt::of_run(&facts), []);
        let doubts = Doubt::of_run(&mismatched(facts));
        assert_eq!(doubts.len(), 1);
        assert_eq!((doubts[0].run, doubts[0].level), (RunId(7), None));
        assert!(doubts[0].what.contains("--tp-size"), "{}", doubts[0].what);
    }
}
