//! Charts of results. Heat maps are tables with coloured fields, and are none.

use super::{
    attribution::{Attribution, Part, StepAttribution},
    best::{Front, FrontCell},
    findings::Findings,
    metric,
};
use crate::{
    analysis::mark_of,
    chart::{Axis, ChartSpec, Line, Mark, Point, Scale, Series},
    engine::EngineKind,
    text,
};

/// Throughput across, speed for one user up, a point per cell.
pub(super) fn front_chart(findings: &Findings<'_>, front: &Front) -> ChartSpec {
    let series = [(true, "not dominated"), (false, "dominated beyond doubt")]
        .into_iter()
        .zip(0_u8..)
        .map(|((undominated, name), colour)| Series {
            name: name.to_owned(),
            colour,
            mark: mark(findings),
            line: Line::None,
            source: findings.source,
            points: front
                .cells
                .iter()
                .filter(|cell| cell.undominated == undominated)
                .map(front_point)
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let names: Vec<&str> = front
        .cells
        .iter()
        .filter(|cell| cell.undominated)
        .map(|cell| cell.title.as_str())
        .collect();
    let at = front.across.level;
    ChartSpec {
        id: "experiment-front".to_owned(),
        title: format!("Speed for one user against throughput at {at}"),
        summary: format!(
            "No other cell is better in both, beyond doubt, than: {}.",
            names.join("; ")
        ),
        x: axis(
            &format!("Output throughput at {at}"),
            "tok/s",
            Scale::LinearFromZero,
        ),
        y: axis("Single-stream speed", "tok/s", Scale::LinearFromZero),
        series,
        bars: Some(format!(
            "Bars: {} intervals over launches, each by itself.",
            text::percent(front.confidence)
        )),
        notes: Vec::new(),
        as_of: None,
    }
}

fn front_point(cell: &FrontCell) -> Point {
    Point {
        x: cell.across.mean,
        y: cell.up.mean,
        x_bar: cell.across.low.zip(cell.across.high),
        y_bar: cell.up.low.zip(cell.up.high),
        n: Some(cell.launches),
        hollow: cell.doubtful,
        note: Some(cell.title.clone()),
        ..Point::default()
    }
}

/// What each step changes, in percent, three ways.
pub(super) fn attribution_chart(findings: &Findings<'_>, found: &Attribution) -> ChartSpec {
    type Way = fn(&StepAttribution) -> Option<&Part>;
    let ways: [(&str, f64, Way); 3] = [
        ("added in the order of the chain", -0.15, |step| {
            step.added.as_ref()
        }),
        ("alone, on A", 0.0, |step| step.alone.as_ref()),
        ("left out of B", 0.15, |step| step.left_out.as_ref()),
    ];
    let numbered = || (1_u32..).zip(&found.steps);
    let label = metric::label(&found.key);
    let series = ways
        .into_iter()
        .zip(0_u8..)
        .map(|((name, shift, way), colour)| Series {
            name: name.to_owned(),
            colour,
            mark: mark(findings),
            line: Line::None,
            source: findings.source,
            points: numbered()
                .filter_map(|(number, step)| {
                    part_point(f64::from(number) + shift, &step.step, way(step)?)
                })
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    ChartSpec {
        id: format!("attribution-{}", metric::slug(&found.key)),
        title: format!("What each step changes in the {label}"),
        summary: found.sentence.clone(),
        x: axis("Step", "", Scale::Linear),
        y: axis("Change", "%", Scale::Linear),
        series,
        bars: Some(
            "Bars: intervals over blocks, at the level at which each way was tested.".to_owned(),
        ),
        notes: numbered()
            .map(|(number, step)| format!("Step {number}: {}.", step.step))
            .collect(),
        as_of: None,
    }
}

fn part_point(x: f64, label: &str, part: &Part) -> Option<Point> {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let ratio = part.ratio?;
    Some(Point {
        x,
        y: percent(ratio.ratio),
        y_bar: ratio
            .low
            .zip(ratio.high)
            .map(|(low, high)| (percent(low), percent(high))),
        note: Some(format!("{label}: {}", part.verdict.kind.words())),
        ..Point::default()
    })
}

fn mark(findings: &Findings<'_>) -> Mark {
    let engine = findings.cells.first().map(|cell| cell.spec.engine);
    let is_one = findings
        .cells
        .iter()
        .all(|cell| Some(cell.spec.engine) == engine);
    mark_of(engine.filter(|_| is_one).unwrap_or(EngineKind::Other))
}

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale,
    }
}
