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
                some(prompts, name, PromptFileError::Empty)?;
                check_size(name, prompts.iter().map(String::len))?;
                check_prompts(name, prompts)?;
                check_entries(name, prompts, |prompt| storable(prompt))
            }
            Self::Chats { name, chats } => {
                let bytes = |message: &ChatMessage| message.role.len() + message.content.len();
                some(chats, name, PromptFileError::Empty)?;
                check_size(name, chats.iter().flatten().map(bytes))?;
                check_entries(name, chats, |chat| {
                    check_chat(chat)?;
                    chat.iter().try_for_each(|said| storable(&said.content))
                })
            }
            Self::Conversations {
                name,
                conversations,
            } => {
                let bytes = conversations.iter().flatten().map(String::len);
                some(conversations, name, PromptFileError::NoConversations)?;
                check_size(name, bytes)?;
                check_entries(name, conversations, |turns| {
                    if turns.is_empty() {
                        return Err("it has no turn. Leave it out.".to_owned());
                    }
                    if turns.iter().any(|turn| turn.trim().is_empty()) {
                        return Err("a turn is blank. Leave it out.".to_owned());
                    }
                    turns.iter().try_for_each(|turn| storable(turn))
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
                some(requests, name, PromptFileError::NoRequests)?;
                check_size(name, each)?;
                trace::check(name, requests)
            }
        }
    }
}

/// Refuses a list of nothing.
fn some<T>(
    entries: &[T],
    name: &str,
    none: impl Fn(String) -> PromptFileError,
) -> Result<(), PromptFileError> {
    match entries {
        [] => Err(none(name.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses what a measurement could send and no database could keep.
fn storable(text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err(
            "it holds a NUL character, which cannot be stored. Remove it from the file.".to_owned(),
        );
    }
    Ok(())
}

fn check_size(name: &str, sizes: impl Iterator<Item = usize>) -> Result<(), PromptFileError> {
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
    fn a_list_of_nothing_is_named_as_what_it_is() {
        for (set, says) in [
            (PromptSet::from_file("f", "\n"), "The prompt file `f`"),
            (
                PromptSet::conversations_from_file("f", ""),
                "The file of conversations `f`",
            ),
            (PromptSet::trace_from_file("f", ""), "The trace `f`"),
        ] {
            let error = set.expect_err("nothing in it").to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_stored_is_named_by_its_place() {
        let chat = r#"{"messages": [{"role": "user", "content": "a\u0000b"}]}"#;
        let sound = r#"{"messages": [{"role": "user", "content": "a"}]}"#;
        for set in [
            PromptSet::from_file("f", "one\ntw\0o\n"),
            PromptSet::from_file("f", &format!("{sound}\n{chat}\n")),
            PromptSet::conversations_from_file("f", &format!("{sound}\n{chat}\n")),
        ] {
            let error = set.expect_err("refused").to_string();
            assert!(error.starts_with("Entry 2 of `f`"), "{error}");
            assert!(error.contains("holds a NUL character"), "{error}");
        }
    }

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
