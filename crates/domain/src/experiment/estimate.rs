//! How long an experiment takes, and what of it fits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::order::Trial;
use crate::timestamp::Timestamp;

/// What a trial is thought to take at most, as a multiple of what its like took before:
/// loading depends on what the page cache still holds.
pub const TRIAL_MARGIN: f64 = 1.1;

/// What an experiment may cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// GPU minutes: minutes times the GPUs of a launch.
    #[serde(default)]
    pub gpu_minutes: Option<f64>,
    /// The host is given back by then.
    #[serde(default)]
    pub give_back_at: Option<Timestamp>,
}

/// How long a trial takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Seconds from its start until the engine is ready.
    pub ready_s: f64,
    /// Seconds from then until it is measured and stopped.
    pub measure_s: f64,
}

impl Pace {
    /// Seconds of a trial; none if they are no such.
    #[must_use]
    pub fn seconds(self) -> Option<f64> {
        let known = |part: f64| part.is_finite() && part >= 0.0;
        (known(self.ready_s) && known(self.measure_s)).then_some(self.ready_s + self.measure_s)
    }
}

/// Past figures: how long trials took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Paces {
    /// Of trials like these, where their cells are not told apart.
    pub overall: Option<Pace>,
    /// Of single cells.
    pub cells: BTreeMap<u32, Pace>,
    /// GPUs that a trial holds.
    pub gpus: u32,
}

impl Paces {
    /// Seconds that a trial of this cell takes: as this cell did, else as all did, else
    /// as the slowest known cell did; none if nothing is known.
    #[must_use]
    pub fn seconds(&self, cell: u32) -> Option<f64> {
        let own = self.cells.get(&cell).and_then(|pace| pace.seconds());
        let overall = || self.overall.and_then(Pace::seconds);
        let slowest = || {
            self.cells
                .values()
                .filter_map(|pace| pace.seconds())
                .reduce(f64::max)
        };
        own.or_else(overall).or_else(slowest)
    }

    fn gpu_minutes(&self, seconds: f64) -> f64 {
        seconds * f64::from(self.gpus) / 60.0
    }
}

/// What of some trials can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fit")]
pub enum Fit {
    /// All of them.
    All,
    /// The first of them.
    Only {
        /// How many.
        trials: u32,
        /// When the last of them is thought to end.
        until: Timestamp,
    },
    /// Not even the first.
    None,
}

impl Fit {
    /// How many of `all` can be run.
    #[must_use]
    pub const fn trials(self, all: u32) -> u32 {
        match self {
            Self::All => all,
            Self::Only { trials, .. } => trials,
            Self::None => 0,
        }
    }
}

/// What an experiment takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// How often an engine is loaded.
    pub loads: u32,
    /// Seconds; none while the pace of a trial is not known.
    pub seconds: Option<f64>,
    /// GPU minutes; none while the pace of a trial is not known.
    pub gpu_minutes: Option<f64>,
    /// When it is thought to be over if it begins now and nothing else is in its way;
    /// none while the pace of a trial is not known.
    pub finish: Option<Timestamp>,
    /// Trials of which nothing is known.
    pub unknown: u32,
    /// What of it fits budget and time.
    pub fit: Fit,
    /// Share of the trials that does not fit.
    pub left_out: f64,
}

/// What these trials take, if they begin `now`. `spent_gpu_minutes` are used up of the
/// budget; ending begins `lead_s` seconds before the host is given back.
#[must_use]
pub fn estimate(
    trials: &[Trial],
    paces: &Paces,
    now: Timestamp,
    budget: &Budget,
    spent_gpu_minutes: f64,
    lead_s: u32,
) -> Estimate {
    let loads = u32::try_from(trials.len()).unwrap_or(u32::MAX);
    let each: Vec<Option<f64>> = trials
        .iter()
        .map(|trial| paces.seconds(trial.cell))
        .collect();
    let unknown = each.iter().filter(|seconds| seconds.is_none()).count();
    let seconds: Option<f64> = each.into_iter().sum();
    let fit = fits(now, trials, paces, budget, spent_gpu_minutes, lead_s);
    let left_out = loads - fit.trials(loads);
    Estimate {
        loads,
        seconds,
        gpu_minutes: seconds.map(|seconds| paces.gpu_minutes(seconds)),
        finish: seconds.map(|seconds| later(now, seconds)),
        unknown: u32::try_from(unknown).unwrap_or(u32::MAX),
        fit,
        left_out: if loads == 0 {
            0.0
        } else {
            f64::from(left_out) / f64::from(loads)
        },
    }
}

