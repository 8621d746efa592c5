//! What may be said of the configurations, each against the baseline's.

use super::{
    History,
    groups::{Figure, Group},
};
use crate::{
    comparison::{self, DifferenceKind},
    source::Source,
    statistics::{
        Better, CONFIDENCE, Launch, PooledHistory,
        curve::{CurveLevel, RatioCurve},
    },
    verdict::{Pair, Question, Side, Verdict, judge_family},
    views::run::StageView,
    workload::StageKind,
};

/// Every configuration against the baseline's: the single stream, and the throughput
/// at each concurrency that both have. All of it is one family. The table shows the
/// rest.
pub(super) fn verdicts(groups: &[Group<'_>], history: &History<'_>) -> Vec<Verdict> {
    let Some((baseline, others)) = groups.split_first() else {
        return Vec::new();
    };
    let asked: Vec<Asked<'_>> = others
        .iter()
        .flat_map(|other| {
            metrics(baseline, other)
                .into_iter()
                .map(|kind| Asked::new(kind, baseline, other, history))
                .collect::<Vec<_>>()
        })
        .collect();
    let who = match others {
        [one] => one.name.as_str(),
        _ => "each configuration",
    };
    judge_family(
        &format!(
            "{who} against {}, single stream and throughput at each C",
            baseline.name
        ),
        asked.iter().map(Asked::pair).collect(),
    )
}

/// The load levels that matter of a pair.
fn metrics(baseline: &Group<'_>, other: &Group<'_>) -> Vec<StageKind> {
    let single = [baseline, other]
        .iter()
        .any(|group| group.has(StageKind::SingleStream))
        .then_some(StageKind::SingleStream);
    single.into_iter().chain(common(baseline, other)).collect()
}

/// The closed loops that both have, by rising concurrency.
fn common(one: &Group<'_>, other: &Group<'_>) -> Vec<StageKind> {
    one.kinds()
        .into_iter()
        .filter(|kind| kind.closed_loop().is_some() && other.has(*kind))
        .collect()
}

/// What is asked of a pair, with the figures that it is judged by.
struct Asked<'a> {
    metric: String,
    first: Answer<'a>,
    second: Answer<'a>,
    comparable: Result<(), String>,
    spread: Option<PooledHistory>,
    minutes: Option<f64>,
}

struct Answer<'a> {
    group: &'a Group<'a>,
    figure: Figure,
    launches: Vec<Launch>,
}

impl<'a> Asked<'a> {
    fn new(
        kind: StageKind,
        baseline: &'a Group<'a>,
        other: &'a Group<'a>,
        history: &History<'_>,
    ) -> Self {
        let host = baseline.host().filter(|host| other.host() == Some(*host));
        Self {
            spread: host.and_then(|host| {
                history.spread(host, baseline.summary(), kind, |stage| {
                    speed_of(stage, kind)
                })
            }),
            minutes: host.and_then(|host| history.minutes(host)),
            metric: if kind == StageKind::SingleStream {
                "Single stream".to_owned()
            } else {
                format!("Output throughput at {kind}")
            },
            first: Answer::new(baseline, kind),
            second: Answer::new(other, kind),
            comparable: comparable(baseline, other),
        }
    }

    fn pair(&self) -> Pair<'_> {
        Pair {
            question: Question {
                history: self.spread.as_ref(),
                minutes_per_launch: self.minutes,
                ..Question::of(&self.metric, Better::Higher)
            },
            first: self.first.side(),
            second: self.second.side(),
            comparable: self.comparable.clone(),
        }
    }
}

impl<'a> Answer<'a> {
    fn new(group: &'a Group<'a>, kind: StageKind) -> Self {
        let figure = speed(group, kind);
        Self {
            group,
            launches: figure.launches(),
            figure,
        }
    }

    fn side(&self) -> Side<'_> {
        Side {
            name: &self.group.name,
            launches: &self.launches,
            source: self.figure.source.unwrap_or_else(|| self.group.source()),
            objection: self.figure.objection,
            failed: if self.launches.is_empty() {
                self.group.failure()
            } else {
                None
            },
        }
    }
}

/// The figure that decides at a load level.
fn speed(group: &Group<'_>, kind: StageKind) -> Figure {
    group.figure(kind, |stage| speed_of(stage, kind))
}

fn speed_of(stage: &StageView, kind: StageKind) -> Option<f64> {
    if kind == StageKind::SingleStream {
        stage.e2e_tps.p50
    } else {
        stage.output_tps
    }
}

/// Or why the two cannot be compared.
pub(super) fn comparable(one: &Group<'_>, other: &Group<'_>) -> Result<(), String> {
    let (differences, _) = comparison::differences(&[one.print().clone(), other.print().clone()]);
    let definitions: Vec<&str> = differences
        .iter()
        .filter(|difference| difference.kind == DifferenceKind::Definition)
        .map(|difference| difference.key.as_str())
        .collect();
    if !definitions.is_empty() {
        return Err(comparison::differ(&definitions));
    }
    let simulated = |group: &Group<'_>| group.source() == Source::Simulated;
    if simulated(one) != simulated(other) {
        return Err("one of them is simulated".to_owned());
    }
    Ok(())
}

/// Where the throughput of a configuration crosses the baseline's, at the
/// concurrencies at which both are sound; nothing of what cannot be compared.
pub(super) fn crossovers(groups: &[Group<'_>]) -> Vec<String> {
    let Some((baseline, others)) = groups.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .filter(|other| comparable(baseline, other).is_ok())
        .filter_map(|other| {
            let levels: Vec<(u32, Vec<Launch>, Vec<Launch>)> = common(baseline, other)
                .into_iter()
                .filter_map(|kind| {
                    Some((
                        kind.closed_loop()?,
                        sound(baseline, kind)?,
                        sound(other, kind)?,
                    ))
                })
                .collect();
            let levels: Vec<CurveLevel<'_>> = levels
                .iter()
                .map(|(concurrency, first, second)| CurveLevel {
                    concurrency: *concurrency,
                    first,
                    second,
                })
                .collect();
            RatioCurve::of(&levels, CONFIDENCE).sentence(&baseline.name, &other.name, "throughput")
        })
        .collect()
}

fn sound(group: &Group<'_>, kind: StageKind) -> Option<Vec<Launch>> {
    let figure = speed(group, kind);
    figure.objection.is_none().then(|| figure.launches())
}
