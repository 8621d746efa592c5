//! What the host did during a run: charts of its GPUs over time, and what of it a
//! reader of the figures must know.

use std::collections::BTreeMap;

use crate::{
    chart::{Axis, ChartSpec, Line, Mark, Point, Scale, Series},
    host::{GpuSample, RunSample},
    metrics::StageFlag,
    source::Source,
    text,
    timestamp::Timestamp,
    validity::{self, Own},
};

/// Most points of a line: of more samples, neighbours are averaged.
const MOST_POINTS: usize = 400;

/// What a reader of the figures must know of the host, a sentence each.
#[must_use]
pub fn host_flags(samples: &[RunSample], own: &Own) -> Vec<String> {
    validity::host(samples, own)
        .iter()
        .map(StageFlag::sentence)
        .collect()
}

/// Clocks, power and temperature of the launch's GPUs over time, a line per GPU.
/// `source` is that of the run's figures. Charts without a figure are left out.
#[must_use]
pub fn host_charts(samples: &[RunSample], own: &Own, source: Source) -> Vec<ChartSpec> {
    type Pick = fn(&GpuSample) -> Option<f64>;
    let charts: [(&str, &str, &str, &str, Pick); 3] = [
        (
            "host-clocks",
            "GPU clocks during the run",
            "SM clock",
            "MHz",
            |gpu| gpu.sm_mhz.map(f64::from),
        ),
        (
            "host-power",
            "GPU power during the run",
            "Power",
            "W",
            |gpu| gpu.power_w,
        ),
        (
            "host-temperature",
            "GPU temperature during the run",
            "Temperature",
            "°C",
            |gpu| gpu.temperature_c.map(f64::from),
        ),
    ];
    charts
        .into_iter()
        .map(|(id, title, label, unit, pick)| {
            let series = series(samples, own, source, pick);
            ChartSpec {
                id: id.to_owned(),
                title: title.to_owned(),
                summary: summary(&series, label, unit),
                x: axis("Since the start of the run", "s"),
                y: Axis {
                    scale: Scale::Linear,
                    ..axis(label, unit)
                },
                notes: notes(samples, &series),
                series,
                bars: None,
                as_of: samples.last().map(|sample| sample.sample.at),
            }
        })
        .filter(|chart| !chart.is_empty())
        .collect()
}

fn series(
    samples: &[RunSample],
    own: &Own,
    source: Source,
    pick: impl Fn(&GpuSample) -> Option<f64>,
) -> Vec<Series> {
    let begun = samples
        .first()
        .map_or(Timestamp::default(), |sample| sample.sample.at);
    let mut lines: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples {
        let seconds = sample.sample.at.0.saturating_sub(begun.0) as f64 / 1e6;
        for gpu in sample.sample.gpus.iter().filter(|gpu| own.has_gpu(gpu)) {
            if let Some(value) = pick(gpu).filter(|value| value.is_finite()) {
                lines.entry(gpu.index).or_default().push((seconds, value));
            }
        }
    }
    lines
        .into_iter()
        .map(|(gpu, values)| Series {
            name: format!("GPU {gpu}"),
            colour: u8::try_from(gpu % 8).unwrap_or(0),
            mark: Mark::None,
            line: Line::Solid,
            source,
            points: thinned(&values),
        })
        .collect()
}

/// Averages of neighbours, so that a long run's line stays light.
fn thinned(values: &[(f64, f64)]) -> Vec<Point> {
    values
        .chunks(values.len().div_ceil(MOST_POINTS).max(1))
        .map(|chunk| {
            let count = chunk.len() as f64;
            Point {
                x: chunk.iter().map(|(x, _)| x).sum::<f64>() / count,
                y: chunk.iter().map(|(_, y)| y).sum::<f64>() / count,
                ..Point::default()
            }
        })
        .collect()
}

