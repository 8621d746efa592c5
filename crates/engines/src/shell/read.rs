//! Tokens into commands: variables filled in, and everything that only prepares a
//! command taken apart from it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    expand::{Field, assigned_name, cut, written},
    lexer::{Token, Word, tokens},
    paste::PasteError,
    prepare::set,
    quote::{is_name, quote_word},
};

/// A command and what holds for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: Option<String>,
}

impl Simple {
    /// The words as a shell would take them, cut to a length that fits a sentence.
    pub(super) fn shown(&self) -> String {
        let words: Vec<String> = std::iter::once(&self.program)
            .chain(&self.arguments)
            .map(|word| quote_word(word))
            .collect();
        cut(&words.join(" "))
    }
}

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) commands: Vec<Simple>,
    /// Virtual environment that was activated.
    pub(super) virtual_environment: Option<String>,
    /// Lines that prepare the shell the command starts from.
    pub(super) prelude: Vec<String>,
    /// Sentences about what was not taken over.
    pub(super) left_out: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    exported: Vec<String>,
    never_exported: BTreeSet<String>,
    pub(super) directory: Option<String>,
}

/// Programs that start another one and change little about it.
const WRAPPERS: [&str; 6] = ["nohup", "exec", "time", "setsid", "command", "disown"];
/// Commands that belong to no server's start.
const ASIDE: [&str; 27] = [
    "set",
    "shopt",
    "sleep",
    "mkdir",
    "echo",
    "pip",
    "uv",
    "pushd",
    "popd",
    "wait",
    "bg",
    "alias",
    "trap",
    "true",
    "false",
    "return",
    "exit",
    "shift",
    "local",
    "eval",
    ":",
    "clear",
    "ls",
    "pwd",
    "nvidia-smi",
    "ssh",
    "conda",
];
/// Words that begin what is more than one command.
const COMPOUND: [&str; 20] = [
    "if", "then", "fi", "for", "while", "until", "do", "done", "case", "esac", "function",
    "select", "coproc", "else", "elif", "in", "{", "}", "[[", "!",
];

/// Commands that set variables for those that follow.
const DECLARATIONS: [&str; 4] = ["export", "declare", "typeset", "readonly"];
/// Commands that are followed here.
const FOLLOWED: [&str; 9] = [
    "cd", "unset", "source", ".", "ulimit", "module", "env", "sudo", "doas",
];
/// Prompts that are copied along.
const PROMPTS: [&str; 3] = ["$", "%", ">"];

/// Words that are taken for more than a program's name where they stand unquoted at
/// the beginning of a command.
pub(super) fn special_words() -> impl Iterator<Item = &'static str> {
    DECLARATIONS
        .into_iter()
        .chain(FOLLOWED)
        .chain(PROMPTS)
        .chain(WRAPPERS)
        .chain(ASIDE)
        .chain(COMPOUND)
}

/// Reads a text.
pub(super) fn read(text: &str) -> Result<Reading, PasteError> {
    let mut reading = Reading::default();
    let mut words: Vec<Word> = Vec::new();
    // What leads to the present command: nothing, a pipe, an `||`.
    let mut skipped_after: Option<&str> = None;
    let mut tokens = tokens(text)?.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => words.push(word),
            Token::Redirect { text, whole } => {
                let target = match tokens.next_if(|next| matches!(next, Token::Word(_))) {
                    Some(Token::Word(word)) if !whole => format!(" {}", written(&word)),
                    Some(Token::Word(word)) => {
                        words.push(word);
                        String::new()
                    }
                    _ => String::new(),
                };
                reading.left_out.push(format!(
                    "The redirection `{text}{}` was left out: a launch keeps its log in a file of its own.",
                    cut(&target)
                ));
            }
            separator => {
                let command = std::mem::take(&mut words);
                match skipped_after {
                    Some(operator) if !command.is_empty() => {
                        let shown: Vec<String> = command.iter().map(written).collect();
                        reading.left_out.push(format!(
                            "`{operator} {}` was left out: a profile is one command.",
                            cut(&shown.join(" "))
                        ));
                    }
                    _ => reading.command(&command)?,
                }
                skipped_after = match separator {
                    Token::Pipe => Some("|"),
                    Token::Or => Some("||"),
                    _ => None,
                };
                if separator == Token::Background {
                    reading.left_out.push(
                        "The `&` at the end was left out: a launch goes on running by itself."
                            .to_owned(),
                    );
                }
            }
        }
    }
    for name in &reading.never_exported {
        if crate::knowledge::nccl::matters(name) {
            reading.left_out.push(format!(
                "{name} was set but not exported, so the program would not have seen it. Write `export {name}=…` if it should."
            ));
        }
    }
    Ok(reading)
}

