//! What is next, after whatever happened.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{design::Cell, order::Trial, state::TrialState};
use crate::ids::ContentHash;

/// A trial that failed so often is not tried again, and its cell is given up.
pub const MOST_FAILURES: u32 = 2;

/// A trial and how it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialStatus {
    /// Which.
    #[serde(flatten)]
    pub trial: Trial,
    /// How it stands.
    pub state: TrialState,
    /// How often it failed. An interruption (a server, host or connection that went
    /// away) is no failure.
    pub failures: u32,
}

impl TrialStatus {
    /// A trial whose turn is still to come.
    #[must_use]
    pub const fn planned(trial: Trial) -> Self {
        Self {
            trial,
            state: TrialState::Planned,
            failures: 0,
        }
    }

    /// Is nothing more to come of it?
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.state.is_final()
            || (matches!(self.state, TrialState::Failed) && self.failures >= MOST_FAILURES)
    }
}

/// The trial that is run next; none while one is running, and when nothing is left.
///
/// It depends on nothing but how the trials stand, so it is the same after a restart.
/// Whoever resumes first puts a trial that was interrupted back to *planned*. Blocks come
/// in order and trials in order within them. One that failed is tried once more at the
/// end of its block, when whatever was in its way may be gone; if it fails again, its
/// cell is [given up](given_up).
#[must_use]
pub fn next_trial(trials: &[TrialStatus]) -> Option<Trial> {
    if trials
        .iter()
        .any(|status| status.state == TrialState::Running)
    {
        return None;
    }
    let given_up = given_up(trials);
    trials
        .iter()
        .filter(|status| !given_up.contains(&status.trial.cell))
        .filter_map(|status| {
            let again = match status.state {
                TrialState::Planned => false,
                TrialState::Failed if !status.is_over() => true,
                _ => return None,
            };
            Some((
                (status.trial.block, again, status.trial.number),
                status.trial,
            ))
        })
        .min_by_key(|(turn, _)| *turn)
        .map(|(_, trial)| trial)
}

/// The cells that are given up, because one of their trials failed twice. What is still
/// planned of them is to be skipped.
#[must_use]
pub fn given_up(trials: &[TrialStatus]) -> BTreeSet<u32> {
    trials
        .iter()
        .filter(|status| status.state == TrialState::Failed && status.is_over())
        .map(|status| status.trial.cell)
        .collect()
}

/// An earlier trial on the same host that was measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Measured {
    /// Hash of its profile.
    pub cell: ContentHash,
    /// Hash of its workload.
    pub workload: ContentHash,
    /// Its block.
    pub block: u32,
}

