//! Where things stand in a preview picture: title and source above, then the verdict
//! and the configurations beside the chart, brand and address below.

use tokdyno_domain::{chart::ChartSpec, source::Source};

use super::{
    PICTURE_HEIGHT, PICTURE_WIDTH, PictureError, PictureText, column,
    font::{FAMILY, Fonts, Weight},
    paragraph::{Cut, Paragraph, Setting},
    plot::Plot,
};
use crate::{
    palette::Theme,
    svg::{line, px},
    text::xml,
};

/// Distance of everything from the picture's edges.
pub(super) const MARGIN: f64 = 56.0;
/// Where the last text ends.
const RIGHT: f64 = PICTURE_WIDTH as f64 - MARGIN;
/// Where the title begins.
const HEAD: f64 = 38.0;
/// Distance of the title from the source, and from what stands below.
const GAP: f64 = 28.0;
/// Sizes of the title.
const TITLE: [Setting; 2] = [
    Setting {
        size: 30.0,
        lead: 40.0,
        lines: 1,
    },
    Setting {
        size: 24.0,
        lead: 32.0,
        lines: 2,
    },
];
/// Where verdict and chart end.
const BOTTOM: f64 = 556.0;
/// Base line of the last line.
const FOOT: f64 = 601.0;
/// Where the left column ends if there is a chart.
const COLUMN: f64 = 684.0;
/// Where the chart begins.
const CHART: f64 = 732.0;

/// A place to draw in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// What everything is drawn with.
pub(super) struct Sheet {
    pub(super) svg: String,
    pub(super) fonts: Fonts,
    pub(super) theme: Theme,
}

/// How a line of text looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style<'a> {
    pub(super) size: f64,
    pub(super) weight: Weight,
    pub(super) colour: &'a str,
}

impl Sheet {
    /// Writes a line of text that begins at `x`.
    pub(super) fn text(&mut self, x: f64, y: f64, style: Style<'_>, text: &str) {
        self.anchored(x, y, style, "start", text);
    }

    /// Writes a line of text that ends at `x`.
    pub(super) fn text_before(&mut self, x: f64, y: f64, style: Style<'_>, text: &str) {
        self.anchored(x, y, style, "end", text);
    }

    /// Sets a paragraph at the top of a place; returns where it ends.
    pub(super) fn paragraph(
        &mut self,
        text: &str,
        (weight, colour): (Weight, &str),
        (settings, cut): (&[Setting], Cut),
        place: Place,
    ) -> f64 {
        let text = self.fonts.shown(text);
        let room = place.right - place.left;
        let set = Paragraph::new(&self.fonts, &text, weight, settings, room, cut);
        let style = Style {
            size: set.setting.size,
            weight,
            colour,
        };
        for (at, words) in set.lines.iter().enumerate() {
            let base = place.top + style.size + at as f64 * set.setting.lead;
            self.text(place.left, base, style, words);
        }
        place.top + set.height()
    }

    fn anchored(&mut self, x: f64, y: f64, style: Style<'_>, anchor: &str, text: &str) {
        line(
            &mut self.svg,
            format_args!(
                r#"<text x="{}" y="{}" font-size="{}" font-weight="{}" fill="{}" text-anchor="{anchor}">{}</text>"#,
                px(x),
                px(y),
                px(style.size),
                style.weight.number(),
                style.colour,
                xml(text)
            ),
        );
    }
}

/// The picture as SVG.
pub(super) fn page(
    text: &PictureText,
    chart: Option<&ChartSpec>,
    theme: Theme,
) -> Result<String, PictureError> {
    let mut sheet = Sheet {
        svg: String::with_capacity(16 * 1024),
        fonts: Fonts::read()?,
        theme,
    };
    let plot = chart.map(Plot::of).filter(|plot| !plot.is_empty());
    line(
        &mut sheet.svg,
        format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{PICTURE_WIDTH}" height="{PICTURE_HEIGHT}" font-family="{FAMILY}">"#
        ),
    );
    line(
        &mut sheet.svg,
        format_args!(
            r#"<rect width="{PICTURE_WIDTH}" height="{PICTURE_HEIGHT}" fill="{}"/>"#,
            theme.surface()
        ),
    );
    line(
        &mut sheet.svg,
        format_args!(
            r#"<rect width="{PICTURE_WIDTH}" height="8" fill="{}"/>"#,
            theme.series(0)
        ),
    );
    let source = source(&mut sheet, text, plot.as_ref());
    let across = Place {
        left: MARGIN,
        right: RIGHT,
        top: HEAD,
        bottom: BOTTOM,
    };
    let title = sheet.paragraph(
        &text.title,
        (Weight::Regular, theme.muted()),
        (&TITLE, Cut::End),
        Place {
            right: source - GAP,
            ..across
        },
    );
    // The source takes a line even where there is no title.
    let top = title.max(HEAD + TITLE[0].lead) + GAP;
    let right = if plot.is_some() { COLUMN } else { RIGHT };
    column::draw(
        &mut sheet,
        text,
        plot.as_ref(),
        Place {
            right,
            top,
            ..across
        },
    );
    if let Some(plot) = &plot {
        plot.draw(
            &mut sheet,
            Place {
                left: CHART,
                top,
                ..across
            },
        );
    }
    foot(&mut sheet, text);
    sheet.svg.push_str("</svg>\n");
    Ok(sheet.svg)
}

