//! Why a launch did not become ready, or ended by itself.

use serde::{Deserialize, Serialize};

/// The kind of failure. Each has a sentence and a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The host cannot be reached.
    Unreachable,
    /// Its host key is not known.
    HostKeyUnknown,
    /// Its host key is another one than before.
    HostKeyChanged,
    /// It refuses the key.
    AccessRefused,
    /// The agent cannot run there.
    Agent,
    /// Another process listens on the port.
    PortTaken,
    /// Somebody else's process holds GPU memory.
    GpuBusy,
    /// Not enough space on a disk.
    DiskFull,
    /// The drafter's capture layers do not fit the engine.
    DrafterLayers,
    /// No such program on the host.
    NoProgram,
    /// No such directory.
    NoDirectory,
    /// The container runtime, image or environment is missing.
    Activation,
    /// The engine does not take an argument.
    BadFlag,
    /// No memory left on a GPU.
    OutOfMemory,
    /// Too little free GPU memory for what was asked.
    TooLittleMemory,
    /// CUDA graphs could not be captured.
    GraphCapture,
    /// NCCL reported an error.
    Nccl,
    /// NCCL fell silent while setting up.
    NcclHang,
    /// A kernel or backend does not exist for this GPU.
    Architecture,
    /// A process of the engine died.
    EngineDied,
    /// It ended by itself.
    Exited,
    /// A signal ended it.
    Killed,
    /// No line in the log and no growth of memory for long.
    Stalled,
    /// Not ready in time.
    TimedOut,
    /// It serves another model than asked.
    WrongModel,
    /// It is ready but does not generate.
    NoToken,
    /// The host was started anew.
    Rebooted,
    /// It was to be stopped and goes on.
    NotStopped,
    /// This program could not go on.
    Internal,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::Unreachable,
        Self::HostKeyUnknown,
        Self::HostKeyChanged,
        Self::AccessRefused,
        Self::Agent,
        Self::PortTaken,
        Self::GpuBusy,
        Self::DiskFull,
        Self::DrafterLayers,
        Self::NoProgram,
        Self::NoDirectory,
        Self::Activation,
        Self::BadFlag,
        Self::OutOfMemory,
        Self::TooLittleMemory,
        Self::GraphCapture,
        Self::Nccl,
        Self::NcclHang,
        Self::Architecture,
        Self::EngineDied,
        Self::Exited,
        Self::Killed,
        Self::Stalled,
        Self::TimedOut,
        Self::WrongModel,
        Self::NoToken,
        Self::Rebooted,
        Self::NotStopped,
        Self::Internal,
    ];

    /// What happened, as a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable => "The host cannot be reached.",
            Self::HostKeyUnknown => "The host's key is not among the known hosts.",
            Self::HostKeyChanged => "The host shows another key than the known one.",
            Self::AccessRefused => "The host refuses the login.",
            Self::Agent => "The agent cannot run on the host.",
            Self::PortTaken => "Another process listens on the port.",
            Self::GpuBusy => "Another process holds GPU memory.",
            Self::DiskFull => "There is not enough space on the host's disk.",
            Self::DrafterLayers => {
                "The drafter was trained on other layers than this engine would capture."
            }
            Self::NoProgram => "The program does not exist on the host.",
            Self::NoDirectory => "The working directory does not exist on the host.",
            Self::Activation => "What the profile activates does not work on the host.",
            Self::BadFlag => "The engine does not understand its command line.",
            Self::OutOfMemory => "A GPU ran out of memory.",
            Self::TooLittleMemory => "Too little GPU memory is free for what was asked.",
            Self::GraphCapture => "Capturing CUDA graphs failed.",
            Self::Nccl => "NCCL reported an error.",
            Self::NcclHang => "The GPUs fell silent while NCCL connected them.",
            Self::Architecture => "A backend does not support this GPU.",
            Self::EngineDied => "A process of the engine died.",
            Self::Exited => "The engine ended by itself.",
            Self::Killed => "The engine was killed.",
            Self::Stalled => "The engine has neither logged nor loaded anything for a long time.",
            Self::TimedOut => "The engine was not ready in time.",
            Self::WrongModel => "The engine serves another model than the profile asks for.",
            Self::NoToken => "The engine answers but does not generate a token.",
            Self::Rebooted => "The host was started anew.",
            Self::NotStopped => "It was to be stopped, but goes on running.",
            Self::Internal => "This program could not go on.",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Unreachable => {
                "Check that it is up and that `ssh` reaches it from the machine Tokdyno runs on, then launch again."
            }
            Self::HostKeyUnknown => {
                "Connect once by hand (`ssh` to it, as the user that runs Tokdyno), compare the fingerprint and accept it."
            }
            Self::HostKeyChanged => {
                "If the host was set up anew, remove its old key with `ssh-keygen -R` and accept the new one by hand; otherwise ask its administrator."
            }
            Self::AccessRefused => {
                "Put the public key of the user that runs Tokdyno into the host's authorized_keys, or load it into the agent."
            }
            Self::Agent => {
                "It needs a folder that it may write to and run programs from: the home's .cache, or /tmp."
            }
            Self::PortTaken => "Stop what listens there, or give the profile another port.",
            Self::GpuBusy => {
                "Stop it, adopt it and name it to be restored, or choose other GPUs with CUDA_VISIBLE_DEVICES."
            }
            Self::DiskFull => "Free some space, or point caches elsewhere, then launch again.",
            Self::DrafterLayers => {
                "Use the drafter with the engine version it was made for, or correct the layer ids in its config.json."
            }
            Self::NoProgram => {
                "Correct the program, or name the virtual environment or container that holds it."
            }
            Self::NoDirectory => "Correct the directory in the profile, or make it on the host.",
            Self::Activation => {
                "Try the shown command on the host by hand, and correct the profile."
            }
            Self::BadFlag => {
                "Compare the argument with the engine's version: flags are renamed and removed between releases."
            }
            Self::OutOfMemory => {
                "Lower --mem-fraction-static or --gpu-memory-utilization, the largest batch or the context length."
            }
            Self::TooLittleMemory => {
                "See who holds the memory on the host's page; stop it, or ask for less memory or a shorter context."
            }
            Self::GraphCapture => {
                "Capture fewer or smaller batches, or lower the memory fraction; without graphs single-stream speed falls."
            }
            Self::Nccl => {
                "Look at the line in the log. In containers, /dev/shm is often too small: give --shm-size 1g or --ipc=host."
            }
            Self::NcclHang => {
                "Set NCCL_P2P_DISABLE=1 to see whether direct traffic over PCIe is the cause; if so, switch IOMMU or ACS off."
            }
            Self::Architecture => {
                "Choose another attention backend; on SM120, triton works where flashinfer and trtllm do not."
            }
            Self::EngineDied => "The lines before it in the log say why.",
            Self::Exited => "The end of the log says why.",
            Self::Killed => {
                "Look into the host's kernel log for the out-of-memory killer, or ask who else works there."
            }
            Self::Stalled => {
                "Look at the host: disk, network file system, GPUs. Stop it and launch again if nothing moves."
            }
            Self::TimedOut => {
                "Give the profile more time if the log shows progress; otherwise see where it stands still."
            }
            Self::WrongModel => "Correct the model or the served name in the profile.",
            Self::NoToken => "Look at the end of the log; the engine's own health may be broken.",
            Self::Rebooted => "Launch again.",
            Self::NotStopped => {
                "Stop it on the host by hand, as its administrator; until then it holds its GPUs and its port."
            }
            Self::Internal => "Look into this program's log, and report what stands there.",
        }
    }
}

/// A failure as kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFailure {
    /// Which kind.
    pub kind: FailureKind,
    /// What exactly: the line of the log, the holder of the port, the exit code.
    pub detail: String,
}

impl LaunchFailure {
    /// A failure with what is known of it.
    #[must_use]
    pub fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }
}

impl std::fmt::Display for LaunchFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.sentence())?;
        let detail = self.detail.trim();
        if !detail.is_empty() {
            write!(f, " {detail}")?;
            if !detail.ends_with(['.', '!', '?']) {
                f.write_str(".")?;
            }
        }
        write!(f, " {}", self.kind.remedy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_says_what_happened_and_what_to_do() {
        for kind in FailureKind::ALL {
            assert!(kind.sentence().ends_with('.') && kind.remedy().ends_with('.'));
        }
        let failure = LaunchFailure::new(FailureKind::PortTaken, "Process 7 (nginx) does");
        assert_eq!(
            failure.to_string(),
            "Another process listens on the port. Process 7 (nginx) does. Stop what listens there, or give the profile another port."
        );
    }
}
