//! Pasted text into a profile.

use tokdyno_domain::{
    engine::EngineKind,
    profile::{Activation, ProfileSpec, READY_TIMEOUT_S},
};

use super::{
    container,
    lift::{Lifted, lift, usual_port},
    read::{Reading, Simple, read},
};
use crate::{
    knowledge::own_rows,
    words::{EngineStart, base_name},
};

/// Longest text that is read, in bytes.
const LONGEST: usize = 1024 * 1024;

/// What a pasted text became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pasted {
    /// The profile it stands for.
    pub spec: ProfileSpec,
    /// Sentences about what was in the text and is not in the profile.
    pub left_out: Vec<String>,
}

/// Why a pasted text cannot be read. Each says cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PasteError {
    /// No command in it.
    #[error("There is no command in the text. Paste the line that starts the server.")]
    NoCommand,
    /// Beyond what is read.
    #[error("The text is longer than a mebibyte. Paste only the command that starts the server.")]
    Long,
    /// A NUL character.
    #[error(
        "The text holds a NUL character, which no program can be given. Paste it as plain text."
    )]
    Nul,
    /// A quote without its partner.
    #[error("A quote ({0}) is opened and never closed. Copy the whole command.")]
    OpenQuote(char),
    /// A variable that the text does not set.
    #[error(
        "The variable ${0} is used, but the text does not set it. Write its value in its place, or put a line `{0}=…` in front."
    )]
    Variable(String),
    /// A variable that is set too late.
    #[error(
        "The variable ${0} is set on the very command that uses it, where a shell does not fill it in. Put `{0}=…` on a line of its own in front."
    )]
    TooLate(String),
    /// An expansion that is not followed.
    #[error("`{0}` cannot be filled in without a shell. Write its value in its place.")]
    Expansion(String),
    /// A command inside the command.
    #[error(
        "The text runs a command inside the command (`$(…)`, `<(…)` or backquotes), which is not done here. Write its result in its place."
    )]
    Substitution,
    /// Text for standard input.
    #[error(
        "The text feeds lines into a command (`<<`). Paste only the command that starts the server."
    )]
    HereDocument,
    /// More than a list of commands.
    #[error(
        "`{0}` begins a loop, a condition or a group of commands. Paste only the command that starts the server."
    )]
    Compound(String),
    /// A character that begins a group.
    #[error("An unquoted `{0}` groups commands in a shell. Quote it, or leave the group out.")]
    Syntax(char),
    /// A home directory.
    #[error(
        "`{0}` begins with ~, which stands for the home of whoever pasted it. Write the whole path."
    )]
    Home(String),
    /// Bytes that are no text.
    #[error("An escape in $'…' stands for bytes that are no text. A profile holds text only.")]
    Bytes,
    /// A port that cannot be.
    #[error(
        "`--port {0}` is no port the engine could be found at. Write a number between 1 and 65535."
    )]
    Port(String),
    /// A container's start that cannot be read.
    #[error("The container's start cannot be read: {0}. Compare it with `docker run --help`.")]
    Container(String),
    /// An image whose program is not named.
    #[error(
        "The command begins with a flag, so the image {0} brings its own program, which is not known here. Add `--entrypoint PROGRAM` before the image."
    )]
    EntryPoint(String),
}

/// Reads a pasted command line into a profile. Nothing is run; what cannot be known
/// without running it is refused.
///
/// # Errors
/// [`PasteError`] with cause and remedy.
pub fn paste(text: &str) -> Result<Pasted, PasteError> {
    if text.len() > LONGEST {
        return Err(PasteError::Long);
    }
    if text.contains('\0') {
        return Err(PasteError::Nul);
    }
    let mut reading = read(text)?;
    let command = choose(&mut reading)?;
    let mut left_out = std::mem::take(&mut reading.left_out);
    left_out.extend(remarks(&command));
    let spec = if container::is_run(&command) {
        of_container(&command, &reading, &mut left_out)?
    } else {
        of_program(command, reading)
    };
    check_port(&spec)?;
    let mut seen = std::collections::BTreeSet::new();
    left_out.retain(|sentence| seen.insert(sentence.clone()));
    Ok(Pasted { spec, left_out })
}

/// The command that starts a server: one that is known to, else the last.
fn choose(reading: &mut Reading) -> Result<Simple, PasteError> {
    let starts = |command: &Simple| {
        let words: Vec<&str> = std::iter::once(command.program.as_str())
            .chain(command.arguments.iter().map(String::as_str))
            .collect();
        container::is_run(command) || EngineStart::find(&words).is_some()
    };
    let mut commands = std::mem::take(&mut reading.commands);
    let last = commands.len().checked_sub(1).ok_or(PasteError::NoCommand)?;
    let chosen = commands.iter().rposition(starts).unwrap_or(last);
    let command = commands.remove(chosen);
    if command.program.is_empty() {
        return Err(PasteError::NoCommand);
    }
    reading.left_out.extend(commands.iter().map(|other| {
        format!(
            "`{}` was left out: a profile is one command.",
            other.shown()
        )
    }));
    Ok(command)
}

