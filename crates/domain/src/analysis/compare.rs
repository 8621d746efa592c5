//! Two to twelve runs side by side.

use super::{
    RunFacts,
    charts::{axis, mark_of, notes, per_user_curve, run_name, throughput_curve, ttft_curve},
    levels, summarise,
};
use crate::{
    chart::{ChartSpec, Line, Point, Series},
    comparison::{self, Difference, DifferenceKind, Fingerprint},
    run::RunState,
    source::Source,
    statistics::{
        Better, CONFIDENCE, Estimate, Launch,
        curve::{CurveLevel, RatioCurve},
    },
    text,
    verdict::{Question, Side, Verdict, judge},
    views::{
        compare::{ClassKind, CompareCell, CompareRow, CompareView, ComparisonClass},
        run::{LevelView, StageView},
    },
    workload::StageKind,
};

/// The comparison of runs, the baseline first.
///
/// # Errors
/// A sentence, if there are fewer than two or more than twelve runs.
pub fn compare(runs: &[RunFacts]) -> Result<CompareView<ChartSpec>, String> {
    if !comparison::RUNS.contains(&runs.len()) {
        return Err(format!(
            "{} cannot be compared: choose two to twelve.",
            text::plural(runs.len() as u64, "run", "runs")
        ));
    }
    let prints: Vec<Fingerprint> = runs.iter().map(RunFacts::fingerprint).collect();
    let (mut differences, equal_settings) = comparison::differences(&prints);
    say_workloads(&mut differences, runs);
    let settings_known = runs.iter().all(|run| !run.settings.is_empty());
    let columns: Vec<Column<'_>> = runs.iter().map(|run| Column::new(run, runs)).collect();
    let mut charts = vec![
        throughput_curve(runs),
        per_user_curve(runs),
        ttft_curve(runs),
    ];
    charts.insert(0, decision_chart(&columns));
    charts.retain(|chart| !chart.is_empty());
    let mut class = comparison::classify(&differences, settings_known);
    // Of a launch everything that was asked for is known.
    let all_launched = runs.iter().all(|run| run.summary.launch.is_some());
    if class.kind == ClassKind::Repeat && names_differ(runs) && !all_launched {
        class = ComparisonClass {
            kind: ClassKind::Confounded,
            sentence: "Nothing that the servers tell of themselves differs, but the configurations' names do: something that cannot be seen from here, such as an environment variable, may.".to_owned(),
        };
    }
    if mixes_simulated(runs) {
        // A simulated curve beside a measured one would be read as a result.
        charts.clear();
        class = ComparisonClass {
            kind: ClassKind::Invalid,
            sentence: "Not comparable: some of these runs are simulated and some are not, so no chart shows them together.".to_owned(),
        };
    }
    Ok(CompareView {
        runs: runs.iter().map(summarise).collect(),
        rows: rows(&columns),
        class,
        differences,
        equal_settings,
        verdicts: verdicts(&columns, &prints),
        crossovers: crossovers(&columns),
        charts,
    })
}

/// Workloads are told apart by their hash, which tells a reader nothing.
fn say_workloads(differences: &mut [Difference], runs: &[RunFacts]) {
    for difference in differences {
        if difference.kind == DifferenceKind::Definition && difference.key == "workload" {
            for (value, run) in difference.values.iter_mut().zip(runs) {
                let run = &run.summary;
                *value = Some(format!(
                    "{} ({})",
                    run.workload_text,
                    run.workload_hash.short()
                ));
            }
        }
    }
}

fn names_differ(runs: &[RunFacts]) -> bool {
    let mut names = runs.iter().map(|run| &run.summary.configuration);
    let first = names.next();
    names.any(|name| Some(name) != first)
}

fn mixes_simulated(runs: &[RunFacts]) -> bool {
    let simulated = |run: &RunFacts| run.summary.source == Source::Simulated;
    runs.iter().any(simulated) && !runs.iter().all(simulated)
}

