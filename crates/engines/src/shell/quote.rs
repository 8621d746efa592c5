//! A command line for reading and copying.

use std::fmt::Write as _;

use tokdyno_domain::profile::{CommandLine, rows};

use super::read::special_words;

/// Writes a command so that a POSIX shell starts exactly it: `cd DIR &&` if it has a
/// directory, variables in front, and one flag a line. Control characters other than
/// line feed and tab are written as `$'\x1b'`, which dash does not know.
#[must_use]
pub fn quote(command: &CommandLine) -> String {
    let mut text = String::new();
    if let Some(directory) = &command.directory {
        let dashes = if directory.starts_with('-') {
            "-- "
        } else {
            ""
        };
        let _ = write!(text, "cd {dashes}{} && ", quote_word(directory));
    }
    let all_names_fit = command.environment.iter().all(|(name, _)| is_name(name));
    // A name that no shell takes as a variable's can still be given by env.
    if !all_names_fit {
        text.push_str("env ");
        if command
            .environment
            .first()
            .is_some_and(|(name, _)| name.starts_with('-'))
        {
            text.push_str("-- ");
        }
    }
    for (name, value) in &command.environment {
        if all_names_fit {
            let _ = write!(text, "{name}={} ", quote_value(value));
        } else {
            let _ = write!(text, "{} ", quote_word(&format!("{name}={value}")));
        }
    }
    if special_words().any(|word| word == command.program) {
        let _ = write!(text, "'{}'", command.program);
    } else {
        text.push_str(&quote_word(&command.program));
    }
    for (number, row) in rows(&command.arguments).iter().enumerate() {
        let is_flag = row.first().is_some_and(|word| word.starts_with("--"));
        // The first words say what is started; they stay beside the program.
        text.push_str(if is_flag && number > 0 {
            " \\\n  "
        } else {
            " "
        });
        let words: Vec<String> = row.iter().map(|word| quote_word(word)).collect();
        text.push_str(&words.join(" "));
    }
    text
}

/// One word for a POSIX shell.
#[must_use]
pub fn quote_word(word: &str) -> String {
    // At the beginning, a shell takes `~` for a home and `NAME=` for a variable.
    if word.is_empty() || !word.chars().all(is_plain) || looks_like_assignment(word) {
        quoted(word)
    } else {
        word.to_owned()
    }
}

fn quote_value(value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else if value.chars().all(is_plain) {
        value.to_owned()
    } else {
        quoted(value)
    }
}

fn quoted(word: &str) -> String {
    let awkward = |c: char| c.is_ascii_control() && !matches!(c, '\n' | '\t');
    if !word.contains(awkward) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' => out.push_str(r"\'"),
            '\\' => out.push_str(r"\\"),
            '\r' => out.push_str(r"\r"),
            c if awkward(c) => {
                let _ = write!(out, "\\{:03o}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A character that no shell gives a meaning, wherever it stands in a word.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '%' | '=')
}

fn looks_like_assignment(word: &str) -> bool {
    !word.starts_with('-') && word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// A name that a shell takes for a variable's.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_flag_by_flag() {
        let command = CommandLine {
            program: "vllm".to_owned(),
            arguments: [
                "serve",
                "/my models/m",
                "--port",
                "8000",
                "--trust-remote-code",
                "--speculative-config",
                r#"{"method":"it's"}"#,
            ]
            .map(str::to_owned)
            .to_vec(),
            environment: vec![
                ("NCCL_PROTO".to_owned(), "LL".to_owned()),
                ("EMPTY".to_owned(), String::new()),
                ("X".to_owned(), "a $b".to_owned()),
            ],
            directory: Some("/srv/x".to_owned()),
        };
        assert_eq!(
            quote(&command),
            "cd /srv/x && NCCL_PROTO=LL EMPTY= X='a $b' vllm serve '/my models/m' \\\n  --port 8000 \\\n  --trust-remote-code \\\n  --speculative-config '{\"method\":\"it'\\''s\"}'"
        );
    }

    #[test]
    fn what_a_shell_would_understand_otherwise_is_quoted() {
        for (word, written) in [
            ("", "''"),
            ("~/x", "'~/x'"),
            ("a=b", "'a=b'"),
            ("--a=b", "--a=b"),
            ("#x", "'#x'"),
            ("*", "'*'"),
            ("a\u{1b}[1m'\\", r"$'a\033[1m\'\\'"),
            ("zwei\nZeilen", "'zwei\nZeilen'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(quote_word(word), written);
        }
    }
}
