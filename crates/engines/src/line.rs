//! Text that is shown on one line.

/// Text on one line without control characters, cut to `limit` characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut words = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() > limit * 4 {
            break;
        }
    }
    if words.chars().count() <= limit {
        return words;
    }
    let mut cut: String = words.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_cut_by_characters() {
        assert_eq!(one_line(" a\r\n\tb\u{0} c ", 80), "a b c");
        assert_eq!(one_line("ééééé", 4), "ééé…");
        assert_eq!(one_line("", 4), "");
    }
}