/// Which of these trials can be run one after another from `now` on, without spending
/// more than the budget and without holding the host when it is to be given back. A
/// trial fits only if it can end before that time less `lead_s` seconds, even if it
/// takes [`TRIAL_MARGIN`] times as long as its like. What comes after one that does not
/// fit does not fit either, because a block with a gap is no block. Where there is a
/// limit, a trial of which nothing is known does not fit.
#[must_use]
pub fn fits(
    now: Timestamp,
    trials: &[Trial],
    paces: &Paces,
    budget: &Budget,
    spent_gpu_minutes: f64,
    lead_s: u32,
) -> Fit {
    if budget.gpu_minutes.is_none() && budget.give_back_at.is_none() {
        return Fit::All;
    }
    let end_by = budget
        .give_back_at
        .map(|at| Timestamp(at.0.saturating_sub(i64::from(lead_s) * 1_000_000)));
    let mut at = now;
    let mut spent = spent_gpu_minutes;
    for (before, trial) in (0_u32..).zip(trials) {
        let seconds = paces.seconds(trial.cell);
        let in_time = seconds.is_some_and(|seconds| {
            end_by.is_none_or(|end| later(at, seconds * TRIAL_MARGIN) <= end)
        });
        let after = seconds.map_or(spent, |seconds| spent + paces.gpu_minutes(seconds));
        let in_budget = budget.gpu_minutes.is_none_or(|most| after <= most);
        if !(in_time && in_budget) {
            return if before == 0 {
                Fit::None
            } else {
                Fit::Only {
                    trials: before,
                    until: at,
                }
            };
        }
        at = later(at, seconds.unwrap_or_default());
        spent = after;
    }
    Fit::All
}

