//! Arguments read as flags with their values.

use crate::{engine::EngineKind, profile::is_flag};

/// What follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: a switch.
    Nothing,
    /// One value.
    One,
    /// Every word up to the next flag.
    Many,
}

/// What is known of an engine's flags. Whoever knows an engine answers for it;
/// [`PlainFlags`] goes by the spelling alone.
pub trait Flags {
    /// The name under which all spellings of a flag are one flag, such as `--tp-size`
    /// for `--tp`. `--no-` in front was taken off before.
    fn usual(&self, engine: EngineKind, spelled: &str) -> String;

    /// What follows it.
    fn takes(&self, engine: EngineKind, spelled: &str) -> Takes;
}

/// Nothing is known but the spelling: underscores are dashes, and a flag takes every
/// word up to the next one, as in the editor of profiles
/// ([`rows`](crate::profile::rows)). Two names of one flag are two flags to it, and a
/// word of its own behind a switch counts as the switch's value.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainFlags;

impl Flags for PlainFlags {
    fn usual(&self, _engine: EngineKind, spelled: &str) -> String {
        dashes(spelled)
    }

    fn takes(&self, _engine: EngineKind, _spelled: &str) -> Takes {
        Takes::Many
    }
}

/// A flag by its usual name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// Without `--no-`.
    pub(super) usual: String,
    /// Spelled `--no-…`.
    pub(super) off: bool,
}

impl Name {
    pub(super) fn of(spelled: &str, engine: EngineKind, flags: &dyn Flags) -> Self {
        match dashes(spelled).strip_prefix("--no-") {
            Some(rest) if !rest.is_empty() => Self {
                usual: flags.usual(engine, &format!("--{rest}")),
                off: true,
            },
            _ => Self {
                usual: flags.usual(engine, spelled),
                off: false,
            },
        }
    }
}

/// Words of the arguments that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Index of its first word.
    pub(super) start: usize,
    /// Index behind its last word.
    pub(super) end: usize,
    /// Which flag; none for words of their own, which no change touches.
    pub(super) name: Option<Name>,
    /// The value stands behind `=` in the flag's own word.
    pub(super) joined: bool,
}

impl Row {
    /// The flag as it stands among these words.
    pub(super) fn spelled<'a>(&self, words: &'a [String]) -> &'a str {
        let word = words[self.start].as_str();
        if self.joined {
            word.split_once('=').map_or(word, |(flag, _)| flag)
        } else {
            word
        }
    }

    /// Its values among these words, which need not be those it was read from: the
    /// same words with the placeholders filled in will do.
    pub(super) fn values(&self, words: &[String]) -> Vec<String> {
        if self.joined {
            let word = &words[self.start];
            let value = word.split_once('=').map_or("", |(_, value)| value);
            vec![value.to_owned()]
        } else {
            words[self.start + 1..self.end].to_vec()
        }
    }

    pub(super) fn is(&self, usual: &str) -> bool {
        self.name.as_ref().is_some_and(|name| name.usual == usual)
    }
}

/// The rows of a profile's arguments. `-m` with its module, and a bare `--`, say which
/// program runs and are no flags of it.
pub(super) fn rows(arguments: &[String], engine: EngineKind, flags: &dyn Flags) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    // How many more words the newest row takes.
    let mut open = 0_usize;
    for (start, word) in arguments.iter().enumerate() {
        let begins = is_flag(word);
        if let (false, 1.., Some(row)) = (begins, open, rows.last_mut()) {
            row.end = start + 1;
            open -= 1;
            continue;
        }
        let (spelled, joined) = match word.split_once('=') {
            Some((flag, _)) if begins => (flag, true),
            _ => (word.as_str(), false),
        };
        let name =
            (begins && !matches!(spelled, "-m" | "--")).then(|| Name::of(spelled, engine, flags));
        open = match &name {
            _ if joined => 0,
            Some(name) if name.off => 0,
            Some(_) => match flags.takes(engine, spelled) {
                Takes::Nothing => 0,
                Takes::One => 1,
                Takes::Many => usize::MAX,
            },
            None => usize::from(spelled == "-m"),
        };
        rows.push(Row {
            start,
            end: start + 1,
            name,
            joined,
        });
    }
    rows
}

/// Does the flag belong to speculative decoding? All of vLLM's and SGLang's begin so.
pub(super) fn is_speculation(flag: &str) -> bool {
    let flag = dashes(flag);
    flag.starts_with("--spec") || flag == "-sc"
}

/// `--max_model_len` as `--max-model-len`.
pub(super) fn dashes(flag: &str) -> String {
    if flag.starts_with("--") {
        flag.replace('_', "-")
    } else {
        flag.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::samples::words, *};

    #[test]
    fn words_of_their_own_are_told_from_flags() {
        let arguments = words("-m sglang.launch_server --ids 2 -1 --no_x --tp=4 tail --y");
        let rows = rows(&arguments, EngineKind::Sglang, &PlainFlags);
        let read: Vec<(Option<&str>, Vec<String>)> = rows
            .iter()
            .map(|row| {
                let name = row.name.as_ref().map(|name| name.usual.as_str());
                (name, row.values(&arguments))
            })
            .collect();
        assert_eq!(
            read,
            [
                (None, words("sglang.launch_server")),
                (Some("--ids"), words("2 -1")),
                (Some("--x"), Vec::new()),
                (Some("--tp"), words("4")),
                (None, Vec::new()),
                (Some("--y"), Vec::new()),
            ]
        );
        assert!(rows[2].name.as_ref().is_some_and(|name| name.off));
        assert_eq!(rows[3].spelled(&arguments), "--tp");
    }

    #[test]
    fn what_is_known_of_an_engine_is_asked() {
        struct Known;
        impl Flags for Known {
            fn usual(&self, _: EngineKind, spelled: &str) -> String {
                match spelled {
                    "--tp" => "--tp-size".to_owned(),
                    other => other.to_owned(),
                }
            }
            fn takes(&self, _: EngineKind, spelled: &str) -> Takes {
                match spelled {
                    "--switch" => Takes::Nothing,
                    _ => Takes::One,
                }
            }
        }
        let arguments = words("--switch model --tp 4 tail");
        let rows = rows(&arguments, EngineKind::Vllm, &Known);
        let bare: Vec<&str> = rows
            .iter()
            .filter(|row| row.name.is_none())
            .map(|row| arguments[row.start].as_str())
            .collect();
        assert_eq!(bare, ["model", "tail"]);
        assert!(rows[2].is("--tp-size"));
    }
}
