//! The entries of a file, with the lines on which they begin.

/// An entry: its text, and the line on which it begins, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) line: usize,
    pub(super) text: &'a str,
    /// It must be JSON: it begins like it, or stands in an array.
    pub(super) is_json: bool,
}

/// The lines that are not blank.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Entry<'_>> {
    text.lines()
        .zip(1_usize..)
        .map(|(text, line)| {
            let text = text.trim();
            Entry {
                line,
                text,
                is_json: text.starts_with(['{', '"']),
            }
        })
        .filter(|entry| !entry.text.is_empty())
}

/// Is the text a JSON array of objects or strings, rather than lines that may begin
/// with a bracket?
pub(super) fn is_array(text: &str) -> bool {
    text.trim_start()
        .strip_prefix('[')
        .is_some_and(|rest| rest.trim_start().starts_with(['{', '"']))
}

/// The elements of a JSON array, each as it stands there. A JSON reader would know
/// them as well, but not on which lines they are. What is no JSON shows when the
/// elements are read; the one that is cut off is given as far as it goes.
pub(super) fn elements(array: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let (mut line, mut depth) = (1, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    let mut start: Option<(usize, usize)> = None;
    let mut take = |start: Option<(usize, usize)>, end: usize| {
        if let Some((at, line)) = start
            && let Some(text) = array.get(at..end)
        {
            found.push(Entry {
                line,
                text: text.trim(),
                is_json: true,
            });
        }
    };
    for (at, byte) in array.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            if depth == 1 && start.is_none() && !byte.is_ascii_whitespace() && byte != b']' {
                start = Some((at, line));
            }
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        take(start.take(), at);
                    }
                }
                b',' if depth == 1 => take(start.take(), at),
                _ => {}
            }
        }
        line += usize::from(byte == b'\n');
    }
    take(start, array.len());
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn elements_know_their_lines() {
        let text = "[\n {\"a\": \"x,]\\\"}\"},\n\n  \"b\",\n[1, 2]\n]";
        let entries: Vec<(usize, &str)> = elements(text)
            .iter()
            .map(|entry| (entry.line, entry.text))
            .collect();
        assert_eq!(
            entries,
            [(2, r#"{"a": "x,]\"}"}"#), (4, "\"b\""), (5, "[1, 2]")]
        );
        assert_eq!(elements("[]"), []);
        assert_eq!(elements("[{\"a\":")[0].text, "{\"a\":");
    }

    #[test]
    fn a_bracket_alone_makes_no_array() {
        assert!(is_array(" [\n {\"a\": 1}]") && is_array("[\"a\"]"));
        assert!(!is_array("[INST] what? [/INST]") && !is_array("hello"));
    }

    proptest! {
        #[test]
        fn elements_are_those_of_the_array(
            texts in prop::collection::vec(".{0,12}", 0..8), pretty: bool,
        ) {
            let values: Vec<Value> = texts
                .iter()
                .map(|text| serde_json::json!({"value": [text, {"deep": text}]}))
                .collect();
            let text = if pretty {
                serde_json::to_string_pretty(&values)
            } else {
                serde_json::to_string(&values)
            };
            let text = text.expect("serialises");
            let read: Vec<Value> = elements(&text)
                .iter()
                .map(|entry| serde_json::from_str(entry.text).expect("an element"))
                .collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,60}") {
            elements(&text);
            elements(&format!("[{{{text}"));
        }
    }
}
