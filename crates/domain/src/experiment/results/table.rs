//! The launches of every cell, for one figure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{figures::FigureKey, state::TrialState},
    contest::{Contest, Entrant},
    findings::{EntryState, Findings, Standing},
    metric,
};
use crate::statistics::{Better, Launch};

/// One figure over cells and blocks.
pub(super) struct Table<'a> {
    pub(super) findings: Findings<'a>,
    pub(super) standing: Standing,
    pub(super) key: FigureKey,
    pub(super) label: String,
    pub(super) better: Better,
    rows: Vec<Row>,
}

/// What was measured of a cell.
#[derive(Debug, Clone, Default)]
struct Row {
    /// By block.
    launches: BTreeMap<u32, Launch>,
    /// Blocks whose launch was made by this experiment in its turn; others were taken
    /// from an earlier one and stand under another day's conditions.
    in_turn: BTreeSet<u32>,
    doubts: Vec<String>,
}

impl<'a> Table<'a> {
    pub(super) fn of(findings: Findings<'a>, standing: Standing, key: &FigureKey) -> Self {
        let states: BTreeMap<(u32, u32), TrialState> = findings
            .trials
            .iter()
            .map(|status| ((status.trial.cell, status.trial.block), status.state))
            .collect();
        let mut rows = vec![Row::default(); findings.cells.len()];
        for trial in findings.figures {
            let state = states.get(&(trial.cell, trial.block));
            let is_done = state == Some(&TrialState::Done);
            if !is_done && state != Some(&TrialState::Skipped) {
                continue;
            }
            let launch = trial
                .figures
                .get(key)
                .and_then(|figure| Launch::single(*figure));
            let (Some(launch), Some(row)) = (launch, rows.get_mut(trial.cell as usize)) else {
                continue;
            };
            row.launches.insert(trial.block, launch);
            if is_done {
                row.in_turn.insert(trial.block);
            }
            let doubts = findings.doubts.iter().filter(|doubt| {
                doubt.run == trial.run && doubt.level.is_none_or(|level| level == key.level)
            });
            for doubt in doubts {
                row.doubts
                    .push(format!("run {}: {}", trial.run.0, doubt.what));
            }
        }
        Self {
            findings,
            standing,
            label: metric::label(key),
            better: metric::better(&key.metric),
            key: key.clone(),
            rows,
        }
    }

    pub(super) fn title(&self, cell: u32) -> &str {
        self.findings
            .cells
            .get(cell as usize)
            .map_or("", |cell| &cell.title)
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    /// All launches of a cell, also those that do not count for verdicts yet.
    pub(super) fn launches(&self, cell: u32) -> Vec<Launch> {
        self.rows
            .get(cell as usize)
            .map_or_else(Vec::new, |row| row.launches.values().cloned().collect())
    }

    pub(super) fn doubts(&self, cell: u32) -> &[String] {
        self.rows
            .get(cell as usize)
            .map_or(&[], |row| row.doubts.as_slice())
    }

    pub(super) fn state(&self, cell: u32) -> EntryState {
        let has_figure = self
            .rows
            .get(cell as usize)
            .is_some_and(|row| !row.launches.is_empty());
        if has_figure {
            EntryState::Measured
        } else {
            EntryState::without_figure(self.findings.trials, cell)
        }
    }

    /// The launches that count for verdicts, by block.
    fn counted(&self, cell: u32) -> impl Iterator<Item = (u32, &Launch)> {
        self.rows
            .get(cell as usize)
            .into_iter()
            .flat_map(|row| &row.launches)
            .filter(|(block, _)| self.standing.counts(**block))
            .map(|(block, launch)| (*block, launch))
    }

    /// The blocks in which all these cells were measured in their turn.
    pub(super) fn shared_blocks(&self, cells: &[u32]) -> Vec<u32> {
        let Some((first, others)) = cells.split_first() else {
            return Vec::new();
        };
        let has = |cell: u32, block: u32| {
            self.rows
                .get(cell as usize)
                .is_some_and(|row| row.in_turn.contains(&block))
        };
        self.counted(*first)
            .map(|(block, _)| block)
            .filter(|block| has(*first, *block) && others.iter().all(|cell| has(*cell, *block)))
            .collect()
    }

    /// The logarithm of a cell's figure in a block.
    pub(super) fn log(&self, cell: u32, block: u32) -> Option<f64> {
        Some(self.rows.get(cell as usize)?.launches.get(&block)?.value())
    }

    /// One cell against another, paired in the blocks that both have.
    pub(super) fn contest(&self, first: u32, second: u32) -> Contest {
        let blocks =
            |cell: u32| -> Vec<u32> { self.counted(cell).map(|(block, _)| block).collect() };
        let (one, other) = (blocks(first), blocks(second));
        let place = |blocks: &[u32], block: u32| blocks.binary_search(&block).ok();
        let pairs = self
            .shared_blocks(&[first, second])
            .into_iter()
            .filter_map(|block| Some((place(&one, block)?, place(&other, block)?)))
            .collect();
        let entrant = |cell: u32| Entrant {
            name: self.title(cell).to_owned(),
            launches: self
                .counted(cell)
                .map(|(_, launch)| launch.clone())
                .collect(),
            objection: self.objection(&[cell]),
            failed: self.has_failed(cell),
        };
        Contest {
            first: entrant(first),
            second: entrant(second),
            blocks: pairs,
            launches_per_value: 1,
        }
    }

    /// Why nothing may rest on these cells, if so.
    pub(super) fn objection(&self, cells: &[u32]) -> Option<String> {
        if !self.standing.is_judged() {
            return Some("is still being measured, and no look is due".to_owned());
        }
        cells
            .iter()
            .find_map(|cell| self.doubts(*cell).first())
            .map(|doubt| format!("is doubtful ({doubt})"))
    }

    pub(super) fn has_failed(&self, cell: u32) -> bool {
        self.state(cell) == EntryState::Failed
    }
}
