//! Variables filled into words, by the rules of a POSIX shell.

use super::{
    lexer::{Part, Word},
    paste::PasteError,
    quote::{is_name, quote_word},
    read::Reading,
};

/// Variables that a login always sets, to what is not known here.
const OF_LOGIN: [&str; 7] = [
    "HOME", "USER", "LOGNAME", "PATH", "SHELL", "PWD", "HOSTNAME",
];

/// A word after filling in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) text: String,
    /// It was written without quotes, so that it may be more than a program's name.
    pub(super) plain: bool,
}

impl Reading {
    pub(super) fn assignment(&self, word: &Word) -> Result<(String, String), PasteError> {
        let text = self.joined(word)?;
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        let home = matches!(word.parts.first(), Some(Part::Text { text, quoted: false })
            if text.split_once('=').is_some_and(|(_, value)| value.starts_with('~')));
        if home {
            return Err(PasteError::Home(text.clone()));
        }
        Ok((name.to_owned(), value.to_owned()))
    }

    /// A word whose variables are filled in without being cut at blanks.
    pub(super) fn joined(&self, word: &Word) -> Result<String, PasteError> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                Part::Text { text: more, .. } => text.push_str(more),
                Part::Variable { name, fallback, .. } => {
                    text.push_str(&self.variable(name, fallback.as_deref())?);
                }
            }
        }
        Ok(text)
    }

    /// Words whose variables are filled in; outside quotes, values are cut at blanks.
    pub(super) fn fields(&mut self, words: &[Word]) -> Result<Vec<Field>, PasteError> {
        let mut fields = Vec::new();
        for word in words {
            if let Some(Part::Text {
                text,
                quoted: false,
            }) = word.parts.first()
                && text.starts_with('~')
            {
                return Err(PasteError::Home(written(word)));
            }
            let mut open: Option<String> = None;
            for part in &word.parts {
                match part {
                    Part::Text { text, quoted } => {
                        if !quoted && text.contains(['*', '?']) {
                            self.left_out.push(format!(
                                "`{}` was kept as it stands: no shell on the host looks for files that fit.",
                                cut(&written(word))
                            ));
                        }
                        open.get_or_insert_default().push_str(text);
                    }
                    Part::Variable {
                        name,
                        fallback,
                        quoted,
                    } => {
                        let value = self.variable(name, fallback.as_deref())?;
                        if *quoted {
                            open.get_or_insert_default().push_str(&value);
                            continue;
                        }
                        if value.starts_with([' ', '\t', '\n']) {
                            fields.extend(open.take().map(filled));
                        }
                        for (number, piece) in value.split_ascii_whitespace().enumerate() {
                            if number > 0 {
                                fields.extend(open.take().map(filled));
                            }
                            open.get_or_insert_default().push_str(piece);
                        }
                        if value.ends_with([' ', '\t', '\n']) {
                            fields.extend(open.take().map(filled));
                        }
                    }
                }
            }
            fields.extend(open.map(|text| Field {
                plain: word.plain() == Some(text.as_str()),
                text,
            }));
        }
        Ok(fields)
    }

    pub(super) fn variable(
        &self,
        name: &str,
        fallback: Option<&str>,
    ) -> Result<String, PasteError> {
        match (self.variables.get(name), fallback) {
            (Some(value), Some(fallback)) if value.is_empty() => Ok(fallback.to_owned()),
            (Some(value), _) => Ok(value.clone()),
            // Every login sets it, so the host's shell would not take the fallback.
            (None, Some(_)) if OF_LOGIN.contains(&name) => {
                Err(PasteError::Variable(name.to_owned()))
            }
            (None, Some(fallback)) => Ok(fallback.to_owned()),
            (None, None) => Err(PasteError::Variable(name.to_owned())),
        }
    }
}

fn filled(text: String) -> Field {
    Field { text, plain: false }
}

/// The name, if the word sets a variable.
pub(super) fn assigned_name(word: &Word) -> Option<&str> {
    match word.parts.first()? {
        Part::Text {
            text,
            quoted: false,
        } => text
            .split_once('=')
            .map(|(name, _)| name)
            .filter(|name| is_name(name)),
        _ => None,
    }
}

/// About as it was written, for sentences.
pub(super) fn written(word: &Word) -> String {
    word.parts
        .iter()
        .map(|part| match part {
            Part::Text {
                text,
                quoted: false,
            } => text.clone(),
            Part::Text { text, .. } => quote_word(text),
            Part::Variable { name, .. } => format!("${name}"),
        })
        .collect()
}

/// Cut to a length that fits a sentence.
pub(super) fn cut(text: &str) -> String {
    if text.chars().count() <= 100 {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(99).collect();
    cut.push('…');
    cut
}