/// So many seconds later, rounded up to whole microseconds.
fn later(at: Timestamp, seconds: f64) -> Timestamp {
    // Beyond the range of i64 the conversion clamps.
    Timestamp(at.0.saturating_add((seconds * 1e6).ceil() as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::order::order, *};

    const NOW: Timestamp = Timestamp(1_795_968_000_000_000);

    fn pace(ready_s: f64, measure_s: f64) -> Pace {
        Pace { ready_s, measure_s }
    }

    fn paces() -> Paces {
        Paces {
            overall: Some(pace(400.0, 200.0)),
            cells: BTreeMap::from([(1, pace(700.0, 200.0))]),
            gpus: 8,
        }
    }

    fn until(seconds: i64) -> Budget {
        Budget {
            gpu_minutes: None,
            give_back_at: Some(Timestamp(NOW.0 + seconds * 1_000_000)),
        }
    }

    #[test]
    fn time_and_gpu_minutes_come_from_past_figures() {
        let trials = order(2, 3, 1);
        let whole = estimate(&trials, &paces(), NOW, &Budget::default(), 0.0, 60);
        assert_eq!(whole.loads, 6);
        assert_eq!(whole.seconds, Some(4500.0));
        assert_eq!(whole.gpu_minutes, Some(600.0));
        assert_eq!(whole.finish, Some(Timestamp(NOW.0 + 4_500_000_000)));
        assert_eq!((whole.unknown, whole.fit), (0, Fit::All));
        assert!(whole.left_out.abs() < f64::EPSILON);
    }

    #[test]
    fn what_is_not_known_is_none() {
        let trials = order(2, 1, 1);
        let nothing = Paces {
            gpus: 8,
            ..Paces::default()
        };
        let whole = estimate(&trials, &nothing, NOW, &Budget::default(), 0.0, 60);
        assert_eq!((whole.seconds, whole.gpu_minutes), (None, None));
        assert_eq!((whole.finish, whole.unknown), (None, 2));
        assert_eq!(whole.fit, Fit::All, "nothing limits it");
        assert_eq!(
            fits(NOW, &trials, &nothing, &until(1_000_000), 0.0, 60),
            Fit::None
        );
        let spoilt = Paces {
            overall: Some(pace(f64::NAN, 1.0)),
            cells: BTreeMap::from([(0, pace(5.0, 5.0)), (1, pace(-1.0, 5.0))]),
            gpus: 1,
        };
        assert_eq!(spoilt.seconds(0), Some(10.0));
        assert_eq!(spoilt.seconds(1), Some(10.0), "as the slowest known one");
        let none = estimate(&[], &nothing, NOW, &until(1), 0.0, 60);
        assert_eq!((none.seconds, none.fit), (Some(0.0), Fit::All));
    }

    #[test]
    fn the_host_is_back_in_time() {
        let trials: Vec<Trial> = order(1, 3, 0);
        let paces = Paces {
            overall: Some(pace(500.0, 500.0)),
            cells: BTreeMap::new(),
            gpus: 8,
        };
        let fit = |seconds| fits(NOW, &trials, &paces, &until(seconds), 0.0, 60);
        // 1.1 × 1000 s, and the lead.
        assert_eq!(fit(1159), Fit::None);
        assert_eq!(
            fit(1160),
            Fit::Only {
                trials: 1,
                until: Timestamp(NOW.0 + 1_000_000_000)
            }
        );
        assert_eq!(fit(3159).trials(3), 2);
        assert_eq!(fit(3160), Fit::All);
        assert_eq!(fit(-5), Fit::None);
        let told = estimate(&trials, &paces, NOW, &until(1160), 0.0, 60);
        assert!((told.left_out - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_budget_is_not_overspent() {
        let trials = order(1, 3, 0);
        let paces = Paces {
            overall: Some(pace(500.0, 100.0)),
            cells: BTreeMap::new(),
            gpus: 8,
        };
        let fit = |gpu_minutes, spent| {
            let budget = Budget {
                gpu_minutes: Some(gpu_minutes),
                give_back_at: None,
            };
            fits(NOW, &trials, &paces, &budget, spent, 60).trials(3)
        };
        assert_eq!(fit(240.0, 0.0), 3);
        assert_eq!(fit(239.0, 0.0), 2);
        assert_eq!(fit(240.0, 100.0), 1);
        assert_eq!(fit(79.0, 0.0), 0);
    }

    proptest! {
        #[test]
        fn what_fits_ends_before_the_host_is_given_back(
            times in proptest::collection::vec((0.0..5000.0_f64, 0.0..5000.0_f64), 1..6),
            launches in 1_u32..5, seconds in 0_i64..40_000, lead in 0_u32..200,
            most in proptest::option::of(1.0..5000.0_f64),
        ) {
            let cells = u32::try_from(times.len()).expect("few");
            let paces = Paces {
                overall: None,
                cells: (0..).zip(times.iter().map(|(ready, measure)| pace(*ready, *measure))).collect(),
                gpus: 8,
            };
            let trials = order(cells, launches, 3);
            let budget = Budget { gpu_minutes: most, ..until(seconds) };
            let fit = fits(NOW, &trials, &paces, &budget, 0.0, lead);
            let count = fit.trials(cells * launches) as usize;
            let taken: f64 = trials[..count].iter().filter_map(|trial| paces.seconds(trial.cell)).sum();
            // Microseconds are rounded up, one each.
            prop_assert!(taken <= (seconds as f64 - f64::from(lead)).max(0.0) + 1e-3);
            if let Some(most) = most {
                prop_assert!(taken * 8.0 / 60.0 <= most + 1e-6);
            }
            if let Fit::Only { trials, until: end } = fit {
                prop_assert!(trials > 0 && trials < cells * launches);
                let said = (end.0 - NOW.0) as f64 / 1e6;
                prop_assert!((said - taken).abs() < 1e-3);
            }
        }
    }
}
