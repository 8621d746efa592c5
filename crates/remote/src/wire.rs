//! What the dashboard's side and the agent agree on.
//!
//! A request is a decimal byte count, a line feed, and a block of that many bytes:
//! fields, each followed by NUL. The first field is the [`Order`] as JSON (JSON
//! text never holds a raw NUL). Orders with a command are followed by its fields,
//! see [`Block::command`]. Some orders announce a payload; it follows the block raw.
//!
//! The agent greets first ([`GREETING`]), so that whatever a login shell prints
//! before it is skipped. It answers with one line of JSON, a [`Reply`], and then
//! with raw bytes where the order says so.

mod answers;
mod block;
mod command;
mod order;

pub(crate) use answers::RunHead;
pub use answers::{
    ExitKind, Failure, FailureWord, FileFacts, Hello, Leftover, Output, PortUse, ProcessStatus,
    Reply, Spawned, Stopped,
};
pub(crate) use block::{Block, Fields};
pub use command::{RawCommand, Spawn};
pub use order::{Order, Signal};

/// Version of this protocol.
pub const VERSION: u32 = 1;
/// First line of the agent; the number is [`VERSION`].
pub const GREETING: &str = "tokdyno-agent 1";
/// What the stub prints instead if the agent is not on the host: followed by the
/// system's name and the architecture.
pub const NO_AGENT: &str = "tokdyno: no agent ";
/// What the upload stub prints at its end: followed by `stored` or by a reason.
pub const UPLOAD: &str = "tokdyno: upload ";
/// Most bytes kept of each output stream of a command.
pub const MAX_OUTPUT: usize = 4 << 20;
/// Seconds between signs of life that the client sends while an order lasts.
pub const HEARTBEAT_S: u64 = 10;
/// Seconds of silence after which the agent takes the client for gone.
pub const SILENCE_S: u64 = 60;
/// The file that a launch's output is appended to.
pub const LOG: &str = "log";
