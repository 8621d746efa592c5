//! Addresses of files.

use tokdyno_domain::ids::{ComparisonSlug, ExperimentId, LaunchId, RunId};

/// A file that an address names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Export {
    /// `/runs/7.json`: the result file.
    RunJson(RunId),
    /// `/runs/7.csv`: a line per stage.
    RunCsv(RunId),
    /// `/runs/7/records.csv`: a line per request.
    RecordsCsv(RunId),
    /// `/servers/7/log`: the launch's log, byte for byte.
    LaunchLog(LaunchId),
    /// `/runs/7/charts/<chart>.svg`
    RunChart {
        run: RunId,
        chart: String,
        format: ChartFormat,
    },
    /// `/experiments/7/charts/<chart>.svg`
    ExperimentChart {
        experiment: ExperimentId,
        chart: String,
        format: ChartFormat,
    },
    /// `/compare/charts/<chart>.svg?runs=1,2`
    CompareChart { chart: String, format: ChartFormat },
    /// `/board/charts/<chart>.svg?<the Board's query>`
    BoardChart { chart: String, format: ChartFormat },
    /// `/c/<slug>.json`
    Frozen {
        slug: ComparisonSlug,
        format: FrozenFormat,
    },
    /// `/c/<slug>/charts/<chart>.svg`
    FrozenChart {
        slug: ComparisonSlug,
        chart: String,
        format: ChartFormat,
    },
}

/// How a chart is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartFormat {
    Svg,
    Csv,
}

/// How a frozen comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrozenFormat {
    Json,
    Csv,
    Svg,
    /// The preview picture.
    Png,
}

impl ChartFormat {
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Csv => "csv",
        }
    }
}

impl FrozenFormat {
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }
}

impl Export {
    /// Reads a path; none where it names no file.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        match *parts.as_slice() {
            ["runs", file] => {
                let (run, extension) = file.rsplit_once('.')?;
                let run = run.parse().ok()?;
                match extension {
                    "json" => Some(Self::RunJson(run)),
                    "csv" => Some(Self::RunCsv(run)),
                    _ => None,
                }
            }
            ["runs", run, "records.csv"] => Some(Self::RecordsCsv(run.parse().ok()?)),
            ["servers", launch, "log"] => Some(Self::LaunchLog(launch.parse().ok()?)),
            ["runs", run, "charts", file] => {
                let (chart, format) = chart_file(file)?;
                Some(Self::RunChart {
                    run: run.parse().ok()?,
                    chart,
                    format,
                })
            }
            ["experiments", experiment, "charts", file] => {
                let (chart, format) = chart_file(file)?;
                Some(Self::ExperimentChart {
                    experiment: experiment.parse().ok()?,
                    chart,
                    format,
                })
            }
            ["compare", "charts", file] => {
                let (chart, format) = chart_file(file)?;
                Some(Self::CompareChart { chart, format })
            }
            ["board", "charts", file] => {
                let (chart, format) = chart_file(file)?;
                Some(Self::BoardChart { chart, format })
            }
            ["c", file] => {
                let (slug, extension) = file.rsplit_once('.')?;
                let format = match extension {
                    "json" => FrozenFormat::Json,
                    "csv" => FrozenFormat::Csv,
                    "svg" => FrozenFormat::Svg,
                    "png" => FrozenFormat::Png,
                    _ => return None,
                };
                Some(Self::Frozen {
                    slug: slug.parse().ok()?,
                    format,
                })
            }
            ["c", slug, "charts", file] => {
                let (chart, format) = chart_file(file)?;
                Some(Self::FrozenChart {
                    slug: slug.parse().ok()?,
                    chart,
                    format,
                })
            }
            _ => None,
        }
    }
}

fn chart_file(file: &str) -> Option<(String, ChartFormat)> {
    let (chart, extension) = file.rsplit_once('.')?;
    let format = match extension {
        "svg" => ChartFormat::Svg,
        "csv" => ChartFormat::Csv,
        _ => return None,
    };
    // The form of a chart's id; anything else has no place in a file name either.
    let is_id = !chart.is_empty()
        && chart
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    is_id.then(|| (chart.to_owned(), format))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLUG: &str = "000102030405060708090a0b0c0d0e0f";

    #[test]
    fn addresses_of_files() {
        assert_eq!(
            Export::of_path("/runs/7.json"),
            Some(Export::RunJson(RunId(7)))
        );
        assert_eq!(
            Export::of_path("/runs/7.csv"),
            Some(Export::RunCsv(RunId(7)))
        );
        assert_eq!(
            Export::of_path("/runs/7/records.csv"),
            Some(Export::RecordsCsv(RunId(7)))
        );
        assert_eq!(
            Export::of_path("/board/charts/board-scatter.svg"),
            Some(Export::BoardChart {
                chart: "board-scatter".to_owned(),
                format: ChartFormat::Svg
            })
        );
        assert_eq!(
            Export::of_path("/experiments/7/charts/experiment-front.csv"),
            Some(Export::ExperimentChart {
                experiment: ExperimentId(7),
                chart: "experiment-front".to_owned(),
                format: ChartFormat::Csv
            })
        );
        assert_eq!(
            Export::of_path(&format!("/c/{SLUG}.svg")),
            Some(Export::Frozen {
                slug: SLUG.parse().expect("a slug"),
                format: FrozenFormat::Svg
            })
        );
        assert!(matches!(
            Export::of_path(&format!("/c/{SLUG}/charts/a.csv")),
            Some(Export::FrozenChart { .. })
        ));
    }

    #[test]
    fn pages_and_nonsense_are_no_files() {
        for path in [
            "/",
            "/runs",
            "/runs/7",
            "/runs/new",
            "/runs/seven.json",
            "/runs/7.svg",
            "/runs/7/charts/../x.svg",
            "/runs/7/charts/A%22.svg",
            "/compare/charts/.svg",
            "/experiments/new/charts/a.svg",
            "/c/short.json",
            &format!("/c/{SLUG}"),
            &format!("/c/{SLUG}.html"),
        ] {
            assert_eq!(Export::of_path(path), None, "{path}");
        }
    }
}
