//! Where experiments and their trials stand.
//!
//! ```text
//! an experiment
//!
//!   queued ────▶ running                 no other experiment runs on the host
//!     ├────────▶ paused                  by a person
//!     └────────▶ cancelled               before it began
//!   running ───▶ finished                every trial is over
//!     ├────────▶ failed                  nothing could be measured
//!     └────────▶ stopping                by a person, or host, time or budget are used up
//!   stopping ──▶ paused | cancelled      once the trial under way is ended
//!   paused ────▶ queued                  resumed: it waits for the host again
//!     └────────▶ cancelled
//!
//! a trial
//!
//!   planned ───▶ running
//!     ├────────▶ skipped                 measured before, or its cell was given up
//!     ├────────▶ settled                 its cell needs no more launches
//!     └────────▶ cancelled
//!   running ───▶ done                    its run is kept
//!     ├────────▶ failed                  the reason is kept
//!     ├────────▶ planned                 interrupted, by no fault of its cell
//!     └────────▶ cancelled
//!   failed ────▶ running                 once more
//!     └────────▶ cancelled
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where an experiment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentState {
    /// Waits for a worker and for the host.
    Queued,
    /// Its trials are run, one after another.
    Running,
    /// Nothing of it runs; it can be resumed.
    Paused,
    /// It turns to a pause or to its end: the trial under way is ended, and what was put
    /// aside is brought back.
    Stopping,
    /// Every trial is over.
    Finished,
    /// Somebody ended it; what was measured is kept.
    Cancelled,
    /// Nothing more of it can be measured; the reason is kept.
    Failed,
}

impl ExperimentState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::Paused,
        Self::Stopping,
        Self::Finished,
        Self::Cancelled,
        Self::Failed,
    ];

    /// The word as stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Is nothing more to come?
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled | Self::Failed)
    }

    /// May an experiment go from here to there?
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => matches!(next, Self::Running | Self::Paused | Self::Cancelled),
            Self::Running => matches!(next, Self::Stopping | Self::Finished | Self::Failed),
            Self::Paused => matches!(next, Self::Queued | Self::Cancelled),
            Self::Stopping => matches!(next, Self::Paused | Self::Cancelled),
            Self::Finished | Self::Cancelled | Self::Failed => false,
        }
    }
}

impl fmt::Display for ExperimentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Where a trial stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// Its turn is still to come.
    Planned,
    /// Its launch is started or measured.
    Running,
    /// It was measured.
    Done,
    /// Its launch or its run failed; the reason is kept.
    Failed,
    /// It is not run: measured before, or its cell was given up.
    Skipped,
    /// It is not run: its cell was settled early.
    Settled,
    /// It is not run, or was ended: somebody ended the experiment.
    Cancelled,
}

impl TrialState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Planned,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Skipped,
        Self::Settled,
        Self::Cancelled,
    ];

    /// The word as stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Settled => "settled",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Can nothing more come? A failed trial may be tried once more, so it is over only
    /// together with its number of failures: see
    /// [`TrialStatus::is_over`](super::TrialStatus::is_over).
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Done | Self::Skipped | Self::Settled | Self::Cancelled
        )
    }

    /// May a trial go from here to there?
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Planned => matches!(
                next,
                Self::Running | Self::Skipped | Self::Settled | Self::Cancelled
            ),
            Self::Running => matches!(
                next,
                Self::Done | Self::Failed | Self::Planned | Self::Cancelled
            ),
            Self::Failed => matches!(next, Self::Running | Self::Cancelled),
            Self::Done | Self::Skipped | Self::Settled | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for TrialState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_that_is_over_stays_so_and_every_other_can_end() {
        for from in ExperimentState::ALL {
            assert_eq!(ExperimentState::from_word(from.word()), Some(from));
            let wire = serde_json::to_value(from).expect("JSON");
            assert_eq!(wire, from.word());
            let ends = ExperimentState::ALL
                .iter()
                .any(|to| to.is_over() && from.may_become(*to));
            assert_eq!(ends, !from.is_over(), "{from}");
            assert!(!from.may_become(from), "{from}");
            if from.is_over() {
                assert!(!ExperimentState::ALL.iter().any(|to| from.may_become(*to)));
            }
        }
        // What runs is ended before the experiment is.
        assert!(!ExperimentState::Running.may_become(ExperimentState::Cancelled));
        assert!(!ExperimentState::Running.may_become(ExperimentState::Paused));
        // A paused one waits for the host like any other.
        assert!(!ExperimentState::Paused.may_become(ExperimentState::Running));
        assert!(ExperimentState::Paused.may_become(ExperimentState::Queued));
    }

    #[test]
    fn a_trial_is_measured_once() {
        for from in TrialState::ALL {
            assert_eq!(TrialState::from_word(from.word()), Some(from));
            assert_eq!(serde_json::to_value(from).expect("JSON"), from.word());
            let goes_on = TrialState::ALL.iter().any(|to| from.may_become(*to));
            assert_eq!(goes_on, !from.is_final(), "{from}");
            // Only what was running can be done or have failed.
            for to in [TrialState::Done, TrialState::Failed] {
                assert_eq!(from.may_become(to), from == TrialState::Running, "{from}");
            }
            // What is over can be cancelled no more, everything else can.
            assert_eq!(
                from.may_become(TrialState::Cancelled),
                !from.is_final(),
                "{from}"
            );
        }
        assert!(TrialState::Running.may_become(TrialState::Planned));
        assert!(TrialState::Failed.may_become(TrialState::Running));
        assert!(!TrialState::Failed.may_become(TrialState::Settled));
    }
}
