//! A chart's numbers as CSV, safe to open in a spreadsheet.

use tokdyno_domain::chart::ChartSpec;

use crate::error::FigureError;

/// The points of a chart, one line each, with a heading. Values stand as they are,
/// unrounded; what is unknown is empty.
///
/// # Errors
/// [`FigureError::Csv`] if writing fails.
pub fn csv(spec: &ChartSpec) -> Result<String, FigureError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let (x, y) = (text(&spec.x.title()), text(&spec.y.title()));
    writer.write_record([
        "series", "source", &x, &y, "x_low", "x_high", "y_low", "y_high", "n", "flagged", "note",
    ])?;
    for series in &spec.series {
        for point in &series.points {
            writer.write_record([
                text(&series.name),
                series.source.word().to_owned(),
                value(Some(point.x)),
                value(Some(point.y)),
                value(point.x_bar.map(|bar| bar.0)),
                value(point.x_bar.map(|bar| bar.1)),
                value(point.y_bar.map(|bar| bar.0)),
                value(point.y_bar.map(|bar| bar.1)),
                point.n.map_or_else(String::new, |n| n.to_string()),
                if point.hollow { "yes" } else { "" }.to_owned(),
                text(point.note.as_deref().unwrap_or_default()),
            ])?;
        }
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| ::csv::Error::from(std::io::Error::other(error.to_string())))?;
    // Only strings went in.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text as a field of a CSV file: quoted where RFC 4180 asks for it, and harmless
/// for spreadsheets.
#[must_use]
pub fn csv_field(cell: &str) -> String {
    let cell = text(cell);
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

/// Spreadsheets run cells that look like formulas; an apostrophe makes them text.
/// Numbers, which may begin with a minus, stay numbers.
fn text(cell: &str) -> String {
    let formula =
        cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if formula {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

fn value(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => {
            if value == 0.0 || (1e-9..1e15).contains(&value.abs()) {
                value.to_string()
            } else {
                format!("{value:e}")
            }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_numbers_stay() {
        for formula in ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1"] {
            assert_eq!(text(formula), format!("'{formula}"));
        }
        assert_eq!(text("-2.5"), "-2.5");
        assert_eq!(text("a = b"), "a = b");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        for (cell, field) in [
            ("plain", "plain"),
            ("b,c", "\"b,c\""),
            ("d\"e", "\"d\"\"e\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1,2", "\"'=1,2\""),
        ] {
            assert_eq!(csv_field(cell), field);
        }
    }

    #[test]
    fn values_are_exact_and_the_undefined_is_empty() {
        assert_eq!(value(Some(82.5)), "82.5");
        assert_eq!(value(Some(1e300)), "1e300");
        assert_eq!(value(Some(f64::NAN)), "");
        assert_eq!(value(None), "");
    }
}
