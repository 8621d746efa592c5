//! Ways in which a start-up fails, on demand.

use std::{fmt, time::Duration};

use crate::config::Engine;

/// One way to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFault {
    /// Out of memory while graphs are captured.
    Oom,
    /// vLLM finds too little free memory.
    VllmMemory,
    /// SGLang finds too little free memory.
    SglangMemory,
    /// Silence for ever once NCCL has begun.
    NcclHang,
    /// NCCL reports an error.
    NcclError,
    /// No kernel for this GPU.
    Arch,
    /// The process kills itself once the weights are loaded.
    Crash,
    /// A worker process fails, and with it the engine.
    WorkerDied,
    /// It goes on logging and never becomes ready.
    NoReady,
    /// Another model is served than the one asked for.
    WrongModel,
    /// It becomes ready and dies after this time.
    DieAfter(Duration),
}

/// Why a start fault was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadStartFault {
    /// No such kind.
    #[error("`{0}` is not a way to fail at the start. Kinds are {kinds} and die-after:MS.", kinds = words())]
    Unknown(String),
    /// A number is missing, or there is one too many.
    #[error(
        "`{0}` must say after how many milliseconds it dies. Write die-after:MS, such as die-after:2000."
    )]
    NoTime(String),
    /// The kind belongs to the other engine.
    #[error("{0} never fails in this way; `{1}` is what the other engine does. Leave it out.")]
    OtherEngine(Engine, &'static str),
}

impl StartFault {
    /// All that take no time.
    pub const PLAIN: [Self; 10] = [
        Self::Oom,
        Self::VllmMemory,
        Self::SglangMemory,
        Self::NcclHang,
        Self::NcclError,
        Self::Arch,
        Self::Crash,
        Self::WorkerDied,
        Self::NoReady,
        Self::WrongModel,
    ];

    /// The word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Oom => "oom",
            Self::VllmMemory => "vllm-memory",
            Self::SglangMemory => "sglang-memory",
            Self::NcclHang => "nccl-hang",
            Self::NcclError => "nccl-error",
            Self::Arch => "arch",
            Self::Crash => "crash",
            Self::WorkerDied => "worker-died",
            Self::NoReady => "no-ready",
            Self::WrongModel => "wrong-model",
            Self::DieAfter(_) => "die-after",
        }
    }

    /// Reads `KIND`, or `die-after:MS`, for an engine.
    ///
    /// # Errors
    /// No such kind, a missing time, or a kind of the other engine.
    pub fn parse(text: &str, engine: Engine) -> Result<Self, BadStartFault> {
        if let Some(rest) = text.strip_prefix("die-after") {
            return rest
                .strip_prefix(':')
                .and_then(|ms| ms.parse().ok())
                .map(|ms| Self::DieAfter(Duration::from_millis(ms)))
                .ok_or_else(|| BadStartFault::NoTime(text.to_owned()));
        }
        let fault = Self::PLAIN
            .into_iter()
            .find(|fault| fault.word() == text)
            .ok_or_else(|| BadStartFault::Unknown(text.to_owned()))?;
        match (fault, engine) {
            (Self::VllmMemory, Engine::Sglang) | (Self::SglangMemory, Engine::Vllm) => {
                Err(BadStartFault::OtherEngine(engine, fault.word()))
            }
            _ => Ok(fault),
        }
    }
}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DieAfter(time) => write!(f, "die-after:{}", time.as_millis()),
            plain => f.write_str(plain.word()),
        }
    }
}

fn words() -> String {
    StartFault::PLAIN.map(StartFault::word).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_written_alike() {
        for fault in StartFault::PLAIN {
            let read = [Engine::Vllm, Engine::Sglang]
                .map(|engine| StartFault::parse(&fault.to_string(), engine));
            assert!(read.contains(&Ok(fault)), "{read:?}");
        }
        let fault = StartFault::DieAfter(Duration::from_millis(70));
        assert_eq!(fault.to_string(), "die-after:70");
        assert_eq!(StartFault::parse("die-after:70", Engine::Vllm), Ok(fault));
    }

    #[test]
    fn what_is_wrong_is_said_in_a_sentence() {
        let wrong = |text, engine| {
            StartFault::parse(text, engine)
                .expect_err("a refusal")
                .to_string()
        };
        assert!(wrong("explode", Engine::Vllm).contains("Kinds are oom, vllm-memory"));
        for text in ["die-after", "die-after:", "die-after:x", "die-after:-1"] {
            assert!(wrong(text, Engine::Vllm).contains("Write die-after:MS"));
        }
        let other = wrong("vllm-memory", Engine::Sglang);
        assert!(other.starts_with("SGLang never fails"), "{other}");
    }
}
