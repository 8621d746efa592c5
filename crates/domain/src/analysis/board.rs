//! The Board: the answer first.

use std::collections::BTreeMap;

use super::{
    History, RunFacts,
    charts::{axis, mark_of, notes},
    launches::{by_launch, launch_values, repeats},
    levels,
};
use crate::{
    chart::{ChartSpec, Line, Point, Series},
    effective::Stamp,
    ids::{ContentHash, HostId, LaunchId},
    source::Source,
    statistics::{Better, Estimate, Launch},
    text,
    verdict::{Pair, Question, Side, Verdict, VerdictKind, judge_family},
    views::{
        board::{Answer, BoardChoices, BoardFilter, BoardRow, BoardView, ThroughputMetric},
        run::{LevelView, RunSummary, StageView},
    },
    workload::StageKind,
};

/// Concurrency shown where nobody chose one and it was measured.
const USUAL_CONCURRENCY: u32 = 128;

/// The Board over the stored runs that have figures. `minutes` is what a launch with
/// its measurement takes on each host; `founding_missing` is passed on.
#[must_use]
pub fn board(
    filter: &BoardFilter,
    runs: &[RunFacts],
    minutes: BTreeMap<HostId, f64>,
    founding_missing: bool,
) -> BoardView<ChartSpec> {
    let history = History::of(runs, minutes);
    let mut newest_first: Vec<&RunFacts> = runs.iter().collect();
    newest_first.sort_by_key(|run| std::cmp::Reverse((run.summary.created_at, run.summary.id)));
    let is_simulated = |run: &RunFacts| run.summary.source == Source::Simulated;
    let has_simulated = newest_first.iter().any(|run| is_simulated(run));
    let has_real = newest_first.iter().any(|run| !is_simulated(run));
    let simulated = has_simulated && (filter.simulated || !has_real);

    let mut shown: Vec<&RunFacts> = newest_first
        .iter()
        .copied()
        .filter(|run| is_simulated(run) == simulated)
        .collect();
    let models = distinct(shown.iter().map(|run| run.summary.model.clone()));
    let model = choose(filter.model.as_ref(), &models);
    shown.retain(|run| Some(&run.summary.model) == model.as_ref());
    let hardware_choices = distinct(shown.iter().map(|run| run.summary.hardware.clone()));
    let hardware = choose(filter.hardware.as_ref(), &hardware_choices);
    shown.retain(|run| Some(&run.summary.hardware) == hardware.as_ref());
    let workloads: Vec<(ContentHash, String, String)> = distinct(shown.iter().map(|run| {
        let run = &run.summary;
        (
            run.workload_hash.clone(),
            run.workload_name.clone(),
            run.workload_text.clone(),
        )
    }));
    let hashes: Vec<ContentHash> = distinct(workloads.iter().map(|(hash, _, _)| hash.clone()));
    let workload = choose(filter.workload.as_ref(), &hashes);
    shown.retain(|run| Some(&run.summary.workload_hash) == workload.as_ref());

    let concurrencies = concurrencies(&shown);
    let concurrency = filter
        .concurrency
        .filter(|wanted| concurrencies.contains(wanted))
        .or_else(|| {
            concurrencies
                .contains(&USUAL_CONCURRENCY)
                .then_some(USUAL_CONCURRENCY)
        })
        .or_else(|| concurrencies.last().copied());
    let rows = rows(&shown, concurrency, filter.metric);
    let as_of = shown.iter().filter_map(|run| run.summary.finished_at).max();
    let like = shown.first().map(|run| &run.summary);
    let at = concurrency.map_or_else(|| "under load".to_owned(), |c| format!("at C = {c}"));
    let mut chart = chart(&rows, &at, filter.metric);
    chart.as_of = as_of;
    BoardView {
        empty: runs.is_empty(),
        founding_missing,
        choices: BoardChoices {
            models,
            hardware: hardware_choices,
            workloads: {
                let mut seen = Vec::new();
                workloads
                    .into_iter()
                    .filter(|(hash, _, _)| {
                        let new = !seen.contains(hash);
                        seen.push(hash.clone());
                        new
                    })
                    .collect()
            },
            concurrencies,
            has_simulated,
            has_real,
        },
        filter: BoardFilter {
            model,
            hardware,
            workload,
            metric: filter.metric,
            concurrency,
            simulated,
        },
        best_single: Asked {
            question: "Best for one user",
            metric: "single-stream speed",
            kind: Some(StageKind::SingleStream),
            figure: single_stream,
            like,
            history: &history,
        }
        .answer(&rows, |ranked| &ranked.single),
        best_throughput: Asked {
            question: &format!("Best {at}"),
            metric: &format!("{} {at}", filter.metric.word()),
            kind: concurrency.map(|concurrency| StageKind::ClosedLoop { concurrency }),
            figure: throughput(filter.metric),
            like,
            history: &history,
        }
        .answer(&rows, |ranked| &ranked.many),
        chart: (!chart.is_empty()).then_some(chart),
        rows: rows.into_iter().map(|ranked| ranked.row).collect(),
        as_of,
    }
}

