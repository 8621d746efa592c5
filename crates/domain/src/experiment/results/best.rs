//! Which cell is best at a load level, and which cells no other one dominates.

use serde::{Deserialize, Serialize};

use super::{
    super::figures::FigureKey,
    contest::{Contest, judge},
    findings::EntryState,
    metric,
    table::Table,
};
use crate::{
    statistics::{
        MeanInterval, configuration,
        pareto::{Along, FrontPoint, front},
    },
    text,
    verdict::{Verdict, VerdictKind},
};

/// Names in a sentence; more are counted.
const MOST_NAMES: usize = 3;

/// Which cell is best by one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The figure.
    pub key: FigureKey,
    /// The cell that leads; doubtful ones do not.
    pub leader: u32,
    /// Its figure.
    pub figure: MeanInterval,
    /// It is better than each other cell beyond doubt, all of them one family.
    pub established: bool,
    /// The cells that it was not told apart from, the nearest first.
    pub open: Vec<Rival>,
    /// The answer.
    pub sentence: String,
}

/// A cell that may be as good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// Which cell.
    pub cell: u32,
    /// The leader against it.
    pub verdict: Verdict,
}

/// The cells in two dimensions: throughput across, speed for one user up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Front {
    /// The throughput at the highest concurrency.
    pub across: FigureKey,
    /// The speed for one user.
    pub up: FigureKey,
    /// Confidence of each interval, by itself.
    pub confidence: f64,
    /// Every cell that has both figures.
    pub cells: Vec<FrontCell>,
}

/// A cell in two dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrontCell {
    /// Which cell.
    pub cell: u32,
    /// What it is called.
    pub title: String,
    /// Its throughput.
    pub across: MeanInterval,
    /// Its speed for one user.
    pub up: MeanInterval,
    /// Launches behind the throughput.
    pub launches: u32,
    /// No verdict may rest on it; it drives none out and is not driven out.
    pub doubtful: bool,
    /// No other cell is better in both beyond doubt.
    pub undominated: bool,
}

/// The cells with sound figures, the best first.
fn ranked(table: &Table<'_>) -> Vec<(u32, MeanInterval)> {
    let mut cells: Vec<(u32, MeanInterval)> = table
        .cells()
        .filter(|cell| table.doubts(*cell).is_empty())
        .filter_map(|cell| {
            let mean = configuration(&table.launches(cell))?;
            Some((cell, mean.mean(table.standing.confidence())))
        })
        .collect();
    cells.sort_by(|(_, one), (_, other)| {
        let (one, other) = (one.mean.ln(), other.mean.ln());
        table
            .better
            .turned(other)
            .total_cmp(&table.better.turned(one))
    });
    cells
}

/// The leader against each rival, the nearest first.
pub(super) fn leader_contests(table: &Table<'_>) -> (Vec<u32>, Vec<Contest>) {
    let cells: Vec<u32> = ranked(table).iter().map(|(cell, _)| *cell).collect();
    let contests = cells
        .split_first()
        .map_or_else(Vec::new, |(leader, rivals)| {
            rivals
                .iter()
                .map(|rival| table.contest(*rival, *leader))
                .collect()
        });
    (cells, contests)
}

/// None without a sound figure.
pub(super) fn best(table: &Table<'_>) -> Option<Best> {
    let (leader, figure) = ranked(table).first().copied()?;
    let (cells, contests) = leader_contests(table);
    let rivals = cells.get(1..).unwrap_or_default();
    let verdicts = judge(table, "the leader against every other cell", &contests);
    let open: Vec<Rival> = rivals
        .iter()
        .zip(verdicts)
        .filter(|(_, verdict)| verdict.kind != VerdictKind::Better)
        .map(|(cell, verdict)| Rival {
            cell: *cell,
            verdict,
        })
        .collect();
    let established = open.is_empty() && !rivals.is_empty();
    let mut best = Best {
        key: table.key.clone(),
        leader,
        figure,
        established,
        open,
        sentence: String::new(),
    };
    best.sentence = sentence(table, &best, rivals.len());
    Some(best)
}

