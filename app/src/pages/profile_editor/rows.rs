//! Rows as data: words that belong together, each with a number by which the page
//! knows it again when it moves.

/// A flag with its values, a word of its own, or a variable's name and value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Row {
    /// Its number, unique within the editor.
    pub(super) id: u32,
    /// Its words, exactly as the program gets them.
    pub(super) words: Vec<String>,
}

impl Row {
    /// The flag's name: what comes before `=`; none for a word that is no flag.
    pub(super) fn flag(&self) -> Option<&str> {
        let first = self.words.first()?;
        let name = first.split('=').next().unwrap_or(first);
        (name.len() > 1 && name.starts_with('-') && name.parse::<f64>().is_err()).then_some(name)
    }
}

/// Which way a row moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// Exchanges a row with its neighbour; whether there was one.
pub(super) fn shift(rows: &mut [Row], id: u32, way: Way) -> bool {
    let Some(place) = rows.iter().position(|row| row.id == id) else {
        return false;
    };
    let other = match way {
        Way::Up => place.checked_sub(1),
        Way::Down => Some(place + 1).filter(|other| *other < rows.len()),
    };
    let Some(other) = other else {
        return false;
    };
    rows.swap(place, other);
    true
}

/// Puts a row after another, or at the end.
pub(super) fn insert_after(rows: &mut Vec<Row>, after: Option<u32>, row: Row) {
    let place = after
        .and_then(|after| rows.iter().position(|row| row.id == after))
        .map_or(rows.len(), |place| place + 1);
    rows.insert(place, row);
}

/// The index of a row's first word among all words.
pub(super) fn first_word(rows: &[Row], id: u32) -> Option<usize> {
    let place = rows.iter().position(|row| row.id == id)?;
    Some(rows[..place].iter().map(|row| row.words.len()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        [vec!["serve"], vec!["--tp", "8"], vec!["--flag"]]
            .into_iter()
            .zip(1..)
            .map(|(words, id)| Row {
                id,
                words: words.into_iter().map(str::to_owned).collect(),
            })
            .collect()
    }

    #[test]
    fn rows_move_until_the_edge() {
        let mut rows = rows();
        assert!(shift(&mut rows, 2, Way::Up));
        assert!(!shift(&mut rows, 2, Way::Up));
        assert!(shift(&mut rows, 2, Way::Down) && shift(&mut rows, 2, Way::Down));
        assert!(!shift(&mut rows, 2, Way::Down) && !shift(&mut rows, 9, Way::Up));
        let order: Vec<u32> = rows.iter().map(|row| row.id).collect();
        assert_eq!(order, [1, 3, 2]);
    }

    #[test]
    fn a_row_knows_where_its_words_begin() {
        let mut rows = rows();
        assert_eq!(first_word(&rows, 3), Some(3));
        insert_after(
            &mut rows,
            Some(1),
            Row {
                id: 4,
                words: vec![String::new()],
            },
        );
        assert_eq!(first_word(&rows, 3), Some(4));
        assert_eq!(first_word(&rows, 7), None);
    }

    #[test]
    fn only_flags_have_a_flags_name() {
        let flag = |word: &str| {
            Row {
                id: 1,
                words: vec![word.to_owned()],
            }
            .flag()
            .map(str::to_owned)
        };
        assert_eq!(flag("--tp=8").as_deref(), Some("--tp"));
        for word in ["serve", "-", "-1", ""] {
            assert_eq!(flag(word), None, "{word}");
        }
    }
}