/// The values in their order, each once.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

/// What all of them are, if it is one and the same.
fn only<T: PartialEq>(mut values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = values.next()??;
    values
        .all(|value| value.as_ref() == Some(&first))
        .then_some(first)
}

/// What was asked for, if there is such a thing; else the first.
fn choose<T: Clone + PartialEq>(wanted: Option<&T>, choices: &[T]) -> Option<T> {
    wanted
        .filter(|wanted| choices.contains(wanted))
        .or_else(|| choices.first())
        .cloned()
}

fn concurrencies(runs: &[&RunFacts]) -> Vec<u32> {
    let mut all: Vec<u32> = runs
        .iter()
        .flat_map(|run| &run.stages)
        .filter_map(|stage| stage.kind.closed_loop())
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A configuration with the values behind its figures.
struct Ranked {
    row: BoardRow,
    single: Cell,
    many: Cell,
}

fn rows(runs: &[&RunFacts], concurrency: Option<u32>, metric: ThroughputMetric) -> Vec<Ranked> {
    let mut by_name: BTreeMap<&str, Vec<&RunFacts>> = BTreeMap::new();
    for run in runs {
        by_name
            .entry(&run.summary.configuration)
            .or_default()
            .push(run);
    }
    let mut rows: Vec<Ranked> = by_name
        .values()
        .filter_map(|runs| row(runs, concurrency, metric))
        .collect();
    rows.sort_by(|one, other| {
        let speed = |ranked: &Ranked| {
            ranked
                .row
                .single_stream
                .map_or(f64::NEG_INFINITY, |e| e.mean)
        };
        speed(other)
            .total_cmp(&speed(one))
            .then_with(|| one.row.configuration.cmp(&other.row.configuration))
    });
    rows
}

fn single_stream(stage: &StageView) -> Option<f64> {
    stage.e2e_tps.p50
}

fn throughput(metric: ThroughputMetric) -> fn(&StageView) -> Option<f64> {
    match metric {
        ThroughputMetric::OutputTps => |stage| stage.output_tps,
        ThroughputMetric::SteadyOutputTps => |stage| stage.steady_output_tps,
    }
}

fn row(runs: &[&RunFacts], concurrency: Option<u32>, metric: ThroughputMetric) -> Option<Ranked> {
    let newest = runs.first()?;
    let single = Cell::over(runs, StageKind::SingleStream, single_stream);
    let many = concurrency.map_or_else(Cell::default, |concurrency| {
        Cell::over(
            runs,
            StageKind::ClosedLoop { concurrency },
            throughput(metric),
        )
    });
    let mut remarks: Vec<String> =
        distinct(runs.iter().flat_map(|run| run.remarks.iter().cloned()));
    for flag in single.flags.iter().chain(&many.flags) {
        if !remarks.contains(flag) {
            remarks.push(flag.clone());
        }
    }
    let source = newest.summary.source;
    let row = BoardRow {
        configuration: newest.summary.configuration.clone(),
        engine: newest.summary.engine,
        source,
        single_stream: single.estimate,
        throughput: many.estimate,
        throughput_source: many.source.filter(|theirs| *theirs != source),
        single_doubtful: single.doubtful,
        throughput_doubtful: many.doubtful,
        acceptance: runs
            .iter()
            .find_map(|run| run.acceptance.as_ref())
            .map(|acceptance| (acceptance.text.clone(), acceptance.definition.clone())),
        launches: single.launches().max(many.launches()).max(1),
        stamp: worst_stamp(runs),
        runs: runs.iter().map(|run| run.summary.id).collect(),
        remarks,
    };
    Some(Ranked { row, single, many })
}

/// A figure of a configuration over its runs. One launch speaks with the spread of
/// its repeats, several with the spread of their means: repeats of one launch say
/// nothing about the next. Doubtful runs are left out where there is a sound one.
#[derive(Default)]
struct Cell {
    estimate: Option<Estimate>,
    by_launch: Vec<Launch>,
    /// Where all of its launches were, if they were on one host.
    host: Option<HostId>,
    source: Option<Source>,
    doubtful: bool,
    flags: Vec<String>,
}

impl Cell {
    fn side<'a>(&'a self, name: &'a str) -> Side<'a> {
        Side {
            name,
            launches: &self.by_launch,
            source: self.source.unwrap_or(Source::Measured),
            objection: None,
            failed: None,
        }
    }

    fn launches(&self) -> u32 {
        u32::try_from(self.by_launch.len()).unwrap_or(u32::MAX)
    }

    fn over(
        runs: &[&RunFacts],
        kind: StageKind,
        figure: impl Fn(&StageView) -> Option<f64>,
    ) -> Self {
        let all: Vec<Measured> = runs
            .iter()
            .filter_map(|run| Measured::of(run, kind, &figure))
            .collect();
        let sound: Vec<&Measured> = all.iter().filter(|one| !one.is_doubtful()).collect();
        let doubtful = sound.is_empty() && !all.is_empty();
        let used = if doubtful {
            all.iter().collect()
        } else {
            sound
        };
        let by_launch = by_launch(used.iter().map(|one| (one.launch, one.repeats.as_slice())));
        Self {
            estimate: Estimate::of(launch_values(&by_launch)),
            by_launch: by_launch
                .iter()
                .filter_map(|repeats| Launch::new(repeats))
                .collect(),
            host: only(used.iter().map(|one| one.host)),
            source: used.iter().map(|one| one.level.source).max(),
            doubtful,
            flags: distinct(
                used.iter()
                    .flat_map(|one| one.level.flags.iter().cloned().chain(one.mismatch.clone())),
            ),
        }
    }
}

/// A level of one run, as far as the Board needs it.
pub(super) struct Measured {
    level: LevelView,
    /// None for an address of unknown history: all of these count as one launch.
    launch: Option<LaunchId>,
    host: Option<HostId>,
    pub(super) repeats: Vec<f64>,
    /// What ran was not what the configuration's name promises.
    mismatch: Option<String>,
}

impl Measured {
    pub(super) fn of(
        run: &RunFacts,
        kind: StageKind,
        figure: impl Fn(&StageView) -> Option<f64>,
    ) -> Option<Self> {
        let level = levels(&run.stages)
            .into_iter()
            .find(|level| level.kind == kind)?;
        let repeats = repeats(&run.stages, kind, figure);
        let launch = run.summary.launch.as_ref();
        (!repeats.is_empty()).then_some(Self {
            level,
            launch: launch.map(|launch| launch.launch),
            host: launch.map(|launch| launch.host.0),
            repeats,
            mismatch: run.summary.mismatch(),
        })
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.level.is_doubtful() || self.mismatch.is_some()
    }
}

/// The stamp that troubles most: what is asked of a row is whether all of it can be
/// believed.
fn worst_stamp(runs: &[&RunFacts]) -> Option<Stamp> {
    let rank = |stamp: &Stamp| match stamp {
        Stamp::Verified => 0,
        Stamp::Unverifiable { .. } => 1,
        Stamp::Mismatched { .. } => 2,
    };
    runs.iter()
        .filter_map(|run| run.summary.launch.as_ref()?.stamp.as_ref())
        .max_by_key(|stamp| rank(stamp))
        .cloned()
}

/// A question that the Board answers.
struct Asked<'a> {
    question: &'a str,
    metric: &'a str,
    /// The load level whose figure decides, if there is one.
    kind: Option<StageKind>,
    figure: fn(&StageView) -> Option<f64>,
    /// One of the runs that are shown, which share their workload.
    like: Option<&'a RunSummary>,
    history: &'a History<'a>,
}

