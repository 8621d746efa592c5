//! The command line of what runs, word by word.

use tokdyno_domain::{
    effective::{Finding, Item, Subject},
    profile::{Activation, CommandLine},
};

use super::{Evidence, item};
use crate::{
    found::as_command,
    mask::{MASK, masked_text},
    shell::quote_word,
    words::base_name,
};

/// Compares program and order of words as a whole, and the container's image.
pub(super) fn compare(evidence: &Evidence<'_>, items: &mut Vec<Item>, notes: &mut Vec<String>) {
    let asked = evidence.spec.command();
    let Some(running) = evidence.running_words() else {
        notes.push(
            "The process could not be read, so its command line and environment are not known."
                .to_owned(),
        );
        items.push(item(
            Subject::Command,
            "command",
            Some(shown(asked.words())),
            None,
            Finding::NotReadable,
            "/proc",
        ));
        return;
    };
    // A container's client, and a script's shell before it becomes the program, show
    // the command as it was started.
    let started: Vec<String> = evidence.command.words().map(str::to_owned).collect();
    let likeness = same_words(&started, running).or(same_command(&asked, running));
    let finding = match likeness {
        Sameness::Same => Finding::AsAsked,
        Sameness::Hidden => Finding::NotReadable,
        Sameness::Different if became_another(evidence, running) => Finding::Noted,
        Sameness::Different => Finding::Differs,
    };
    let mut whole = item(
        Subject::Command,
        "command",
        Some(shown(asked.words())),
        Some(shown(running.iter().map(String::as_str))),
        finding,
        evidence.words_read_from(),
    );
    whole.remark = match finding {
        Finding::NotReadable => Some(MASKED_REMARK.to_owned()),
        Finding::Noted => running.first().map(|program| {
            format!(
                "The program became {}, with the same arguments.",
                shown(std::iter::once(program.as_str()))
            )
        }),
        _ => None,
    };
    items.push(whole);
    if let (Activation::Container { image, .. }, Some(container)) =
        (&evidence.spec.activation, evidence.container)
    {
        let finding = if *image == container.image {
            Finding::AsAsked
        } else {
            Finding::Differs
        };
        items.push(item(
            Subject::Command,
            "image",
            Some(image.clone()),
            Some(container.image.clone()),
            finding,
            "inspect",
        ));
        if let Some(id) = &container.image_id {
            items.push(item(
                Subject::Command,
                "image identity",
                None,
                Some(id.clone()),
                Finding::Noted,
                "inspect",
            ));
        }
    }
}

/// Is the running command the asked one? A script's interpreter may stand in front of
/// it, and a program asked for by name alone runs under its path.
fn same_command(asked: &CommandLine, running: &[String]) -> Sameness {
    let direct = running.split_first();
    let script = running.get(1..).and_then(|rest| rest.split_first());
    let as_is = [direct, script]
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(place, (program, arguments))| {
            let same_program = if asked.program.contains('/') {
                *program == asked.program || (place == 1 && ends_alike(program, &asked.program))
            } else {
                base_name(program) == asked.program
            };
            if same_program {
                same_words(&asked.arguments, arguments)
            } else {
                Sameness::Different
            }
        })
        .fold(Sameness::Different, Sameness::or);
    // An adopted process is written down without its interpreter.
    let stripped = as_command(running);
    if stripped.program == asked.program {
        as_is.or(same_words(&asked.arguments, &stripped.arguments))
    } else {
        as_is
    }
}

/// A script that the profile starts may put another program in its own place. With
/// the same arguments that is what the profile asks for, told but no trouble. Engines
/// and interpreters do not do so: of them, another one is a difference.
fn became_another(evidence: &Evidence<'_>, running: &[String]) -> bool {
    let asked = evidence.spec.command();
    let name = base_name(&asked.program);
    if name.starts_with("python") || matches!(name, "vllm" | "sglang" | "tokdyno") {
        return false;
    }
    let stripped = as_command(running);
    let direct = running.get(1..).unwrap_or_default();
    [direct, &stripped.arguments]
        .into_iter()
        .any(|arguments| same_words(&asked.arguments, arguments) == Sameness::Same)
}

/// A relative path that was made whole.
fn ends_alike(running: &str, asked: &str) -> bool {
    running.ends_with(asked.trim_start_matches("./"))
}

/// What is said where the profile itself holds a mask.
pub(super) const MASKED_REMARK: &str =
    "A secret is masked in the profile and on the host, so the two cannot be compared.";

/// How an asked and a running word stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sameness {
    /// Equal, or the running one is a secret that was masked on the host.
    Same,
    /// Both are masked, so nothing can be said.
    Hidden,
    Different,
}

impl Sameness {
    /// The better of two ways to look at it.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Same, _) | (_, Self::Same) => Self::Same,
            (Self::Hidden, _) | (_, Self::Hidden) => Self::Hidden,
            _ => Self::Different,
        }
    }
}

/// Different if a word is, hidden if one is, otherwise the same.
pub(super) fn same_words<T: AsRef<str>>(asked: &[T], running: &[String]) -> Sameness {
    if asked.len() != running.len() {
        return Sameness::Different;
    }
    let mut whole = Sameness::Same;
    for (asked, running) in asked.iter().zip(running) {
        match same_word(asked.as_ref(), running) {
            Sameness::Same => {}
            Sameness::Hidden => whole = Sameness::Hidden,
            Sameness::Different => return Sameness::Different,
        }
    }
    whole
}

/// Compares a word. The mask is no value: asked for, it is never the same as anything.
pub(super) fn same_word(asked: &str, running: &str) -> Sameness {
    if asked.contains(MASK) {
        return if running.contains(MASK) {
            Sameness::Hidden
        } else {
            Sameness::Different
        };
    }
    if asked == running {
        return Sameness::Same;
    }
    let Some((before, after)) = running.split_once(MASK) else {
        // Bytes that are no UTF-8 cannot come from a profile.
        return Sameness::Different;
    };
    let after = after.rsplit_once(MASK).map_or(after, |(_, last)| last);
    let fits = asked.len() >= before.len() + after.len()
        && asked.starts_with(before)
        && asked.ends_with(after);
    if fits {
        Sameness::Same
    } else {
        Sameness::Different
    }
}

/// Words as one line without secrets.
pub(super) fn shown<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.map(quote_word).collect();
    masked_text(&quoted.join(" "), None)
}