impl Reading {
    fn command(&mut self, words: &[Word]) -> Result<(), PasteError> {
        // A prompt that was copied along.
        let words = match words {
            [first, rest @ ..] if first.plain().is_some_and(|word| PROMPTS.contains(&word)) => rest,
            all => all,
        };
        let count = words
            .iter()
            .take_while(|word| assigned_name(word).is_some())
            .count();
        let (assigned, rest) = words.split_at(count);
        let mut own = Vec::new();
        for word in assigned {
            own.push(self.assignment(word)?);
        }
        let Some(head) = rest.first() else {
            for (name, value) in own {
                if !self.exported.contains(&name) {
                    self.never_exported.insert(name.clone());
                }
                self.variables.insert(name, value);
            }
            return Ok(());
        };
        if head
            .plain()
            .is_some_and(|word| DECLARATIONS.contains(&word))
        {
            return self.export(&rest[1..]);
        }
        let fields = self
            .fields(rest)
            .map_err(|error| blame_order(error, &own))?;
        let mut environment: Vec<(String, String)> = Vec::new();
        for name in &self.exported {
            if let Some(value) = self.variables.get(name) {
                set(&mut environment, name.clone(), value.clone());
            }
        }
        for (name, value) in own {
            set(&mut environment, name, value);
        }
        self.start(&fields, environment)
    }

    fn start(
        &mut self,
        mut fields: &[Field],
        mut environment: Vec<(String, String)>,
    ) -> Result<(), PasteError> {
        loop {
            let Some((head, rest)) = fields.split_first() else {
                return Ok(());
            };
            let texts = || -> Vec<String> { rest.iter().map(|field| field.text.clone()).collect() };
            let word = if head.plain { head.text.as_str() } else { "" };
            match word {
                word if COMPOUND.contains(&word) => {
                    return Err(PasteError::Compound(word.to_owned()));
                }
                "cd" => {
                    self.change_directory(rest);
                    return Ok(());
                }
                "unset" => {
                    for name in texts() {
                        self.variables.remove(&name);
                        self.never_exported.remove(&name);
                        self.exported.retain(|other| *other != name);
                    }
                    return Ok(());
                }
                "source" | "." => {
                    self.source(&texts());
                    return Ok(());
                }
                "ulimit" | "module" => {
                    let words: Vec<String> = texts().iter().map(|word| quote_word(word)).collect();
                    self.prelude.push(format!("{word} {}", words.join(" ")));
                    return Ok(());
                }
                "env" => fields = self.env(rest, &mut environment),
                "sudo" | "doas" => fields = self.sudo(word, rest, &mut environment),
                word if WRAPPERS.contains(&word) => {
                    self.left_out.push(format!(
                        "`{word}` was left out: a launch starts the program in a process group of its own."
                    ));
                    let mut more = rest;
                    while let [first, after @ ..] = more
                        && first.plain
                        && first.text.starts_with('-')
                    {
                        more = after;
                    }
                    fields = more;
                }
                word if ASIDE.contains(&word) => {
                    let aside = Simple {
                        program: word.to_owned(),
                        arguments: texts(),
                        environment: Vec::new(),
                        directory: None,
                    };
                    let hint = if word == "conda" {
                        " Name the environment's folder as virtual environment instead."
                    } else {
                        ""
                    };
                    self.left_out.push(format!(
                        "`{}` was left out: it starts no server.{hint}",
                        aside.shown()
                    ));
                    return Ok(());
                }
                _ => {
                    self.commands.push(Simple {
                        program: head.text.clone(),
                        arguments: texts(),
                        environment,
                        directory: self.directory.clone(),
                    });
                    return Ok(());
                }
            }
        }
    }

    fn export(&mut self, words: &[Word]) -> Result<(), PasteError> {
        for word in words {
            if assigned_name(word).is_some() {
                let (name, value) = self.assignment(word)?;
                self.variables.insert(name.clone(), value);
                self.mark_exported(name);
                continue;
            }
            for field in self.fields(std::slice::from_ref(word))? {
                if is_name(&field.text) {
                    self.mark_exported(field.text);
                } else if let Some((name, value)) = field.text.split_once('=')
                    && is_name(name)
                {
                    self.variables.insert(name.to_owned(), value.to_owned());
                    self.mark_exported(name.to_owned());
                }
            }
        }
        Ok(())
    }

    fn mark_exported(&mut self, name: String) {
        self.never_exported.remove(&name);
        if !self.exported.contains(&name) {
            self.exported.push(name);
        }
    }
}

/// A variable that is set on the very command that uses it is not filled in by a
/// shell: worth a sentence of its own.
fn blame_order(error: PasteError, own: &[(String, String)]) -> PasteError {
    match error {
        PasteError::Variable(name) if own.iter().any(|(other, _)| *other == name) => {
            PasteError::TooLate(name)
        }
        other => other,
    }
}
