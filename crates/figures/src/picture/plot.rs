//! The chart of a preview picture: the plot as everywhere, larger, with what its axes
//! mean above and below it. The configurations' list is its legend.

use tokdyno_domain::{
    chart::{ChartSpec, Line, Mark},
    source::Source,
};

use super::{
    font::Weight,
    page::{Place, Sheet, Style},
};
use crate::{
    drawable::{Drawable, Drawn},
    svg::{Key, bare_plot, line, px},
};

/// How much larger than in a page it is drawn.
const SCALE: f64 = 1.75;
/// Most points of a series; a preview shows no more.
const MOST_POINTS: usize = 200;
/// Most series.
const MOST_SERIES: usize = 12;
/// Size of the axes' titles.
const TITLE: f64 = 21.0;
/// Size of remarks.
const REMARK: f64 = 18.0;

/// A chart, as much of it as a preview shows.
pub(super) struct Plot<'a> {
    spec: &'a ChartSpec,
    drawable: Drawable,
    /// Points that the preview leaves out.
    thinned: usize,
}

impl<'a> Plot<'a> {
    pub(super) fn of(spec: &'a ChartSpec) -> Self {
        let mut drawable = Drawable::of(spec);
        let before = drawable.dots().count();
        drawable.series.truncate(MOST_SERIES);
        for series in &mut drawable.series {
            let every = series.points.len().div_ceil(MOST_POINTS).max(1);
            series.points = std::mem::take(&mut series.points)
                .into_iter()
                .step_by(every)
                .collect();
        }
        let thinned = before - drawable.dots().count();
        Self {
            spec,
            drawable,
            thinned,
        }
    }

    /// Is there nothing to draw?
    pub(super) fn is_empty(&self) -> bool {
        self.drawable.is_empty()
    }

    /// Does any of it come from the stand-in engine?
    pub(super) fn simulated(&self) -> bool {
        self.drawable.simulated()
    }

    /// Are any points joined?
    pub(super) fn has_lines(&self) -> bool {
        let mut series = self.drawable.series.iter();
        series.any(|series| series.line != Line::None || series.mark == Mark::None)
    }

    /// How the series of this name looks.
    pub(super) fn key(&self, name: &str) -> Option<Key> {
        self.series(name).map(Key::of)
    }

    /// What must not be overlooked about the source of the series of this name: that
    /// it is estimated, or that it alone is simulated. (If all are, the page says so.)
    pub(super) fn caution(&self, name: &str) -> Option<&'static str> {
        let source = self.series(name)?.source;
        let alone = || {
            let mut series = self.drawable.series.iter();
            series.any(|series| series.source != Source::Simulated)
        };
        (source == Source::Estimated || source == Source::Simulated && alone())
            .then(|| source.word())
    }

    fn series(&self, name: &str) -> Option<&Drawn> {
        self.drawable
            .series
            .iter()
            .find(|series| series.name == name && !series.points.is_empty())
    }

    /// Draws it.
    pub(super) fn draw(&self, sheet: &mut Sheet, place: Place) {
        let wide = place.right - place.left;
        let style = Style {
            size: TITLE,
            weight: Weight::Regular,
            colour: sheet.theme.ink(),
        };
        let y_title = sheet.fonts.shown(&self.spec.y.title());
        let y_title = sheet.fonts.fitted(&y_title, TITLE, style.weight, wide);
        sheet.text(place.left, place.top + TITLE, style, &y_title);
        let remarks = self.remarks();
        let mut base = place.bottom - 4.0;
        if !remarks.is_empty() {
            let style = Style {
                size: REMARK,
                colour: sheet.theme.muted(),
                ..style
            };
            let words = sheet.fonts.shown(&remarks.join(" · "));
            let words = sheet.fonts.fitted(&words, REMARK, style.weight, wide);
            sheet.text_before(place.right, base, style, &words);
            base -= 28.0;
        }
        let x_title = sheet.fonts.shown(&self.spec.x.title());
        let x_title = sheet.fonts.fitted(&x_title, TITLE, style.weight, wide);
        sheet.text_before(place.right, base, style, &x_title);
        let top = place.top + TITLE + 10.0;
        let high = base - TITLE - 8.0 - top;
        line(
            &mut sheet.svg,
            format_args!(
                r#"<g transform="translate({} {}) scale({SCALE})">"#,
                px(place.left),
                px(top)
            ),
        );
        let size = (wide / SCALE, high / SCALE);
        bare_plot(&mut sheet.svg, self.spec, &self.drawable, size, sheet.theme);
        sheet.svg.push_str("</g>\n");
    }

    /// What must be known to read it, the most important first.
    fn remarks(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.drawable.hollow() {
            said.push("hollow: flagged or disputed".to_owned());
        }
        let missing = self.thinned + self.drawable.left_out;
        if missing > 0 {
            let points = if missing == 1 { "point" } else { "points" };
            said.push(format!("{missing} {points} not shown"));
        }
        if let Some(bars) = &self.spec.bars {
            said.push(bars.trim_end_matches('.').to_owned());
        }
        said
    }
}
