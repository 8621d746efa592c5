//! Experiments: plans of runs over several profiles. What is varied, in which order,
//! how long it takes, what is left to do after an interruption, and when it may end
//! early. The guide is `docs/experiments.md`.
//!
//! This module plans and keeps account; it starts nothing. What the figures of its
//! trials ([`TrialFigures`]) say is worked out in [`results`].

pub mod results;

mod ablation;
mod apply;
mod change;
mod design;
mod difference;
mod error;
mod estimate;
mod factor;
mod figures;
mod flags;
mod order;
mod plain;
mod resume;
#[cfg(test)]
mod samples;
mod settle;
mod spec;
mod state;

pub use self::{
    ablation::{MOST_STEPS, Step, StepSet, step_sets, steps_of},
    apply::{apply, apply_with},
    change::{Change, ChangeError},
    design::{Cell, Design, MOST_CELLS},
    difference::{DifferenceError, changes_between, changes_between_with},
    error::ExperimentError,
    estimate::{Budget, Estimate, Fit, Pace, Paces, TRIAL_MARGIN, estimate, fits},
    factor::{Factor, LL128_CAUTION, Level, drafter_factor, nccl_factors},
    figures::{FigureKey, TrialFigures},
    flags::{Flags, PlainFlags, Takes},
    order::{Trial, order},
    plain::{AS_IT_IS, WITH, WITHOUT, plain_factor, plain_levels},
    resume::{MOST_FAILURES, Measured, TrialStatus, given_up, next_trial, skip_measured},
    settle::{Decision, EarlyStop, Look, due_look, settled},
    spec::{ExperimentSpec, MOST_LAUNCHES_PER_CELL, MOST_TRIALS, Plan},
    state::{ExperimentState, TrialState},
};
