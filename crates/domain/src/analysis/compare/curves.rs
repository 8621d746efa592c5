//! Figures of the configurations over concurrency.

use super::{
    super::charts::{Curves, mark_of, per_user_curve, throughput_curve, ttft_curve},
    drawn::{Drawn, bars},
    groups::Group,
};
use crate::{
    chart::{ChartSpec, Line, Series},
    timestamp::Timestamp,
    views::run::StageView,
};

/// Throughput, speed per user and time to first token, a line per configuration.
pub(super) fn charts(groups: &[Group<'_>], as_of: Option<Timestamp>) -> [ChartSpec; 3] {
    let over = |figure: fn(&StageView) -> Option<f64>| curves(groups, as_of, figure);
    [
        throughput_curve(over(|stage| stage.output_tps)),
        per_user_curve(over(|stage| stage.decode_tps.p50)),
        ttft_curve(over(|stage| stage.ttft_ms.p50)),
    ]
}

fn curves(
    groups: &[Group<'_>],
    as_of: Option<Timestamp>,
    figure: fn(&StageView) -> Option<f64>,
) -> Curves {
    let drawn: Vec<Vec<(f64, Drawn)>> = groups
        .iter()
        .map(|group| {
            group
                .kinds()
                .into_iter()
                .filter_map(|kind| {
                    let concurrency = f64::from(kind.closed_loop()?);
                    Some((concurrency, Drawn::of(group, kind, figure)?))
                })
                .collect()
        })
        .collect();
    Curves {
        bars: bars(drawn.iter().flatten().map(|(_, drawn)| drawn)),
        series: groups
            .iter()
            .zip(&drawn)
            .zip(0_u8..)
            .map(|((group, drawn), colour)| series(group, drawn, colour))
            .collect(),
        as_of,
    }
}

fn series(group: &Group<'_>, drawn: &[(f64, Drawn)], colour: u8) -> Series {
    Series {
        name: group.name.clone(),
        colour,
        mark: mark_of(group.engine()),
        line: Line::Solid,
        source: group.source(),
        points: drawn.iter().map(|(c, drawn)| drawn.point(*c)).collect(),
    }
}
