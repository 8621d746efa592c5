//! Hosts, the local machine and those behind SSH, through one small program.
//!
//! `tokdyno-agent` does everything that happens on a host. Locally it is started
//! as a child process. Over SSH it is copied once, named by the SHA-256 of its
//! content, and started by a constant stub, the only command line that ever
//! travels. Local and SSH therefore differ in one thing, how the agent's process
//! is started ([`client`]'s `Transport`), and everything else is one code path.
//!
//! Requests go to the agent's standard input ([`wire`]): a block of fields that
//! each end in NUL. Whatever may stand in an argument vector or an environment
//! arrives unchanged, whichever login shell the account has, and no argument or
//! variable stands in a list of processes on the way.
//!
//! A launched program is watched on its host by a *keeper*, the agent once more,
//! in a session of its own. It outlives the connection and the dashboard, writes
//! down how the program ended, and adopts what the program leaves behind, so that
//! a whole launch can be found and stopped later. Processes are named by boot,
//! number and start time; nothing else is ever signalled.
//!
//! Two trees: [`agent`] is synchronous and runs on the host, [`client`] runs beside
//! the dashboard on tokio. [`wire`] is what both agree on.

pub mod agent;
pub mod client;
#[cfg(feature = "testing")]
pub mod testing;
pub mod wire;

pub use client::{
    Checked, Follow, Forward, Host, Piped, RemoteConfig, RemoteError, RemoteProgram, Samples,
};
pub use wire::{
    ExitKind, Failure, FailureWord, FileFacts, Leftover, Output, PortUse, ProcessStatus,
    RawCommand, Signal, Spawn, Spawned, Stopped,
};