/// Where the figures come from, in words; simulated ones in a box that nobody
/// overlooks. Returns where it begins.
fn source(sheet: &mut Sheet, text: &PictureText, plot: Option<&Plot<'_>>) -> f64 {
    const SIZE: f64 = 22.0;
    let theme = sheet.theme;
    let simulated = text.sources.contains(&Source::Simulated) || plot.is_some_and(Plot::simulated);
    if simulated {
        let said = "SIMULATED: says nothing about a real GPU";
        let wide = sheet.fonts.width(said, SIZE, Weight::Bold) + 36.0;
        line(
            &mut sheet.svg,
            format_args!(
                r#"<rect x="{}" y="{}" width="{}" height="42" rx="8" fill="{}" stroke="{}" stroke-width="2"/>"#,
                px(RIGHT - wide),
                px(HEAD - 3.0),
                px(wide),
                theme.warn_soft(),
                theme.warn_ink()
            ),
        );
        let style = Style {
            size: SIZE,
            weight: Weight::Bold,
            colour: theme.warn_ink(),
        };
        sheet.text_before(RIGHT - 18.0, HEAD + 26.0, style, said);
        return RIGHT - wide;
    }
    let words: Vec<&str> = Source::ALL
        .into_iter()
        .filter(|source| text.sources.contains(source))
        .map(|source| match source {
            Source::Measured => "measured",
            Source::Imported => "imported",
            Source::Recorded => "recorded by hand",
            Source::Estimated => "estimated",
            Source::Simulated => "simulated",
        })
        .collect();
    let style = Style {
        size: SIZE,
        weight: Weight::Regular,
        colour: theme.muted(),
    };
    if words.is_empty() {
        return RIGHT;
    }
    let said = format!("Figures: {}", words.join(", "));
    sheet.text_before(RIGHT, HEAD + 30.0, style, &said);
    RIGHT - sheet.fonts.width(&said, style.size, style.weight)
}

/// The gauge and the name, the address, the date.
fn foot(sheet: &mut Sheet, text: &PictureText) {
    const NAME: &str = "Tokdyno";
    let (ink, accent) = (sheet.theme.ink(), sheet.theme.series(0));
    line(
        &mut sheet.svg,
        format_args!(
            r#"<path d="M{MARGIN} {}H{RIGHT}" stroke="{}" stroke-width="1.5"/>"#,
            px(FOOT - 32.0),
            sheet.theme.grid()
        ),
    );
    line(
        &mut sheet.svg,
        format_args!(
            r#"<g transform="translate({} {})"><g fill="none" stroke-width="2.6" stroke-linecap="round"><path stroke="{ink}" d="M5 23a12 12 0 1 1 22 0"/><path stroke="{accent}" d="M16 20.5 22.5 12"/></g><circle fill="{accent}" cx="16" cy="20.5" r="2.6"/></g>"#,
            px(MARGIN - 4.0),
            px(FOOT - 23.0)
        ),
    );
    let bold = Style {
        size: 22.0,
        weight: Weight::Bold,
        colour: ink,
    };
    let plain = Style {
        size: 20.0,
        weight: Weight::Regular,
        colour: sheet.theme.muted(),
    };
    let left = MARGIN + 32.0;
    sheet.text(left, FOOT, bold, NAME);
    let left = left + sheet.fonts.width(NAME, bold.size, bold.weight) + 24.0;
    let date = text
        .frozen_at
        .map_or_else(String::new, |at| format!("frozen {}", at.exact()));
    let right = RIGHT - sheet.fonts.width(&date, plain.size, plain.weight) - 40.0;
    sheet.text_before(RIGHT, FOOT, plain, &date);
    let address = sheet.fonts.shown(&text.address);
    let address = sheet
        .fonts
        .fitted(&address, plain.size, plain.weight, right - left);
    sheet.text(left, FOOT, plain, &address);
}
