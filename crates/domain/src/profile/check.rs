//! What a profile may say.

use super::{Activation, MAX_PROFILE_NAME, ProfileSpec};
use crate::secrets::SECRET_MASK;

/// Most arguments, and most variables.
const MOST_WORDS: usize = 2000;
/// Linux takes no longer word (`MAX_ARG_STRLEN`), in bytes.
const LONGEST_WORD: usize = 128 * 1024 - 1;

/// What the notes are called in a sentence.
const NOTES: &str = "The notes";

/// Why a profile cannot be kept. Each says cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Nothing to call it by.
    #[error("The profile needs a name. Type one, such as sglang-nccl.")]
    NoName,
    /// The page where profiles are made has that address.
    #[error(
        "A profile cannot be called `new`: that is the page where profiles are made. Choose another name."
    )]
    Reserved,
    /// The name cannot stand in an address.
    #[error(
        "`{0}` cannot be a profile's name: use letters, digits, dot, dash and underscore, at most {MAX_PROFILE_NAME} of them, and begin with a letter or digit."
    )]
    Name(String),
    /// Nothing to start.
    #[error("No program is named. Type what is to be started, such as vllm or python3.")]
    NoProgram,
    /// A variable without a usable name.
    #[error(
        "`{0}` cannot be a variable's name: it is blank or holds `=`. Type the name alone, the value beside it."
    )]
    VariableName(String),
    /// A variable named twice.
    #[error(
        "The variable {0} is set twice. Remove one of the two; which of them would hold is easily mistaken."
    )]
    VariableTwice(String),
    /// A NUL byte ends every word on Linux.
    #[error("{0} holds a NUL character, which no program can be given. Type it again.")]
    Nul(String),
    /// Beyond what Linux takes or this program keeps.
    #[error(
        "{0} is too long. Linux takes words of at most 128 KiB, and a profile at most {MOST_WORDS} words and variables."
    )]
    Long(String),
    /// A placeholder without a value.
    #[error(
        "The command uses {{DRAFTER}}, but no drafter is named. Name one, or remove the placeholder."
    )]
    NoDrafter,
    /// No model.
    #[error(
        "The command uses {{MODEL}}, but no model is named. Type its path on the host or its name."
    )]
    NoModel,
    /// Port 0.
    #[error("The port must be between 1 and 65535, so that the engine can be found again.")]
    Port,
    /// Parallelism 0.
    #[error("Tensor parallelism must be between 1 and 1024 ranks.")]
    TensorParallel,
    /// Too short or too long.
    #[error("The ready time-out must be between 5 seconds and 24 hours.")]
    Timeout,
    /// Activation lacks what it activates.
    #[error("The {0} is not named. Fill it in, or choose another activation.")]
    Activation(&'static str),
    /// Not a runtime that is known.
    #[error("`{0}` is not a container runtime that is known here. Use docker or podman.")]
    Runtime(String),
}

impl ProfileError {
    /// Checks a profile's name.
    ///
    /// # Errors
    /// [`ProfileError::NoName`], [`ProfileError::Reserved`], [`ProfileError::Name`].
    pub fn check_name(name: &str) -> Result<&str, Self> {
        let name = name.trim();
        if name.is_empty() {
            return Err(Self::NoName);
        }
        if name.eq_ignore_ascii_case("new") {
            return Err(Self::Reserved);
        }
        let fits = name.len() <= MAX_PROFILE_NAME
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        if fits {
            Ok(name)
        } else {
            Err(Self::Name(name.chars().take(100).collect()))
        }
    }
}

