//! Where things stand in the picture: remarks at the foot, the legend above them,
//! and the plot in what is left.

use tokdyno_domain::{
    chart::{ChartSpec, Line, Mark},
    source::Source,
};

use super::{LABEL, SMALL, TITLE};
use crate::{
    drawable::{Drawable, Drawn},
    palette::Theme,
    scale::Scaled,
    text::{width, wrapped},
};

/// Width of the picture.
pub(super) const WIDTH: f64 = 720.0;
/// Height of the picture.
pub(super) const HEIGHT: f64 = 420.0;
/// Height of a row of the legend.
const ROW: f64 = 21.0;
/// Height of a line of remarks.
const REMARK: f64 = 17.0;
/// Most rows of the legend; more would leave no plot.
const MOST_ROWS: usize = 5;
/// Longest name in the legend, in characters.
const LONGEST_NAME: usize = 48;

/// The plot's place, its axes and what stands around it.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: Scaled,
    pub(super) y: Scaled,
    /// Lines of the title, with their base lines.
    pub(super) title: Vec<(f64, String)>,
    /// Entries of the legend, placed.
    pub(super) legend: Vec<LegendEntry>,
    /// Lines at the foot, with their base lines.
    pub(super) remarks: Vec<(f64, String)>,
}

/// An entry of the legend.
pub(super) struct LegendEntry {
    pub(super) x: f64,
    /// Base line of its text.
    pub(super) y: f64,
    /// Sample of the series; none for the remark that entries are missing.
    pub(super) key: Option<Key>,
    pub(super) text: String,
}

/// How a series looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) colour: u8,
    pub(crate) mark: Mark,
    pub(crate) line: Line,
    /// All its points are hollow.
    pub(crate) hollow: bool,
}

impl Key {
    pub(crate) fn of(series: &Drawn) -> Self {
        Self {
            colour: series.colour,
            mark: series.mark,
            line: series.line,
            hollow: !series.points.is_empty() && series.points.iter().all(|dot| dot.hollow),
        }
    }
}

impl Frame {
    pub(super) fn new(spec: &ChartSpec, drawable: &Drawable, theme: Theme) -> Self {
        let remarks = remarks(spec, drawable, theme);
        let foot = match (remarks.is_empty(), spec.as_of.is_some()) {
            (true, false) => 4.0,
            _ => remarks.len().max(1) as f64 * REMARK + 8.0,
        };
        let (mut legend, rows) = legend(drawable);
        let legend_height = rows as f64 * ROW + if rows > 0 { 8.0 } else { 0.0 };
        let title = if theme.stands_alone() {
            // Bold letters are wider.
            wrapped(&spec.title, TITLE * 1.13, WIDTH - 48.0, 2)
        } else {
            Vec::new()
        };
        let top = match title.len() {
            0 => 18.0,
            lines => 28.0 + lines as f64 * 21.0,
        };
        let title = title
            .into_iter()
            .enumerate()
            .map(|(at, text)| (30.0 + at as f64 * 21.0, text))
            .collect();
        let bottom = HEIGHT - foot - legend_height - 46.0;
        for entry in &mut legend {
            entry.y += bottom + 46.0 + 18.0;
        }
        let first = HEIGHT - 12.0 - remarks.len().saturating_sub(1) as f64 * REMARK;
        let remarks = remarks
            .into_iter()
            .enumerate()
            .map(|(at, text)| (first + at as f64 * REMARK, text))
            .collect();
        let y = Scaled::new(
            spec.y.scale,
            drawable.y_extent(),
            drawable.dots().map(|dot| dot.y),
            // A tick about every 40 pixels.
            ((bottom - top) / 40.0) as usize,
            20.0 / (bottom - top),
        );
        let left = 18.0 + LABEL + widest(&y) + 8.0;
        let right = WIDTH - 28.0;
        let x = Scaled::new(
            spec.x.scale,
            drawable.x_extent(),
            drawable.dots().map(|dot| dot.x),
            8,
            48.0 / (right - left),
        );
        Self {
            left,
            right,
            top,
            bottom,
            x,
            y,
            title,
            legend,
            remarks,
        }
    }

