//! Commands, before anything has read them.

use super::answers::{Failure, FailureWord};

/// A command, byte for byte. No field may hold NUL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawCommand {
    /// Program and arguments. The program is searched on the `PATH` that it gets.
    pub argv: Vec<Vec<u8>>,
    /// Variables, laid over the login environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Working directory; the home directory if none is given.
    pub directory: Option<Vec<u8>>,
}

impl RawCommand {
    /// A command of plain words, without variables.
    #[must_use]
    pub fn new<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Self {
        Self {
            argv: words
                .into_iter()
                .map(|word| word.as_ref().to_vec())
                .collect(),
            ..Self::default()
        }
    }
}

/// A program to be started and kept running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// Plain name of its state folder: letters, digits, `.`, `_`, `-`.
    pub folder: String,
    /// What to start.
    pub command: RawCommand,
}

/// Can `command` be carried and executed at all?
pub(super) fn check_command(command: &RawCommand) -> Result<(), Failure> {
    let bad = |sentence: &str| Err(Failure::new(FailureWord::BadRequest, sentence));
    if command.argv.first().is_none_or(Vec::is_empty) {
        return bad("The command is empty: name a program to start.");
    }
    let holds_nul = |bytes: &Vec<u8>| bytes.contains(&0);
    if command.argv.iter().any(holds_nul)
        || command.directory.iter().any(holds_nul)
        || command
            .environment
            .iter()
            .any(|(name, value)| holds_nul(name) || holds_nul(value))
    {
        return bad(
            "The command, a variable or the directory holds a NUL byte, which no program can be given. Remove it.",
        );
    }
    if command
        .environment
        .iter()
        .any(|(name, _)| name.is_empty() || name.contains(&b'='))
    {
        return bad("A variable's name is empty or holds `=`. Name it by letters, digits and `_`.");
    }
    Ok(())
}