struct Column<'a> {
    run: &'a RunFacts,
    name: String,
    levels: Vec<LevelView>,
}

impl<'a> Column<'a> {
    fn new(run: &'a RunFacts, all: &[RunFacts]) -> Self {
        Self {
            run,
            name: run_name(run, all),
            levels: levels(&run.stages),
        }
    }

    fn level(&self, kind: StageKind) -> Option<&LevelView> {
        self.levels.iter().find(|level| level.kind == kind)
    }

    /// One value per repeat, as the level's estimate is made of.
    fn repeats(&self, kind: StageKind, figure: impl Fn(&StageView) -> Option<f64>) -> Vec<f64> {
        let of = |complete: bool| -> Vec<f64> {
            self.run
                .stages
                .iter()
                .filter(|stage| stage.kind == kind && stage.complete == complete)
                .filter_map(&figure)
                .collect()
        };
        let whole = of(true);
        if whole.is_empty() { of(false) } else { whole }
    }
}

struct Metric {
    name: &'static str,
    unit: &'static str,
    more_is_better: bool,
    figure: fn(&LevelView) -> Option<Estimate>,
}

const SINGLE: [Metric; 3] = [
    Metric {
        name: "single-stream speed (e2e_tps)",
        unit: "tok/s",
        more_is_better: true,
        figure: |l| l.single_stream,
    },
    Metric {
        name: "decode speed (decode_tps)",
        unit: "tok/s",
        more_is_better: true,
        figure: |l| l.decode_tps,
    },
    Metric {
        name: "time to first token (ttft)",
        unit: "ms",
        more_is_better: false,
        figure: |l| l.ttft_ms,
    },
];

const CLOSED: [Metric; 5] = [
    Metric {
        name: "output throughput (output_tps)",
        unit: "tok/s",
        more_is_better: true,
        figure: |l| l.output_tps,
    },
    Metric {
        name: "steady throughput (steady_output_tps)",
        unit: "tok/s",
        more_is_better: true,
        figure: |l| l.steady_output_tps,
    },
    Metric {
        name: "speed per user (decode_tps)",
        unit: "tok/s",
        more_is_better: true,
        figure: |l| l.decode_tps,
    },
    Metric {
        name: "time to first token (ttft)",
        unit: "ms",
        more_is_better: false,
        figure: |l| l.ttft_ms,
    },
    Metric {
        name: "time per output token (tpot)",
        unit: "ms",
        more_is_better: false,
        figure: |l| l.tpot_ms,
    },
];

