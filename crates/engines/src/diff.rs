//! Two profiles side by side, and a profile as a page shows it before it is saved.

use tokdyno_domain::{
    profile::{Activation, ProfileSpec},
    views::profiles::{DiffLine, Draft},
};

use crate::{
    knowledge::{cautions, known, own_rows},
    shell::{quote, quote_word},
};

/// What differs between two profiles, notes apart: nothing exactly if both would
/// start the same.
#[must_use]
pub fn diff(first: &ProfileSpec, second: &ProfileSpec) -> Vec<DiffLine> {
    let (left, right) = (sheet(first), sheet(second));
    let mut lines = compare(&left, &right);
    let arguments_told = lines.iter().any(|line| {
        [&left, &right].iter().any(|sheet| {
            sheet
                .iter()
                .any(|entry| entry.kind == Kind::Argument && entry.name == line.name)
        })
    });
    if first.arguments != second.arguments && !arguments_told {
        // The same flags and values, spelled or ordered otherwise.
        lines.push(line(
            "words and order",
            joined(&first.arguments),
            joined(&second.arguments),
        ));
    }
    let names = |spec: &ProfileSpec| -> Vec<String> {
        spec.environment
            .iter()
            .map(|(name, _)| name.clone())
            .collect()
    };
    let (one, two) = (names(first), names(second));
    if lines.is_empty() && one != two {
        lines.push(line(
            "order of variables",
            Some(one.join(" ")),
            Some(two.join(" ")),
        ));
    }
    lines
}

/// A profile with everything that a page shows beside it.
#[must_use]
pub fn draft(spec: ProfileSpec, left_out: Vec<String>) -> Draft {
    Draft {
        command: quote(&spec.command()),
        cautions: cautions(&spec, None),
        known: known(&spec),
        left_out,
        error: spec.check().err().map(|error| error.to_string()),
        spec,
    }
}

/// A line of a profile's sheet.
struct Entry {
    name: String,
    value: String,
    kind: Kind,
}

/// A variable may be called like a flag or a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Field,
    Argument,
    Variable,
}

/// Everything a profile says, by name.
fn sheet(spec: &ProfileSpec) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |name: &str, value: String, kind: Kind| {
        let same = |entry: &&mut Entry| entry.name == name && entry.kind == kind;
        match entries.iter_mut().find(same) {
            // A flag given twice, or several words of their own.
            Some(entry) => {
                entry.value.push(' ');
                entry.value.push_str(&value);
            }
            None => entries.push(Entry {
                name: name.to_owned(),
                value,
                kind,
            }),
        }
    };
    add("engine", spec.engine.name().to_owned(), Kind::Field);
    add("program", spec.program.clone(), Kind::Field);
    let parameters = &spec.parameters;
    add("model", parameters.model.clone(), Kind::Field);
    if let Some(drafter) = &parameters.drafter {
        add("drafter", drafter.clone(), Kind::Field);
    }
    add(
        "tensor parallelism",
        parameters.tensor_parallel.to_string(),
        Kind::Field,
    );
    add("port", parameters.port.to_string(), Kind::Field);
    add("served name", parameters.served_name.clone(), Kind::Field);
    if let Some(directory) = &spec.directory {
        add("directory", directory.clone(), Kind::Field);
    }
    add("activation", activation(&spec.activation), Kind::Field);
    add(
        "ready time-out",
        format!("{} s", spec.ready_timeout_s),
        Kind::Field,
    );
    let rows = own_rows(spec);
    let first = rows.first().map_or(spec.arguments.len(), |row| row.start);
    if first > 0 {
        add(
            "first words",
            joined(&spec.arguments[..first]).unwrap_or_default(),
            Kind::Argument,
        );
    }
    for row in rows {
        let values: Vec<String> = row.values.iter().map(|word| quote_word(word)).collect();
        let name = if row.flag.is_some() {
            row.name()
        } else {
            "words".to_owned()
        };
        add(&name, values.join(" "), Kind::Argument);
    }
    for (name, value) in &spec.environment {
        add(name, value.clone(), Kind::Variable);
    }
    entries
}

