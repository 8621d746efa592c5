//! `docker run …` and `podman run …` taken apart.

use super::{expand::cut, paste::PasteError, read::Simple};
use crate::words::base_name;

/// A container's start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) runtime: String,
    pub(super) image: String,
    /// Arguments of `run` that are kept, word by word.
    pub(super) kept: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: Option<String>,
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    /// Ports that are published: index of the word in `kept`.
    pub(super) ports: Vec<Published>,
    /// It shares the host's network, so that nothing needs to be published.
    pub(super) host_network: bool,
}

/// A published port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Published {
    /// Index of the word in [`Run::kept`].
    pub(super) word: usize,
    /// What stands before the host's port: the flag, and an address.
    before: String,
    pub(super) host: u16,
    pub(super) container: u16,
    /// What stands behind, such as `/tcp`.
    after: String,
}

impl Published {
    /// The word with the host's port, and maybe the container's, as a placeholder.
    pub(super) fn lifted(&self, both: bool) -> String {
        let container = if both {
            "{PORT}".to_owned()
        } else {
            self.container.to_string()
        };
        format!("{}{{PORT}}:{container}{}", self.before, self.after)
    }

    fn read(word: usize, before: &str, text: &str) -> Option<Self> {
        let (text, after) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let (rest, container) = text.rsplit_once(':')?;
        let (address, host) = match rest.rsplit_once(':') {
            Some((address, host)) => (format!("{address}:"), host),
            None => (String::new(), rest),
        };
        Some(Self {
            word,
            before: format!("{before}{address}"),
            host: host.parse().ok().filter(|port| *port > 0)?,
            container: container.parse().ok().filter(|port| *port > 0)?,
            after: after.to_owned(),
        })
    }
}

/// Flags of `run` without a value.
const SWITCHES: [&str; 13] = [
    "--detach",
    "--interactive",
    "--tty",
    "--rm",
    "--privileged",
    "--init",
    "--no-healthcheck",
    "--publish-all",
    "--read-only",
    "--oom-kill-disable",
    "--sig-proxy",
    "--quiet",
    "--replace",
];

/// Is it the start of a container?
pub(super) fn is_run(command: &Simple) -> bool {
    matches!(base_name(&command.program), "docker" | "podman")
        && matches!(
            command.arguments.as_slice(),
            [run, ..] if run == "run"
        )
}

/// Takes it apart.
pub(super) fn read(command: &Simple, left_out: &mut Vec<String>) -> Result<Run, PasteError> {
    let mut run = Run {
        runtime: base_name(&command.program).to_owned(),
        image: String::new(),
        kept: Vec::new(),
        environment: Vec::new(),
        directory: None,
        program: String::new(),
        arguments: Vec::new(),
        ports: Vec::new(),
        host_network: false,
    };
    let mut entry_point: Option<String> = None;
    let mut words = command.arguments[1..].iter().cloned();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word.len() < 2 {
            run.image = word;
            break;
        }
        let Some(option) = RunOption::read(&word, &mut words) else {
            return Err(PasteError::Container(format!(
                "`{}` lacks its value",
                cut(&word)
            )));
        };
        let value = option.value.as_deref().unwrap_or("");
        match option.name.as_str() {
            "-e" | "--env" => {
                let (name, value) = match value.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (value, variable(command, value)),
                };
                match value {
                    Some(value) => run.set(name, value),
                    None => left_out.push(format!(
                        "`{} {name}` was left out: its value came from the shell's environment and is not in the text.",
                        option.name
                    )),
                }
            }
            "-w" | "--workdir" => run.directory = Some(value.to_owned()),
            "--entrypoint" => entry_point = Some(value.to_owned()),
            "--name" => left_out.push(format!(
                "`--name {}` was left out: a launch names its container itself.",
                cut(value)
            )),
            "--rm" | "--detach" | "--interactive" | "--tty" | "--replace" | "--sig-proxy" => {
                left_out.push(said(&word));
            }
            name if is_short_switches(name) => {
                left_out.push(said(&word));
            }
            "--restart" => left_out.push(format!(
                "`--restart {}` was left out: a server that ended must not come back by itself.",
                cut(value)
            )),
            name => {
                if matches!(name, "--network" | "--net") && value == "host" {
                    run.host_network = true;
                }
                let first = run.kept.len();
                let (index, before) = if option.joined {
                    (first, word[..word.len() - value.len()].to_owned())
                } else {
                    (first + 1, String::new())
                };
                if matches!(name, "-p" | "--publish")
                    && let Some(published) = Published::read(index, &before, value)
                {
                    run.ports.push(published);
                }
                run.kept.push(word);
                if !option.joined {
                    run.kept.extend(option.value);
                }
            }
        }
    }
    if run.image.is_empty() {
        return Err(PasteError::Container("it names no image".to_owned()));
    }
    for (name, _) in &command.environment {
        if !run.environment.iter().any(|(other, _)| other == name) {
            left_out.push(format!(
                "{name} was left out: without `--env {name}` the program inside the container would not see it."
            ));
        }
    }
    run.set_program(words.collect(), entry_point, left_out)?;
    Ok(run)
}

