//! The command that a profile stands for.

use serde::{Deserialize, Serialize};

use super::{Activation, ProfileSpec};

/// A command as it runs on a host: words and variables, not yet quoted for any
/// shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables laid over the host's environment.
    pub environment: Vec<(String, String)>,
    /// Working directory; the home where none is named.
    pub directory: Option<String>,
}

impl CommandLine {
    /// The last value of a variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment
            .iter()
            .rev()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    /// Program and arguments.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.program.as_str()).chain(self.arguments.iter().map(String::as_str))
    }
}

impl ProfileSpec {
    /// The engine's own command with the parameters filled in: what a process list
    /// shows of it. Activation is not part of it, see [`Self::started_command`].
    #[must_use]
    pub fn command(&self) -> CommandLine {
        CommandLine {
            program: self.fill(&self.program),
            arguments: self.arguments.iter().map(|word| self.fill(word)).collect(),
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), self.fill(value)))
                .collect(),
            directory: self.directory.as_deref().map(|path| self.fill(path)),
        }
    }

    /// The command that is started on the host, activation included.
    /// `container` names the container, where there is one.
    #[must_use]
    pub fn started_command(&self, container: &str) -> CommandLine {
        let mut command = self.command();
        match &self.activation {
            Activation::None => {}
            Activation::VirtualEnvironment { path } => {
                let path = self.fill(path);
                let path = path.trim_end_matches('/');
                // A bare name is one of the environment's own programs.
                if !command.program.contains('/') {
                    command.program = format!("{path}/bin/{}", command.program);
                }
                command
                    .environment
                    .insert(0, ("VIRTUAL_ENV".to_owned(), path.to_owned()));
            }
            Activation::Container {
                runtime,
                image,
                arguments,
            } => {
                let mut words = vec![
                    "run".to_owned(),
                    "--rm".to_owned(),
                    "--name".to_owned(),
                    container.to_owned(),
                ];
                words.extend(arguments.iter().map(|word| self.fill(word)));
                // Names alone: the values come from the runtime's own environment,
                // so that they stand in no process list.
                for (name, _) in &command.environment {
                    words.extend(["--env".to_owned(), name.clone()]);
                }
                if let Some(directory) = &command.directory {
                    words.extend(["--workdir".to_owned(), directory.clone()]);
                }
                words.push(self.fill(image));
                words.push(std::mem::take(&mut command.program));
                words.append(&mut command.arguments);
                command.program = runtime.clone();
                command.arguments = words;
                command.directory = None;
            }
            Activation::Script { text } => {
                let mut words = vec![
                    "-c".to_owned(),
                    format!("{}\nexec \"$@\"", self.fill(text)),
                    "bash".to_owned(),
                    std::mem::take(&mut command.program),
                ];
                words.append(&mut command.arguments);
                command.program = "bash".to_owned();
                command.arguments = words;
            }
        }
        command
    }

    fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let parameters = &self.parameters;
        let values = [
            ("{MODEL}", parameters.model.clone()),
            ("{DRAFTER}", parameters.drafter.clone().unwrap_or_default()),
            ("{PORT}", parameters.port.to_string()),
            ("{TP}", parameters.tensor_parallel.to_string()),
            ("{NAME}", self.served_name().to_owned()),
        ];
        // One pass from the left, so that a value that looks like a placeholder is
        // not filled in again.
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        'next: while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            for (placeholder, value) in &values {
                if let Some(after) = rest.strip_prefix(placeholder) {
                    filled.push_str(value);
                    rest = after;
                    continue 'next;
                }
            }
            filled.push('{');
            rest = &rest[1..];
        }
        filled.push_str(rest);
        filled
    }
}

/// Arguments as rows of an editor: a flag with its values, or a word that belongs to
/// no flag. Joining the rows gives the arguments back.
#[must_use]
pub fn rows(arguments: &[String]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for word in arguments {
        let takes_values = rows.last().is_some_and(|row| {
            row.first()
                .is_some_and(|first| is_flag(first) && !first.contains('='))
        });
        if !is_flag(word) && takes_values {
            if let Some(row) = rows.last_mut() {
                row.push(word.clone());
            }
        } else {
            rows.push(vec![word.clone()]);
        }
    }
    rows
}

/// A word that begins a flag; a negative number does not.
pub(crate) fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::sample, *};

    #[test]
    fn placeholders_are_filled_once_and_other_braces_stay() {
        let mut spec = sample();
        spec.parameters.model = "{PORT}".to_owned();
        spec.arguments = vec![
            "{MODEL}".to_owned(),
            "{\"model\":\"{DRAFTER}\",\"x\":{}}".to_owned(),
            "--port={PORT}".to_owned(),
            "{PORT".to_owned(),
        ];
        spec.parameters.drafter = Some("d".to_owned());
        assert_eq!(
            spec.command().arguments,
            [
                "{PORT}",
                "{\"model\":\"d\",\"x\":{}}",
                "--port=8000",
                "{PORT"
            ]
        );
    }

    #[test]
    fn a_container_gets_names_of_variables_and_never_values() {
        let mut spec = sample();
        spec.activation = Activation::Container {
            runtime: "docker".to_owned(),
            image: "lmsysorg/sglang".to_owned(),
            arguments: vec!["--gpus".to_owned(), "all".to_owned()],
        };
        spec.environment = vec![("NCCL_PROTO".to_owned(), "LL-value".to_owned())];
        let command = spec.started_command("tokdyno-7");
        assert_eq!(command.program, "docker");
        assert!(
            !command
                .arguments
                .iter()
                .any(|word| word.contains("LL-value"))
        );
        assert_eq!(command.variable("NCCL_PROTO"), Some("LL-value"));
        let line = command.arguments.join(" ");
        assert!(
            line.starts_with(
                "run --rm --name tokdyno-7 --gpus all --env NCCL_PROTO lmsysorg/sglang python3 -m"
            ),
            "{line}"
        );
    }

    #[test]
    fn rows_join_to_the_arguments() {
        let arguments: Vec<String> = "serve m --tp 8 --ids 1 2 -1 --flag --x=1 tail"
            .split(' ')
            .map(str::to_owned)
            .collect();
        let rows = rows(&arguments);
        assert_eq!(
            rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>(),
            [
                "serve",
                "m",
                "--tp 8",
                "--ids 1 2 -1",
                "--flag",
                "--x=1",
                "tail"
            ]
        );
        assert_eq!(rows.concat(), arguments);
    }
}
