//! A static picture: for pages without WebAssembly, for downloads and for previews.
//! The same chart always gives the same bytes.

mod layout;
mod marks;

pub(crate) use layout::Key;
pub(crate) use marks::key;

use std::fmt::Write as _;

use tokdyno_domain::chart::ChartSpec;

use crate::{
    drawable::Drawable,
    palette::Theme,
    svg::layout::{Frame, HEIGHT, LegendEntry, WIDTH},
    text::{fitted, width, xml},
};

/// Size of the title, in pixels.
const TITLE: f64 = 16.0;
/// Size of labels, in pixels.
const LABEL: f64 = 13.0;
/// Size of ticks and remarks, in pixels.
const SMALL: f64 = 12.0;

/// Draws a chart, 720 by 420. Inside the page ([`Theme::Css`]) the page has title
/// and remarks; a file of its own carries them itself.
#[must_use]
pub fn svg(spec: &ChartSpec, theme: Theme) -> String {
    let drawable = Drawable::of(spec);
    let frame = Frame::new(spec, &drawable, theme);
    let mut out = String::with_capacity(8 * 1024);
    head(&mut out, spec, theme);
    for (y, text) in &frame.title {
        line(
            &mut out,
            format_args!(
                r#"<text x="24" y="{}" font-size="{TITLE}" font-weight="600" fill="{}">{}</text>"#,
                px(*y),
                theme.ink(),
                xml(text)
            ),
        );
    }
    plot(&mut out, spec, &drawable, &frame, theme);
    axis_titles(&mut out, spec, &frame, theme);
    for entry in &frame.legend {
        legend_entry(&mut out, entry, theme);
    }
    foot(&mut out, spec, &frame, theme);
    out.push_str("</svg>\n");
    out
}

/// Draws the plot alone, with its ticks, from the origin on, `size` wide and high:
/// for a picture that says everything else itself.
pub(crate) fn bare_plot(
    out: &mut String,
    spec: &ChartSpec,
    drawable: &Drawable,
    size: (f64, f64),
    theme: Theme,
) {
    let frame = Frame::bare(spec, drawable, size);
    plot(out, spec, drawable, &frame, theme);
}

fn plot(out: &mut String, spec: &ChartSpec, drawable: &Drawable, frame: &Frame, theme: Theme) {
    grid(out, frame, theme);
    if drawable.simulated() {
        let (x, y) = frame.centre();
        let size = ((frame.right - frame.left) / 8.0).min(44.0).round();
        line(
            out,
            format_args!(
                r#"<text x="{x}" y="{y}" font-size="{size}" letter-spacing="6" text-anchor="middle" fill="{}" opacity="0.13" aria-hidden="true">simulated</text>"#,
                theme.muted()
            ),
        );
    }
    if drawable.is_empty() {
        let (x, y) = frame.centre();
        line(
            out,
            format_args!(
                r#"<text x="{x}" y="{y}" font-size="{LABEL}" text-anchor="middle" fill="{}">Nothing to show yet.</text>"#,
                theme.muted()
            ),
        );
    }
    for series in &drawable.series {
        marks::series(out, spec, series, frame, theme);
    }
}

/// Adds one line to the picture.
pub(crate) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
    out.push('\n');
}

/// A coordinate, to a tenth of a pixel.
pub(crate) fn px(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    // Adding zero turns -0 into 0.
    format!("{}", tenths + 0.0)
}

