//! What the agent answers.

use serde::{Deserialize, Serialize};
use tokdyno_domain::host::ProcessIdentity;

/// The agent's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply<T> {
    /// Done.
    Ok(T),
    /// Not done.
    Failed(Failure),
}

/// Why the agent did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{sentence}")]
pub struct Failure {
    /// Which kind.
    pub word: FailureWord,
    /// For people: what, why, remedy.
    pub sentence: String,
}

impl Failure {
    /// A failure.
    #[must_use]
    pub fn new(word: FailureWord, sentence: impl Into<String>) -> Self {
        Self {
            word,
            sentence: sentence.into(),
        }
    }
}

/// Kinds of failures on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureWord {
    /// The program is not there.
    NoSuchProgram,
    /// The program is there and cannot be executed.
    NotExecutable,
    /// The working directory is not there.
    NoSuchDirectory,
    /// The file is not there.
    NoSuchFile,
    /// The state folder is not there.
    NoSuchFolder,
    /// The process is not there.
    NoSuchProcess,
    /// The account may not do this.
    PermissionDenied,
    /// The disk is full, or a quota is used up.
    DiskFull,
    /// The file system is mounted read-only.
    ReadOnly,
    /// Arguments and environment are longer than the system takes.
    TooLong,
    /// A process of this folder still lives.
    StillAlive,
    /// The process cannot be read well enough for what was asked.
    NotReadable,
    /// The request makes no sense, such as a folder's name with a slash.
    BadRequest,
    /// Transferred bytes are not those that were announced.
    Corrupt,
    /// Anything else the system said.
    System,
}

impl FailureWord {
    /// The word as stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoSuchProgram => "no_such_program",
            Self::NotExecutable => "not_executable",
            Self::NoSuchDirectory => "no_such_directory",
            Self::NoSuchFile => "no_such_file",
            Self::NoSuchFolder => "no_such_folder",
            Self::NoSuchProcess => "no_such_process",
            Self::PermissionDenied => "permission_denied",
            Self::DiskFull => "disk_full",
            Self::ReadOnly => "read_only",
            Self::TooLong => "too_long",
            Self::StillAlive => "still_alive",
            Self::NotReadable => "not_readable",
            Self::BadRequest => "bad_request",
            Self::Corrupt => "corrupt",
            Self::System => "system",
        }
    }
}

/// Answer to [`Order::Hello`](super::Order::Hello).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Host name.
    pub hostname: String,
    /// User that commands run as.
    pub user: String,
    /// Architecture, such as `x86_64`.
    pub arch: String,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
    /// By itself, with a code.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
}

impl ExitKind {
    /// Ended by itself with code 0?
    #[must_use]
    pub const fn success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

/// Answer to [`Order::Run`](super::Order::Run); the bytes of both streams follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunHead {
    pub(crate) status: ExitKind,
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
    pub(crate) truncated: bool,
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub status: ExitKind,
    /// Standard output, at most [`MAX_OUTPUT`](super::MAX_OUTPUT) bytes.
    pub stdout: Vec<u8>,
    /// Standard error, at most [`MAX_OUTPUT`](super::MAX_OUTPUT) bytes.
    pub stderr: Vec<u8>,
    /// Was more written than is kept?
    pub truncated: bool,
}

/// A program that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawned {
    /// The leader of its process group.
    pub identity: ProcessIdentity,
    /// State folder on the host.
    pub folder_path: String,
}

/// How a launch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum ProcessStatus {
    /// The launched process lives.
    Running {
        /// Living processes of the launch, itself included.
        group: u32,
    },
    /// It ended by itself.
    Exited {
        /// With this code.
        code: i32,
    },
    /// It was killed.
    Killed {
        /// By this signal.
        signal: i32,
    },
    /// It is not there, and nothing says how it ended.
    Gone,
    /// The host was started anew since.
    Rebooted,
}

/// How stopping went.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stopped {
    /// Did it take a kill?
    pub forced: bool,
    /// Processes of the launch that still live; empty when all is well.
    pub left: Vec<ProcessIdentity>,
    /// Does the driver still list GPU memory of one of its processes?
    pub gpu_held: bool,
}

/// A file of a state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Name.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
}

/// Who holds a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "port")]
pub enum PortUse {
    /// Nobody.
    Free,
    /// Somebody.
    Held {
        /// Process, where readable.
        pid: Option<u32>,
        /// Its command line, masked, where readable.
        command: Option<String>,
    },
}

/// A launch whose processes still live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// State folder.
    pub folder: String,
    /// The launched process, as recorded.
    pub identity: ProcessIdentity,
    /// Living processes of the launch.
    pub processes: Vec<ProcessIdentity>,
    /// Command line of the first of them, masked.
    pub command: String,
    /// GPU memory they hold, in MiB.
    pub gpu_mib: u64,
}
