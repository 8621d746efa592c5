//! The left column: the verdict, and the configurations with their marks.

use super::{
    PictureText,
    font::Weight,
    page::{Place, Sheet, Style},
    paragraph::{Cut, Setting},
    plot::Plot,
    verdict,
};
use crate::svg::{key, line, px};

/// Sizes of the remark.
const REMARK: [Setting; 1] = [Setting {
    size: 21.0,
    lead: 29.0,
    lines: 2,
}];

/// How the list of configurations is set.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Size of the name.
    name: f64,
    /// Size of the figures.
    figures: f64,
    /// How far the figures' base line is below the name's; 0 for no figures, which the
    /// chart shows too.
    lead: f64,
    /// Distance of the names' base lines.
    pitch: f64,
    /// Size of the mark, in sizes of a page's.
    mark: f64,
}

/// From airy, for few, to tight, for many.
const ROWS: [Row; 4] = [
    Row {
        name: 28.0,
        figures: 24.0,
        lead: 35.0,
        pitch: 84.0,
        mark: 1.9,
    },
    Row {
        name: 23.0,
        figures: 20.0,
        lead: 28.0,
        pitch: 64.0,
        mark: 1.7,
    },
    Row {
        name: 20.0,
        figures: 18.0,
        lead: 24.0,
        pitch: 53.0,
        mark: 1.5,
    },
    Row {
        name: 19.0,
        figures: 17.0,
        lead: 0.0,
        pitch: 30.0,
        mark: 1.4,
    },
];
/// So many configurations the verdict leaves room for; each is read on its own page,
/// the verdict is what the picture is for.
const LEAST_ROWS: usize = 5;
/// The gaps above and below the remark.
const GAPS: f64 = 32.0;

impl Row {
    /// How far names stand from the left. Where marks are on lines, those are longer.
    fn indent(self, lines: bool) -> f64 {
        if lines { 22.0 * self.mark + 16.0 } else { 42.0 }
    }

    /// How many have room, the last of which needs no gap below it.
    fn fitting(self, room: f64) -> usize {
        let gap = self.pitch - self.lead - self.name;
        // What hangs below a base line.
        let below = self.name * 0.25;
        ((room + gap - below) / self.pitch).max(0.0) as usize
    }
}

/// Draws the column.
pub(super) fn draw(sheet: &mut Sheet, text: &PictureText, plot: Option<&Plot<'_>>, place: Place) {
    let count = text.configurations.len().min(LEAST_ROWS);
    let [.., tight] = ROWS;
    let reserved = REMARK[0].lead * REMARK[0].lines as f64 + GAPS + tight.pitch * count as f64;
    let mut place = place;
    let high = place.bottom - place.top - reserved;
    place.top = verdict::draw(sheet, &text.verdict, place, high) + GAPS / 2.0;
    let muted = (Weight::Regular, sheet.theme.muted());
    place.top = sheet.paragraph(&text.remark, muted, (&REMARK, Cut::End), place) + GAPS / 2.0;
    rows(sheet, text, plot, place);
}

/// Draws as many configurations as there is room for, and says how many more there are.
fn rows(sheet: &mut Sheet, text: &PictureText, plot: Option<&Plot<'_>>, place: Place) {
    let count = text.configurations.len();
    let room = place.bottom - place.top;
    let [.., tight] = ROWS;
    let row = ROWS
        .into_iter()
        .find(|row| row.fitting(room) >= count)
        .unwrap_or(tight);
    let fitting = row.fitting(room);
    // What is left out is said in the place of the last.
    let shown = if count <= fitting {
        count
    } else {
        fitting.saturating_sub(1)
    };
    let names = place.left + row.indent(plot.is_some_and(Plot::has_lines));
    let mut base = place.top + row.name;
    for (name, figures) in text.configurations.iter().take(shown) {
        let middle = f64::midpoint(place.left, names - 14.0);
        mark(sheet, plot, name, (middle, base - row.name * 0.36), row);
        let at = Place {
            left: names,
            ..place
        };
        let caution = plot.and_then(|plot| plot.caution(name));
        configuration(sheet, (name, figures, caution), row, base, at);
        base += row.pitch;
    }
    if shown < count && fitting > 0 {
        let words = if shown == 0 {
            format!("{count} configurations")
        } else {
            format!("and {} more", count - shown)
        };
        let style = Style {
            size: row.figures,
            weight: Weight::Regular,
            colour: sheet.theme.muted(),
        };
        sheet.text(names, base, style, &words);
    }
}

/// Writes a name with its caution, which is never cut, and the figures below.
fn configuration(
    sheet: &mut Sheet,
    (name, figures, caution): (&str, &str, Option<&str>),
    row: Row,
    base: f64,
    place: Place,
) {
    let room = place.right - place.left;
    let bold = Style {
        size: row.name,
        weight: Weight::Bold,
        colour: sheet.theme.ink(),
    };
    let plain = Style {
        size: row.figures,
        weight: Weight::Regular,
        colour: sheet.theme.muted(),
    };
    let caution = caution.map_or_else(String::new, |caution| format!(" · {caution}"));
    let name = sheet.fonts.shown(name);
    let left = room - sheet.fonts.width(&caution, bold.size, bold.weight);
    let name = sheet.fonts.fitted(&name, bold.size, bold.weight, left);
    sheet.text(place.left, base, bold, &(name + &caution));
    if row.lead > 0.0 {
        let figures = sheet.fonts.shown(figures);
        let figures = sheet.fonts.fitted(&figures, plain.size, plain.weight, room);
        sheet.text(place.left, base + row.lead, plain, &figures);
    }
}

/// The mark by which the chart shows a configuration, or a dash if it does not.
fn mark(sheet: &mut Sheet, plot: Option<&Plot<'_>>, name: &str, (x, y): (f64, f64), row: Row) {
    if let Some(sample) = plot.and_then(|plot| plot.key(name)) {
        line(
            &mut sheet.svg,
            format_args!(
                r#"<g transform="translate({} {}) scale({})">"#,
                px(x),
                px(y),
                row.mark
            ),
        );
        key(&mut sheet.svg, 0.0, 0.0, &sample, sheet.theme);
        sheet.svg.push_str("</g>\n");
    } else {
        line(
            &mut sheet.svg,
            format_args!(
                r#"<path d="M{} {}h16" stroke="{}" stroke-width="3"/>"#,
                px(x - 8.0),
                px(y),
                sheet.theme.muted()
            ),
        );
    }
}