fn compare(left: &[Entry], right: &[Entry]) -> Vec<DiffLine> {
    let find = |entries: &[Entry], wanted: &Entry| {
        entries
            .iter()
            .find(|entry| entry.name == wanted.name && entry.kind == wanted.kind)
            .map(|entry| entry.value.clone())
    };
    let mut lines: Vec<DiffLine> = left
        .iter()
        .filter_map(|entry| {
            let other = find(right, entry);
            (other.as_ref() != Some(&entry.value))
                .then(|| line(&entry.name, Some(entry.value.clone()), other))
        })
        .collect();
    lines.extend(
        right
            .iter()
            .filter(|entry| find(left, entry).is_none())
            .map(|entry| line(&entry.name, None, Some(entry.value.clone()))),
    );
    lines
}

fn line(name: &str, first: Option<String>, second: Option<String>) -> DiffLine {
    DiffLine {
        name: name.to_owned(),
        first,
        second,
    }
}

fn joined(words: &[String]) -> Option<String> {
    let quoted: Vec<String> = words.iter().map(|word| quote_word(word)).collect();
    (!quoted.is_empty()).then(|| quoted.join(" "))
}

fn activation(activation: &Activation) -> String {
    match activation {
        Activation::None => "none".to_owned(),
        Activation::VirtualEnvironment { path } => format!("virtual environment {path}"),
        Activation::Container {
            runtime,
            image,
            arguments,
        } => {
            let words: Vec<String> = arguments.iter().map(|word| quote_word(word)).collect();
            format!("{runtime} run {} {}", words.join(" "), quote_word(image))
        }
        Activation::Script { text } => format!("script: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builtin;

    fn spec(id: &str) -> ProfileSpec {
        builtin::find(id).expect(id).spec
    }

    #[test]
    fn base_and_tuned_differ_by_name() {
        let lines = diff(&spec("sglang-base"), &spec("sglang-nccl-cd4"));
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        for name in [
            "--num-continuous-decode-steps",
            "--disable-custom-all-reduce",
            "NCCL_PROTO",
            "NCCL_NTHREADS",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert_eq!(lines.len(), 8, "{lines:?}");
        assert!(lines.iter().all(|line| line.first.is_none()));
    }

    #[test]
    fn notes_are_no_difference_and_order_and_spelling_are() {
        let one = spec("sglang-base");
        let mut two = one.clone();
        two.notes = "x".to_owned();
        assert_eq!(diff(&one, &two), []);
        let port = two
            .arguments
            .iter()
            .position(|word| word == "--port")
            .expect("a port");
        two.arguments
            .splice(port..port + 2, ["--port={PORT}".to_owned()]);
        let lines = diff(&one, &two);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].name, "words and order");
        let mut three = spec("sglang-nccl-cd4");
        three.environment.reverse();
        assert_eq!(
            diff(&spec("sglang-nccl-cd4"), &three)[0].name,
            "order of variables"
        );
    }

    proptest! {
        #[test]
        fn there_is_a_line_exactly_if_the_hashes_differ(
            words in proptest::collection::vec("(--[ab]|--a=[12]|-1|x|y)", 0..5),
            others in proptest::collection::vec("(--[ab]|--a=[12]|-1|x|y)", 0..5),
            program in "[pq]", model in "[mn]",
        ) {
            let mut one = spec("vllm-baseline");
            one.arguments = words;
            let mut two = spec("vllm-baseline");
            two.arguments = others;
            two.parameters.model = model;
            one.program = "p".to_owned();
            two.program = program;
            one.parameters.model = "m".to_owned();
            prop_assert_eq!(diff(&one, &two).is_empty(), one.hash() == two.hash());
        }
    }
}