fn kinds(columns: &[Column<'_>]) -> Vec<StageKind> {
    let mut kinds: Vec<StageKind> = columns
        .iter()
        .flat_map(|column| &column.levels)
        .map(|level| level.kind)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn rows(columns: &[Column<'_>]) -> Vec<CompareRow> {
    let mut rows = Vec::new();
    for kind in kinds(columns) {
        let metrics: &[Metric] = if kind == StageKind::SingleStream {
            &SINGLE
        } else {
            &CLOSED
        };
        for metric in metrics {
            let estimates: Vec<Option<(Estimate, bool)>> = columns
                .iter()
                .map(|column| {
                    let level = column.level(kind)?;
                    Some(((metric.figure)(level)?, level.is_doubtful()))
                })
                .collect();
            if estimates.iter().all(Option::is_none) {
                continue;
            }
            let baseline = estimates
                .first()
                .copied()
                .flatten()
                .map(|(estimate, _)| estimate.mean);
            let cells = estimates
                .iter()
                .enumerate()
                .map(|(column, cell)| {
                    cell.map(|(estimate, doubtful)| CompareCell {
                        estimate,
                        ratio: baseline
                            .filter(|base| column > 0 && *base > 0.0)
                            .map(|base| estimate.mean / base),
                        doubtful,
                    })
                })
                .collect();
            rows.push(CompareRow {
                kind,
                metric: metric.name.to_owned(),
                unit: metric.unit.to_owned(),
                more_is_better: metric.more_is_better,
                cells,
            });
        }
    }
    rows
}

/// Every run against the baseline: the single stream, and the throughput at the
/// highest concurrency that both have. The table shows the rest.
fn verdicts(columns: &[Column<'_>], prints: &[Fingerprint]) -> Vec<Verdict> {
    let Some((baseline, others)) = columns.split_first() else {
        return Vec::new();
    };
    let mut verdicts = Vec::new();
    for (other, place) in others.iter().zip(1..) {
        let pair: Vec<Fingerprint> = [prints.first(), prints.get(place)]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let comparable = comparable(baseline.run, other.run, &pair);
        if baseline.level(StageKind::SingleStream).is_some()
            || other.level(StageKind::SingleStream).is_some()
        {
            verdicts.push(pair_verdict(
                "Single stream",
                StageKind::SingleStream,
                |stage| stage.e2e_tps.p50,
                (baseline, other),
                comparable.clone(),
            ));
        }
        if let Some(kind) = highest_common(baseline, other) {
            verdicts.push(pair_verdict(
                &format!("Output throughput at {kind}"),
                kind,
                |stage| stage.output_tps,
                (baseline, other),
                comparable,
            ));
        }
    }
    verdicts
}

fn comparable(one: &RunFacts, other: &RunFacts, prints: &[Fingerprint]) -> Result<(), String> {
    let (differences, _) = comparison::differences(prints);
    let definitions: Vec<&str> = differences
        .iter()
        .filter(|difference| difference.kind == DifferenceKind::Definition)
        .map(|difference| difference.key.as_str())
        .collect();
    if !definitions.is_empty() {
        return Err(comparison::differ(&definitions));
    }
    let simulated = |run: &RunFacts| run.summary.source == Source::Simulated;
    if simulated(one) != simulated(other) {
        return Err("one of them is simulated".to_owned());
    }
    Ok(())
}

fn pair_verdict(
    metric: &str,
    kind: StageKind,
    figure: impl Fn(&StageView) -> Option<f64>,
    (baseline, other): (&Column<'_>, &Column<'_>),
    comparable: Result<(), String>,
) -> Verdict {
    // A run is one launch, also at an address of unknown history: nothing says that
    // the server was restarted between two runs.
    let launches = |column: &Column<'_>| -> Vec<Launch> {
        Launch::new(&column.repeats(kind, &figure))
            .into_iter()
            .collect()
    };
    let (first, second) = (launches(baseline), launches(other));
    judge(
        &Question::of(metric, Better::Higher),
        &side(baseline, kind, &first),
        &side(other, kind, &second),
        comparable,
    )
}

fn side<'a>(column: &'a Column<'_>, kind: StageKind, launches: &'a [Launch]) -> Side<'a> {
    let level = column.level(kind);
    let run = &column.run.summary;
    Side {
        name: &column.name,
        launches,
        source: level.map_or(run.source, |level| level.source),
        objection: level.filter(|level| level.is_doubtful()).map(|level| {
            if level.disputed || level.source == Source::Estimated {
                "is disputed or estimated"
            } else {
                "is flagged"
            }
        }),
        failed: (launches.is_empty() && run.state == RunState::Failed).then(|| {
            run.reason
                .as_deref()
                .map_or("its run gave no reason", |why| why.trim_end_matches('.'))
        }),
    }
}

fn highest_common(one: &Column<'_>, other: &Column<'_>) -> Option<StageKind> {
    one.levels
        .iter()
        .map(|level| level.kind)
        .filter(|kind| kind.closed_loop().is_some() && other.level(*kind).is_some())
        .max()
}

/// Where the throughput of a run crosses the baseline's.
fn crossovers(columns: &[Column<'_>]) -> Vec<String> {
    let Some((baseline, others)) = columns.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .filter_map(|other| {
            let levels: Vec<(u32, [Launch; 1], [Launch; 1])> =
                throughputs(baseline, other).collect();
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

/// The throughputs of two runs at the concurrencies at which both are sound.
fn throughputs<'a>(
    baseline: &'a Column<'_>,
    other: &'a Column<'_>,
) -> impl Iterator<Item = (u32, [Launch; 1], [Launch; 1])> + 'a {
    let launch = |column: &Column<'_>, kind: StageKind| {
        column.level(kind).filter(|level| !level.is_doubtful())?;
        Launch::new(&column.repeats(kind, |stage| stage.output_tps))
    };
    baseline
        .levels
        .iter()
        .map(|level| level.kind)
        .filter_map(move |kind| {
            Some((
                kind.closed_loop()?,
                [launch(baseline, kind)?],
                [launch(other, kind)?],
            ))
        })
}

/// Throughput across, single-stream speed up: a mark per run, at the highest
/// concurrency that all of them have.
fn decision_chart(columns: &[Column<'_>]) -> ChartSpec {
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
                .and_then(|kind| decision_point(column, kind))
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
            .collect::<Vec<_>>()
            .join(" "),
        x: axis(&format!("Output throughput{label}"), "tok/s"),
        y: axis("Single-stream speed", "tok/s"),
        bars: barred.then(|| super::charts::REPEAT_BARS.to_owned()),
        notes: notes(&series),
        series,
        as_of: columns
            .iter()
            .filter_map(|column| column.run.summary.finished_at)
            .max(),
    }
}

fn decision_point(column: &Column<'_>, kind: StageKind) -> Option<Point> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::samples::{closed, recorded, run, single},
        verdict::VerdictKind,
    };

    #[test]
    fn two_to_twelve_runs() {
        let one = run(1, "a", vec![single(0, 90.0)]);
        assert!(
            compare(std::slice::from_ref(&one))
                .expect_err("a refusal")
                .starts_with("1 run cannot")
        );
        assert!(compare(&vec![one.clone(); 13]).is_err());
        assert!(compare(&vec![one; 12]).is_ok());
    }

    #[test]
    fn a_large_gap_within_one_launch_is_stated_and_not_established() {
        let slow = run(
            1,
            "untuned",
            vec![single(0, 63.5), single(1, 63.7), closed(128, 0, 2370.0)],
        );
        let fast = run(
            2,
            "tuned",
            vec![single(0, 89.9), single(1, 90.1), closed(128, 0, 2320.0)],
        );
        let view = compare(&[slow, fast]).expect("a comparison");
        // The names say that something was changed, which the servers do not tell.
        assert_eq!(view.class.kind, ClassKind::Confounded);
        assert_eq!(view.verdicts.len(), 2);
        assert_eq!(view.verdicts[0].kind, VerdictKind::NotEstablished);
        assert!(
            view.verdicts[0].sentence.contains("+41.5 %"),
            "{}",
            view.verdicts[0].sentence
        );
        assert!(
            view.verdicts[1].sentence.contains("−2.1 %"),
            "{}",
            view.verdicts[1].sentence
        );
        let ratio = view.rows[0].cells[1]
            .and_then(|cell| cell.ratio)
            .expect("a ratio");
        assert!((ratio - 90.0 / 63.6).abs() < 1e-9);
        assert_eq!(view.rows[0].cells[0].and_then(|cell| cell.ratio), None);
    }

    #[test]
    fn the_same_configuration_twice_is_a_repetition() {
        let runs = [
            run(1, "a", vec![single(0, 90.0)]),
            run(2, "a", vec![single(0, 91.0)]),
        ];
        let view = compare(&runs).expect("a comparison");
        assert_eq!(view.class.kind, ClassKind::Repeat);
    }

    #[test]
    fn workloads_that_differ_are_not_compared() {
        let one = run(1, "a", vec![single(0, 63.6)]);
        let mut other = run(2, "b", vec![single(0, 90.0)]);
        other.summary.workload_hash = crate::ids::ContentHash::of(b"another");
        let view = compare(&[one, other]).expect("a comparison");
        assert_eq!(view.class.kind, ClassKind::Invalid);
        assert_eq!(view.verdicts[0].kind, VerdictKind::NotComparable);
        let said = view.differences[0].values[0]
            .as_deref()
            .expect("a workload");
        assert!(said.starts_with("256 tokens ("), "{said}");
    }

    #[test]
    fn curves_that_cross_say_where() {
        let one = run(
            1,
            "a",
            vec![
                closed(1, 0, 80.0),
                closed(4, 0, 200.0),
                closed(16, 0, 400.0),
            ],
        );
        let other = run(
            2,
            "b",
            vec![
                closed(1, 0, 90.0),
                closed(4, 0, 220.0),
                closed(16, 0, 400.0 / 1.1),
            ],
        );
        let sentence = compare(&[one.clone(), other])
            .expect("a comparison")
            .crossovers
            .remove(0);
        // 1.1 at C = 4 and 1/1.1 at C = 16: the middle in log C is 8.
        assert!(
            sentence.contains("b is faster up to about C = 8, a above")
                && sentence.contains("no interval"),
            "{sentence}"
        );
        let faster = run(
            3,
            "c",
            vec![
                closed(1, 0, 160.0),
                closed(4, 0, 400.0),
                closed(16, 0, 800.0),
            ],
        );
        let sentence = compare(&[one, faster])
            .expect("a comparison")
            .crossovers
            .remove(0);
        assert!(
            sentence.contains("do not cross") && sentence.contains("c leads throughout"),
            "{sentence}"
        );
    }

    #[test]
    fn a_crossing_has_the_range_that_its_repeats_allow() {
        let side = |id, name: &str, at_4: [f64; 2], at_16: [f64; 2]| {
            let stages = [(4, at_4), (16, at_16)]
                .into_iter()
                .flat_map(|(c, speeds)| {
                    (0..)
                        .zip(speeds)
                        .map(move |(repeat, speed)| closed(c, repeat, speed))
                });
            run(id, name, stages.collect())
        };
        let sentence = compare(&[
            side(1, "untuned", [200.0, 200.1], [400.0, 400.1]),
            side(2, "tuned", [220.0, 220.1], [363.6, 363.7]),
        ])
        .expect("a comparison")
        .crossovers
        .remove(0);
        assert_eq!(
            sentence,
            "By throughput, tuned is faster up to C = 8, untuned above (pointwise 95 % intervals within these launches, launch-to-launch variation unknown)."
        );
    }

    #[test]
    fn a_run_that_failed_is_said_to_have_failed() {
        let fine = run(1, "a", vec![single(0, 90.0)]);
        let mut failed = run(2, "b", vec![]);
        failed.summary.state = RunState::Failed;
        failed.summary.reason = Some("The server ran out of memory.".to_owned());
        let verdict = compare(&[fine, failed])
            .expect("a comparison")
            .verdicts
            .remove(0);
        assert_eq!(
            (verdict.kind, verdict.sentence.as_str()),
            (
                VerdictKind::Failed,
                "Single stream: b failed: The server ran out of memory."
            )
        );
    }

    #[test]
    fn an_estimate_is_named_as_the_objection() {
        let one = run(1, "a", vec![recorded(128, 2370.0, Source::Recorded, false)]);
        let other = run(2, "b", vec![recorded(128, 2320.0, Source::Estimated, true)]);
        let verdict = compare(&[one, other])
            .expect("a comparison")
            .verdicts
            .remove(0);
        assert!(
            verdict
                .sentence
                .ends_with("Not established: b is disputed or estimated."),
            "{}",
            verdict.sentence
        );
    }

    #[test]
    fn simulated_and_measured_are_not_compared() {
        let one = run(1, "a", vec![single(0, 63.6)]);
        let mut other = run(2, "b", vec![single(0, 90.0)]);
        other.summary.source = Source::Simulated;
        let view = compare(&[one, other]).expect("a comparison");
        assert_eq!(view.verdicts[0].kind, VerdictKind::NotComparable);
        assert_eq!(
            (view.class.kind, view.charts.len()),
            (ClassKind::Invalid, 0)
        );
    }
}
