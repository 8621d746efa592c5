//! Both questions at once: the speed for one user against the throughput.

use super::{
    super::charts::{REPEAT_BARS, axis, mark_of, notes},
    Column,
    groups::{Figure, Group},
    kinds,
};
use crate::{
    chart::{ChartSpec, Line, Point, Series},
    statistics::{
        Better, CONFIDENCE, configuration,
        pareto::{Along, FrontPoint, front},
    },
    text,
    workload::StageKind,
};

/// Throughput across, single-stream speed up: a mark per run, at the highest
/// concurrency that all of them have. Which configurations are not dominated is said
/// in its summary and below it.
pub(super) fn chart(columns: &[Column<'_>], groups: &[Group<'_>]) -> ChartSpec {
    let common = kinds(columns)
        .into_iter()
        .filter(|kind| kind.closed_loop().is_some())
        .filter(|kind| columns.iter().all(|column| column.level(*kind).is_some()))
        .max();
    let series: Vec<Series> = columns
        .iter()
        .zip(0_u8..)
        .map(|(column, colour)| Series {
            name: column.name.clone(),
            colour,
            mark: mark_of(column.run.summary.engine),
            line: Line::None,
            source: column.run.summary.source,
            points: common
                .and_then(|kind| point(column, kind))
                .into_iter()
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let label = common.map_or_else(String::new, |kind| format!(" at {kind}"));
    let barred = series
        .iter()
        .flat_map(|series| &series.points)
        .any(|point| point.x_bar.is_some() || point.y_bar.is_some());
    let front = common.and_then(|kind| front_sentence(groups, kind));
    let mut notes = notes(&series);
    notes.extend(front.clone());
    ChartSpec {
        id: "decision".to_owned(),
        title: format!("Speed for one user against throughput{label}"),
        summary: series
            .iter()
            .flat_map(|series| series.points.iter().map(move |point| (series, point)))
            .map(|(series, point)| {
                format!(
                    "{}: {} tok/s for one user, {} tok/s{label}.",
                    series.name,
                    text::figure(point.y),
                    text::figure(point.x)
                )
            })
            .chain(front)
            .collect::<Vec<_>>()
            .join(" "),
        x: axis(&format!("Output throughput{label}"), "tok/s"),
        y: axis("Single-stream speed", "tok/s"),
        bars: barred.then(|| REPEAT_BARS.to_owned()),
        notes,
        series,
        as_of: columns
            .iter()
            .filter_map(|column| column.run.summary.finished_at)
            .max(),
    }
}

fn point(column: &Column<'_>, kind: StageKind) -> Option<Point> {
    let (single, many) = (column.level(StageKind::SingleStream)?, column.level(kind)?);
    let (speed, throughput) = (single.single_stream?, many.output_tps?);
    Some(Point {
        x: throughput.mean,
        y: speed.mean,
        x_bar: throughput.bar(),
        y_bar: speed.bar(),
        n: Some(speed.n.min(throughput.n)),
        hollow: single.is_doubtful() || many.is_doubtful(),
        note: None,
    })
}

/// Who is not dominated beyond doubt, by intervals over launches. Flagged figures
/// neither belong to the front nor drive anybody out of it. None where fewer than two
/// configurations have sound figures, or where they answer different questions.
fn front_sentence(groups: &[Group<'_>], kind: StageKind) -> Option<String> {
    let alike = |pair: &[Group<'_>]| match pair {
        [one, other] => one.print().definition == other.print().definition,
        _ => true,
    };
    if !groups.windows(2).all(alike) {
        return None;
    }
    let (names, points): (Vec<&str>, Vec<FrontPoint>) = groups
        .iter()
        .filter_map(|group| {
            let single = group.figure(StageKind::SingleStream, |stage| stage.e2e_tps.p50);
            let many = group.figure(kind, |stage| stage.output_tps);
            let point = FrontPoint {
                across: along(&many)?,
                up: along(&single)?,
            };
            Some((group.name.as_str(), point))
        })
        .unzip();
    if points.len() < 2 {
        return None;
    }
    let level = text::percent(CONFIDENCE);
    if points
        .iter()
        .all(|point| point.across.ends.is_none() || point.up.ends.is_none())
    {
        return Some(format!(
            "Front: all of them. Nobody has {level} intervals over launches of both figures, so nobody is dominated beyond doubt."
        ));
    }
    let on_front = front(&points, (Better::Higher, Better::Higher));
    let named = |wanted: bool| -> Vec<&str> {
        names
            .iter()
            .zip(&on_front)
            .filter(|(_, on_front)| **on_front == wanted)
            .map(|(name, _)| *name)
            .collect()
    };
    let (staying, leaving) = (named(true), named(false));
    let dominated = if leaving.is_empty() {
        "nobody".to_owned()
    } else {
        leaving.join("; ")
    };
    Some(format!(
        "Front: {}. Dominated beyond doubt, by {level} intervals over launches: {dominated}.",
        staying.join("; ")
    ))
}

fn along(figure: &Figure) -> Option<Along> {
    if figure.objection.is_some() {
        return None;
    }
    let interval = configuration(&figure.launches())?.mean(CONFIDENCE);
    Some(Along {
        figure: interval.mean,
        ends: interval.low.zip(interval.high),
    })
}
