//! What of a chart can be drawn: finite, and above zero where the axis asks for it.
//! The rest is counted, so that a picture can say that something is missing.

use tokdyno_domain::{
    chart::{ChartSpec, Line, Mark, Scale},
    source::Source,
};

use crate::text::truncated;

/// Beyond this size a value is no measurement, and arithmetic on it overflows.
const LARGEST: f64 = 1e100;

/// A chart's points, ready to be placed.
pub(crate) struct Drawable {
    /// The series, in the order of the legend; some may have no points left.
    pub(crate) series: Vec<Drawn>,
    /// Points that cannot be placed.
    pub(crate) left_out: usize,
}

/// A series, ready to be placed.
pub(crate) struct Drawn {
    /// Its whole name.
    pub(crate) name: String,
    /// Place in the palette.
    pub(crate) colour: u8,
    /// Shape of its marks.
    pub(crate) mark: Mark,
    /// How they are joined.
    pub(crate) line: Line,
    /// Where the figures come from.
    pub(crate) source: Source,
    /// Its points.
    pub(crate) points: Vec<Dot>,
}

/// A point: finite, its bars in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dot {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) x_bar: Option<(f64, f64)>,
    pub(crate) y_bar: Option<(f64, f64)>,
    pub(crate) n: Option<u32>,
    pub(crate) hollow: bool,
    pub(crate) note: Option<String>,
}

impl Drawable {
    /// Takes from a chart what can be drawn.
    pub(crate) fn of(spec: &ChartSpec) -> Self {
        let mut left_out = 0;
        let series = spec
            .series
            .iter()
            .map(|series| {
                let points: Vec<Dot> = series
                    .points
                    .iter()
                    .filter(|point| placed(point.x, spec.x.scale) && placed(point.y, spec.y.scale))
                    .map(|point| Dot {
                        x: point.x,
                        y: point.y,
                        x_bar: bar(point.x_bar, spec.x.scale),
                        y_bar: bar(point.y_bar, spec.y.scale),
                        n: point.n,
                        hollow: point.hollow,
                        note: point.note.clone(),
                    })
                    .collect();
                left_out += series.points.len() - points.len();
                Drawn {
                    name: series.name.clone(),
                    colour: series.colour,
                    mark: series.mark,
                    line: series.line,
                    source: series.source,
                    points,
                }
            })
            .collect();
        Self { series, left_out }
    }

    /// Is there nothing to draw?
    pub(crate) fn is_empty(&self) -> bool {
        self.dots().next().is_none()
    }

    /// All points of all series.
    pub(crate) fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// Every value along x, bars included.
    pub(crate) fn x_extent(&self) -> impl Iterator<Item = f64> {
        self.dots().flat_map(|dot| ends(dot.x, dot.x_bar))
    }

    /// Every value along y, bars included.
    pub(crate) fn y_extent(&self) -> impl Iterator<Item = f64> {
        self.dots().flat_map(|dot| ends(dot.y, dot.y_bar))
    }

    /// Does any figure come from the stand-in engine?
    pub(crate) fn simulated(&self) -> bool {
        self.series
            .iter()
            .any(|series| series.source == Source::Simulated)
    }

    /// Is any point hollow?
    pub(crate) fn hollow(&self) -> bool {
        self.dots().any(|dot| dot.hollow)
    }

    /// What to say of the points that are not there.
    pub(crate) fn left_out_note(&self) -> Option<String> {
        match self.left_out {
            0 => None,
            1 => Some("1 point cannot be drawn on these axes; the table has it.".to_owned()),
            n => Some(format!(
                "{n} points cannot be drawn on these axes; the table has them."
            )),
        }
    }
}

impl Drawn {
    /// The name for a legend, cut to `most` characters, with what must not be
    /// overlooked about its source: that is never cut.
    pub(crate) fn legend_name(&self, most: usize) -> String {
        let suffix = match self.source {
            Source::Estimated | Source::Simulated => format!(" · {}", self.source.word()),
            Source::Measured | Source::Imported | Source::Recorded => String::new(),
        };
        let name = truncated(&self.name, most.saturating_sub(suffix.chars().count()));
        name + &suffix
    }
}

/// Do distances on this axis mean ratios?
pub(crate) fn is_log(scale: Scale) -> bool {
    matches!(scale, Scale::Log2 | Scale::Log10)
}

fn placed(value: f64, scale: Scale) -> bool {
    value.is_finite() && value.abs() <= LARGEST && (value > 1.0 / LARGEST || !is_log(scale))
}

/// The bar's ends in order, or no bar if one of them cannot be placed.
fn bar(ends: Option<(f64, f64)>, scale: Scale) -> Option<(f64, f64)> {
    let (a, b) = ends?;
    (placed(a, scale) && placed(b, scale)).then(|| (a.min(b), a.max(b)))
}

fn ends(value: f64, bar: Option<(f64, f64)>) -> [f64; 3] {
    let (low, high) = bar.unwrap_or((value, value));
    [low, value, high]
}
