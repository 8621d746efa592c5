//! Starting up as an engine does: stages with their log lines, and ways to fail.
//!
//! What is logged and when is pure ([`script`]); [`crate::life`] waits and prints.

mod failure;
mod fault;
mod script;
mod voice;

use std::time::Duration;

pub use fault::{BadStartFault, StartFault};

pub(crate) use failure::{Death, death, shortage, worker_death};
pub(crate) use script::{Beat, Stage, script};
pub(crate) use voice::{Line, Log, Voice};

/// How a stand-in starts and stops as a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartupOptions {
    /// Time from the start until it is ready.
    pub time: Duration,
    /// How it fails.
    pub fault: Option<StartFault>,
    /// Does it go on after SIGTERM and SIGINT?
    pub ignore_term: bool,
    /// Worker processes.
    pub children: u32,
}
