//! Heat maps: a figure over the cells, as a table with coloured fields.

use serde::{Deserialize, Serialize};

use super::{
    super::{
        design::{Cell, Design},
        factor::Factor,
        figures::FigureKey,
    },
    contest::{Contest, judge},
    findings::EntryState,
    lookup::find,
    metric,
    table::Table,
};
use crate::{
    statistics::{Better, MeanInterval, RatioInterval, configuration},
    text,
    verdict::Verdict,
};

/// A figure over all cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Which figure.
    pub key: FigureKey,
    /// What people call it.
    pub title: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// The cell that ratios are taken to.
    pub reference: u32,
    /// Confidence of each figure's interval, by itself.
    pub confidence: f64,
    /// How the entries are arranged.
    pub layout: Layout,
    /// One per cell, by its place.
    pub entries: Vec<HeatEntry>,
}

/// How entries are arranged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "layout")]
pub enum Layout {
    /// One after another.
    List,
    /// The first two factors as rows and columns, once for each combination of the
    /// others.
    Grid {
        /// Name of the factor down the side.
        row_factor: String,
        /// Its levels.
        rows: Vec<String>,
        /// Name of the factor along the top.
        column_factor: String,
        /// Its levels.
        columns: Vec<String>,
        /// The grids.
        facets: Vec<Facet>,
    },
}

/// One grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facet {
    /// The levels of the other factors; empty for two factors.
    pub levels: Vec<(String, String)>,
    /// The cell of each row and column. Two fields share a cell where their levels come
    /// to the same command.
    pub cells: Vec<Vec<Option<u32>>>,
}

/// A cell's figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatEntry {
    /// Which cell.
    pub cell: u32,
    /// What it is called.
    pub title: String,
    /// What there is of it.
    pub state: EntryState,
    /// Geometric mean over its launches, with its interval; none without a figure.
    pub figure: Option<MeanInterval>,
    /// Ratio to the reference; none for the reference itself. It is taken within blocks,
    /// so it need not be the ratio of the two means.
    pub ratio: Option<RatioInterval>,
    /// Confidence of the ratio's interval: of a verdict, the level at which it was
    /// tested.
    pub ratio_confidence: Option<f64>,
    /// Launches with such a figure.
    pub launches: u32,
    /// What a reader should know.
    pub flags: Vec<String>,
    /// Whether it differs from the reference; none for the reference itself, and for
    /// figures that are not judged.
    pub verdict: Option<Verdict>,
}

/// The family in which cells are compared with the first one.
pub(super) fn reference_family(table: &Table<'_>) -> String {
    format!("every cell against {}", table.title(0))
}

/// Every other cell against the first, in their order.
pub(super) fn reference_contests(table: &Table<'_>) -> Vec<Contest> {
    table
        .cells()
        .skip(1)
        .map(|cell| table.contest(0, cell))
        .collect()
}

pub(super) fn heat_map(table: &Table<'_>) -> HeatMap {
    let contests = reference_contests(table);
    let verdicts: Vec<Option<Verdict>> = if metric::is_judged(&table.key) {
        judge(table, &reference_family(table), &contests)
            .into_iter()
            .map(Some)
            .collect()
    } else {
        vec![None; contests.len()]
    };
    let others = contests.iter().map(Some).zip(verdicts);
    let entries = table
        .cells()
        .zip(std::iter::once((None, None)).chain(others))
        .map(|(cell, (contest, verdict))| entry(table, cell, contest, verdict))
        .collect();
    HeatMap {
        key: table.key.clone(),
        title: table.label.clone(),
        unit: metric::unit(&table.key.metric).to_owned(),
        better: table.better,
        reference: 0,
        confidence: table.standing.confidence(),
        layout: layout(&table.findings.spec.design, table.findings.cells),
        entries,
    }
}

fn entry(
    table: &Table<'_>,
    cell: u32,
    contest: Option<&Contest>,
    verdict: Option<Verdict>,
) -> HeatEntry {
    let confidence = table.standing.confidence();
    let launches = table.launches(cell);
    let state = table.state(cell);
    let tested = verdict
        .as_ref()
        .and_then(|verdict| Some((verdict.across_launches?, verdict.confidence?)));
    let ratio = tested.or_else(|| Some((contest?.estimate()?.ratio(confidence), confidence)));
    HeatEntry {
        cell,
        title: table.title(cell).to_owned(),
        state,
        figure: configuration(&launches).map(|estimate| estimate.mean(confidence)),
        ratio: ratio.map(|(ratio, _)| ratio),
        ratio_confidence: ratio.map(|(_, confidence)| confidence),
        launches: u32::try_from(launches.len()).unwrap_or(u32::MAX),
        flags: flags(table, cell, launches.len()),
        verdict,
    }
}

fn flags(table: &Table<'_>, cell: u32, launches: usize) -> Vec<String> {
    let failures: u32 = table
        .findings
        .trials
        .iter()
        .filter(|status| status.trial.cell == cell)
        .map(|status| status.failures)
        .sum();
    let mut flags = table.doubts(cell).to_vec();
    if launches == 1 {
        flags.push("one launch: how much launches vary is unknown".to_owned());
    }
    if failures > 0 {
        let launches = text::plural(u64::from(failures), "launch", "launches");
        flags.push(format!("{launches} failed"));
    }
    flags
}

fn layout(design: &Design, cells: &[Cell]) -> Layout {
    let Design::FullGrid { factors } = design else {
        return Layout::List;
    };
    let [row, column, others @ ..] = factors.as_slice() else {
        return Layout::List;
    };
    let labels = |factor: &Factor| -> Vec<String> {
        factor
            .levels
            .iter()
            .map(|level| level.label.clone())
            .collect()
    };
    let (rows, columns) = (labels(row), labels(column));
    let facets = combinations(others)
        .into_iter()
        .map(|levels| {
            let cell = |one: &String, other: &String| {
                let chosen = [
                    (row.name.clone(), one.clone()),
                    (column.name.clone(), other.clone()),
                ];
                find(cells, &[chosen.as_slice(), levels.as_slice()].concat())
            };
            let cells = rows
                .iter()
                .map(|one| columns.iter().map(|other| cell(one, other)).collect())
                .collect();
            Facet { levels, cells }
        })
        .collect();
    Layout::Grid {
        row_factor: row.name.clone(),
        rows,
        column_factor: column.name.clone(),
        columns,
        facets,
    }
}

/// Every choice of a level of each factor, by name; one empty choice of no factor.
pub(super) fn combinations(factors: &[Factor]) -> Vec<Vec<(String, String)>> {
    factors.iter().fold(vec![Vec::new()], |choices, factor| {
        choices
            .iter()
            .flat_map(|choice| {
                factor.levels.iter().map(|level| {
                    let chosen = (factor.name.clone(), level.label.clone());
                    [choice.as_slice(), &[chosen]].concat()
                })
            })
            .collect()
    })
}