impl Run {
    fn set(&mut self, name: &str, value: String) {
        match self.environment.iter_mut().find(|(other, _)| other == name) {
            Some((_, old)) => *old = value,
            None => self.environment.push((name.to_owned(), value)),
        }
    }

    fn set_program(
        &mut self,
        mut words: Vec<String>,
        entry_point: Option<String>,
        left_out: &mut Vec<String>,
    ) -> Result<(), PasteError> {
        match entry_point.filter(|program| !program.is_empty()) {
            Some(program) => {
                self.kept.extend(["--entrypoint".to_owned(), String::new()]);
                words.insert(0, program);
            }
            None if words.first().is_none_or(|word| word.starts_with('-')) => {
                if !base_name(&self.image).starts_with("vllm-openai") {
                    return Err(PasteError::EntryPoint(self.image.clone()));
                }
                left_out.push(
                    "The image's own program was taken to be `vllm serve`, and is named in the profile."
                        .to_owned(),
                );
                self.kept.extend(["--entrypoint".to_owned(), String::new()]);
                words.splice(0..0, ["vllm".to_owned(), "serve".to_owned()]);
            }
            None => {}
        }
        self.program = words.remove(0);
        self.arguments = words;
        Ok(())
    }
}

/// An option of `run` with its value.
struct RunOption {
    name: String,
    value: Option<String>,
    /// The value stands in the same word.
    joined: bool,
}

impl RunOption {
    fn read(word: &str, words: &mut impl Iterator<Item = String>) -> Option<Self> {
        let joined = |name: &str, value: &str| Self {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            joined: true,
        };
        if word.starts_with("--") {
            if let Some((name, value)) = word.split_once('=') {
                return Some(joined(name, value));
            }
            if SWITCHES.contains(&word) {
                return Some(Self {
                    name: word.to_owned(),
                    value: None,
                    joined: true,
                });
            }
        } else if is_short_switches(word) {
            return Some(Self {
                name: word.to_owned(),
                value: None,
                joined: true,
            });
        } else if word.len() > 2 && word.is_char_boundary(2) {
            return Some(joined(&word[..2], word[2..].trim_start_matches('=')));
        }
        words.next().map(|value| Self {
            name: word.to_owned(),
            value: Some(value),
            joined: false,
        })
    }
}

fn is_short_switches(word: &str) -> bool {
    word.len() > 1
        && word.starts_with('-')
        && !word.starts_with("--")
        && word[1..].chars().all(|c| "ditPq".contains(c))
}

fn said(word: &str) -> String {
    format!("`{word}` was left out: a launch watches its container and removes it at the end.")
}

fn variable(command: &Simple, name: &str) -> Option<String> {
    command
        .environment
        .iter()
        .find(|(other, _)| other == name)
        .map(|(_, value)| value.clone())
}
