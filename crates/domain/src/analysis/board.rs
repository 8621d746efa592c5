//! The Board: the answer first.

use std::collections::BTreeMap;

use super::{
    RunFacts,
    charts::{axis, mark_of, notes},
    levels,
};
use crate::{
    chart::{ChartSpec, Line, Point, Series},
    ids::ContentHash,
    source::Source,
    statistics::Estimate,
    text,
    views::{
        board::{Answer, BoardChoices, BoardFilter, BoardRow, BoardView, ThroughputMetric},
        run::LevelView,
    },
    workload::StageKind,
};

/// Concurrency shown where nobody chose one and it was measured.
const USUAL_CONCURRENCY: u32 = 128;

/// The Board over the stored runs that have figures. `founding_missing` is passed on.
#[must_use]
pub fn board(
    filter: &BoardFilter,
    runs: &[RunFacts],
    founding_missing: bool,
) -> BoardView<ChartSpec> {
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
        best_single: answer(
            "Best for one user",
            &rows,
            |row| row.single_stream.map(|estimate| (estimate, row.source)),
            |row| row.single_doubtful,
        ),
        best_throughput: answer(
            &format!("Best {at}"),
            &rows,
            |row| {
                row.throughput
                    .map(|estimate| (estimate, row.throughput_source.unwrap_or(row.source)))
            },
            |row| row.throughput_doubtful,
        ),
        chart: (!chart.is_empty()).then_some(chart),
        rows,
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
        .filter_map(|stage| match stage.kind {
            StageKind::SingleStream => None,
            StageKind::ClosedLoop { concurrency } => Some(concurrency),
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn rows(runs: &[&RunFacts], concurrency: Option<u32>, metric: ThroughputMetric) -> Vec<BoardRow> {
    let mut by_name: BTreeMap<&str, Vec<&RunFacts>> = BTreeMap::new();
    for run in runs {
        by_name
            .entry(&run.summary.configuration)
            .or_default()
            .push(run);
    }
    let mut rows: Vec<BoardRow> = by_name
        .values()
        .filter_map(|runs| row(runs, concurrency, metric))
        .collect();
    rows.sort_by(|one, other| {
        let speed = |row: &BoardRow| row.single_stream.map_or(f64::NEG_INFINITY, |e| e.mean);
        speed(other)
            .total_cmp(&speed(one))
            .then_with(|| one.configuration.cmp(&other.configuration))
    });
    rows
}

fn row(runs: &[&RunFacts], concurrency: Option<u32>, metric: ThroughputMetric) -> Option<BoardRow> {
    let newest = runs.first()?;
    let throughput = |level: &LevelView| match metric {
        ThroughputMetric::OutputTps => level.output_tps,
        ThroughputMetric::SteadyOutputTps => level.steady_output_tps,
    };
    let single = Cell::over(runs, StageKind::SingleStream, |level| level.single_stream);
    let many = concurrency.map_or_else(Cell::default, |concurrency| {
        Cell::over(runs, StageKind::ClosedLoop { concurrency }, throughput)
    });
    let mut remarks: Vec<String> =
        distinct(runs.iter().flat_map(|run| run.remarks.iter().cloned()));
    for flag in single.flags.into_iter().chain(many.flags) {
        if !remarks.contains(&flag) {
            remarks.push(flag);
        }
    }
    let source = newest.summary.source;
    Some(BoardRow {
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
        // Runs against an address of unknown history count as one launch.
        launches: 1,
        runs: runs.iter().map(|run| run.summary.id).collect(),
        remarks,
    })
}

/// A figure of a configuration over its runs. One run speaks with the spread of
/// its repeats, several with the spread of their means. Doubtful runs are left out
/// where there is a sound one.
#[derive(Default)]
struct Cell {
    estimate: Option<Estimate>,
    source: Option<Source>,
    doubtful: bool,
    flags: Vec<String>,
}

impl Cell {
    fn over(
        runs: &[&RunFacts],
        kind: StageKind,
        figure: impl Fn(&LevelView) -> Option<Estimate>,
    ) -> Self {
        let all: Vec<(LevelView, Estimate)> = runs
            .iter()
            .filter_map(|run| {
                let level = levels(&run.stages)
                    .into_iter()
                    .find(|level| level.kind == kind)?;
                let estimate = figure(&level)?;
                Some((level, estimate))
            })
            .collect();
        let sound: Vec<&(LevelView, Estimate)> = all
            .iter()
            .filter(|(level, _)| !level.is_doubtful())
            .collect();
        let doubtful = sound.is_empty() && !all.is_empty();
        let used = if doubtful {
            all.iter().collect()
        } else {
            sound
        };
        let estimate = match used.as_slice() {
            [(_, only)] => Some(*only),
            several => Estimate::of(several.iter().map(|(_, estimate)| estimate.mean)),
        };
        Self {
            estimate,
            source: used.iter().map(|(level, _)| level.source).max(),
            doubtful,
            flags: used
                .iter()
                .flat_map(|(level, _)| level.flags.iter().cloned())
                .collect(),
        }
    }
}

fn answer(
    question: &str,
    rows: &[BoardRow],
    figure: impl Fn(&BoardRow) -> Option<(Estimate, Source)>,
    doubtful: impl Fn(&BoardRow) -> bool,
) -> Answer {
    let mut ranked: Vec<(&BoardRow, Estimate, Source)> = rows
        .iter()
        .filter(|row| !doubtful(row))
        .filter_map(|row| figure(row).map(|(estimate, source)| (row, estimate, source)))
        .collect();
    ranked.sort_by(|(_, one, _), (_, other, _)| other.mean.total_cmp(&one.mean));
    let left_out: Vec<&str> = rows
        .iter()
        .filter(|row| doubtful(row) && figure(row).is_some())
        .map(|row| row.configuration.as_str())
        .collect();
    let mut because = match ranked.as_slice() {
        [] => "No configuration has a sound figure here yet.".to_owned(),
        [_] => "Only one configuration has a figure here, so there is nothing to be better than."
            .to_owned(),
        [(_, best, _), (runner_up, second, _), ..] => format!(
            "{} ahead of {} ({} tok/s). Each rests on one launch, so launch-to-launch variation is unknown: not established.",
            text::change(best.mean / second.mean),
            runner_up.configuration,
            text::figure(second.mean)
        ),
    };
    if !left_out.is_empty() {
        because.push_str(&format!(
            " Left out as flagged, disputed or estimated: {}.",
            left_out.join("; ")
        ));
    }
    let leader = ranked.first();
    Answer {
        question: question.to_owned(),
        leader: leader.map(|(row, _, _)| row.configuration.clone()),
        figure: leader.map(|(_, estimate, _)| *estimate),
        source: leader.map(|(_, _, source)| *source),
        // Until launches are told apart, no answer is more than the highest figure.
        established: false,
        because,
    }
}

fn chart(rows: &[BoardRow], at: &str, metric: ThroughputMetric) -> ChartSpec {
    let series: Vec<Series> = rows
        .iter()
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
            "Bars: min–max over repeats, or over runs where there are several.".to_owned()
        }),
        notes,
        series,
        as_of: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::samples::{closed, recorded, run, single};

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
        let board = board(&BoardFilter::default(), &founding(), false);
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
                .ends_with("Left out as flagged, disputed or estimated: SGLang tuned.")
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
        let real = board(&BoardFilter::default(), &runs, false);
        assert_eq!(real.rows.len(), 3);
        assert!(real.choices.has_simulated);
        let only = board(
            &BoardFilter {
                simulated: true,
                ..Default::default()
            },
            &runs,
            false,
        );
        assert_eq!(only.rows.len(), 1);
        let nothing_else = board(&BoardFilter::default(), &runs[3..], false);
        assert!(nothing_else.filter.simulated && !nothing_else.rows.is_empty());
    }

    #[test]
    fn several_runs_of_a_configuration_are_one_row() {
        let runs = [
            run(1, "a", vec![single(0, 90.0), closed(8, 0, 100.0)]),
            run(2, "a", vec![single(0, 92.0), closed(8, 0, 120.0)]),
        ];
        let board = board(&BoardFilter::default(), &runs, false);
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

    #[test]
    fn what_is_not_there_cannot_be_chosen() {
        let filter = BoardFilter {
            model: Some("nobody's".to_owned()),
            concurrency: Some(7),
            ..Default::default()
        };
        let board = board(&filter, &founding(), false);
        assert_eq!(board.filter.model.as_deref(), Some("m"));
        assert_eq!(board.filter.concurrency, Some(128));
    }

    #[test]
    fn an_empty_store_says_so() {
        let board = board(&BoardFilter::default(), &[], true);
        assert!(board.empty && board.founding_missing && board.chart.is_none());
        assert_eq!(board.best_single.leader, None);
    }
}
