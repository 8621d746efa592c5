//! What a chart shows, not how it is drawn. `figures` turns a [`ChartSpec`] into
//! plotly JSON, SVG and CSV; the page shows its points as a table as well.

use serde::{Deserialize, Serialize};

use crate::{ids::RunId, source::Source, timestamp::Timestamp, workload::StageKind};

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartSpec {
    /// Stem of file names and of element ids: lower-case letters, digits, dashes.
    pub id: String,
    /// Title, which says what is shown in plain words.
    pub title: String,
    /// The answer in a sentence, for people who cannot see the chart.
    pub summary: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
    /// What the bars mean, such as `bars: min–max over 3 repeats`; none if there are none.
    pub bars: Option<String>,
    /// Remarks below the chart.
    pub notes: Vec<String>,
    /// When its newest figure was made.
    pub as_of: Option<Timestamp>,
}

impl ChartSpec {
    /// Is there nothing to draw?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// Its unit, such as `tok/s`; empty for none.
    pub unit: String,
    /// How values are spaced.
    pub scale: Scale,
}

impl Axis {
    /// `label (unit)`, or the label alone.
    #[must_use]
    pub fn title(&self) -> String {
        if self.unit.is_empty() {
            self.label.clone()
        } else {
            format!("{} ({})", self.label, self.unit)
        }
    }
}

/// How values are spaced along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly, from zero on.
    #[default]
    LinearFromZero,
    /// Evenly, around the data.
    Linear,
    /// By doublings; for concurrency. Ticks stand at the points' own values.
    Log2,
    /// By powers of ten.
    Log10,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Place in the palette; series of one configuration share it across charts.
    pub colour: u8,
    /// Shape of the marks: engine.
    pub mark: Mark,
    /// Join the points by a line?
    pub line: Line,
    /// Where the figures come from.
    pub source: Source,
    /// The points.
    pub points: Vec<Point>,
}

/// Shape of a mark. Shapes, not only colours, tell engines apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// SGLang.
    #[default]
    Circle,
    /// vLLM.
    Square,
    /// Any other engine.
    Diamond,
    /// No mark: a dense line.
    None,
}

/// How points are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Not at all.
    #[default]
    None,
    /// Straight.
    Solid,
    /// Straight and dashed.
    Dashed,
    /// In steps (a distribution function).
    Steps,
}

/// A point with its uncertainty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Lower and upper end of a bar along x.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_bar: Option<(f64, f64)>,
    /// Lower and upper end of a bar along y.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_bar: Option<(f64, f64)>,
    /// Number of values behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// Disputed or flagged: drawn hollow, never best.
    #[serde(default)]
    pub hollow: bool,
    /// Extra words in the hover text and the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What it was made from, so that a reader can go on to the request records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<Behind>,
}

/// A load level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// The run.
    pub run: RunId,
    /// The load level.
    #[serde(flatten)]
    pub kind: StageKind,
}
