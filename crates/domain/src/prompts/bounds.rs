//! What prompts may be, wherever they come from.

use super::{
    ChatMessage, MAX_FILE_BYTES, MAX_GROUPS, MAX_TOKENS, PromptFileError, PromptSet, TraceRequest,
    files::check_prompts, messages::check_chat, trace,
};

impl PromptSet {
    /// Checks what a file, or somebody else's workload, may have brought.
    ///
    /// # Errors
    /// No prompt, one that cannot be sent, too many bytes, or lengths out of bounds.
    pub fn validate(&self) -> Result<(), PromptFileError> {
        match self {
            Self::Founding | Self::Varied => Ok(()),
            Self::File { name, prompts } => {
                check_size(name, prompts.len(), prompts.iter().map(String::len))?;
                check_prompts(name, prompts)
            }
            Self::Chats { name, chats } => {
                let bytes = |message: &ChatMessage| message.role.len() + message.content.len();
                check_size(name, chats.len(), chats.iter().flatten().map(bytes))?;
                check_entries(name, chats, |chat| check_chat(chat))
            }
            Self::Conversations {
                name,
                conversations,
            } => {
                let bytes = conversations.iter().flatten().map(String::len);
                check_size(name, conversations.len(), bytes)?;
                check_entries(name, conversations, |turns| {
                    if turns.is_empty() {
                        return Err("it has no turn. Leave it out.".to_owned());
                    }
                    match turns.iter().any(|turn| turn.trim().is_empty()) {
                        true => Err("a turn is blank. Leave it out.".to_owned()),
                        false => Ok(()),
                    }
                })
            }
            Self::Random { tokens } => check_tokens(*tokens),
            Self::SharedPrefix {
                groups,
                prefix_tokens,
                tokens,
            } => {
                if !(1..=MAX_GROUPS).contains(groups) {
                    return Err(PromptFileError::Groups(*groups));
                }
                check_tokens(*prefix_tokens)?;
                check_tokens(*tokens)
            }
            Self::Trace { name, requests } => {
                let each = requests.iter().map(|_| size_of::<TraceRequest>());
                check_size(name, requests.len(), each)?;
                trace::check(name, requests)
            }
        }
    }
}

fn check_size(
    name: &str,
    count: usize,
    sizes: impl Iterator<Item = usize>,
) -> Result<(), PromptFileError> {
    if count == 0 {
        return Err(PromptFileError::Empty(name.to_owned()));
    }
    let bytes = sizes.fold(0, usize::saturating_add);
    if bytes > MAX_FILE_BYTES {
        return Err(PromptFileError::TooLarge {
            name: name.to_owned(),
            bytes,
        });
    }
    Ok(())
}

/// Checks each entry; the check says what is wrong with one.
fn check_entries<T>(
    name: &str,
    entries: &[T],
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<(), PromptFileError> {
    for (entry, number) in entries.iter().zip(1..) {
        check(entry).map_err(|reason| PromptFileError::Entry {
            name: name.to_owned(),
            entry: number,
            reason,
        })?;
    }
    Ok(())
}

const fn check_tokens(tokens: u32) -> Result<(), PromptFileError> {
    if tokens == 0 || tokens > MAX_TOKENS {
        return Err(PromptFileError::Tokens(tokens));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_bounds() {
        let random = |tokens| PromptSet::Random { tokens }.validate();
        assert_eq!(random(1), Ok(()));
        assert_eq!(random(MAX_TOKENS), Ok(()));
        for tokens in [0, MAX_TOKENS + 1, u32::MAX] {
            assert_eq!(random(tokens), Err(PromptFileError::Tokens(tokens)));
        }
        let shared = |groups, prefix_tokens, tokens| {
            PromptSet::SharedPrefix {
                groups,
                prefix_tokens,
                tokens,
            }
            .validate()
        };
        assert_eq!(shared(MAX_GROUPS, 1, 1), Ok(()));
        assert_eq!(shared(0, 1, 1), Err(PromptFileError::Groups(0)));
        let many = MAX_GROUPS + 1;
        assert_eq!(shared(many, 1, 1), Err(PromptFileError::Groups(many)));
        assert_eq!(shared(1, 0, 1), Err(PromptFileError::Tokens(0)));
        assert_eq!(shared(1, 1, 0), Err(PromptFileError::Tokens(0)));
    }

    #[test]
    fn lists_from_elsewhere_are_checked() {
        let name = || "p".to_owned();
        let user = |content: &str| ChatMessage {
            role: "user".to_owned(),
            content: content.to_owned(),
        };
        let odd = ChatMessage {
            role: "tool".to_owned(),
            content: "a".to_owned(),
        };
        for (set, entry) in [
            (
                PromptSet::File {
                    name: name(),
                    prompts: vec!["a".to_owned(), " ".to_owned()],
                },
                2,
            ),
            (
                PromptSet::Chats {
                    name: name(),
                    chats: vec![vec![user("a")], vec![]],
                },
                2,
            ),
            (
                PromptSet::Chats {
                    name: name(),
                    chats: vec![vec![odd, user("a")]],
                },
                1,
            ),
            (
                PromptSet::Conversations {
                    name: name(),
                    conversations: vec![vec![]],
                },
                1,
            ),
            (
                PromptSet::Conversations {
                    name: name(),
                    conversations: vec![vec!["a".to_owned(), String::new()]],
                },
                1,
            ),
        ] {
            match set.validate() {
                Err(PromptFileError::Entry { entry: at, .. }) => assert_eq!(at, entry),
                other => panic!("{set:?}: {other:?}"),
            }
        }
        let none = PromptSet::Chats {
            name: name(),
            chats: vec![],
        };
        assert_eq!(none.validate(), Err(PromptFileError::Empty(name())));
    }
}
