//! Stages over their repeats.

use super::RunFacts;
use crate::views::run::{LevelView, RunSummary, StageView};

/// The load levels of a run, single stream first, then rising concurrency.
#[must_use]
pub fn levels(_stages: &[StageView]) -> Vec<LevelView> {
    Vec::new()
}

/// The run's summary with its figures over repeats filled in.
#[must_use]
pub fn summarise(facts: &RunFacts) -> RunSummary {
    facts.summary.clone()
}