/// A configuration with a sound figure: name, cell, estimate.
type Contender<'a> = (&'a str, &'a Cell, Estimate);

impl Asked<'_> {
    fn answer(&self, rows: &[Ranked], cell: impl Fn(&Ranked) -> &Cell) -> Answer {
        let mut ranked: Vec<Contender<'_>> = rows
            .iter()
            .filter(|ranked| !cell(ranked).doubtful)
            .filter_map(|ranked| {
                let cell = cell(ranked);
                Some((ranked.row.configuration.as_str(), cell, cell.estimate?))
            })
            .collect();
        ranked.sort_by(|(_, _, one), (_, _, other)| other.mean.total_cmp(&one.mean));
        let left_out: Vec<&str> = rows
            .iter()
            .filter(|ranked| cell(ranked).doubtful)
            .map(|ranked| ranked.row.configuration.as_str())
            .collect();
        let mut established = false;
        let mut because = match ranked.as_slice() {
            [] => "No configuration has a sound figure here yet.".to_owned(),
            [_] => {
                "Only one configuration has a figure here, so there is nothing to be better than."
                    .to_owned()
            }
            [best, rivals @ ..] => {
                let (sentence, beyond_doubt) = self.against(best, rivals);
                established = beyond_doubt;
                sentence
            }
        };
        if !left_out.is_empty() {
            because.push_str(&format!(
                " Left out as flagged, disputed, estimated or mismatched: {}.",
                left_out.join("; ")
            ));
        }
        let leader = ranked.first();
        Answer {
            question: self.question.to_owned(),
            leader: leader.map(|(name, _, _)| (*name).to_owned()),
            figure: leader.map(|(_, _, estimate)| *estimate),
            source: leader.and_then(|(_, cell, _)| cell.source),
            established,
            because,
        }
    }

    /// The best against all others, in a sentence, and whether it is beyond doubt: who
    /// leads was not known beforehand, so the leader has to be better than each of
    /// them, the pairs judged as one family. The sentence is about the nearest rival
    /// over whom the lead is in doubt, else about the runner-up.
    fn against(
        &self,
        (best, best_cell, best_estimate): &Contender<'_>,
        rivals: &[Contender<'_>],
    ) -> (String, bool) {
        let host = best_cell.host;
        let spread = host.and_then(|host| {
            self.history
                .spread(host, self.like?, self.kind?, self.figure)
        });
        let pairs: Vec<Pair<'_>> = rivals
            .iter()
            .map(|(rival, cell, _)| {
                let shared = host.filter(|host| cell.host == Some(*host));
                Pair {
                    question: Question {
                        history: shared.and(spread.as_ref()),
                        minutes_per_launch: shared.and_then(|host| self.history.minutes(host)),
                        ..Question::of(self.metric, Better::Higher)
                    },
                    first: cell.side(rival),
                    second: best_cell.side(best),
                    comparable: Ok(()),
                }
            })
            .collect();
        let family = format!("{}: the leader against each", self.question);
        let verdicts = judge_family(&family, pairs);
        let is_better = |verdict: &Verdict| verdict.kind == VerdictKind::Better;
        let doubted = verdicts.iter().position(|verdict| !is_better(verdict));
        let place = doubted.unwrap_or(0);
        let (Some((rival, cell, estimate)), Some(verdict)) =
            (rivals.get(place), verdicts.get(place))
        else {
            return (String::new(), false);
        };
        let ahead = format!(
            "{} ahead of {rival} ({} tok/s).",
            text::change(best_estimate.mean / estimate.mean),
            text::figure(estimate.mean)
        );
        let unknown = verdict.basis.is_none() && best_cell.launches() < 2 && cell.launches() < 2;
        let why = if unknown {
            "Each rests on one launch, so launch-to-launch variation is unknown: not established."
        } else {
            verdict.sentence.as_str()
        };
        (format!("{ahead} {why}"), doubted.is_none())
    }
}

