//! The figures in rows: a run a cell, and a configuration a cell.

use super::{
    Column,
    groups::{Figure, Group, objection},
    kinds,
};
use crate::{
    statistics::Estimate,
    views::{
        compare::{CompareCell, CompareRow, GroupCell},
        run::StageView,
    },
    workload::StageKind,
};

struct Metric {
    name: &'static str,
    unit: &'static str,
    more_is_better: bool,
    /// As a level's figures are taken over its stages.
    of_stage: fn(&StageView) -> Option<f64>,
}

const SINGLE: [Metric; 3] = [
    Metric {
        name: "single-stream speed (e2e_tps)",
        unit: "tok/s",
        more_is_better: true,
        of_stage: |stage| stage.e2e_tps.p50,
    },
    Metric {
        name: "decode speed (decode_tps)",
        unit: "tok/s",
        more_is_better: true,
        of_stage: |stage| stage.decode_tps.p50,
    },
    Metric {
        name: "time to first token (ttft)",
        unit: "ms",
        more_is_better: false,
        of_stage: |stage| stage.ttft_ms.p50,
    },
];

const CLOSED: [Metric; 5] = [
    Metric {
        name: "output throughput (output_tps)",
        unit: "tok/s",
        more_is_better: true,
        of_stage: |stage| stage.output_tps,
    },
    Metric {
        name: "steady throughput (steady_output_tps)",
        unit: "tok/s",
        more_is_better: true,
        of_stage: |stage| stage.steady_output_tps,
    },
    Metric {
        name: "speed per user (decode_tps)",
        unit: "tok/s",
        more_is_better: true,
        of_stage: |stage| stage.decode_tps.p50,
    },
    Metric {
        name: "time to first token (ttft)",
        unit: "ms",
        more_is_better: false,
        of_stage: |stage| stage.ttft_ms.p50,
    },
    Metric {
        name: "time per output token (tpot)",
        unit: "ms",
        more_is_better: false,
        of_stage: |stage| stage.tpot_ms.p50,
    },
];

pub(super) fn rows(columns: &[Column<'_>], groups: &[Group<'_>]) -> Vec<CompareRow> {
    kinds(columns)
        .into_iter()
        .flat_map(|kind| {
            let metrics: &[Metric] = if kind == StageKind::SingleStream {
                &SINGLE
            } else {
                &CLOSED
            };
            metrics.iter().filter_map(move |metric| {
                let cells = cells(columns, kind, metric);
                cells.iter().any(Option::is_some).then(|| CompareRow {
                    kind,
                    metric: metric.name.to_owned(),
                    unit: metric.unit.to_owned(),
                    more_is_better: metric.more_is_better,
                    cells,
                    groups: group_cells(groups, kind, metric),
                })
            })
        })
        .collect()
}

fn cells(columns: &[Column<'_>], kind: StageKind, metric: &Metric) -> Vec<Option<CompareCell>> {
    let estimates: Vec<Option<Estimate>> = columns
        .iter()
        .map(|column| Estimate::of(column.repeats(kind, metric.of_stage)))
        .collect();
    let ratio = ratios(&estimates);
    columns
        .iter()
        .zip(&estimates)
        .enumerate()
        .map(|(place, (column, estimate))| {
            let estimate = (*estimate)?;
            Some(CompareCell {
                estimate,
                ratio: ratio(place, &estimate),
                doubtful: objection(column, kind).is_some(),
            })
        })
        .collect()
}

fn group_cells(groups: &[Group<'_>], kind: StageKind, metric: &Metric) -> Vec<Option<GroupCell>> {
    let figures: Vec<_> = groups
        .iter()
        .map(|group| group.figure(kind, metric.of_stage))
        .collect();
    let estimates: Vec<Option<Estimate>> = figures.iter().map(Figure::estimate).collect();
    let ratio = ratios(&estimates);
    figures
        .into_iter()
        .zip(estimates)
        .enumerate()
        .map(|(place, (figure, estimate))| {
            let estimate = estimate?;
            Some(GroupCell {
                estimate,
                launches: figure.count(),
                ratio: ratio(place, &estimate),
                doubtful: figure.objection.is_some(),
                runs: figure.runs,
            })
        })
        .collect()
}

/// The ratio of an estimate to the first one; none for that itself.
fn ratios(estimates: &[Option<Estimate>]) -> impl Fn(usize, &Estimate) -> Option<f64> + use<> {
    let baseline = estimates.first().copied().flatten();
    move |place, estimate| {
        baseline
            .filter(|base| place > 0 && base.mean > 0.0)
            .map(|base| estimate.mean / base.mean)
    }
}
