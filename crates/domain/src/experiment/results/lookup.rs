//! Which cell has which levels.

use super::super::{
    ablation::{Step, StepSet},
    design::Cell,
};

/// The cell with these levels, whichever way it came by them: levels that come to the
/// same command are one cell.
pub(super) fn find(cells: &[Cell], levels: &[(String, String)]) -> Option<u32> {
    cells
        .iter()
        .find(|cell| {
            std::iter::once(&cell.levels)
                .chain(&cell.also)
                .any(|own| own.as_slice() == levels)
        })
        .map(|cell| cell.index)
}

/// The cell with these steps of an ablation.
pub(super) fn find_steps(cells: &[Cell], steps: &[Step], set: StepSet) -> Option<u32> {
    let levels: Vec<(String, String)> = (0..)
        .zip(steps)
        .map(|(number, step)| {
            let word = if set.has(number) { "with" } else { "without" };
            (step.label.clone(), word.to_owned())
        })
        .collect();
    find(cells, &levels)
}
