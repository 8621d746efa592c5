//! The files that lie beside a frozen comparison: its figures as CSV, its first
//! chart as SVG. Made once, when it is frozen, and stored.

use tokdyno_domain::{
    comparison::FrozenComparison,
    views::compare::{ClassKind, CompareRow, CompareView},
};
use tokdyno_figures::{Theme, csv_field};
use tokdyno_lab::Artefacts;

/// A comparison's files.
///
/// # Errors
/// There is no chart, and so nothing for a preview to show.
pub(super) fn artefacts(comparison: &FrozenComparison) -> Result<Artefacts, String> {
    let view = &comparison.view;
    let chart = view
        .charts
        .iter()
        .find(|chart| !chart.is_empty())
        .ok_or_else(|| match view.class.kind {
            ClassKind::Invalid => format!("{} Choose runs that can be compared.", view.class.sentence),
            _ => "These runs have no figures in common that a chart could show. Choose runs with figures.".to_owned(),
        })?;
    Ok(Artefacts {
        csv: csv(view),
        svg: tokdyno_figures::svg(chart, Theme::Light),
    })
}

/// One line per load level, metric and run, unrounded; what is unknown is empty.
fn csv<C>(view: &CompareView<C>) -> String {
    let mut lines = vec![line(&[
        "level",
        "metric",
        "unit",
        "run",
        "configuration",
        "source",
        "mean",
        "min",
        "max",
        "n",
        "ratio_to_baseline",
        "flagged",
    ])];
    for row in &view.rows {
        lines.extend(row_lines(view, row));
    }
    lines.concat()
}

fn row_lines<'a, C>(
    view: &'a CompareView<C>,
    row: &'a CompareRow,
) -> impl Iterator<Item = String> + 'a {
    view.runs.iter().zip(&row.cells).map(move |(run, cell)| {
        let level = row.kind.to_string();
        let id = run.id.to_string();
        let figures = cell.map_or_else(Default::default, |cell| {
            [
                cell.estimate.mean.to_string(),
                cell.estimate.low.to_string(),
                cell.estimate.high.to_string(),
                cell.estimate.n.to_string(),
                cell.ratio
                    .map_or_else(String::new, |ratio| ratio.to_string()),
                if cell.doubtful { "yes" } else { "" }.to_owned(),
            ]
        });
        let mut cells = vec![
            level.as_str(),
            &row.metric,
            &row.unit,
            &id,
            &run.configuration,
            run.source.word(),
        ];
        cells.extend(figures.iter().map(String::as_str));
        line(&cells)
    })
}

/// A line of CSV (RFC 4180).
fn line(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| csv_field(cell)).collect();
    format!("{}\r\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_as_the_format_asks() {
        assert_eq!(line(&["a", "b,c", "=1"]), "a,\"b,c\",'=1\r\n");
    }
}