fn sentence(table: &Table<'_>, best: &Best, rivals: usize) -> String {
    let occasion = metric::occasion(&table.key);
    let leader = table.title(best.leader);
    let figure = figure(&best.figure, metric::unit(&table.key.metric));
    let left_out = left_out(table, rivals + 1);
    if rivals == 0 {
        return format!("{occasion} only {leader} has a sound figure, {figure}{left_out}.");
    }
    if best.established {
        let others = match rivals {
            1 => format!("better than {}", other_names(table, best.leader)),
            count => format!("better than each of the {count} others"),
        };
        return format!("{occasion} {leader} is best: {figure}, {others}{left_out}.");
    }
    let names = names(table, &best.open);
    let is_alike = |rival: &Rival| matches!(rival.verdict.kind, VerdictKind::NoClearChange);
    if best.open.iter().all(is_alike) {
        let delta = text::percent(table.findings.spec.relevant_effect);
        return format!(
            "{occasion} {leader} leads with {figure}, with no clear change beyond ±{delta} against {names}{left_out}."
        );
    }
    let settle = best
        .open
        .iter()
        .find(|rival| !is_alike(rival))
        .and_then(|rival| advice(table, best.leader, rival))
        .map_or_else(String::new, |advice| format!(" {advice}"));
    format!(
        "{occasion} it is not established which cell is best: {leader} leads with {figure}, not told apart from {names}{left_out}.{settle}"
    )
}

/// What would settle it.
fn advice(table: &Table<'_>, leader: u32, rival: &Rival) -> Option<String> {
    if !table.standing.is_judged() {
        return None;
    }
    let (rival_name, leader_name) = (table.title(rival.cell), table.title(leader));
    let advice = rival.verdict.advice.as_ref()?;
    Some(format!(
        "Against {rival_name}: {}",
        advice.sentence(rival_name, leader_name)
    ))
}

fn other_names(table: &Table<'_>, leader: u32) -> String {
    let others = ranked(table);
    others
        .iter()
        .find(|(cell, _)| *cell != leader)
        .map_or_else(String::new, |(cell, _)| table.title(*cell).to_owned())
}

fn names(table: &Table<'_>, rivals: &[Rival]) -> String {
    let shown: Vec<&str> = rivals
        .iter()
        .take(MOST_NAMES)
        .map(|rival| table.title(rival.cell))
        .collect();
    match rivals.len().saturating_sub(MOST_NAMES) {
        0 => text_list(&shown),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn text_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Cells that could not take part.
fn left_out(table: &Table<'_>, taking_part: usize) -> String {
    let all = table.findings.cells.len();
    let doubtful = table
        .cells()
        .filter(|cell| table.state(*cell) == EntryState::Measured)
        .count()
        .saturating_sub(taking_part);
    let absent = all.saturating_sub(taking_part + doubtful);
    let say = |count: usize, what: &str| {
        (count > 0).then(|| format!("{} {what}", text::plural(count as u64, "cell", "cells")))
    };
    let parts: Vec<String> = [say(absent, "without a figure"), say(doubtful, "in doubt")]
        .into_iter()
        .flatten()
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(" (left out: {})", parts.join(", "))
}

fn figure(mean: &MeanInterval, unit: &str) -> String {
    let interval = mean
        .low
        .zip(mean.high)
        .map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", text::figure(low), text::figure(high))
        });
    let unit = if unit.is_empty() {
        String::new()
    } else {
        format!(" {unit}")
    };
    format!("{}{unit}{interval}", text::figure(mean.mean))
}

/// The front of throughput, at the highest concurrency, and the speed for one user.
/// None unless two cells have both.
pub(super) fn front_of(tables: &[Table<'_>]) -> Option<Front> {
    let up = tables
        .iter()
        .find(|table| metric::is_single_stream(&table.key))?;
    let across = tables
        .iter()
        .filter(|table| metric::is_throughput(&table.key))
        .max_by_key(|table| table.key.level)?;
    let confidence = up.standing.confidence();
    let mean =
        |table: &Table<'_>, cell: u32| Some(configuration(&table.launches(cell))?.mean(confidence));
    let mut cells: Vec<FrontCell> = up
        .cells()
        .filter_map(|cell| {
            Some(FrontCell {
                cell,
                title: up.title(cell).to_owned(),
                across: mean(across, cell)?,
                up: mean(up, cell)?,
                launches: u32::try_from(across.launches(cell).len()).unwrap_or(u32::MAX),
                doubtful: !(up.doubts(cell).is_empty() && across.doubts(cell).is_empty()),
                undominated: true,
            })
        })
        .collect();
    if cells.len() < 2 {
        return None;
    }
    let points: Vec<FrontPoint> = cells
        .iter()
        .map(|cell| {
            let along = |mean: &MeanInterval| Along {
                figure: mean.mean,
                ends: mean.low.zip(mean.high).filter(|_| !cell.doubtful),
            };
            FrontPoint {
                across: along(&cell.across),
                up: along(&cell.up),
            }
        })
        .collect();
    let on_front = front(&points, (across.better, up.better));
    for (cell, undominated) in cells.iter_mut().zip(on_front) {
        cell.undominated = undominated;
    }
    Some(Front {
        across: across.key.clone(),
        up: up.key.clone(),
        confidence,
        cells,
    })
}
