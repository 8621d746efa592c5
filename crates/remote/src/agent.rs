//! What runs on a host: `tokdyno-agent`, synchronous, without a runtime.
//!
//! `serve-one` answers one request on standard input and output. `keep` watches one
//! launched program until the last process of it is gone; it is started by
//! `serve-one` only.

mod bounded;
mod cgroup;
mod engines;
mod execute;
mod failure;
mod files;
mod filter;
mod folder;
mod gpus;
mod inventory;
mod keeper;
mod launch;
mod liveness;
mod nccl;
mod nvidia;
mod ports;
mod process;
mod programs;
mod record;
mod restore;
mod run;
mod sample;
mod serve;
mod stop;
mod users;

use std::{ffi::OsString, process::ExitCode};

/// The agent's `main`: `serve-one` or `keep`, and nothing else on its command line.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let word = arguments.nth(1);
    match word.as_ref().and_then(|word| word.to_str()) {
        Some("serve-one") => serve::serve_one(),
        Some("keep") => keeper::keep(),
        _ => {
            eprintln!(
                "tokdyno-agent works for Tokdyno's dashboard and is started by it, locally or over SSH. There is nothing to do with it by hand."
            );
            ExitCode::from(2)
        }
    }
}
