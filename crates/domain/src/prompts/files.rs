//! Prompts, chats and conversations from files.

use super::{
    ChatMessage, PromptFileError, PromptSet,
    json::{Entry, elements, is_array, lines},
    messages::{Said, blank, chat, first_question, questions, read},
};

impl PromptSet {
    /// Reads a prompt file, whose form is recognised:
    ///
    /// - plain text, a prompt on each line (blank lines are passed over);
    /// - JSONL: on each line `"…"` or `{"prompt": "…"}`, also mixed with plain text;
    /// - JSONL of chats, `{"messages": [{"role", "content"}, …]}`: each is sent as it
    ///   is, answers at its end left out;
    /// - conversations in the form of ShareGPT's files, as JSONL or as one JSON array
    ///   of `{"conversations": [{"from", "value"}, …]}`: the first question of each
    ///   is sent, with the system message before it. Those in which nobody asks
    ///   anything are passed over: the files in circulation hold some.
    ///
    /// A JSON array may hold any of these entries. Prompts and chats do not mix.
    ///
    /// # Errors
    /// No prompt, an entry that cannot be sent, or more than
    /// [`MAX_FILE_BYTES`](super::MAX_FILE_BYTES) of prompts.
    pub fn from_file(name: &str, text: &str) -> Result<Self, PromptFileError> {
        let mut prompts = Vec::new();
        let mut chats: Vec<Vec<ChatMessage>> = Vec::new();
        for entry in entries(text) {
            let failed = |reason| unusable(name, entry.line, reason);
            let said = if entry.is_json {
                read(entry.text).map_err(failed)?
            } else {
                Said::Text(entry.text.to_owned())
            };
            match said {
                Said::Text(prompt) => prompts.push(prompt),
                Said::Messages(messages) => chats.push(chat(messages).map_err(failed)?),
                Said::Turns(turns) => chats.extend(first_question(turns)),
            }
            if !prompts.is_empty() && !chats.is_empty() {
                return Err(failed(
                    "prompts and chats stand in one file, and are sent by different routes. Make two files of them."
                        .to_owned(),
                ));
            }
        }
        let name = name.to_owned();
        let set = if chats.is_empty() {
            Self::File { name, prompts }
        } else {
            Self::Chats { name, chats }
        };
        set.validate()?;
        Ok(set)
    }

    /// Reads conversations of several turns: `messages` or ShareGPT's
    /// `conversations`, as in [`Self::from_file`]. Only what the user says is taken,
    /// in its order: the answers are to come from the model that is measured, and
    /// system messages are left out. Conversations in which nobody asks anything are
    /// passed over.
    ///
    /// # Errors
    /// No conversation, an entry that is none, or more than
    /// [`MAX_FILE_BYTES`](super::MAX_FILE_BYTES).
    pub fn conversations_from_file(name: &str, text: &str) -> Result<Self, PromptFileError> {
        let mut conversations = Vec::new();
        for entry in entries(text) {
            let failed = |reason| unusable(name, entry.line, reason);
            let no_turns = || {
                failed(
                    "it holds no turns. Give each conversation as an object with \"messages\" or \"conversations\"."
                        .to_owned(),
                )
            };
            if !entry.is_json {
                return Err(no_turns());
            }
            let turns = match read(entry.text).map_err(failed)? {
                Said::Text(_) => return Err(no_turns()),
                Said::Messages(turns) | Said::Turns(turns) => questions(turns),
            };
            if !turns.is_empty() {
                conversations.push(turns);
            }
        }
        let set = Self::Conversations {
            name: name.to_owned(),
            conversations,
        };
        set.validate()?;
        Ok(set)
    }
}

pub(super) fn unusable(name: &str, line: usize, reason: String) -> PromptFileError {
    PromptFileError::Line {
        name: name.to_owned(),
        line,
        reason,
    }
}

/// A mark that some editors put at the beginning of a file.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let text = without_mark(text);
    if is_array(text) {
        elements(text)
    } else {
        lines(text).collect()
    }
}

/// Checks what did not come through [`PromptSet::from_file`].
pub(super) fn check_prompts(name: &str, prompts: &[String]) -> Result<(), PromptFileError> {
    match prompts.iter().position(|prompt| prompt.trim().is_empty()) {
        Some(at) => Err(PromptFileError::Entry {
            name: name.to_owned(),
            entry: at + 1,
            reason: blank(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
