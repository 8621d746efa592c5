//! Accept length over concurrency: what was seen, and what is needed.

use super::{
    super::{
        super::charts::{Curves, axis, curve, mark_of},
        drawn::{Drawn, bars},
        groups::Group,
    },
    accept_length,
};
use crate::{
    chart::{Axis, ChartSpec, Line, Point, Scale, Series},
    statistics::CONFIDENCE,
    text,
    timestamp::Timestamp,
    views::compare::{SpeculationLevel, SpeculationView},
};

/// A solid line per speculative configuration, and a dashed one per configuration
/// without that it is compared with. None where there is nothing to break even with.
pub(in super::super) fn chart(
    groups: &[Group<'_>],
    views: &[SpeculationView],
    as_of: Option<Timestamp>,
) -> Option<ChartSpec> {
    let mut seen_of: Vec<&str> = Vec::new();
    let mut series = Vec::new();
    let mut drawn = Vec::new();
    for view in views {
        let group = groups.iter().find(|group| group.name == view.name);
        let (Some(group), Some((base, _))) = (group, &view.base) else {
            continue;
        };
        if !seen_of.contains(&view.name.as_str()) {
            seen_of.push(&view.name);
            let seen: Vec<(f64, Drawn)> = view
                .levels
                .iter()
                .filter_map(|level| {
                    let concurrency = f64::from(level.kind.closed_loop()?);
                    Some((concurrency, Drawn::of(group, level.kind, accept_length)?))
                })
                .collect();
            let points = seen.iter().map(|(x, drawn)| drawn.point(*x)).collect();
            drawn.extend(seen.into_iter().map(|(_, drawn)| drawn));
            let name = format!("{}: seen", view.name);
            series.push(line(group, name, Line::Solid, points));
        }
        let needed = view.levels.iter().filter_map(needed).collect();
        let name = format!("{}: needed against {base}", view.name);
        series.push(line(group, name, Line::Dashed, needed));
    }
    for (series, colour) in series.iter_mut().zip(0_u8..) {
        series.colour = colour;
    }
    let each = text::percent(CONFIDENCE);
    let chart = curve(
        "break-even",
        "Accept length: seen, and needed to break even",
        views
            .iter()
            .flat_map(|view| &view.levels)
            .filter_map(|level| Some(level.break_even.as_ref()?.sentence.clone()))
            .collect::<Vec<_>>()
            .join(" "),
        Axis {
            scale: Scale::Linear,
            ..axis("Accept length", "tokens per step")
        },
        Curves {
            bars: bars(&drawn).map(|bars| {
                format!("{bars} Of what is needed: {each} intervals of the ratio of step times.")
            }),
            series,
            as_of,
        },
    );
    (!chart.is_empty()).then_some(chart)
}

fn line(group: &Group<'_>, name: String, line: Line, points: Vec<Point>) -> Series {
    Series {
        name,
        colour: 0,
        mark: mark_of(group.engine()),
        line,
        source: group.source(),
        points,
    }
}

fn needed(level: &SpeculationLevel) -> Option<Point> {
    let concurrency = level.kind.closed_loop()?;
    let needed = &level.break_even.as_ref()?.accept_length;
    Some(Point {
        x: f64::from(concurrency),
        y: needed.ratio,
        y_bar: needed.low.zip(needed.high),
        ..Point::default()
    })
}
