//! What the charts of a run show.

use super::{RequestPoint, RunFacts};
use crate::chart::ChartSpec;

/// The charts of a run's page. `points` may be a sample of its requests.
#[must_use]
pub fn run_charts(_facts: &RunFacts, _points: &[RequestPoint]) -> Vec<ChartSpec> {
    Vec::new()
}
