//! A configuration's figure as a chart shows it: over its launches, or over the
//! repeats of the only one.

use super::{super::charts::REPEAT_BARS, groups::Group};
use crate::{
    chart::{Behind, Point},
    statistics::{CONFIDENCE, configuration},
    text,
    views::run::StageView,
    workload::StageKind,
};

/// A figure with its bar.
pub(super) struct Drawn {
    pub(super) mean: f64,
    pub(super) bar: Option<(f64, f64)>,
    /// Launches, or repeats of the only one.
    pub(super) n: u32,
    /// Flagged, disputed, estimated or mismatched.
    pub(super) doubtful: bool,
    pub(super) note: Option<String>,
    pub(super) behind: Vec<Behind>,
    over: Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Launches,
    Repeats,
}

impl Drawn {
    /// A figure of a configuration at a load level.
    pub(super) fn of(
        group: &Group<'_>,
        kind: StageKind,
        of_stage: impl Fn(&StageView) -> Option<f64>,
    ) -> Option<Self> {
        let figure = group.figure(kind, of_stage);
        let estimate = figure.estimate()?;
        let launches = figure.count();
        let (bar, over) = if launches > 1 {
            let interval = configuration(&figure.launches())?.mean(CONFIDENCE);
            (interval.low.zip(interval.high), Over::Launches)
        } else {
            (estimate.bar(), Over::Repeats)
        };
        let count = (launches > 1).then(|| text::plural(launches.into(), "launch", "launches"));
        let words: Vec<String> = count.into_iter().chain(figure.flag.clone()).collect();
        Some(Self {
            mean: estimate.mean,
            bar,
            n: estimate.n,
            doubtful: figure.objection.is_some(),
            note: (!words.is_empty()).then(|| words.join("; ")),
            behind: figure
                .runs
                .iter()
                .map(|run| Behind { run: *run, kind })
                .collect(),
            over,
        })
    }

    /// It as a point of a curve.
    pub(super) fn point(&self, x: f64) -> Point {
        Point {
            x,
            y: self.mean,
            y_bar: self.bar,
            n: Some(self.n),
            hollow: self.doubtful,
            note: self.note.clone(),
            behind: self.behind.clone(),
            ..Point::default()
        }
    }
}

/// What the bars of these mean; none if there is no bar.
pub(super) fn bars<'a>(drawn: impl IntoIterator<Item = &'a Drawn>) -> Option<String> {
    let barred: Vec<Over> = drawn
        .into_iter()
        .filter(|drawn| drawn.bar.is_some())
        .map(|drawn| drawn.over)
        .collect();
    let launches = || {
        format!(
            "Bars: {} intervals over launches, each by itself",
            text::percent(CONFIDENCE)
        )
    };
    match (
        barred.contains(&Over::Launches),
        barred.contains(&Over::Repeats),
    ) {
        (false, false) => None,
        (false, true) => Some(REPEAT_BARS.to_owned()),
        (true, false) => Some(format!("{}.", launches())),
        (true, true) => Some(format!(
            "{}; min–max over repeats where there is one launch.",
            launches()
        )),
    }
}
