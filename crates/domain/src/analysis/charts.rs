//! What the charts of runs show: curves over concurrency, distribution, timeline.

use super::{RequestPoint, RunFacts, levels};
use crate::{
    chart::{Axis, ChartSpec, Line, Mark, Point, Scale, Series},
    engine::EngineKind,
    metrics::Distribution,
    source::Source,
    statistics::Estimate,
    text,
    timestamp::Timestamp,
    views::run::{LevelView, StageView},
    workload::StageKind,
};

/// Bars of a point that stands for several repeats.
pub(super) const REPEAT_BARS: &str = "Bars: min–max over repeats.";

const NO_P99: &str = "No p99: it needs at least 100 requests in a stage.";

/// The charts of a run's page. `points` may be a sample of its requests.
#[must_use]
pub fn run_charts(facts: &RunFacts, points: &[RequestPoint]) -> Vec<ChartSpec> {
    let charts = [
        throughput_curve(run_curve(facts, |level| level.output_tps)),
        per_user_curve(run_curve(facts, |level| level.decode_tps)),
        percentile_curve(facts, "ttft", "Time to first token", |stage| stage.ttft_ms),
        percentile_curve(facts, "tpot", "Time per output token", |stage| {
            stage.tpot_ms
        }),
        rate_curve(facts),
        distribution(facts, points),
        timeline(facts, points),
    ];
    charts
        .into_iter()
        .filter(|chart| !chart.is_empty())
        .collect()
}

/// Series over concurrency, with what their bars mean.
pub(super) struct Curves {
    pub(super) series: Vec<Series>,
    pub(super) bars: Option<String>,
    pub(super) as_of: Option<Timestamp>,
}

/// Output throughput over concurrency.
pub(super) fn throughput_curve(curves: Curves) -> ChartSpec {
    let summary = curves
        .series
        .iter()
        .filter_map(|series| {
            let peak = series.points.iter().max_by(|a, b| a.y.total_cmp(&b.y))?;
            Some(format!(
                "{} peaks at {} tok/s at C = {}.",
                series.name,
                text::figure(peak.y),
                peak.x
            ))
        })
        .collect::<Vec<_>>()
        .join(" ");
    curve(
        "throughput",
        "Output throughput over concurrency",
        summary,
        axis("Output throughput", "tok/s"),
        curves,
    )
}

/// Median decode speed of a request over concurrency.
pub(super) fn per_user_curve(curves: Curves) -> ChartSpec {
    let summary = curves
        .series
        .iter()
        .filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            Some(format!(
                "{}: each user gets {} tok/s at C = {} and {} at C = {}.",
                series.name,
                text::figure(first.y),
                first.x,
                text::figure(last.y),
                last.x
            ))
        })
        .collect::<Vec<_>>()
        .join(" ");
    curve(
        "per-user",
        "Speed per user over concurrency",
        summary,
        axis("Median decode speed", "tok/s"),
        curves,
    )
}

/// Median time to first token over concurrency.
pub(super) fn ttft_curve(curves: Curves) -> ChartSpec {
    let y = Axis {
        scale: Scale::Log10,
        ..axis("Median time to first token", "ms")
    };
    curve(
        "ttft",
        "Time to first token over concurrency",
        "Median time to first token of each configuration at each concurrency.".to_owned(),
        y,
        curves,
    )
}

/// A run's figure over its closed loops.
fn run_curve(run: &RunFacts, figure: impl Fn(&LevelView) -> Option<Estimate>) -> Curves {
    let series = Series {
        name: run.summary.configuration.clone(),
        colour: 0,
        mark: mark_of(run.summary.engine),
        line: Line::Solid,
        source: run.summary.source,
        points: levels(&run.stages)
            .iter()
            .filter_map(|level| {
                let concurrency = f64::from(level.kind.closed_loop()?);
                Some(point(concurrency, level, figure(level)?))
            })
            .collect(),
    };
    of_repeats(run, vec![series])
}

fn of_repeats(run: &RunFacts, series: Vec<Series>) -> Curves {
    let barred = series
        .iter()
        .flat_map(|series| &series.points)
        .any(|point| point.y_bar.is_some());
    Curves {
        bars: barred.then(|| REPEAT_BARS.to_owned()),
        series,
        as_of: run.summary.finished_at,
    }
}

