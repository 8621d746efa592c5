//! The Board: the answer first.

use super::RunFacts;
use crate::{
    chart::ChartSpec,
    views::board::{BoardFilter, BoardView},
};

/// The Board over the stored runs that are over. `founding_missing` is passed on.
#[must_use]
pub fn board(
    filter: &BoardFilter,
    runs: &[RunFacts],
    founding_missing: bool,
) -> BoardView<ChartSpec> {
    let answer = |question: &str| crate::views::board::Answer {
        question: question.to_owned(),
        leader: None,
        figure: None,
        source: None,
        established: false,
        because: String::new(),
    };
    BoardView {
        empty: runs.is_empty(),
        founding_missing,
        choices: crate::views::board::BoardChoices::default(),
        filter: filter.clone(),
        best_single: answer("Best for one user"),
        best_throughput: answer("Best at C"),
        rows: Vec::new(),
        chart: None,
        as_of: None,
    }
}