fn head(out: &mut String, spec: &ChartSpec, theme: Theme) {
    let id: String = spec
        .id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let (title, summary) = (xml(&spec.title), xml(&spec.summary));
    line(
        out,
        format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="svg-{id}-title svg-{id}-desc" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif">"#
        ),
    );
    line(
        out,
        format_args!(r#"<title id="svg-{id}-title">{title}</title>"#),
    );
    line(
        out,
        format_args!(r#"<desc id="svg-{id}-desc">{summary}</desc>"#),
    );
    if theme.stands_alone() {
        line(
            out,
            format_args!(
                r#"<rect width="{WIDTH}" height="{HEIGHT}" fill="{}"/>"#,
                theme.surface()
            ),
        );
    }
}

fn grid(out: &mut String, frame: &Frame, theme: Theme) {
    let (left, right, top, bottom) = (
        px(frame.left),
        px(frame.right),
        px(frame.top),
        px(frame.bottom),
    );
    let (grid, muted) = (theme.grid(), theme.muted());
    line(
        out,
        format_args!(r#"<g stroke="{grid}" stroke-width="1.5">"#),
    );
    for (value, _) in &frame.y.ticks {
        let y = px(frame.place_y(*value));
        line(
            out,
            format_args!(r#"<line x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>"#),
        );
    }
    for (value, _) in &frame.x.ticks {
        let x = px(frame.place_x(*value));
        line(
            out,
            format_args!(r#"<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>"#),
        );
    }
    out.push_str("</g>\n");
    line(
        out,
        format_args!(
            r#"<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="{muted}" stroke-width="1"/>"#
        ),
    );
    line(
        out,
        format_args!(r#"<g font-size="{SMALL}" fill="{muted}" text-anchor="end">"#),
    );
    for (value, label) in &frame.y.ticks {
        line(
            out,
            format_args!(
                r#"<text x="{}" y="{}">{}</text>"#,
                px(frame.left - 8.0),
                px(frame.place_y(*value) + 4.0),
                xml(label)
            ),
        );
    }
    out.push_str("</g>\n");
    line(
        out,
        format_args!(r#"<g font-size="{SMALL}" fill="{muted}" text-anchor="middle">"#),
    );
    for (value, label) in &frame.x.ticks {
        line(
            out,
            format_args!(
                r#"<text x="{}" y="{}">{}</text>"#,
                px(frame.place_x(*value)),
                px(frame.bottom + 18.0),
                xml(label)
            ),
        );
    }
    out.push_str("</g>\n");
}

fn axis_titles(out: &mut String, spec: &ChartSpec, frame: &Frame, theme: Theme) {
    line(
        out,
        format_args!(
            r#"<g font-size="{LABEL}" fill="{}" text-anchor="middle">"#,
            theme.ink()
        ),
    );
    line(
        out,
        format_args!(
            r#"<text x="{}" y="{}">{}</text>"#,
            px(f64::midpoint(frame.left, frame.right)),
            px(frame.bottom + 38.0),
            xml(&fitted(&spec.x.title(), LABEL, frame.right - frame.left))
        ),
    );
    // A long title is set smaller, and may reach down beside the ticks' labels.
    let room = frame.bottom - frame.top + 40.0;
    let size = if width(&spec.y.title(), LABEL) > room {
        SMALL
    } else {
        LABEL
    };
    let title = fitted(&spec.y.title(), size, room);
    let half = width(&title, size) / 2.0;
    let y = px(f64::midpoint(frame.top, frame.bottom).max(frame.top + half));
    line(
        out,
        format_args!(
            r#"<text x="18" y="{y}" font-size="{size}" transform="rotate(-90 18 {y})">{}</text>"#,
            xml(&title)
        ),
    );
    out.push_str("</g>\n");
}

fn legend_entry(out: &mut String, entry: &LegendEntry, theme: Theme) {
    let centre = entry.y - 4.5;
    if let Some(key) = &entry.key {
        marks::key(out, entry.x + 11.0, centre, key, theme);
    }
    let x = if entry.key.is_some() {
        entry.x + 28.0
    } else {
        entry.x
    };
    line(
        out,
        format_args!(
            r#"<text x="{}" y="{}" font-size="{LABEL}" fill="{}">{}</text>"#,
            px(x),
            px(entry.y),
            theme.ink(),
            xml(&entry.text)
        ),
    );
}

fn foot(out: &mut String, spec: &ChartSpec, frame: &Frame, theme: Theme) {
    line(
        out,
        format_args!(r#"<g font-size="{SMALL}" fill="{}">"#, theme.muted()),
    );
    for (y, text) in &frame.remarks {
        line(
            out,
            format_args!(r#"<text x="24" y="{}">{}</text>"#, px(*y), xml(text)),
        );
    }
    if let Some(at) = spec.as_of {
        line(
            out,
            format_args!(
                r#"<text x="{}" y="{}" text-anchor="end">as of {}</text>"#,
                px(WIDTH - 20.0),
                px(HEIGHT - 12.0),
                xml(&at.exact())
            ),
        );
    }
    out.push_str("</g>\n");
}