/// Numbers of the planned trials that need not be run, because the same profile was
/// measured under the same workload in the same block before. It is for an experiment
/// that is taken up again; whoever calls it decides which earlier experiments are meant.
/// Launches of another day stand under another day's conditions, so a block that is put
/// together from several days is not paired.
#[must_use]
pub fn skip_measured(
    trials: &[TrialStatus],
    cells: &[Cell],
    workload: &ContentHash,
    earlier: &[Measured],
) -> Vec<u32> {
    let earlier: BTreeSet<(&ContentHash, u32)> = earlier
        .iter()
        .filter(|measured| measured.workload == *workload)
        .map(|measured| (&measured.cell, measured.block))
        .collect();
    trials
        .iter()
        .filter(|status| status.state == TrialState::Planned)
        .filter(|status| {
            cells.iter().any(|cell| {
                cell.index == status.trial.cell
                    && earlier.contains(&(&cell.hash, status.trial.block))
            })
        })
        .map(|status| status.trial.number)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            design::Design,
            order::order,
            samples::{factor, sglang},
        },
        *,
    };

    fn planned(cells: u32, launches: u32) -> Vec<TrialStatus> {
        order(cells, launches, 5)
            .into_iter()
            .map(TrialStatus::planned)
            .collect()
    }

    fn start(trials: &mut [TrialStatus]) -> Option<usize> {
        let next = next_trial(trials)?;
        let index = trials.iter().position(|status| status.trial == next)?;
        become_(trials, index, TrialState::Running);
        Some(index)
    }

    fn become_(trials: &mut [TrialStatus], index: usize, state: TrialState) {
        let status = &mut trials[index];
        assert!(status.state.may_become(state), "{} {state}", status.state);
        status.state = state;
        if state == TrialState::Failed {
            status.failures += 1;
        }
    }

    #[test]
    fn trials_come_in_order_and_one_at_a_time() {
        let mut trials = planned(3, 2);
        for expected in 0..6 {
            assert_eq!(start(&mut trials), Some(expected));
            assert_eq!(next_trial(&trials), None, "one is running");
            become_(&mut trials, expected, TrialState::Done);
        }
        assert_eq!(next_trial(&trials), None);
    }

    #[test]
    fn a_failed_trial_is_tried_again_at_the_end_of_its_block_and_then_given_up() {
        let mut trials = planned(3, 2);
        let failing = start(&mut trials).expect("a trial");
        become_(&mut trials, failing, TrialState::Failed);
        for _ in 0..2 {
            let other = start(&mut trials).expect("a trial");
            assert_ne!(other, failing);
            become_(&mut trials, other, TrialState::Done);
        }
        assert_eq!(start(&mut trials), Some(failing));
        become_(&mut trials, failing, TrialState::Failed);
        let cell = trials[failing].trial.cell;
        assert_eq!(given_up(&trials), BTreeSet::from([cell]));
        let mut rest = 0;
        while let Some(index) = start(&mut trials) {
            assert_ne!(trials[index].trial.cell, cell);
            become_(&mut trials, index, TrialState::Done);
            rest += 1;
        }
        assert_eq!(rest, 2);
    }

    #[test]
    fn a_second_try_that_succeeds_gives_nothing_up() {
        let mut trials = planned(2, 2);
        let failing = start(&mut trials).expect("a trial");
        become_(&mut trials, failing, TrialState::Failed);
        let other = start(&mut trials).expect("a trial");
        become_(&mut trials, other, TrialState::Done);
        assert_eq!(start(&mut trials), Some(failing));
        become_(&mut trials, failing, TrialState::Done);
        assert_eq!(given_up(&trials), BTreeSet::new());
        assert_eq!(next_trial(&trials).map(|trial| trial.block), Some(1));
    }

    #[test]
    fn what_was_interrupted_comes_first_and_is_no_failure() {
        let mut trials = planned(2, 2);
        for state in [TrialState::Done, TrialState::Planned] {
            let index = start(&mut trials).expect("a trial");
            become_(&mut trials, index, state);
        }
        assert_eq!(next_trial(&trials), Some(trials[1].trial));
        assert_eq!(trials[1].failures, 0);
    }

    #[test]
    fn what_was_measured_before_is_skipped_under_the_same_hashes_only() {
        let design = Design::FullGrid {
            factors: vec![factor("--a", &["1"])],
        };
        let cells = design.cells(&sglang(""), &[]).expect("cells");
        let workload = ContentHash::of(b"workload");
        let mut trials = planned(2, 2);
        trials[0].state = TrialState::Done;
        let measured = |cell: u32, workload: &ContentHash, block| Measured {
            cell: cells[cell as usize].hash.clone(),
            workload: workload.clone(),
            block,
        };
        let earlier = [
            measured(0, &workload, 0),
            measured(1, &workload, 0),
            measured(1, &workload, 7),
            measured(0, &ContentHash::of(b"other"), 1),
        ];
        let skipped = skip_measured(&trials, &cells, &workload, &earlier);
        assert_eq!(skipped, [1], "0 is done, block 1 was another workload's");
        assert_eq!(
            skip_measured(&trials, &cells, &workload, &[]),
            Vec::<u32>::new()
        );
    }

    proptest! {
        /// Whatever happens to the trials, all come to an end, no trial is measured
        /// twice, none fails more than twice, and a later block waits for an earlier.
        #[test]
        fn everything_comes_to_an_end(
            cells in 1_u32..6, launches in 1_u32..5,
            events in proptest::collection::vec(0_u8..4, 200),
        ) {
            let mut trials = planned(cells, launches);
            let mut events = events.into_iter().chain(std::iter::repeat(0));
            let mut starts = 0_u32;
            while let Some(index) = start(&mut trials) {
                starts += 1;
                prop_assert!(starts <= 400, "no end");
                let block = trials[index].trial.block;
                let cell_given_up = given_up(&trials);
                for status in &trials {
                    if status.trial.block < block && !cell_given_up.contains(&status.trial.cell) {
                        prop_assert!(status.is_over());
                    }
                }
                let state = match events.next() {
                    Some(1) => TrialState::Failed,
                    Some(2) => TrialState::Planned,
                    _ => TrialState::Done,
                };
                become_(&mut trials, index, state);
                prop_assert!(trials[index].failures <= MOST_FAILURES);
            }
            let gone = given_up(&trials);
            for status in &trials {
                prop_assert!(status.is_over() || gone.contains(&status.trial.cell));
            }
        }
    }
}
