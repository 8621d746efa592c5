//! What the agent can be asked to do.

use serde::{Deserialize, Serialize};
use tokdyno_domain::host::ProcessIdentity;

/// What the agent is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum Order {
    /// Who and where.
    Hello,
    /// Everything about the machine.
    Inventory,
    /// Processes that look like engines.
    Engines,
    /// One process.
    Process {
        /// Its number.
        pid: u32,
        /// Variables allowed beside the allow-list.
        names: Vec<String>,
    },
    /// Runs a command to its end. Fields of the command follow, then `stdin` bytes.
    Run {
        /// Bytes of standard input.
        stdin: u64,
    },
    /// Becomes another program. Fields of the command follow; what follows the
    /// block belongs to the program.
    Exec,
    /// Starts a program and keeps it running. Fields of the command follow.
    Spawn {
        /// State folder.
        folder: String,
    },
    /// How a launch is.
    Status {
        /// State folder.
        folder: String,
        /// The launched process.
        identity: ProcessIdentity,
    },
    /// Ends a launch.
    Stop {
        /// State folder.
        folder: String,
        /// The launched process.
        identity: ProcessIdentity,
        /// Time between the request to end and the kill, in ms.
        grace_ms: u64,
    },
    /// Signals one process or its group.
    Signal {
        /// Which.
        identity: ProcessIdentity,
        /// What.
        signal: Signal,
        /// Its whole group?
        group: bool,
    },
    /// The file as it grows: frames of a length (4 bytes, big-endian) and bytes;
    /// length 0 ends it.
    Follow {
        /// State folder.
        folder: String,
        /// File in it.
        file: String,
        /// First byte wanted.
        offset: u64,
    },
    /// A file of a state folder: a reply `Option<u64>`, the length, then bytes.
    Read {
        /// State folder.
        folder: String,
        /// File in it.
        file: String,
        /// Most bytes wanted.
        most: u64,
    },
    /// Any file: as [`Order::Read`].
    ReadPath {
        /// Absolute path.
        path: String,
        /// Most bytes wanted.
        most: u64,
    },
    /// Writes a file of a state folder. `size` bytes follow.
    Write {
        /// State folder.
        folder: String,
        /// File in it.
        file: String,
        /// Bytes that follow.
        size: u64,
    },
    /// Files of a state folder.
    List {
        /// State folder.
        folder: String,
    },
    /// Saves how a process was started.
    Keep {
        /// State folder.
        folder: String,
        /// The process.
        pid: u32,
    },
    /// Starts again what was saved.
    Respawn {
        /// State folder of the new launch.
        folder: String,
        /// State folder that it was saved in.
        kept: String,
    },
    /// A line of JSON each second.
    Sample,
    /// Is a program here? `Option<String>`, its path.
    HasProgram {
        /// SHA-256 of its content.
        sha256: String,
    },
    /// Stores a program. `size` bytes follow.
    PutProgram {
        /// SHA-256 of its content.
        sha256: String,
        /// Bytes that follow.
        size: u64,
    },
    /// Is a TCP port free?
    PortFree {
        /// Which.
        port: u16,
    },
    /// Launches that left processes behind.
    Leftovers {
        /// What their folders' names begin with.
        prefix: String,
    },
    /// Removes a state folder.
    Remove {
        /// Which.
        folder: String,
    },
}

/// Signals that are ever sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
    /// SIGINT.
    Int,
}
