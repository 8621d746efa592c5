//! Lines, bars and marks.

use std::fmt::Write as _;

use tokdyno_domain::chart::{ChartSpec, Line, Mark};

use super::{
    layout::{Frame, Key},
    line, px,
};
use crate::{
    drawable::{Dot, Drawn},
    palette::Theme,
    text::{number, xml},
};

/// Half the length of a bar's cap.
const CAP: f64 = 4.0;

/// Draws a series: bars below its line, marks above both.
pub(super) fn series(
    out: &mut String,
    spec: &ChartSpec,
    series: &Drawn,
    frame: &Frame,
    theme: Theme,
) {
    if series.points.is_empty() {
        return;
    }
    let colour = theme.series(series.colour);
    line(
        out,
        format_args!(r#"<g stroke="{colour}" fill="{colour}">"#),
    );
    let bars: String = series.points.iter().map(|dot| bars(dot, frame)).collect();
    if !bars.is_empty() {
        line(
            out,
            format_args!(r#"<path d="{bars}" fill="none" stroke-width="1.5" opacity="0.75"/>"#),
        );
    }
    if series.line != Line::None && series.points.len() > 1 {
        line(
            out,
            format_args!(
                r#"<path d="{}" fill="none" stroke-width="2" stroke-linejoin="round"{}/>"#,
                path(series, frame),
                dashes(series.line)
            ),
        );
    }
    // Hundreds of points with words each would make a picture of megabytes.
    let told = series.points.len() <= 200;
    for dot in &series.points {
        let shape = shape(
            series.mark,
            frame.place_x(dot.x),
            frame.place_y(dot.y),
            if dot.hollow {
                Some(theme.surface())
            } else {
                None
            },
        );
        let Some(shape) = shape else { continue };
        if told {
            line(
                out,
                format_args!(
                    "<g><title>{}</title>{shape}</g>",
                    xml(&told_in_words(spec, series, dot))
                ),
            );
        } else {
            line(out, format_args!("{shape}"));
        }
    }
    out.push_str("</g>\n");
}

/// Draws the legend's sample of a series.
pub(crate) fn key(out: &mut String, x: f64, y: f64, key: &Key, theme: Theme) {
    let colour = theme.series(key.colour);
    line(
        out,
        format_args!(r#"<g stroke="{colour}" fill="{colour}">"#),
    );
    if key.line != Line::None || key.mark == Mark::None {
        line(
            out,
            format_args!(
                r#"<path d="M{} {}H{}" stroke-width="2"{}/>"#,
                px(x - 11.0),
                px(y),
                px(x + 11.0),
                dashes(key.line)
            ),
        );
    }
    let hollow = key.hollow.then(|| theme.surface());
    if let Some(shape) = shape(key.mark, x, y, hollow) {
        line(out, format_args!("{shape}"));
    }
    out.push_str("</g>\n");
}

fn shape(mark: Mark, x: f64, y: f64, hollow: Option<&str>) -> Option<String> {
    let fill = hollow.map_or_else(String::new, |ground| format!(r#" fill="{ground}""#));
    let rest = format!(r#"{fill} stroke-width="2""#);
    Some(match mark {
        Mark::Circle => format!(r#"<circle cx="{}" cy="{}" r="5"{rest}/>"#, px(x), px(y)),
        Mark::Square => format!(
            r#"<rect x="{}" y="{}" width="9" height="9"{rest}/>"#,
            px(x - 4.5),
            px(y - 4.5)
        ),
        Mark::Diamond => format!(
            r#"<path d="M{} {}l6 6l-6 6l-6 -6z"{rest}/>"#,
            px(x),
            px(y - 6.0)
        ),
        // A flagged point is shown even on a dense line.
        Mark::None if hollow.is_some() => {
            format!(r#"<circle cx="{}" cy="{}" r="4"{rest}/>"#, px(x), px(y))
        }
        Mark::None => return None,
    })
}

const fn dashes(joined: Line) -> &'static str {
    match joined {
        Line::Dashed => r#" stroke-dasharray="6 4""#,
        Line::None | Line::Solid | Line::Steps => "",
    }
}

fn path(series: &Drawn, frame: &Frame) -> String {
    let mut path = String::new();
    for (at, dot) in series.points.iter().enumerate() {
        let (x, y) = (px(frame.place_x(dot.x)), px(frame.place_y(dot.y)));
        let _ = match (at, series.line) {
            (0, _) => write!(path, "M{x} {y}"),
            (_, Line::Steps) => write!(path, "H{x}V{y}"),
            _ => write!(path, "L{x} {y}"),
        };
    }
    path
}

fn bars(dot: &Dot, frame: &Frame) -> String {
    let mut path = String::new();
    let (x, y) = (frame.place_x(dot.x), frame.place_y(dot.y));
    if let Some((low, high)) = dot.y_bar {
        let (low, high) = (px(frame.place_y(low)), px(frame.place_y(high)));
        let (from, to, x) = (px(x - CAP), px(x + CAP), px(x));
        let _ = write!(
            path,
            "M{x} {low}V{high}M{from} {low}H{to}M{from} {high}H{to}"
        );
    }
    if let Some((low, high)) = dot.x_bar {
        let (low, high) = (px(frame.place_x(low)), px(frame.place_x(high)));
        let (from, to, y) = (px(y - CAP), px(y + CAP), px(y));
        let _ = write!(
            path,
            "M{low} {y}H{high}M{low} {from}V{to}M{high} {from}V{to}"
        );
    }
    path
}

fn told_in_words(spec: &ChartSpec, series: &Drawn, dot: &Dot) -> String {
    let with_unit = |value: f64, unit: &str| {
        if unit.is_empty() {
            number(value)
        } else {
            format!("{} {unit}", number(value))
        }
    };
    let mut words = format!(
        "{}: {} {}, {} {}",
        series.name,
        spec.x.label,
        with_unit(dot.x, &spec.x.unit),
        spec.y.label,
        with_unit(dot.y, &spec.y.unit)
    );
    if let Some(n) = dot.n {
        let _ = write!(words, ", n = {n}");
    }
    let _ = write!(words, ", {}", series.source);
    if let Some(note) = &dot.note {
        let _ = write!(words, ", {note}");
    }
    words
}
