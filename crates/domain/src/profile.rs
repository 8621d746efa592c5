//! Profiles: named ways to start an engine. Every change makes a new immutable
//! revision, known by the hash of what it says.

mod check;
mod command;

use serde::{Deserialize, Serialize};

pub(crate) use self::command::is_flag;
pub use self::{
    check::ProfileError,
    command::{CommandLine, rows},
};
use crate::{engine::EngineKind, ids::ContentHash};

/// Version of the canonical form that is hashed.
pub const PROFILE_SCHEMA: u32 = 1;
/// Longest name of a profile, in characters.
pub const MAX_PROFILE_NAME: usize = 80;
/// Ready time-out unless asked otherwise, in seconds: a 1T checkpoint on a cold
/// disk takes tens of minutes.
pub const READY_TIMEOUT_S: u32 = 45 * 60;

/// What a profile says. `{MODEL}`, `{DRAFTER}`, `{PORT}`, `{TP}` and `{NAME}`
/// inside arguments, values of variables and activation stand for the parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileSpec {
    /// Which engine it starts.
    pub engine: EngineKind,
    /// Program: a path, or a name that is looked up on the host.
    pub program: String,
    /// Its arguments, word by word as the program gets them.
    pub arguments: Vec<String>,
    /// Variables laid over the host's environment, in order.
    pub environment: Vec<(String, String)>,
    /// Values that differ from use to use.
    pub parameters: Parameters,
    /// Working directory on the host; the home where none is named.
    pub directory: Option<String>,
    /// What is prepared before the program starts.
    pub activation: Activation,
    /// Seconds until the engine must be ready.
    pub ready_timeout_s: u32,
    /// Notes for people. Not part of the hash.
    pub notes: String,
}

/// The values behind the placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Model: path on the host, or name on a hub.
    pub model: String,
    /// Draft model of speculative decoding.
    pub drafter: Option<String>,
    /// Ranks of tensor parallelism.
    pub tensor_parallel: u32,
    /// Port the engine listens on, on the host's loopback.
    pub port: u16,
    /// Name under which the model is served; blank for the model itself.
    pub served_name: String,
}

/// What is prepared before the program starts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "activation")]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// A Python virtual environment: its `bin` comes first on the path.
    VirtualEnvironment {
        /// Its folder.
        path: String,
    },
    /// The program runs in a container of this image.
    Container {
        /// `docker` or `podman`.
        runtime: String,
        /// Image.
        image: String,
        /// Arguments of `run` before the image, word by word, such as `--gpus all`.
        arguments: Vec<String>,
    },
    /// Shell lines that bash reads before it becomes the program. Shown word for word.
    Script {
        /// The lines.
        text: String,
    },
}

impl Activation {
    /// The word as stored and shown.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::VirtualEnvironment { .. } => "virtual environment",
            Self::Container { .. } => "container",
            Self::Script { .. } => "script",
        }
    }
}

impl ProfileSpec {
    /// SHA-256 of the canonical form: of everything but the notes, which change
    /// nothing that runs.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        #[derive(Serialize)]
        struct Canonical<'a> {
            schema: u32,
            engine: EngineKind,
            program: &'a str,
            arguments: &'a [String],
            environment: &'a [(String, String)],
            parameters: &'a Parameters,
            directory: Option<&'a str>,
            activation: &'a Activation,
            ready_timeout_s: u32,
        }
        let canonical = Canonical {
            schema: PROFILE_SCHEMA,
            engine: self.engine,
            program: &self.program,
            arguments: &self.arguments,
            environment: &self.environment,
            parameters: &self.parameters,
            directory: self.directory.as_deref(),
            activation: &self.activation,
            ready_timeout_s: self.ready_timeout_s,
        };
        // Structs, strings and numbers always serialise.
        ContentHash::of(&serde_json::to_vec(&canonical).unwrap_or_default())
    }

    /// The name under which the engine lists the model.
    #[must_use]
    pub fn served_name(&self) -> &str {
        if self.parameters.served_name.trim().is_empty() {
            &self.parameters.model
        } else {
            &self.parameters.served_name
        }
    }

    /// The GPUs it uses, from `CUDA_VISIBLE_DEVICES`; none means all of the host's.
    #[must_use]
    pub fn gpus(&self) -> Option<Vec<u32>> {
        let command = self.command();
        let text = command.variable("CUDA_VISIBLE_DEVICES")?;
        let numbers: Result<Vec<u32>, _> = text.split(',').map(|n| n.trim().parse()).collect();
        // UUIDs and the like: not told apart, so the whole host is claimed.
        numbers.ok().filter(|numbers| !numbers.is_empty())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> ProfileSpec {
        ProfileSpec {
            engine: EngineKind::Sglang,
            program: "python3".to_owned(),
            arguments: [
                "-m",
                "sglang.launch_server",
                "--model-path",
                "{MODEL}",
                "--tp-size",
                "{TP}",
                "--port",
                "{PORT}",
                "--served-model-name",
                "{NAME}",
            ]
            .map(str::to_owned)
            .to_vec(),
            environment: vec![("NCCL_PROTO".to_owned(), "LL".to_owned())],
            parameters: Parameters {
                model: "/shared/kimi-k2.5-int4".to_owned(),
                drafter: None,
                tensor_parallel: 8,
                port: 8000,
                served_name: String::new(),
            },
            directory: None,
            activation: Activation::None,
            ready_timeout_s: READY_TIMEOUT_S,
            notes: String::new(),
        }
    }

    #[test]
    fn the_hash_is_of_what_runs_and_not_of_the_notes() {
        let one = sample();
        let mut two = one.clone();
        two.notes = "tried on Monday".to_owned();
        assert_eq!(one.hash(), two.hash());
        two.environment
            .push(("NCCL_ALGO".to_owned(), "Ring".to_owned()));
        assert_ne!(one.hash(), two.hash());
    }

    #[test]
    fn gpus_are_read_from_the_variable() {
        let mut spec = sample();
        assert_eq!(spec.gpus(), None);
        spec.environment
            .push(("CUDA_VISIBLE_DEVICES".to_owned(), "0, 3".to_owned()));
        assert_eq!(spec.gpus(), Some(vec![0, 3]));
        spec.environment[1].1 = "GPU-1f".to_owned();
        assert_eq!(spec.gpus(), None);
    }
}