fn summary(series: &[Series], label: &str, unit: &str) -> String {
    let values = || {
        series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.y))
    };
    let (Some(least), Some(most)) = (
        values().min_by(f64::total_cmp),
        values().max_by(f64::total_cmp),
    ) else {
        return String::new();
    };
    format!(
        "{label} between {} and {} {unit} over {}.",
        text::figure(least),
        text::figure(most),
        text::plural(series.len() as u64, "GPU", "GPUs"),
    )
}

fn notes(samples: &[RunSample], series: &[Series]) -> Vec<String> {
    let drawn = series.iter().map(|series| series.points.len()).max();
    drawn
        .filter(|drawn| *drawn < samples.len() && samples.len() > MOST_POINTS)
        .map(|_| {
            format!(
                "Made from {} samples; neighbours are averaged.",
                text::count(samples.len() as u64)
            )
        })
        .into_iter()
        .collect()
}

fn axis(label: &str, unit: &str) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale: Scale::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::testing::{gpu, sample};

    #[test]
    fn a_quiet_host_has_no_flag() {
        let samples: Vec<RunSample> = (0..20)
            .map(|second| sample(second, vec![gpu(0, 2000 + u32::from(second % 3 == 0) * 15)]))
            .collect();
        assert_eq!(host_flags(&samples, &Own::default()), Vec::<String>::new());
        assert_eq!(host_flags(&[], &Own::default()), Vec::<String>::new());
    }

    #[test]
    fn what_the_host_did_is_said_in_sentences() {
        let samples: Vec<RunSample> = (0..4)
            .map(|second| {
                let mut hot = gpu(2, 2000);
                hot.temperature_c = Some(if second == 3 { 91 } else { 60 });
                if second == 0 {
                    hot.throttle = vec!["power cap".to_owned()];
                }
                let mut other = gpu(0, 2000);
                other.throttle.clone_from(&hot.throttle);
                sample(second, vec![other, hot])
            })
            .collect();
        let flags = host_flags(&samples, &Own::default());
        assert_eq!(flags.len(), 2, "{flags:?}");
        assert!(
            flags[0].starts_with(
                "Clocks were held down (power cap) on GPUs 0 and 2 in 25 % of the samples:"
            ),
            "{flags:?}"
        );
        assert_eq!(
            flags[1],
            "GPU 2 reached 91 °C. Hot GPUs slow down; look at the cooling."
        );
    }

    #[test]
    fn a_line_per_gpu_of_the_launch_and_no_chart_without_figures() {
        let samples: Vec<RunSample> = (0..3)
            .map(|second| sample(second + 100, vec![gpu(0, 2000), gpu(1, 2100), gpu(2, 9)]))
            .collect();
        let own = Own {
            gpus: Some(vec![0, 1]),
            ..Own::default()
        };
        let charts = host_charts(&samples, &own, Source::Simulated);
        assert_eq!(charts.len(), 1, "neither power nor temperature was read");
        let chart = &charts[0];
        assert_eq!(chart.series.len(), 2);
        assert_eq!(chart.series[1].source, Source::Simulated);
        let xs: Vec<f64> = chart.series[0].points.iter().map(|point| point.x).collect();
        assert_eq!(xs, [0.0, 1.0, 2.0]);
        assert_eq!(
            chart.summary,
            "SM clock between 2,000 and 2,100 MHz over 2 GPUs."
        );
        assert!(host_charts(&[], &own, Source::Measured).is_empty());
    }

    #[test]
    fn a_long_run_is_drawn_with_few_points_that_keep_the_mean() {
        let samples: Vec<RunSample> = (0..3600)
            .map(|second| {
                sample(
                    second,
                    vec![gpu(0, 2000 + u32::from(second % 2 == 0) * 100)],
                )
            })
            .collect();
        let charts = host_charts(&samples, &Own::default(), Source::Measured);
        let points = &charts[0].series[0].points;
        assert!(points.len() <= MOST_POINTS, "{}", points.len());
        let mean = points.iter().map(|point| point.y).sum::<f64>() / points.len() as f64;
        assert!((mean - 2050.0).abs() < 10.0, "{mean}");
        assert!(charts[0].notes[0].contains("3,600"));
    }
}
