//! Figures below each other, in as much room as there is.

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    heading: &'static str,
    /// Higher ones go first where room is short; none stays in any case.
    spare: Option<u8>,
}

impl Column {
    /// One that is always shown.
    pub(super) const fn needed(heading: &'static str) -> Self {
        Self {
            heading,
            spare: None,
        }
    }

    /// One that goes where room is short, the higher `rank` the earlier.
    pub(super) const fn spare(heading: &'static str, rank: u8) -> Self {
        Self {
            heading,
            spare: Some(rank),
        }
    }
}

/// A table, its cells as text.
#[derive(Debug)]
pub(super) struct Grid {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
    note: Option<&'static str>,
}

/// Between two columns.
const GAP: usize = 2;

impl Grid {
    pub(super) const fn new(columns: &'static [Column], rows: Vec<Vec<String>>) -> Self {
        Self {
            columns,
            rows,
            note: None,
        }
    }

    /// With a line below it.
    pub(super) const fn noted(mut self, note: &'static str) -> Self {
        self.note = Some(note);
        self
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The first column to the left, figures to the right, and what had no room
    /// named below.
    pub(super) fn fitted(&self, width: Option<usize>) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|place| self.width(place))
            .collect();
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut dropped = Vec::new();
        if let Some(room) = width {
            while line_width(&shown, &widths) > room
                && let Some(next) = self.most_spare(&shown)
            {
                shown.retain(|place| *place != next);
                dropped.push(next);
            }
        }
        let headings = self.columns.iter().map(|column| column.heading.to_owned());
        let mut out = line(&headings.collect::<Vec<_>>(), &shown, &widths);
        for row in &self.rows {
            out.push_str(&line(row, &shown, &widths));
        }
        if let Some(note) = self.note {
            out.push_str(&format!("{note}\n"));
        }
        if !dropped.is_empty() {
            dropped.sort_unstable();
            let names: Vec<&str> = dropped
                .iter()
                .filter_map(|place| self.columns.get(*place))
                .map(|column| column.heading)
                .collect();
            out.push_str(&format!(
                "No room for: {}. A wider terminal or --json shows them.\n",
                names.join(", ")
            ));
        }
        out
    }

    fn most_spare(&self, shown: &[usize]) -> Option<usize> {
        shown
            .iter()
            .copied()
            .filter_map(|place| Some((self.columns.get(place)?.spare?, place)))
            .max()
            .map(|(_, place)| place)
    }

    fn width(&self, place: usize) -> usize {
        let heading = self.columns.get(place).map(|column| column.heading);
        self.rows
            .iter()
            .filter_map(|row| row.get(place).map(String::as_str))
            .chain(heading)
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    }
}

fn line_width(shown: &[usize], widths: &[usize]) -> usize {
    let cells: usize = shown.iter().filter_map(|place| widths.get(*place)).sum();
    cells + GAP * shown.len().saturating_sub(1)
}

fn line(cells: &[String], shown: &[usize], widths: &[usize]) -> String {
    let mut out = String::new();
    for place in shown {
        let (Some(cell), Some(width)) = (cells.get(*place), widths.get(*place)) else {
            continue;
        };
        let space = " ".repeat(width - cell.chars().count());
        match place {
            0 => out.push_str(&format!("{cell}{space}")),
            _ => out.push_str(&format!("{}{space}{cell}", " ".repeat(GAP))),
        }
    }
    format!("{}\n", out.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::needed("stage"),
        Column::spare("first to go", 2),
        Column::spare("then", 1),
        Column::needed("tok/s"),
    ];

    fn grid() -> Grid {
        let row = ["1", "2", "3", "2,320"].map(str::to_owned).to_vec();
        Grid::new(&COLUMNS, vec![row])
    }

    #[test]
    fn all_stands_where_there_is_room() {
        for width in [None, Some(31), Some(500)] {
            assert_eq!(
                grid().fitted(width),
                "stage  first to go  then  tok/s\n1                2     3  2,320\n",
                "{width:?}"
            );
        }
    }

    #[test]
    fn what_is_spare_goes_and_is_named() {
        let narrow = grid().fitted(Some(30));
        assert!(
            narrow.starts_with("stage  then  tok/s\n1         3  2,320\n"),
            "{narrow}"
        );
        assert!(narrow.contains("No room for: first to go. "), "{narrow}");
        let narrowest = grid().fitted(Some(3));
        assert!(
            narrowest.starts_with("stage  tok/s\n1      2,320\n"),
            "{narrowest}"
        );
        assert!(
            narrowest.contains("No room for: first to go, then. "),
            "{narrowest}"
        );
    }
}
