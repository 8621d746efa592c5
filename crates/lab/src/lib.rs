//! The laboratory: the Postgres store, and the worker that drives measurements.
//!
//! Nobody else knows Postgres, and nothing here knows a screen. Every read and
//! write asks `tokdyno_domain::access` first. The measuring itself is done by a
//! process of its own, the meter, so that neither a dead server nor a dead
//! database loses a finished request: see the worker's modules.

mod audit;
pub mod bench;
mod clean;
mod commands;
mod comparisons;
mod error;
mod experimenting;
mod experiments;
mod facts;
mod files;
mod founding;
mod gates;
mod heartbeat;
mod history;
mod host_samples;
mod hosts;
mod lab;
mod launch_commands;
mod launch_log;
mod launch_rows;
mod launch_runs;
mod launching;
mod live;
mod profile_rows;
mod profiles;
mod reads;
mod requests;
mod running_on;
mod secrets;
mod servers;
mod shapes;
mod sign_in;
mod skipped;
mod stages;
mod steps;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod traces;
mod worker;

pub use audit::acting_from;
pub use comparisons::{Artefacts, StoredComparison};
pub use error::LabError;
pub use files::Imported;
pub use lab::{Lab, LabConfig, MIGRATOR};
pub use launch_log::LogFile;
pub use reads::FailureGroup;
pub use sign_in::{MAX_PASSWORD, MIN_PASSWORD, SESSION, SessionToken};
pub use worker::WorkerHandle;
