//! How sure a figure is. One pure module; a change of its rules raises
//! [`ANALYSIS_VERSION`], which every stored verdict carries. The rules with their
//! sources, and how often they err, are in `docs/statistics.md`.
//!
//! Figures are speeds or latencies, so they are compared as ratios: means and
//! intervals are taken of logarithms, differences of logarithms are ratios. The
//! unit is the [`Launch`]. Requests, and repeats of one launch, are never counted as
//! replicates of a configuration.
//!
//! * [`configuration`], [`over_launches`], [`over_blocks`]: what launches tell.
//! * [`within_launches`], [`with_history`]: what can be said with one launch each.
//! * [`Looks`], [`holm`]: looking early, and at several pairs.
//! * [`Components`], [`Planning`]: how to go on.
//! * [`curve`], [`pareto`]: several load levels, and two figures at once.
//! * [`log_share`]: what part of a total ratio a step has.

pub mod curve;
pub mod pareto;

mod advice;
mod better;
mod components;
mod estimate;
mod family;
mod history;
mod interval;
mod launch;
mod looks;
mod moments;
mod ratio;
mod share;

#[cfg(test)]
mod properties;
#[cfg(test)]
pub(crate) mod simulations;

pub use advice::{Advice, MOST_RESTARTS, POWER, Planning};
pub use better::Better;
pub use components::Components;
pub use estimate::{Estimate, geometric_mean};
pub use family::{Family, Tested, holm};
pub use history::PooledHistory;
pub use interval::{LogEstimate, MeanInterval, RatioInterval, Spread};
pub use launch::Launch;
pub use looks::{Looks, UndeclaredLook};
pub use ratio::{configuration, over_blocks, over_launches, with_history, within_launches};
pub use share::{LogShare, log_share};

/// Version of the rules in this module and in [`crate::verdict`].
///
/// 2: several launches of a configuration count as such, one value each.
///
/// 3: intervals over launches and within them are kept apart; blocks, declared
/// looks, families of pairs and a host's history count; ± δ is taken alike in both
/// directions; the leader of the Board is established against everybody.
///
/// 4: comparisons judge configurations over their launches, not run against run, all
/// pairs with the baseline in one family; a curve leads only where its interval says so;
/// Compare and Board look for the host's history where a side has one launch.
pub const ANALYSIS_VERSION: u32 = 4;

/// Probability with which an interval covers the truth.
pub const CONFIDENCE: f64 = 0.95;

/// Smallest effect that matters, as a share, where nobody says otherwise.
pub const RELEVANT_EFFECT: f64 = 0.02;