    /// Only the plot, with ticks and without anything around it, in a place of this
    /// size.
    pub(super) fn bare(spec: &ChartSpec, drawable: &Drawable, size: (f64, f64)) -> Self {
        let (wide, high) = size;
        let (top, bottom) = (8.0, (high - 24.0).max(16.0));
        let y = Scaled::new(
            spec.y.scale,
            drawable.y_extent(),
            drawable.dots().map(|dot| dot.y),
            ((bottom - top) / 34.0) as usize,
            20.0 / (bottom - top),
        );
        let left = widest(&y) + 10.0;
        let right = (wide - 12.0).max(left + 16.0);
        let most = ((right - left) / 50.0).clamp(1.0, 12.0) as u16;
        let x = |wanted: u16| {
            Scaled::new(
                spec.x.scale,
                drawable.x_extent(),
                drawable.dots().map(|dot| dot.x),
                usize::from(wanted),
                36.0 * f64::from(most + 1 - wanted) / (right - left),
            )
        };
        // As many ticks as stand apart with their labels.
        let apart = |x: &Scaled| {
            let least = (widest(x) + 10.0) / (right - left);
            let mut steps = x.ticks.windows(2);
            steps.all(|two| x.place(two[1].0) - x.place(two[0].0) >= least)
        };
        let x = (1..most)
            .rev()
            .map(|fewer| fewer + 1)
            .map(x)
            .find(apart)
            .unwrap_or_else(|| x(1));
        // Room for half a label at the last tick.
        let right = (wide - widest(&x) / 2.0).min(right).max(left + 16.0);
        Self {
            left,
            right,
            top,
            bottom,
            x,
            y,
            title: Vec::new(),
            legend: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Place of a value along x, in pixels.
    pub(super) fn place_x(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * (self.right - self.left)
    }

    /// Place of a value along y, in pixels.
    pub(super) fn place_y(&self, value: f64) -> f64 {
        self.bottom - self.y.place(value) * (self.bottom - self.top)
    }

    /// The middle of the plot, in whole pixels.
    pub(super) fn centre(&self) -> (f64, f64) {
        (
            f64::midpoint(self.left, self.right).round(),
            f64::midpoint(self.top, self.bottom).round(),
        )
    }
}

/// Width of an axis' widest label.
fn widest(axis: &Scaled) -> f64 {
    axis.ticks
        .iter()
        .map(|(_, label)| width(label, SMALL))
        .fold(0.0, f64::max)
}

/// The lines at the foot, the last of which leaves room for the date.
fn remarks(spec: &ChartSpec, drawable: &Drawable, theme: Theme) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut marks: Vec<String> = spec.bars.iter().cloned().collect();
    if drawable.hollow() {
        marks.push("hollow: disputed or flagged".to_owned());
    }
    if !marks.is_empty() {
        said.push(marks.join(" · "));
    }
    if drawable.simulated() {
        said.push(format!("Simulated: {}", Source::Simulated.meaning()));
    }
    said.extend(drawable.left_out_note());
    if theme.stands_alone() {
        said.extend(spec.notes.iter().take(3).cloned());
    }
    let room = WIDTH - 48.0;
    let mut lines: Vec<String> = said
        .iter()
        .flat_map(|text| wrapped(text, SMALL, room, 2))
        .collect();
    lines.truncate(6);
    if let (Some(at), Some(last)) = (spec.as_of, lines.last()) {
        let date = width(&format!("as of {}", at.exact()), SMALL);
        if width(last, SMALL) + date + 24.0 > room {
            lines.push(String::new());
        }
    }
    lines
}

/// The legend's entries, placed from `y` 0 on, and the number of rows.
fn legend(drawable: &Drawable) -> (Vec<LegendEntry>, usize) {
    const LEFT: f64 = 24.0;
    let mut entries: Vec<LegendEntry> = Vec::new();
    let (mut x, mut row) = (LEFT, 0);
    for series in &drawable.series {
        let text = series.legend_name(LONGEST_NAME);
        let wide = 28.0 + width(&text, LABEL) + 22.0;
        if x > LEFT && x + wide > WIDTH {
            x = LEFT;
            row += 1;
        }
        if row == MOST_ROWS {
            break;
        }
        entries.push(LegendEntry {
            x,
            y: row as f64 * ROW,
            key: Some(Key::of(series)),
            text,
        });
        x += wide;
    }
    let missing = drawable.series.len() - entries.len();
    if missing > 0
        && let Some(last) = entries.pop()
    {
        // The last entry gives its place to the remark, which is shorter.
        entries.push(LegendEntry {
            key: None,
            text: format!("and {} more", missing + 1),
            ..last
        });
    }
    let rows = if entries.is_empty() {
        0
    } else {
        (row + 1).min(MOST_ROWS)
    };
    (entries, rows)
}
