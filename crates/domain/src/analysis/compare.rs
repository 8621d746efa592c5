//! Two to twelve runs side by side.

use super::RunFacts;
use crate::{chart::ChartSpec, views::compare::CompareView};

/// The comparison of runs, the baseline first.
///
/// # Errors
/// A sentence, if there are fewer than two or more than twelve runs.
pub fn compare(_runs: &[RunFacts]) -> Result<CompareView<ChartSpec>, String> {
    Err("Choose two to twelve runs to compare.".to_owned())
}
