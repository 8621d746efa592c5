//! What answered at an address: engine, version, models, and what it says of
//! itself.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// Which program serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// Any other server that speaks the OpenAI protocol.
    Other,
}

impl EngineKind {
    /// The name as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Other => "OpenAI-compatible",
        }
    }

    /// The word as stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Other => "other",
        }
    }

    /// Reads the stored word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Vllm, Self::Sglang, Self::Other]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The response header by which the stand-in engine marks every reply, and the
/// key by which it marks its server info. Whatever carries it is *simulated*.
pub const SIMULATED_MARKER: &str = "x-tokdyno-simulated";

/// What an engine says of itself when asked, before a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineInfo {
    /// Which engine.
    pub kind: EngineKind,
    /// Its version, where it tells.
    pub version: Option<String>,
    /// Names under which it serves, as `/v1/models` lists them.
    pub models: Vec<String>,
    /// Longest context in tokens, where it tells.
    pub max_model_len: Option<u32>,
    /// Arguments and settings as the engine resolved them, flattened to text.
    /// Secret-looking values are masked before they get here.
    pub settings: BTreeMap<String, String>,
    /// Most requests it runs at once, where it tells.
    pub max_running_requests: Option<u32>,
    /// The stand-in's marker was seen.
    pub simulated: bool,
}

impl EngineInfo {
    /// `SGLang 0.5.23`, or the name alone.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.kind),
            None => self.kind.name().to_owned(),
        }
    }
}
