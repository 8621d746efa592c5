//! Why prompts cannot be used.

/// Most bytes of prompts that travel with a workload.
pub const MAX_FILE_BYTES: usize = 16 << 20;
/// Most tokens of a prompt, of a part of one, or of an answer of a trace.
pub const MAX_TOKENS: u32 = 1_000_000;
/// Most groups of prompts with a common beginning.
pub const MAX_GROUPS: u32 = 100_000;
/// Longest trace, in ms: a year.
pub const MAX_TRACE_MS: u64 = 366 * 24 * 3600 * 1000;

/// Why prompts cannot be used. Each says the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptFileError {
    /// No prompt in it.
    #[error(
        "The prompt file `{0}` holds no prompt. Put one prompt on each line, or one JSON object with a \"prompt\", \"messages\" or \"conversations\" on each line."
    )]
    Empty(String),
    /// No conversation in it.
    #[error(
        "The file of conversations `{0}` holds no question. Put one conversation on each line, as a JSON object with \"messages\" or \"conversations\"."
    )]
    NoConversations(String),
    /// No request in it.
    #[error(
        "The trace `{0}` holds no request. Put one on each line, as JSON with \"timestamp\", \"input_length\" and \"output_length\", or as CSV with a head line."
    )]
    NoRequests(String),
    /// A line, or an entry that begins on it, that cannot be used.
    #[error("Line {line} of the file `{name}` is not usable: {reason}")]
    Line {
        /// The file.
        name: String,
        /// Line number, from 1.
        line: usize,
        /// What is wrong and what to do, as a sentence's end and a sentence.
        reason: String,
    },
    /// Too large to travel with every run.
    #[error("The file `{name}` holds {bytes} bytes of prompts; at most {max} are kept with a run. Use fewer or shorter ones.", max = MAX_FILE_BYTES)]
    TooLarge {
        /// The file.
        name: String,
        /// Its size.
        bytes: usize,
    },
    /// An entry of a list that was not read from a file here.
    #[error("Entry {entry} of `{name}` cannot be sent: {reason}")]
    Entry {
        /// The file.
        name: String,
        /// Its number, from 1.
        entry: usize,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Out of 1..=[`MAX_TOKENS`].
    #[error("Prompts of {0} tokens cannot be made. Choose 1 to {max}.", max = MAX_TOKENS)]
    Tokens(u32),
    /// Out of 1..=[`MAX_GROUPS`].
    #[error("{0} groups of prompts cannot be made. Choose 1 to {max}.", max = MAX_GROUPS)]
    Groups(u32),
}
