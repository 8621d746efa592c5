//! The text form of Prometheus' metrics: `name{label="value",…} value [time]`.
//!
//! A line that is none is left out; so are comments. `https://prometheus.io/docs/instrumenting/exposition_formats/`

use std::{borrow::Cow, str::FromStr};

/// Most samples that are taken from one text: far more than any engine has.
const MAX_SAMPLES: usize = 200_000;
/// Most labels of a sample.
const MAX_LABELS: usize = 64;

/// One line: a number with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// The whole name, such as `vllm:e2e_request_latency_seconds_sum`.
    pub name: &'a str,
    /// In the order of the text.
    pub labels: Vec<Label<'a>>,
    /// May be infinite or not a number.
    pub value: f64,
}

/// A label of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value, escapes resolved.
    pub value: Cow<'a, str>,
}

impl Sample<'_> {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|label| label.name == name)
            .map(|label| label.value.as_ref())
    }
}

/// The samples whose name begins with one of `prefixes`, in the order of the text.
/// Moments of creation (`…_created`) are none.
pub fn samples<'a>(text: &'a str, prefixes: &'a [&'a str]) -> impl Iterator<Item = Sample<'a>> {
    text.lines()
        .map(|line| line.trim_start_matches([' ', '\t']))
        .filter(|line| prefixes.iter().any(|prefix| line.starts_with(prefix)))
        .filter_map(sample)
        .take(MAX_SAMPLES)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || name.ends_with("_created")
    {
        return None;
    }
    let rest = rest.trim_start_matches(BLANK);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    let mut words = rest.split(BLANK).filter(|word| !word.is_empty());
    let value = number(words.next()?)?;
    // A time may follow, and behind `#` an example of what was counted.
    match words.next() {
        None => {}
        Some(word) if word.starts_with('#') || number(word).is_some() => {}
        Some(_) => return None,
    }
    Some(Sample {
        name,
        labels,
        value,
    })
}

const BLANK: [char; 3] = [' ', '\t', '\r'];

/// The labels behind `{`, and what comes behind `}`.
fn labels(mut rest: &str) -> Option<(Vec<Label<'_>>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(BLANK);
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = rest.split_once('=')?;
        let inside = behind.trim_start_matches(BLANK).strip_prefix('"')?;
        let (value, behind) = quoted(inside)?;
        if labels.len() == MAX_LABELS {
            return None;
        }
        labels.push(Label {
            name: name.trim_matches(BLANK),
            value,
        });
        rest = behind.trim_start_matches(BLANK);
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// What stands before the closing quotation mark, and what comes behind it.
fn quoted(inside: &str) -> Option<(Cow<'_, str>, &str)> {
    let special = inside.find(['"', '\\'])?;
    let (plain, behind) = inside.split_at(special);
    if let Some(behind) = behind.strip_prefix('"') {
        return Some((Cow::Borrowed(plain), behind));
    }
    let mut value = plain.to_owned();
    let mut chars = behind.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), behind.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            _ => value.push(c),
        }
    }
    None
}

/// `1`, `1e9`, `+Inf`, `NaN` …
fn number(word: &str) -> Option<f64> {
    f64::from_str(word).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<Sample<'_>> {
        samples(text, &[""]).collect()
    }

    #[test]
    fn lines_are_taken_apart() {
        let text = "# HELP vllm:x Something.\n# TYPE vllm:x counter\n\
            vllm:x{engine=\"0\",model_name=\"a \\\"b\\\" c\\\\d\\n\"} 3.0\n\
            \n  plain 4 1700000000000\r\n\
            vllm:h_bucket{le=\"+Inf\",} +Inf\nvllm:h_bucket { le = \"0.5\" } 1e3 # {trace=\"1\"} 2\n\
            vllm:n{} NaN\nvllm:x_created{engine=\"0\"} 1.7e9\n";
        let found = all(text);
        let names: Vec<&str> = found.iter().map(|sample| sample.name).collect();
        assert_eq!(
            names,
            [
                "vllm:x",
                "plain",
                "vllm:h_bucket",
                "vllm:h_bucket",
                "vllm:n"
            ]
        );
        assert_eq!(found[0].label("model_name"), Some("a \"b\" c\\d\n"));
        assert_eq!(found[0].label("engine"), Some("0"));
        assert_eq!(found[0].label("other"), None);
        assert_eq!((found[0].value, found[1].value), (3.0, 4.0));
        assert_eq!(found[2].value, f64::INFINITY);
        assert_eq!(found[2].label("le"), Some("+Inf"));
        assert_eq!(found[3].label("le"), Some("0.5"));
        assert_eq!(found[3].value, 1000.0);
        assert!(found[4].value.is_nan() && found[4].labels.is_empty());
    }

    #[test]
    fn what_is_no_sample_is_left_out() {
        for line in [
            "<html>",
            "a",
            "a{",
            "a{b} 1",
            "a{b=\"c} 1",
            "a{b=\"c\" d=\"e\"} 1",
            "a{b=\"c\"}",
            "a one",
            "a 1 two",
            "9a 1",
            "{a=\"b\"} 1",
            "",
        ] {
            assert_eq!(all(line), [], "{line}");
        }
    }

    #[test]
    fn only_wanted_names_are_looked_at() {
        let text = "a:x 1\nb:x 2\nc:x 3\n";
        let names: Vec<&str> = samples(text, &["a:", "c:"])
            .map(|sample| sample.name)
            .collect();
        assert_eq!(names, ["a:x", "c:x"]);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[a-z:_0-9{}=\",\\\\#+.\\-\n\r\t éN]{0,200}") {
            for sample in samples(&text, &[""]) {
                prop_assert!(!sample.name.is_empty());
            }
        }

        #[test]
        fn what_was_written_is_read(
            name in "[a-z_:][a-z0-9_:]{0,20}x",
            labels in proptest::collection::vec(("[a-z_]{1,8}", "[ -~é\n]{0,12}"), 0..5),
            value in proptest::num::f64::NORMAL,
        ) {
            let written: Vec<String> = labels
                .iter()
                .map(|(name, value)| {
                    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                    format!("{name}=\"{escaped}\"")
                })
                .collect();
            let text = format!("# x\n{name}{{{}}} {value:?}\n", written.join(","));
            let found = all(&text);
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].name, &name);
            prop_assert_eq!(found[0].value.to_bits(), value.to_bits());
            let read: Vec<(String, String)> = found[0]
                .labels
                .iter()
                .map(|label| (label.name.to_owned(), label.value.to_string()))
                .collect();
            prop_assert_eq!(read, labels);
        }
    }
}
