//! Both questions at once: the speed for one user against the throughput.

use std::collections::BTreeSet;

use super::{
    super::charts::{axis, mark_of, notes},
    drawn::{Drawn, bars},
    groups::{Figure, Group},
};
use crate::{
    chart::{ChartSpec, Line, Mark, Point, Series},
    source::Source,
    statistics::{
        Better, CONFIDENCE, configuration,
        pareto::{Along, FrontPoint, front},
    },
    text,
    timestamp::Timestamp,
    views::run::StageView,
    workload::StageKind,
};

/// Throughput across, single-stream speed up: a mark per configuration, at the
/// highest concurrency that all of them have, and a line through those that are not
/// dominated beyond doubt. Of a single configuration its runs are `judged`, among which
/// there is no front.
pub(super) fn chart(
    judged: &[Group<'_>],
    groups: &[Group<'_>],
    as_of: Option<Timestamp>,
) -> ChartSpec {
    let common = common(judged);
    let drawn: Vec<(&Group<'_>, Drawn, Drawn)> = judged
        .iter()
        .filter_map(|group| {
            let up = Drawn::of(group, StageKind::SingleStream, single_stream)?;
            let across = Drawn::of(group, common?, throughput)?;
            Some((group, across, up))
        })
        .collect();
    let bars = bars(drawn.iter().flat_map(|(_, across, up)| [across, up]));
    let front = common.and_then(|kind| Front::of(groups, kind));
    let mut series: Vec<Series> = drawn
        .into_iter()
        .zip(0_u8..)
        .map(|((group, across, up), colour)| Series {
            name: group.name.clone(),
            colour,
            mark: mark_of(group.engine()),
            line: Line::None,
            source: group.source(),
            points: vec![point(across, up)],
        })
        .collect();
    let label = common.map_or_else(String::new, |kind| format!(" at {kind}"));
    let said = front.as_ref().map(Front::sentence);
    let mut notes = notes(&series);
    notes.extend(said.clone());
    let summary = series
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
        .chain(said)
        .collect::<Vec<_>>()
        .join(" ");
    series.extend(front.and_then(|front| front.line(&series)));
    ChartSpec {
        id: "decision".to_owned(),
        title: format!("Speed for one user against throughput{label}"),
        summary,
        x: axis(&format!("Output throughput{label}"), "tok/s"),
        y: axis("Single-stream speed", "tok/s"),
        bars,
        notes,
        series,
        as_of,
    }
}

fn single_stream(stage: &StageView) -> Option<f64> {
    stage.e2e_tps.p50
}

fn throughput(stage: &StageView) -> Option<f64> {
    stage.output_tps
}

/// The highest concurrency that all of them have.
fn common(groups: &[Group<'_>]) -> Option<StageKind> {
    let levels: Vec<BTreeSet<StageKind>> = groups.iter().map(Group::kinds).collect();
    levels
        .first()?
        .iter()
        .copied()
        .filter(|kind| kind.closed_loop().is_some())
        .filter(|kind| levels.iter().all(|kinds| kinds.contains(kind)))
        .max()
}

fn point(across: Drawn, up: Drawn) -> Point {
    let mut behind = up.behind;
    behind.extend(across.behind);
    Point {
        x: across.mean,
        y: up.mean,
        x_bar: across.bar,
        y_bar: up.bar,
        n: Some(up.n.min(across.n)),
        hollow: up.doubtful || across.doubtful,
        note: up.note.or(across.note),
        behind,
    }
}

/// Who is not dominated beyond doubt, by intervals over launches.
struct Front<'a> {
    names: Vec<&'a str>,
    /// Of each, whether it is on the front.
    stays: Vec<bool>,
    /// Has anybody intervals in both?
    decided: bool,
}

impl<'a> Front<'a> {
    /// Flagged figures neither belong to the front nor drive anybody out of it. None
    /// where fewer than two configurations have sound figures, or where they answer
    /// different questions.
    fn of(groups: &'a [Group<'_>], kind: StageKind) -> Option<Self> {
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
                let point = FrontPoint {
                    across: along(&group.figure(kind, throughput))?,
                    up: along(&group.figure(StageKind::SingleStream, single_stream))?,
                };
                Some((group.name.as_str(), point))
            })
            .unzip();
        (points.len() > 1).then(|| Self {
            names,
            stays: front(&points, (Better::Higher, Better::Higher)),
            decided: points
                .iter()
                .any(|point| point.across.ends.is_some() && point.up.ends.is_some()),
        })
    }

    fn named(&self, stays: bool) -> Vec<&'a str> {
        self.names
            .iter()
            .zip(&self.stays)
            .filter(|(_, on_front)| **on_front == stays)
            .map(|(name, _)| *name)
            .collect()
    }

    fn sentence(&self) -> String {
        let level = text::percent(CONFIDENCE);
        if !self.decided {
            return format!(
                "Front: all of them. Nobody has {level} intervals over launches of both figures, so nobody is dominated beyond doubt."
            );
        }
        let (staying, leaving) = (self.named(true), self.named(false));
        let dominated = if leaving.is_empty() {
            "nobody".to_owned()
        } else {
            leaving.join("; ")
        };
        format!(
            "Front: {}. Dominated beyond doubt, by {level} intervals over launches: {dominated}.",
            staying.join("; ")
        )
    }

    /// A line through those on the front, by rising throughput; none where nobody is
    /// known to be off it, since it would tell nothing.
    fn line(&self, series: &[Series]) -> Option<Series> {
        let (staying, leaving) = (self.named(true), self.named(false));
        if leaving.is_empty() || staying.len() < 2 {
            return None;
        }
        let mut points: Vec<Point> = series
            .iter()
            .filter(|series| staying.contains(&series.name.as_str()))
            .flat_map(|series| &series.points)
            .map(|point| Point {
                x: point.x,
                y: point.y,
                ..Point::default()
            })
            .collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Some(Series {
            name: "Front: not dominated beyond doubt".to_owned(),
            colour: u8::try_from(series.len()).unwrap_or(u8::MAX),
            mark: Mark::None,
            line: Line::Dashed,
            source: series
                .iter()
                .map(|series| series.source)
                .max()
                .unwrap_or(Source::Measured),
            points,
        })
    }
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
