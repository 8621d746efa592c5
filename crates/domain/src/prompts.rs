//! What is asked: built-in prompts and prompt files.

mod bounds;
mod error;
mod files;
mod json;
mod messages;
mod random;
mod trace;
mod varied;

use serde::{Deserialize, Serialize};

pub use self::{
    error::{MAX_FILE_BYTES, MAX_GROUPS, MAX_TOKENS, MAX_TRACE_MS, PromptFileError},
    random::Fit,
    varied::VARIED_COUNT,
};
use self::{random::words, varied::varied};

/// The three prompts of the founding notes, in full.
pub const FOUNDING: [&str; 3] = [
    "Explain the theory of general relativity in detail, including its key principles and implications.",
    "Write a Python function to implement merge sort with detailed comments explaining each step.",
    "What are the main causes and effects of climate change? Provide a comprehensive analysis.",
];

/// Where the prompts of a workload come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "set")]
pub enum PromptSet {
    /// The three of the founding notes. Each pass after the first puts a serial
    /// number in front, so that no pass meets its predecessor in the cache.
    Founding,
    /// Questions made from a subject, a task and a point of view: 120,000
    /// different ones of about twenty tokens, in an order set by the seed.
    Varied,
    /// From a file; past its end they start again with a serial number in front.
    File {
        /// The file's name, without its folder.
        name: String,
        /// The prompts, in order.
        prompts: Vec<String>,
    },
    /// Whole chats from a file, each sent as it is (system message, history, last
    /// question); past the end they start again with a serial number.
    Chats {
        /// The file's name, without its folder.
        name: String,
        /// The chats, in order.
        chats: Vec<Vec<ChatMessage>>,
    },
    /// Conversations of several turns from a file: each question is sent after the
    /// answer to the one before, with all that was said so far.
    Conversations {
        /// The file's name, without its folder.
        name: String,
        /// What the user says, turn by turn.
        conversations: Vec<Vec<String>>,
    },
    /// Random words, as many tokens as asked by the server's own count.
    Random {
        /// Prompt tokens.
        tokens: u32,
    },
    /// Groups of prompts with a common beginning, to measure the prefix cache. What
    /// the server adds to every prompt (begin marks, chat template) counts as part of
    /// the beginning: it is shared as well.
    SharedPrefix {
        /// Number of different beginnings, taken in turn.
        groups: u32,
        /// Tokens of a beginning.
        prefix_tokens: u32,
        /// Tokens of the rest, which no other prompt shares.
        tokens: u32,
    },
    /// A recorded trace: when requests came, and how long they and their answers
    /// were. The words are random.
    Trace {
        /// The file's name, without its folder.
        name: String,
        /// The requests, in the order of their times.
        requests: Vec<TraceRequest>,
    },
}

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant` …
    pub role: String,
    /// What was said.
    pub content: String,
}

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// When it came, in ms since the first one.
    pub at_ms: u64,
    /// Prompt tokens.
    pub input_tokens: u32,
    /// Completion tokens.
    pub output_tokens: u32,
}

/// What is sent as the prompt of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// A text; over the chat route, one message of the user.
    Text(String),
    /// A chat.
    Chat(Vec<ChatMessage>),
}

impl PromptSet {
    /// The word for the set.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Founding => "the three founding prompts".to_owned(),
            Self::Varied => "varied questions".to_owned(),
            Self::File { name, prompts } => format!("{name} ({} prompts)", prompts.len()),
            Self::Chats { name, chats } => format!("{name} ({} chats)", chats.len()),
            Self::Conversations {
                name,
                conversations,
            } => format!("{name} ({} conversations)", conversations.len()),
            Self::Random { tokens } => format!("random words, {tokens} tokens"),
            Self::SharedPrefix {
                groups,
                prefix_tokens,
                tokens,
            } => format!(
                "{groups} shared beginnings of {prefix_tokens} tokens, then {tokens} random ones"
            ),
            Self::Trace { name, requests } => {
                format!("{name} ({} requests)", requests.len())
            }
        }
    }

    /// How many prompts, chats, conversations or requests it lists, before they
    /// start again; none for sets that make their prompts.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no set that is valid is empty")]
    pub fn len(&self) -> Option<u64> {
        let count = match self {
            Self::Founding => FOUNDING.len(),
            Self::File { prompts, .. } => prompts.len(),
            Self::Chats { chats, .. } => chats.len(),
            Self::Conversations { conversations, .. } => conversations.len(),
            Self::Trace { requests, .. } => requests.len(),
            Self::Varied | Self::Random { .. } | Self::SharedPrefix { .. } => return None,
        };
        Some(count as u64)
    }

    /// Does it hold chats, which only the chat route takes?
    #[must_use]
    pub const fn needs_chat(&self) -> bool {
        matches!(self, Self::Chats { .. } | Self::Conversations { .. })
    }

    /// Prompt tokens asked for of the request with this index, where the set asks
    /// for any.
    #[must_use]
    pub fn asked_prompt_tokens(&self, index: u64) -> Option<u32> {
        match self {
            Self::Random { tokens } => Some(*tokens),
            Self::SharedPrefix {
                prefix_tokens,
                tokens,
                ..
            } => prefix_tokens.checked_add(*tokens),
            Self::Trace { requests, .. } => Some(pick(requests, index)?.input_tokens),
            _ => None,
        }
    }

    /// What the user says in the conversation with this index, turn by turn; none
    /// for other sets. From the second pass on, the first turn carries a serial
    /// number, and with it all that is sent of the conversation begins differently.
    #[must_use]
    pub fn conversation(&self, index: u64) -> Option<Vec<String>> {
        let Self::Conversations { conversations, .. } = self else {
            return None;
        };
        let mut turns = pick(conversations, index)?.clone();
        if let Some(first) = turns.first_mut() {
            *first = with_serial(first, pass(conversations, index));
        }
        Some(turns)
    }

    /// The prompt with this index. Equal arguments give equal prompts; different
    /// indices give different ones (for [`Self::Varied`] under one seed, for lists
    /// thanks to the serial number, for random words almost surely).
    ///
    /// Of a conversation this is the first turn.
    #[must_use]
    pub fn prompt(&self, seed: u64, index: u64, fit: &Fit) -> Prompt {
        match self {
            Self::Founding => Prompt::Text(numbered(&FOUNDING, index)),
            Self::Varied => Prompt::Text(varied(seed, index)),
            Self::File { prompts, .. } => Prompt::Text(numbered(prompts, index)),
            Self::Chats { chats, .. } => Prompt::Chat(numbered_chat(chats, index)),
            Self::Conversations { conversations, .. } => {
                let first = pick(conversations, index).and_then(|turns| turns.first());
                Prompt::Text(with_serial(
                    first.map_or("", String::as_str),
                    pass(conversations, index),
                ))
            }
            Self::Random { tokens } => Prompt::Text(words(seed, index, fit.words(*tokens))),
            Self::SharedPrefix {
                groups,
                prefix_tokens,
                tokens,
            } => {
                let group = index % u64::from(*groups).max(1);
                // Beginnings are drawn where no single prompt is.
                let beginning = fit.words(*prefix_tokens);
                let prefix = words(seed, u64::MAX - group, beginning);
                let all = fit.words(prefix_tokens.saturating_add(*tokens));
                // Rounding may take a word. A template longer than the beginning must
                // not take the rest, or prompts of a group would be alike.
                let own = fit.bare_words(*tokens).saturating_sub(1).max(1);
                let rest = words(seed, index, all.saturating_sub(beginning).max(own));
                Prompt::Text(format!("{prefix} {rest}"))
            }
            Self::Trace { requests, .. } => {
                let tokens = pick(requests, index).map_or(1, |request| request.input_tokens);
                Prompt::Text(words(seed, index, fit.words(tokens)))
            }
        }
    }
}

/// How often the list was gone through before this index.
fn pass<T>(list: &[T], index: u64) -> u64 {
    index / (list.len().max(1) as u64)
}

/// The entry for this index, the list being gone through again and again.
fn pick<T>(list: &[T], index: u64) -> Option<&T> {
    let place = index % (list.len().max(1) as u64);
    list.get(usize::try_from(place).ok()?)
}

fn with_serial(text: &str, pass: u64) -> String {
    if pass == 0 {
        text.to_owned()
    } else {
        format!("({}) {text}", pass + 1)
    }
}

/// A chat whose first message carries the serial number of later passes, so that
/// no pass shares its beginning with another.
fn numbered_chat(chats: &[Vec<ChatMessage>], index: u64) -> Vec<ChatMessage> {
    let mut chat = pick(chats, index).cloned().unwrap_or_default();
    if let Some(first) = chat.first_mut() {
        first.content = with_serial(&first.content, pass(chats, index));
    }
    chat
}

fn numbered(texts: &[impl AsRef<str>], index: u64) -> String {
    let text = pick(texts, index).map_or("", AsRef::as_ref);
    with_serial(text, pass(texts, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn founding_prompts_come_unchanged_and_then_numbered() {
        let set = PromptSet::Founding;
        let prompt = |index| set.prompt(0, index, &Fit::default());
        assert_eq!(prompt(1), Prompt::Text(FOUNDING[1].to_owned()));
        assert_eq!(prompt(4), Prompt::Text(format!("(2) {}", FOUNDING[1])));
    }

    /// The words of the prompts of the first of two groups.
    fn of_a_group(prefix_tokens: u32, tokens: u32, fit: &Fit) -> Vec<Vec<String>> {
        let set = PromptSet::SharedPrefix {
            groups: 2,
            prefix_tokens,
            tokens,
        };
        (0..20)
            .map(|place| match set.prompt(3, 2 * place, fit) {
                Prompt::Text(text) => text.split(' ').map(str::to_owned).collect(),
                Prompt::Chat(_) => Vec::new(),
            })
            .collect()
    }

    #[test]
    fn prompts_of_a_group_share_their_beginning_and_no_more() {
        for tokens_per_word in [1.0, 1.3] {
            let fit = Fit {
                tokens_per_word,
                overhead: 30.0,
            };
            for (prefix_tokens, tokens) in [(100, 20), (1000, 100), (31, 7), (500, 500)] {
                let prompts = of_a_group(prefix_tokens, tokens, &fit);
                let shared = fit.words(prefix_tokens) as usize;
                let mut rests = std::collections::HashSet::new();
                for prompt in &prompts {
                    assert_eq!(prompt[..shared], prompts[0][..shared]);
                    assert!(rests.insert(&prompt[shared..]), "{prompt:?}");
                    let made = prompt.len() as f64 * tokens_per_word + fit.overhead;
                    let asked = f64::from(prefix_tokens + tokens);
                    assert!((made - asked).abs() <= 1.0, "{made} for {asked}");
                    let own = (prompt.len() - shared) as f64 * tokens_per_word;
                    assert!((own - f64::from(tokens)).abs() <= 2.0, "{own} for {tokens}");
                }
                // Not a word more is common to all.
                assert!(
                    prompts
                        .iter()
                        .any(|prompt| prompt[shared] != prompts[0][shared])
                );
            }
        }
    }

    #[test]
    fn a_template_longer_than_the_beginning_leaves_the_rest() {
        let fit = Fit {
            tokens_per_word: 1.0,
            overhead: 200.0,
        };
        let prompts = of_a_group(10, 15, &fit);
        let all: std::collections::HashSet<_> = prompts.iter().collect();
        assert_eq!(all.len(), prompts.len());
        assert!(prompts.iter().all(|prompt| prompt.len() >= 15));
    }
}