fn chart(rows: &[Ranked], at: &str, metric: ThroughputMetric) -> ChartSpec {
    let series: Vec<Series> = rows
        .iter()
        .map(|ranked| &ranked.row)
        .filter_map(|row| Some((row, row.single_stream?, row.throughput?)))
        .zip(0_u8..)
        .map(|((row, single, throughput), colour)| Series {
            name: row.configuration.clone(),
            colour,
            mark: mark_of(row.engine),
            line: Line::None,
            source: row.source,
            points: vec![Point {
                x: throughput.mean,
                y: single.mean,
                x_bar: throughput.bar(),
                y_bar: single.bar(),
                n: Some(single.n.min(throughput.n)),
                hollow: row.single_doubtful || row.throughput_doubtful,
                note: row
                    .throughput_source
                    .map(|source| format!("throughput {source}, speed {}", row.source)),
                ..Point::default()
            }],
        })
        .collect();
    let barred = series
        .iter()
        .flat_map(|series| &series.points)
        .any(|point| point.x_bar.is_some() || point.y_bar.is_some());
    let name = match metric {
        ThroughputMetric::OutputTps => "Output throughput",
        ThroughputMetric::SteadyOutputTps => "Steady output throughput",
    };
    let mut notes = notes(&series);
    let absent = rows.len() - series.len();
    if absent > 0 {
        notes.push(format!(
            "{} only in the table: a figure is missing.",
            if absent == 1 {
                "1 configuration stands".to_owned()
            } else {
                format!("{absent} configurations stand")
            }
        ));
    }
    ChartSpec {
        id: "board".to_owned(),
        title: format!("Speed for one user against throughput {at}"),
        summary: series
            .iter()
            .flat_map(|series| series.points.iter().map(move |point| (series, point)))
            .map(|(series, point)| {
                format!(
                    "{}: {} tok/s for one user, {} tok/s {at}.",
                    series.name,
                    text::figure(point.y),
                    text::figure(point.x)
                )
            })
            .collect::<Vec<_>>()
            .join(" "),
        x: axis(&format!("{name} {at}"), "tok/s"),
        y: axis("Single-stream speed", "tok/s"),
        bars: barred.then(|| {
            "Bars: min–max over repeats, or over launches (or runs of one) where there are several.".to_owned()
        }),
        notes,
        series,
        as_of: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::samples::{self, closed, recorded, run, single};

    fn founding() -> Vec<RunFacts> {
        let speed = |value: f64| {
            let mut stage = single(0, value);
            stage.source = Source::Recorded;
            stage.completed = 0;
            stage
        };
        vec![
            run(
                1,
                "vLLM baseline",
                vec![speed(82.5), recorded(128, 1536.0, Source::Recorded, false)],
            ),
            run(
                2,
                "SGLang untuned",
                vec![speed(63.6), recorded(128, 2370.0, Source::Recorded, false)],
            ),
            run(
                3,
                "SGLang tuned",
                vec![speed(90.0), recorded(128, 2520.0, Source::Estimated, true)],
            ),
        ]
    }

    #[test]
    fn the_founding_answers() {
        let board = board(&BoardFilter::default(), &founding(), BTreeMap::new(), false);
        assert_eq!(board.best_single.leader.as_deref(), Some("SGLang tuned"));
        assert!(
            board
                .best_single
                .because
                .starts_with("+9.1 % ahead of vLLM baseline (82.5 tok/s)")
        );
        assert!(!board.best_single.established);
        // An estimate is never best, however high.
        assert_eq!(board.best_throughput.question, "Best at C = 128");
        assert_eq!(
            board.best_throughput.leader.as_deref(),
            Some("SGLang untuned")
        );
        assert!(
            board
                .best_throughput
                .because
                .ends_with("Left out as flagged, disputed, estimated or mismatched: SGLang tuned.")
        );
        let chart = board.chart.expect("a chart");
        let hollow: Vec<&str> = chart
            .series
            .iter()
            .filter(|series| series.points[0].hollow)
            .map(|series| series.name.as_str())
            .collect();
        assert_eq!(hollow, ["SGLang tuned"]);
        assert_eq!(board.rows[0].throughput_source, Some(Source::Estimated));
    }

    #[test]
    fn simulated_figures_stand_apart() {
        let mut runs = founding();
        let mut simulated = run(
            9,
            "stand-in",
            vec![single(0, 500.0), closed(128, 0, 9999.0)],
        );
        simulated.summary.source = Source::Simulated;
        runs.push(simulated);
        let real = board(&BoardFilter::default(), &runs, BTreeMap::new(), false);
        assert_eq!(real.rows.len(), 3);
        assert!(real.choices.has_simulated);
        let only = board(
            &BoardFilter {
                simulated: true,
                ..Default::default()
            },
            &runs,
            BTreeMap::new(),
            false,
        );
        assert_eq!(only.rows.len(), 1);
        let nothing_else = board(&BoardFilter::default(), &runs[3..], BTreeMap::new(), false);
        assert!(nothing_else.filter.simulated && !nothing_else.rows.is_empty());
    }

    #[test]
    fn several_runs_of_a_configuration_are_one_row() {
        let runs = [
            run(1, "a", vec![single(0, 90.0), closed(8, 0, 100.0)]),
            run(2, "a", vec![single(0, 92.0), closed(8, 0, 120.0)]),
        ];
        let board = board(&BoardFilter::default(), &runs, BTreeMap::new(), false);
        assert_eq!(board.filter.concurrency, Some(8));
        assert_eq!(board.rows.len(), 1);
        let estimate = board.rows[0].single_stream.expect("a figure");
        assert_eq!(
            (estimate.mean, estimate.bar(), estimate.n),
            (91.0, Some((90.0, 92.0)), 2)
        );
        assert_eq!(
            board.rows[0].runs.iter().map(|id| id.0).collect::<Vec<_>>(),
            [2, 1]
        );
    }

    fn launched(id: i64, name: &str, launch: i64, speeds: &[f64], stamp: Stamp) -> RunFacts {
        let repeats = (0..).zip(speeds).map(|(n, speed)| single(n, *speed));
        let mut facts = samples::launched(id, name, launch, repeats.collect());
        if let Some(of) = &mut facts.summary.launch {
            of.stamp = Some(stamp);
        }
        facts
    }

    #[test]
    fn a_host_s_history_stands_in_for_second_launches() {
        let verified = |id, name, speed: f64| launched(id, name, id, &[speed], Stamp::Verified);
        let runs = [
            verified(1, "fast", 90.0),
            verified(2, "slow", 60.0),
            verified(3, "slowest", 50.0),
            verified(4, "slowest", 50.3),
            verified(5, "slowest", 50.1),
            verified(6, "slowest", 50.2),
        ];
        let minutes = BTreeMap::from([(HostId(1), 12.0)]);
        let known = board(&BoardFilter::default(), &runs, minutes.clone(), false);
        assert!(
            known.best_single.established,
            "{}",
            known.best_single.because
        );
        assert!(
            known.best_single.because.contains(
                "launch-to-launch variation taken from 4 launches of 1 configuration on gpu1"
            ),
            "{}",
            known.best_single.because
        );
        let unknown = board(&BoardFilter::default(), &runs[..2], minutes, false);
        assert!(
            unknown
                .best_single
                .because
                .contains("Each rests on one launch"),
            "{}",
            unknown.best_single.because
        );
    }

    #[test]
    fn launches_are_the_unit_and_repeats_are_not() {
        let verified =
            |id, name, launch, speeds: &[f64]| launched(id, name, launch, speeds, Stamp::Verified);
        let mut runs = vec![
            verified(1, "slow", 1, &[63.0, 64.0]),
            verified(2, "slow", 2, &[63.4, 63.8]),
            verified(3, "fast", 3, &[90.0, 90.2]),
        ];
        let one_launch = board(&BoardFilter::default(), &runs, BTreeMap::new(), false);
        assert!(!one_launch.best_single.established);
        assert!(
            one_launch
                .best_single
                .because
                .contains("fast rests on one launch"),
            "{}",
            one_launch.best_single.because
        );
        runs.push(verified(4, "fast", 4, &[90.4, 89.8]));
        let two = board(&BoardFilter::default(), &runs, BTreeMap::new(), false);
        assert!(two.best_single.established, "{}", two.best_single.because);
        assert!(
            two.best_single
                .because
                .contains("over 2 launches and 2 launches"),
            "{}",
            two.best_single.because
        );
        assert_eq!(
            (two.rows[0].launches, two.rows[0].stamp.clone()),
            (2, Some(Stamp::Verified))
        );
        assert_eq!(two.rows[0].single_stream.expect("a figure").n, 2);
    }

    #[test]
    fn the_leader_has_to_beat_everybody() {
        let verified = |id, name, speeds: &[f64]| launched(id, name, id, speeds, Stamp::Verified);
        let mut runs = vec![
            verified(1, "fast", &[90.0, 90.2]),
            verified(2, "fast", &[90.4, 89.8]),
            verified(3, "slow", &[80.0, 80.2]),
            verified(4, "slow", &[80.4, 79.8]),
            // Behind on average, and so restless that it may be ahead.
            verified(5, "restless", &[60.0]),
            verified(6, "restless", &[90.0]),
        ];
        let doubtful = board(&BoardFilter::default(), &runs, BTreeMap::new(), false);
        assert!(!doubtful.best_single.established);
        let because = &doubtful.best_single.because;
        assert!(
            because.contains("ahead of restless")
                && because.contains("corrected for 2 pairs: Best for one user"),
            "{because}"
        );
        runs[4] = verified(5, "restless", &[89.9]);
        runs.truncate(5);
        let lone = board(&BoardFilter::default(), &runs, BTreeMap::new(), false);
        assert!(!lone.best_single.established);
        assert!(
            lone.best_single
                .because
                .contains("restless rests on one launch"),
            "{}",
            lone.best_single.because
        );
        runs.truncate(4);
        assert!(
            board(&BoardFilter::default(), &runs, BTreeMap::new(), false)
                .best_single
                .established
        );
    }

    #[test]
    fn what_ran_otherwise_than_named_is_never_best() {
        let wrong = Stamp::Mismatched {
            items: vec!["--tp-size".to_owned()],
        };
        let runs = [
            launched(1, "as asked", 1, &[60.0], Stamp::Verified),
            launched(2, "otherwise", 2, &[90.0], wrong.clone()),
        ];
        let board = board(&BoardFilter::default(), &runs, BTreeMap::new(), false);
        assert_eq!(board.best_single.leader.as_deref(), Some("as asked"));
        let row = &board.rows[0];
        assert_eq!(
            (row.single_doubtful, row.stamp.clone()),
            (true, Some(wrong))
        );
        assert!(
            row.remarks
                .iter()
                .any(|remark| remark.contains("--tp-size"))
        );
    }

    #[test]
    fn what_is_not_there_cannot_be_chosen() {
        let filter = BoardFilter {
            model: Some("nobody's".to_owned()),
            concurrency: Some(7),
            ..Default::default()
        };
        let board = board(&filter, &founding(), BTreeMap::new(), false);
        assert_eq!(board.filter.model.as_deref(), Some("m"));
        assert_eq!(board.filter.concurrency, Some(128));
    }

    #[test]
    fn an_empty_store_says_so() {
        let board = board(&BoardFilter::default(), &[], BTreeMap::new(), true);
        assert!(board.empty && board.founding_missing && board.chart.is_none());
        assert_eq!(board.best_single.leader, None);
    }
}
