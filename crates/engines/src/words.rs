//! Command lines of engines taken apart: where the engine's own arguments begin, and
//! which words belong together.

use tokdyno_domain::engine::EngineKind;

use crate::knowledge::flags::{Arity, Flag, find};

/// An engine's start found in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineStart {
    /// Which engine.
    pub(crate) engine: EngineKind,
    /// Index of the engine's first own argument, the program being word 0.
    pub(crate) first: usize,
    /// It is the stand-in.
    pub(crate) simulated: bool,
}

impl EngineStart {
    /// Looks for an engine's start in the words of a command, program first.
    pub(crate) fn find(words: &[&str]) -> Option<Self> {
        (0..words.len()).find_map(|at| Self::at(words, at))
    }

    fn at(words: &[&str], at: usize) -> Option<Self> {
        let next = words.get(at + 1).copied().unwrap_or("");
        let found = |engine, first| {
            Some(Self {
                engine,
                first,
                simulated: false,
            })
        };
        match (base_name(words[at]), next) {
            ("vllm", "serve") => found(EngineKind::Vllm, at + 2),
            ("sglang", "serve") => found(EngineKind::Sglang, at + 2),
            ("-m", "vllm.entrypoints.openai.api_server") => found(EngineKind::Vllm, at + 2),
            ("-m", "vllm.entrypoints.cli.main") if words.get(at + 2).copied() == Some("serve") => {
                found(EngineKind::Vllm, at + 3)
            }
            ("-m", "sglang.launch_server") => found(EngineKind::Sglang, at + 2),
            // Only directly after a program, so that no value is taken for it.
            ("simulate", "vllm" | "sglang") if at == 1 => {
                let engine = EngineKind::from_word(next)?;
                let serve = words.get(at + 2).copied() == Some("serve");
                Some(Self {
                    engine,
                    first: at + 2 + usize::from(serve),
                    simulated: true,
                })
            }
            _ => None,
        }
    }
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A flag with its values, or a word that belongs to no flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// Index of its first word within the arguments.
    pub(crate) start: usize,
    /// The flag as spelled, without a value behind `=`; none for a word of its own.
    pub(crate) flag: Option<&'a str>,
    /// What is known of it.
    pub(crate) known: Option<&'static Flag>,
    /// Switched off: spelled `--no-…`.
    pub(crate) off: bool,
    /// The value stands behind `=` in the flag's own word.
    pub(crate) joined: bool,
    /// Its values, or the word itself.
    pub(crate) values: Vec<&'a str>,
}

impl Row<'_> {
    /// The name under which it is compared: the known one, else as spelled.
    pub(crate) fn name(&self) -> String {
        match (self.known, self.flag) {
            (Some(known), _) if self.off => {
                format!("--no-{}", known.names[0].trim_start_matches('-'))
            }
            (Some(known), _) => known.names[0].to_owned(),
            (None, Some(flag)) => flag.to_owned(),
            (None, None) => String::new(),
        }
    }

    /// Its one value: of several the last.
    pub(crate) fn value(&self) -> Option<&str> {
        self.values.last().copied()
    }
}

/// Arguments as rows. Unlike [`tokdyno_domain::profile::rows`], flags that are known
/// to take no value take none.
pub(crate) fn rows<'a>(engine: EngineKind, arguments: &'a [String]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    // How many more values the newest row takes.
    let mut open = 0_usize;
    for (start, word) in arguments.iter().enumerate() {
        let word = word.as_str();
        if !is_flag(word) {
            if open > 0
                && let Some(row) = rows.last_mut()
            {
                row.values.push(word);
                open -= 1;
            } else {
                rows.push(Row {
                    start,
                    flag: None,
                    known: None,
                    off: false,
                    joined: false,
                    values: vec![word],
                });
            }
            continue;
        }
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        let (known, off) = find(engine, flag);
        open = match (value, known.map(|known| known.arity)) {
            (Some(_), _) | (None, Some(Arity::Switch)) => 0,
            (None, _) if off => 0,
            (None, Some(Arity::One) | None) => 1,
            (None, Some(Arity::Many)) => usize::MAX,
        };
        rows.push(Row {
            start,
            flag: Some(flag),
            known,
            off,
            joined: value.is_some(),
            values: value.into_iter().collect(),
        });
    }
    rows
}

/// A word that begins a flag; a negative number does not.
pub(crate) fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(line: &str) -> Option<EngineStart> {
        let words: Vec<&str> = line.split(' ').collect();
        EngineStart::find(&words)
    }

    #[test]
    fn engines_are_found_however_they_are_started() {
        let cases = [
            ("vllm serve /m", EngineKind::Vllm, 2, false),
            (
                "/venv/bin/python3 /venv/bin/vllm serve /m",
                EngineKind::Vllm,
                3,
                false,
            ),
            (
                "python -m vllm.entrypoints.openai.api_server --model m",
                EngineKind::Vllm,
                3,
                false,
            ),
            (
                "python3 -m vllm.entrypoints.cli.main serve m",
                EngineKind::Vllm,
                4,
                false,
            ),
            (
                "python3 -u -m sglang.launch_server --model-path m",
                EngineKind::Sglang,
                4,
                false,
            ),
            ("sglang serve --model-path m", EngineKind::Sglang, 2, false),
            (
                "numactl -N 0 sglang serve --model-path m",
                EngineKind::Sglang,
                5,
                false,
            ),
            (
                "/opt/tokdyno simulate sglang --port 1",
                EngineKind::Sglang,
                3,
                true,
            ),
            ("tokdyno simulate vllm serve m", EngineKind::Vllm, 4, true),
        ];
        for (line, engine, first, simulated) in cases {
            let expected = EngineStart {
                engine,
                first,
                simulated,
            };
            assert_eq!(start(line), Some(expected), "{line}");
        }
        for other in [
            "nginx",
            "vllm bench serve",
            "python3 -m http.server",
            "x y simulate vllm",
        ] {
            assert_eq!(start(other), None, "{other}");
        }
    }

    #[test]
    fn a_switch_takes_no_value_and_a_list_takes_all() {
        let words: Vec<String> = "--trust-remote-code /m --served-model-name a b --tensor_parallel_size 8 --no-enable-prefix-caching x --odd 1 2"
            .split(' ')
            .map(str::to_owned)
            .collect();
        let found: Vec<(String, Vec<&str>)> = rows(EngineKind::Vllm, &words)
            .into_iter()
            .map(|row| (row.name(), row.values))
            .collect();
        let expected = [
            ("--trust-remote-code", vec![]),
            ("", vec!["/m"]),
            ("--served-model-name", vec!["a", "b"]),
            ("--tensor-parallel-size", vec!["8"]),
            ("--no-enable-prefix-caching", vec![]),
            ("", vec!["x"]),
            ("--odd", vec!["1"]),
            ("", vec!["2"]),
        ]
        .map(|(name, values)| (name.to_owned(), values));
        assert_eq!(found, expected);
    }
}
