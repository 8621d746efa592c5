//! Ending cells early: when one looks, and what follows.

use serde::{Deserialize, Serialize};

use super::{
    resume::{TrialStatus, given_up},
    state::TrialState,
};

/// When one looks at the figures before the end. Each look spends a part of the error
/// that a verdict may have, so all of them are declared beforehand; the end is one more
/// look and is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyStop {
    /// After how many complete blocks, rising.
    pub looks: Vec<u32>,
}

impl EarlyStop {
    /// Do the looks rise, each after two launches and before the last?
    #[must_use]
    pub fn fits(&self, launches_per_cell: u32) -> bool {
        self.looks.is_sorted_by(|one, two| one < two)
            && self.looks.first().is_some_and(|first| *first >= 2)
            && self
                .looks
                .last()
                .is_some_and(|last| *last < launches_per_cell)
    }
}

/// One look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Which, from 1.
    pub number: u32,
    /// How many there are at most, the end included.
    pub of: u32,
    /// Complete blocks by now.
    pub blocks: u32,
}

/// Decides at a look whether a cell needs no more launches. The statistics behind it are
/// not this module's.
pub trait Decision {
    /// Is what is asked of this cell established, one way or the other?
    fn is_settled(&mut self, cell: u32, look: Look) -> bool;
}

impl<F: FnMut(u32, Look) -> bool> Decision for F {
    fn is_settled(&mut self, cell: u32, look: Look) -> bool {
        self(cell, look)
    }
}

/// The look that is due: a declared number of blocks is complete, and nothing of the
/// next one has begun. So it is due again if whoever looked was interrupted, and not
/// once the experiment has gone on.
#[must_use]
pub fn due_look(early_stop: &EarlyStop, trials: &[TrialStatus]) -> Option<Look> {
    let blocks = complete_blocks(trials);
    let place = early_stop.looks.iter().position(|look| *look == blocks)?;
    let has_gone_on = trials.iter().any(|status| {
        status.trial.block >= blocks
            && matches!(
                status.state,
                TrialState::Running | TrialState::Done | TrialState::Failed
            )
    });
    if has_gone_on {
        return None;
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Some(Look {
        number: count(place + 1),
        of: count(early_stop.looks.len() + 1),
        blocks,
    })
}

/// The cells that are settled at the look that is due, if one is: what is still planned
/// of them need not be run. Cell 0 is what the others are compared with, so it goes on
/// as long as one of them does.
#[must_use]
pub fn settled(
    early_stop: &EarlyStop,
    trials: &[TrialStatus],
    decision: &mut impl Decision,
) -> Vec<u32> {
    let Some(look) = due_look(early_stop, trials) else {
        return Vec::new();
    };
    let given_up = given_up(trials);
    let mut open: Vec<u32> = trials
        .iter()
        .filter(|status| status.state == TrialState::Planned)
        .map(|status| status.trial.cell)
        .filter(|cell| !given_up.contains(cell))
        .collect();
    open.sort_unstable();
    open.dedup();
    let mut settled: Vec<u32> = open
        .iter()
        .copied()
        .filter(|cell| *cell != 0 && decision.is_settled(*cell, look))
        .collect();
    let others = open.iter().filter(|cell| **cell != 0).count();
    if open.first() == Some(&0) && settled.len() == others {
        settled.insert(0, 0);
    }
    settled
}

/// How many blocks from the first on have nothing more to come. What is planned of a
/// cell that was given up does not come.
pub(super) fn complete_blocks(trials: &[TrialStatus]) -> u32 {
    let given_up = given_up(trials);
    let unfinished = trials
        .iter()
        .filter(|status| !status.is_over() && !given_up.contains(&status.trial.cell))
        .map(|status| status.trial.block)
        .min();
    let all = trials
        .iter()
        .map(|status| status.trial.block + 1)
        .max()
        .unwrap_or(0);
    unfinished.unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use super::{super::order::order, *};

    fn stop() -> EarlyStop {
        EarlyStop { looks: vec![2, 4] }
    }

    /// Three cells, six blocks, of which the first `blocks` are done.
    fn trials(blocks: u32) -> Vec<TrialStatus> {
        order(3, 6, 9)
            .into_iter()
            .map(|trial| TrialStatus {
                state: if trial.block < blocks {
                    TrialState::Done
                } else {
                    TrialState::Planned
                },
                ..TrialStatus::planned(trial)
            })
            .collect()
    }

    #[test]
    fn looks_are_declared_in_order() {
        for (looks, launches, fits) in [
            (vec![2, 4], 6, true),
            (vec![2, 4], 5, true),
            (vec![2, 4], 4, false),
            (vec![1], 6, false),
            (vec![3, 3], 6, false),
            (vec![4, 2], 6, false),
            (vec![], 6, false),
        ] {
            let stop = EarlyStop { looks };
            assert_eq!(stop.fits(launches), fits, "{stop:?} of {launches}");
        }
    }

    #[test]
    fn a_look_is_due_between_two_blocks() {
        let at = |blocks| due_look(&stop(), &trials(blocks));
        let look = |number, blocks| {
            Some(Look {
                number,
                of: 3,
                blocks,
            })
        };
        assert_eq!(at(1), None);
        assert_eq!(at(2), look(1, 2));
        assert_eq!(at(3), None);
        assert_eq!(at(4), look(2, 4));
        assert_eq!(at(6), None);
        assert_eq!(due_look(&stop(), &[]), None);
        let mut begun = trials(2);
        begun[6].state = TrialState::Running;
        assert_eq!(due_look(&stop(), &begun), None);
        let mut retried = trials(2);
        retried[0].state = TrialState::Failed;
        retried[0].failures = 1;
        assert_eq!(due_look(&stop(), &retried), None, "one is tried again");
        retried[0].failures = 2;
        assert_eq!(due_look(&stop(), &retried), look(1, 2));
    }

    #[test]
    fn the_reference_goes_on_until_all_others_are_settled() {
        let trials = trials(2);
        let mut asked = Vec::new();
        let one = settled(&stop(), &trials, &mut |cell: u32, look: Look| {
            asked.push((cell, look.blocks));
            cell == 2
        });
        assert_eq!(one, [2]);
        assert_eq!(asked, [(1, 2), (2, 2)]);
        assert_eq!(
            settled(&stop(), &trials, &mut |_: u32, _: Look| true),
            [0, 1, 2]
        );
        assert_eq!(
            settled(&stop(), &trials, &mut |_: u32, _: Look| false),
            Vec::<u32>::new()
        );
    }

    #[test]
    fn cells_that_are_settled_or_given_up_are_asked_no_more() {
        let mut trials = trials(4);
        for status in &mut trials {
            if status.trial.cell == 1 && status.trial.block > 1 {
                status.state = TrialState::Settled;
            }
        }
        let mut asked = Vec::new();
        let mut ask = |cell: u32, _: Look| {
            asked.push(cell);
            true
        };
        assert_eq!(settled(&stop(), &trials, &mut ask), [0, 2]);
        assert_eq!(asked, [2]);
        // A cell that failed twice leaves the reference with nobody to compare with.
        let failed = trials
            .iter()
            .position(|status| status.trial.cell == 2)
            .expect("a trial");
        trials[failed].state = TrialState::Failed;
        trials[failed].failures = 2;
        assert_eq!(settled(&stop(), &trials, &mut |_: u32, _: Look| false), [0]);
        let none_due = settled(&stop(), &trials[..0], &mut |_: u32, _: Look| true);
        assert_eq!(none_due, Vec::<u32>::new());
    }
}
