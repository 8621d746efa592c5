//! Names that somebody may have meant.

/// Most names that are suggested.
const SHOWN: usize = 3;
/// Typing errors up to which a name is near.
const ERRORS: usize = 3;

/// The nearest names, nearest first.
pub(super) fn nearest(typed: &str, names: &[String]) -> Vec<String> {
    let mut found: Vec<(usize, &String)> = names
        .iter()
        .map(|name| {
            // What was only begun is nearer than what was mistyped.
            let begun = !typed.is_empty() && name.starts_with(typed);
            (if begun { 0 } else { distance(typed, name) }, name)
        })
        .filter(|(distance, _)| *distance <= ERRORS)
        .collect();
    found.sort_by_key(|(distance, _)| *distance);
    found
        .into_iter()
        .take(SHOWN)
        .map(|(_, name)| name.clone())
        .collect()
}

/// Characters to insert, leave out or exchange between two words.
///
/// Levenshtein, V. I. (1966), *Soviet Physics Doklady* 10: 707–710.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, a) in one.chars().enumerate() {
        let mut before = line;
        let mut left = line + 1;
        let mut next = vec![left];
        for (b, above) in other.iter().zip(row.iter().skip(1)) {
            let exchanged = before + usize::from(a != *b);
            left = exchanged.min(above + 1).min(left + 1);
            before = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        for (one, other, expected) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("tpot_p98", "tpot_p99", 1),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn what_was_begun_comes_first_and_what_is_far_not_at_all() {
        let names: Vec<String> = ["tpot_p50", "tpot_p99", "output_tps"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(nearest("tpot", &names), ["tpot_p50", "tpot_p99"]);
        assert_eq!(nearest("outputtps", &names), ["output_tps"]);
        assert!(nearest("gibberish", &names).is_empty());
    }
}
