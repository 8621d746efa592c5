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
mod facts;
mod files;
mod founding;
mod lab;
mod live;
mod reads;
mod requests;
mod secrets;
mod stages;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod traces;
mod worker;

pub use comparisons::{Artefacts, StoredComparison};
pub use error::LabError;
pub use files::Imported;
pub use lab::{Lab, LabConfig, MIGRATOR};
pub use reads::FailureGroup;
pub use worker::WorkerHandle;