impl ProfileSpec {
    /// Checks everything that can be known without the host.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn check(&self) -> Result<(), ProfileError> {
        if self.program.trim().is_empty() {
            return Err(ProfileError::NoProgram);
        }
        self.check_words()?;
        self.check_environment()?;
        let uses = |placeholder: &str| self.texts().any(|(_, text)| text.contains(placeholder));
        let parameters = &self.parameters;
        if uses("{MODEL}") && parameters.model.trim().is_empty() {
            return Err(ProfileError::NoModel);
        }
        let drafter = parameters.drafter.as_deref().unwrap_or("");
        if uses("{DRAFTER}") && drafter.trim().is_empty() {
            return Err(ProfileError::NoDrafter);
        }
        if parameters.port == 0 {
            return Err(ProfileError::Port);
        }
        if !(1..=1024).contains(&parameters.tensor_parallel) {
            return Err(ProfileError::TensorParallel);
        }
        if !(5..=24 * 3600).contains(&self.ready_timeout_s) {
            return Err(ProfileError::Timeout);
        }
        match &self.activation {
            Activation::None => Ok(()),
            Activation::VirtualEnvironment { path } if path.trim().is_empty() => {
                Err(ProfileError::Activation("virtual environment's folder"))
            }
            Activation::Script { text } if text.trim().is_empty() => {
                Err(ProfileError::Activation("script"))
            }
            Activation::Container { image, .. } if image.trim().is_empty() => {
                Err(ProfileError::Activation("container's image"))
            }
            Activation::Container { runtime, .. }
                if !matches!(runtime.as_str(), "docker" | "podman") =>
            {
                Err(ProfileError::Runtime(runtime.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Where a masked secret stands instead of a value, such as `Argument 7` or
    /// `The variable HF_TOKEN`. The program would be given the mask itself, so a spec
    /// of which this is some cannot be launched. Notes may hold what they like.
    #[must_use]
    pub fn masked(&self) -> Option<String> {
        self.texts()
            .find(|(what, text)| text.contains(SECRET_MASK) && what != NOTES)
            .map(|(what, _)| what)
    }

    fn check_words(&self) -> Result<(), ProfileError> {
        if self.arguments.len() > MOST_WORDS || self.environment.len() > MOST_WORDS {
            return Err(ProfileError::Long("The profile".to_owned()));
        }
        for (what, text) in self.texts() {
            if text.contains('\0') {
                return Err(ProfileError::Nul(what));
            }
            if text.len() > LONGEST_WORD {
                return Err(ProfileError::Long(what));
            }
        }
        Ok(())
    }

    fn check_environment(&self) -> Result<(), ProfileError> {
        let mut seen = std::collections::BTreeSet::new();
        for (name, _) in &self.environment {
            if name.trim().is_empty() || name.contains('=') {
                return Err(ProfileError::VariableName(name.clone()));
            }
            if !seen.insert(name) {
                return Err(ProfileError::VariableTwice(name.clone()));
            }
        }
        Ok(())
    }

    /// Everything that was typed, with what it is.
    fn texts(&self) -> impl Iterator<Item = (String, &str)> {
        let parameters = &self.parameters;
        let activation: Vec<(String, &str)> = match &self.activation {
            Activation::None => Vec::new(),
            Activation::VirtualEnvironment { path } => {
                vec![("The virtual environment's folder".to_owned(), path.as_str())]
            }
            Activation::Script { text } => vec![("The script".to_owned(), text.as_str())],
            Activation::Container {
                runtime,
                image,
                arguments,
            } => {
                let mut texts = vec![
                    ("The container runtime".to_owned(), runtime.as_str()),
                    ("The container's image".to_owned(), image.as_str()),
                ];
                texts.extend(
                    arguments
                        .iter()
                        .map(|word| ("An argument of the container".to_owned(), word.as_str())),
                );
                texts
            }
        };
        [
            ("The program".to_owned(), self.program.as_str()),
            ("The model".to_owned(), parameters.model.as_str()),
            (
                "The served name".to_owned(),
                parameters.served_name.as_str(),
            ),
            (NOTES.to_owned(), self.notes.as_str()),
        ]
        .into_iter()
        .chain(
            parameters
                .drafter
                .iter()
                .map(|text| ("The drafter".to_owned(), text.as_str())),
        )
        .chain(
            self.directory
                .iter()
                .map(|text| ("The directory".to_owned(), text.as_str())),
        )
        .chain(
            self.arguments
                .iter()
                .enumerate()
                .map(|(n, text)| (format!("Argument {}", n + 1), text.as_str())),
        )
        .chain(self.environment.iter().flat_map(|(name, value)| {
            [
                (
                    format!("The name of the variable {}", name.replace('\0', "␀")),
                    name.as_str(),
                ),
                (
                    format!("The variable {}", name.replace('\0', "␀")),
                    value.as_str(),
                ),
            ]
        }))
        .chain(activation)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::sample, *};

    #[test]
    fn what_cannot_run_is_refused_with_its_reason() {
        type Change = fn(&mut ProfileSpec);
        let cases: [(Change, &str); 9] = [
            (|s| s.program = " ".to_owned(), "No program"),
            (|s| s.parameters.model.clear(), "{MODEL}"),
            (|s| s.arguments.push("{DRAFTER}".to_owned()), "{DRAFTER}"),
            (
                |s| s.arguments.push("a\0b".to_owned()),
                "Argument 11 holds a NUL",
            ),
            (
                |s| s.environment.push(("A=B".to_owned(), String::new())),
                "`A=B` cannot",
            ),
            (
                |s| {
                    s.environment
                        .push(("NCCL_PROTO".to_owned(), "Simple".to_owned()));
                },
                "set twice",
            ),
            (|s| s.parameters.port = 0, "port"),
            (|s| s.ready_timeout_s = 1, "time-out"),
            (
                |s| {
                    s.activation = Activation::Container {
                        runtime: "rm".to_owned(),
                        image: "i".to_owned(),
                        arguments: Vec::new(),
                    };
                },
                "docker or podman",
            ),
        ];
        assert_eq!(sample().check(), Ok(()));
        for (change, expected) in cases {
            let mut spec = sample();
            change(&mut spec);
            let said = spec.check().expect_err(expected).to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn a_masked_secret_is_found_wherever_a_program_would_be_given_it() {
        type Change = fn(&mut ProfileSpec);
        let cases: [(Change, &str); 6] = [
            (
                |s| s.arguments.push(format!("--api-key={SECRET_MASK}")),
                "Argument 11",
            ),
            (
                |s| {
                    s.environment
                        .push(("HF_TOKEN".to_owned(), SECRET_MASK.to_owned()));
                },
                "The variable HF_TOKEN",
            ),
            (
                |s| {
                    s.activation = Activation::Script {
                        text: format!("export KEY={SECRET_MASK}"),
                    };
                },
                "The script",
            ),
            (
                |s| {
                    s.activation = Activation::Container {
                        runtime: "docker".to_owned(),
                        image: "i".to_owned(),
                        arguments: vec![format!("--env=HF_TOKEN={SECRET_MASK}")],
                    };
                },
                "An argument of the container",
            ),
            (|s| s.program = SECRET_MASK.to_owned(), "The program"),
            (
                |s| s.parameters.model = format!("s3://{SECRET_MASK}@store/m"),
                "The model",
            ),
        ];
        for (change, expected) in cases {
            let mut spec = sample();
            change(&mut spec);
            assert_eq!(spec.masked().as_deref(), Some(expected));
        }
        let mut noted = sample();
        noted.notes = format!("the key was {SECRET_MASK}");
        assert_eq!(noted.masked(), None);
    }

    #[test]
    fn a_name_can_stand_in_an_address() {
        assert_eq!(
            ProfileError::check_name(" sglang-nccl.2 "),
            Ok("sglang-nccl.2")
        );
        for bad in ["", "a b", "../x", "-a", "ä", "new", "New", &"x".repeat(90)] {
            assert!(ProfileError::check_name(bad).is_err(), "{bad}");
        }
    }
}