fn point(x: f64, level: &LevelView, estimate: Estimate) -> Point {
    Point {
        x,
        y: estimate.mean,
        y_bar: estimate.bar(),
        n: Some(estimate.n),
        hollow: level.is_doubtful(),
        note: level.flags.first().cloned(),
        ..Point::default()
    }
}

/// A chart of curves over concurrency.
pub(super) fn curve(id: &str, title: &str, summary: String, y: Axis, curves: Curves) -> ChartSpec {
    ChartSpec {
        id: id.to_owned(),
        title: title.to_owned(),
        summary,
        x: Axis {
            scale: Scale::Log2,
            ..axis("Concurrency C", "requests")
        },
        y,
        bars: curves.bars,
        notes: notes(&curves.series),
        series: curves.series,
        as_of: curves.as_of,
    }
}

/// p50, p90, p95 and p99 over concurrency; over repeats, the mean of each.
fn percentile_curve(
    facts: &RunFacts,
    id: &str,
    name: &str,
    figure: impl Fn(&StageView) -> Distribution,
) -> ChartSpec {
    type Pick = fn(&Distribution) -> Option<f64>;
    let percentiles: [(&str, Pick); 4] = [
        ("p50", |d| d.p50),
        ("p90", |d| d.p90),
        ("p95", |d| d.p95),
        ("p99", |d| d.p99),
    ];
    let mut concurrencies: Vec<u32> = closed_stages(facts)
        .filter_map(|stage| stage.kind.closed_loop())
        .collect();
    concurrencies.sort_unstable();
    concurrencies.dedup();
    let series: Vec<Series> = percentiles
        .iter()
        .zip(0_u8..)
        .map(|((percentile, pick), colour)| Series {
            name: (*percentile).to_owned(),
            colour,
            mark: mark_of(facts.summary.engine),
            line: if colour == 0 {
                Line::Solid
            } else {
                Line::Dashed
            },
            source: facts.summary.source,
            points: concurrencies
                .iter()
                .filter_map(|&concurrency| {
                    let estimate = Estimate::of(
                        closed_stages(facts)
                            .filter(|stage| stage.kind.closed_loop() == Some(concurrency))
                            .filter_map(|stage| pick(&figure(stage))),
                    )?;
                    Some(Point {
                        x: f64::from(concurrency),
                        y: estimate.mean,
                        y_bar: estimate.bar(),
                        n: Some(estimate.n),
                        ..Point::default()
                    })
                })
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let mut spec = curve(
        id,
        &format!("{name}: percentiles over concurrency"),
        format!("{name} at p50, p90, p95 and p99 for each concurrency."),
        axis(name, "ms"),
        of_repeats(facts, series),
    );
    if spec.series.iter().all(|series| series.name != "p99") && !spec.is_empty() {
        spec.notes.push(NO_P99.to_owned());
    }
    spec
}

fn closed_stages(facts: &RunFacts) -> impl Iterator<Item = &StageView> {
    facts
        .stages
        .iter()
        .filter(|stage| stage.kind.closed_loop().is_some())
}

/// Time to first token over the rate of open loops: from the sending, and from the
/// moment at which the schedule meant it to be sent. Where the two part, the
/// measuring machine was late.
fn rate_curve(facts: &RunFacts) -> ChartSpec {
    type Pick = fn(&LevelView) -> Option<Estimate>;
    let curves: [(&str, Pick); 4] = [
        ("p50", |level| level.ttft_ms),
        ("p99", |level| level.ttft_p99_ms),
        ("p50, from the scheduled start", |level| {
            level.ttft_intended_ms
        }),
        ("p99, from the scheduled start", |level| {
            level.ttft_intended_p99_ms
        }),
    ];
    let levels = levels(&facts.stages);
    let series: Vec<Series> = curves
        .iter()
        .zip(0_u8..)
        .map(|((name, figure), colour)| Series {
            name: (*name).to_owned(),
            colour,
            mark: mark_of(facts.summary.engine),
            line: if colour < 2 {
                Line::Solid
            } else {
                Line::Dashed
            },
            source: facts.summary.source,
            points: levels
                .iter()
                .filter_map(|level| match level.kind {
                    StageKind::OpenLoop { rate, .. } => {
                        Some(point(rate.get(), level, figure(level)?))
                    }
                    _ => None,
                })
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let mut spec = curve(
        "ttft-rate",
        "Time to first token over request rate",
        "Time to first token at p50 and p99 for each rate of the open loop, from the sending and from the scheduled start.".to_owned(),
        axis("Time to first token", "ms"),
        of_repeats(facts, series),
    );
    spec.x = axis("Request rate", "req/s");
    if spec
        .series
        .iter()
        .all(|series| !series.name.starts_with("p99"))
        && !spec.is_empty()
    {
        spec.notes.push(NO_P99.to_owned());
    }
    spec
}

/// How many requests had their first token by when, a line per load level.
fn distribution(facts: &RunFacts, points: &[RequestPoint]) -> ChartSpec {
    let series = per_level(facts, |stages| {
        let mut values: Vec<f64> = points
            .iter()
            .filter(|point| stages.contains(&point.stage))
            .filter_map(|point| point.ttft_ms)
            .collect();
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        values
            .iter()
            .zip(1_u32..)
            .map(|(value, rank)| Point {
                x: *value,
                y: f64::from(rank) / count * 100.0,
                ..Point::default()
            })
            .collect()
    });
    ChartSpec {
        id: "ttft-distribution".to_owned(),
        title: "Distribution of the time to first token".to_owned(),
        summary: "Share of requests whose first token had arrived, over the time since sending, for each load level.".to_owned(),
        x: Axis { scale: Scale::Log10, ..axis("Time to first token", "ms") },
        y: axis("Requests", "%"),
        series: series.into_iter().map(|series| Series { line: Line::Steps, mark: Mark::None, ..series }).collect(),
        bars: None,
        notes: sampled(facts, points),
        as_of: facts.summary.finished_at,
    }
}

/// Latency of each request over the time at which it was sent.
fn timeline(facts: &RunFacts, points: &[RequestPoint]) -> ChartSpec {
    let series = per_level(facts, |stages| {
        points
            .iter()
            .filter(|point| stages.contains(&point.stage))
            .filter_map(|point| {
                Some(Point {
                    x: point.sent_s,
                    y: point.e2el_ms?,
                    ..Point::default()
                })
            })
            .collect()
    });
    let failed = points.iter().filter(|point| point.failed).count() as u64;
    let mut notes = sampled(facts, points);
    if failed > 0 {
        notes.push(format!(
            "{} failed and are not drawn.",
            text::plural(failed, "request", "requests")
        ));
    }
    ChartSpec {
        id: "timeline".to_owned(),
        title: "Requests over time".to_owned(),
        summary: "End-to-end latency of each request over the moment at which it was sent, coloured by load level.".to_owned(),
        x: axis("Sent, since the start of the run", "s"),
        y: axis("End-to-end latency", "ms"),
        series,
        bars: None,
        notes,
        as_of: facts.summary.finished_at,
    }
}

fn per_level(facts: &RunFacts, points: impl Fn(&[u32]) -> Vec<Point>) -> Vec<Series> {
    levels(&facts.stages)
        .iter()
        .zip(0_u8..)
        .map(|(level, colour)| {
            let stages: Vec<u32> = facts
                .stages
                .iter()
                .filter(|stage| stage.kind == level.kind)
                .map(|stage| stage.index)
                .collect();
            Series {
                name: level.kind.to_string(),
                colour,
                mark: mark_of(facts.summary.engine),
                line: Line::None,
                source: level.source,
                points: points(&stages),
            }
        })
        .filter(|series| !series.points.is_empty())
        .collect()
}

fn sampled(facts: &RunFacts, points: &[RequestPoint]) -> Vec<String> {
    let all: u64 = facts
        .stages
        .iter()
        .map(|stage| stage.completed + stage.failed + stage.cancelled)
        .sum();
    let drawn = points.len() as u64;
    if drawn < all {
        vec![format!(
            "{} of {} requests drawn, evenly spaced.",
            text::count(drawn),
            text::count(all)
        )]
    } else {
        Vec::new()
    }
}

/// The configuration's name; with the run's number where two share it.
pub(super) fn run_name(run: &RunFacts, runs: &[RunFacts]) -> String {
    let name = &run.summary.configuration;
    let same = runs
        .iter()
        .filter(|other| other.summary.configuration == *name)
        .count();
    if same > 1 {
        format!("{name} (run {})", run.summary.id)
    } else {
        name.clone()
    }
}

/// Shape by engine.
pub(crate) const fn mark_of(engine: EngineKind) -> Mark {
    match engine {
        EngineKind::Sglang => Mark::Circle,
        EngineKind::Vllm => Mark::Square,
        EngineKind::Other => Mark::Diamond,
    }
}

/// An axis from zero.
pub(super) fn axis(label: &str, unit: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale: Scale::LinearFromZero,
    }
}

/// Remarks that a chart of these series needs.
pub(super) fn notes(series: &[Series]) -> Vec<String> {
    let mut notes = Vec::new();
    if series
        .iter()
        .flat_map(|series| &series.points)
        .any(|point| point.hollow)
    {
        notes.push("Hollow marks: flagged, disputed, estimated or mismatched.".to_owned());
    }
    if series
        .iter()
        .any(|series| series.source == Source::Simulated)
    {
        notes.push("Simulated: measured against the stand-in engine.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::samples::{closed, open, run, single},
        metrics::Distribution,
    };

    fn points() -> Vec<RequestPoint> {
        (0..4_u32)
            .map(|n| RequestPoint {
                stage: n % 2,
                sent_s: f64::from(n),
                ttft_ms: Some(f64::from(40 - n)),
                e2el_ms: Some(100.0),
                e2e_tps: Some(90.0),
                failed: false,
            })
            .collect()
    }

    #[test]
    fn curves_leave_out_the_single_stream_and_carry_bars() {
        let facts = run(
            1,
            "a",
            vec![single(0, 90.0), closed(8, 0, 100.0), closed(8, 1, 120.0)],
        );
        let chart = throughput_curve(run_curve(&facts, |level| level.output_tps));
        assert_eq!(chart.series[0].points.len(), 1);
        assert_eq!(chart.series[0].points[0].y_bar, Some((100.0, 120.0)));
        assert_eq!(chart.bars.as_deref(), Some(REPEAT_BARS));
        assert_eq!(chart.summary, "a peaks at 110.0 tok/s at C = 8.");
    }

    #[test]
    fn a_run_has_six_charts_and_a_recorded_one_only_what_it_has() {
        let facts = run(1, "a", vec![single(0, 90.0), closed(8, 1, 100.0)]);
        let ids: Vec<String> = run_charts(&facts, &points())
            .into_iter()
            .map(|chart| chart.id)
            .collect();
        assert_eq!(
            ids,
            [
                "throughput",
                "per-user",
                "ttft",
                "tpot",
                "ttft-distribution",
                "timeline"
            ]
        );
        let charts = run_charts(&run(1, "a", vec![]), &[]);
        assert_eq!(charts, []);
    }

    #[test]
    fn rates_have_a_curve_of_their_own() {
        let late = StageView {
            ttft_intended_ms: Distribution::of(vec![30.0, 90.0]),
            ..open(4.0, 1)
        };
        let facts = run(1, "a", vec![open(2.0, 0), late]);
        let chart = rate_curve(&facts);
        let of = |name: &str| -> Vec<(f64, f64)> {
            chart
                .series
                .iter()
                .filter(|series| series.name == name)
                .flat_map(|series| series.points.iter().map(|point| (point.x, point.y)))
                .collect()
        };
        assert_eq!(of("p50"), [(2.0, 25.0), (4.0, 25.0)]);
        assert_eq!(of("p50, from the scheduled start"), [(4.0, 60.0)]);
        assert_eq!(chart.notes, [NO_P99]);
        let ids: Vec<String> = run_charts(&facts, &points())
            .into_iter()
            .map(|chart| chart.id)
            .collect();
        assert_eq!(ids, ["ttft-rate", "ttft-distribution", "timeline"]);
    }

    #[test]
    fn the_distribution_rises_to_a_hundred() {
        let facts = run(1, "a", vec![single(0, 90.0), closed(8, 1, 100.0)]);
        let chart = distribution(&facts, &points());
        for series in &chart.series {
            assert!(series.points.windows(2).all(|pair| pair[0].x <= pair[1].x));
            assert_eq!(series.points.last().map(|point| point.y), Some(100.0));
        }
        assert_eq!(chart.notes, ["4 of 8 requests drawn, evenly spaced."]);
    }
}