/// What a reader may not expect of the words as they stand.
fn remarks(command: &Simple) -> Vec<String> {
    let mut remarks: Vec<String> = placeholders()
        .into_iter()
        .filter(|(placeholder, _)| {
            std::iter::once(&command.program)
                .chain(&command.arguments)
                .chain(command.environment.iter().map(|(_, value)| value))
                .chain(&command.directory)
                .any(|word| word.contains(placeholder))
        })
        .map(|(placeholder, what)| {
            format!(
                "`{placeholder}` stands in the text: a profile puts {what} in its place, and cannot hold the word itself."
            )
        })
        .collect();
    let is_shell = matches!(
        base_name(&command.program),
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "fish"
    );
    let runs_text = command
        .arguments
        .iter()
        .take_while(|word| word.starts_with('-'))
        .any(|word| !word.starts_with("--") && word.ends_with('c'));
    if is_shell && runs_text {
        remarks.push(format!(
            "`{} -c` starts what stands in its text, which is not looked into: model, port and flags in it are not known here. Paste that text alone instead.",
            base_name(&command.program)
        ));
    }
    remarks
}

const fn placeholders() -> [(&'static str, &'static str); 5] {
    [
        ("{MODEL}", "the model"),
        ("{DRAFTER}", "the drafter"),
        ("{PORT}", "the port"),
        ("{TP}", "the ranks of tensor parallelism"),
        ("{NAME}", "the served name"),
    ]
}

/// A port that stands in the arguments as it is must at least be one.
fn check_port(spec: &ProfileSpec) -> Result<(), PasteError> {
    if spec.engine == EngineKind::Other {
        return Ok(());
    }
    let rows = own_rows(spec);
    let port = rows
        .iter()
        .rev()
        .find(|row| row.name() == "--port")
        .and_then(|row| row.values.first().copied());
    match port {
        Some(port)
            if !port.contains("{PORT}") && !port.parse::<u16>().is_ok_and(|port| port > 0) =>
        {
            Err(PasteError::Port(super::expand::cut(port)))
        }
        _ => Ok(()),
    }
}

fn of_program(command: Simple, reading: Reading) -> ProfileSpec {
    let activation = match (reading.virtual_environment, reading.prelude.as_slice()) {
        (_, []) => Activation::None,
        (Some(path), [_]) => Activation::VirtualEnvironment { path },
        (_, lines) => Activation::Script {
            text: lines.join("\n"),
        },
    };
    let mut arguments = command.arguments;
    let Lifted {
        engine, parameters, ..
    } = lift(&command.program, &mut arguments);
    ProfileSpec {
        engine,
        program: command.program,
        arguments,
        environment: command.environment,
        parameters,
        directory: command.directory,
        activation,
        ready_timeout_s: READY_TIMEOUT_S,
        notes: String::new(),
    }
}

fn of_container(
    command: &Simple,
    reading: &Reading,
    left_out: &mut Vec<String>,
) -> Result<ProfileSpec, PasteError> {
    let run = container::read(command, left_out)?;
    for line in &reading.prelude {
        left_out.push(format!(
            "`{line}` was left out: it does not reach into the container."
        ));
    }
    let mut kept = run.kept;
    let mut arguments = run.arguments.clone();
    let Lifted {
        engine,
        mut parameters,
        names_port,
    } = lift(&run.program, &mut arguments);
    let inside = if names_port {
        parameters.port
    } else {
        usual_port(engine)
    };
    if let Some(published) = run.ports.iter().find(|port| port.container == inside) {
        let same = published.host == published.container && names_port;
        kept[published.word] = published.lifted(same);
        parameters.port = published.host;
        if names_port && !same {
            // Inside it listens on another port than outside.
            for word in &mut arguments {
                *word = word.replace("{PORT}", &inside.to_string());
            }
        }
    } else if engine != EngineKind::Other && !run.host_network {
        left_out.push(format!(
            "The engine's port {inside} is not published. Add `-p 127.0.0.1:{inside}:{inside}` or `--network host` to the container's arguments."
        ));
    }
    Ok(ProfileSpec {
        engine,
        program: run.program,
        arguments,
        environment: run.environment,
        parameters,
        directory: run.directory,
        activation: Activation::Container {
            runtime: run.runtime,
            image: run.image,
            arguments: kept,
        },
        ready_timeout_s: READY_TIMEOUT_S,
        notes: String::new(),
    })
}

#[cfg(test)]
mod tests;
