//! Server functions: public endpoints, each of which asks the laboratory, which
//! asks who may do what. One file per subject; flat names for the pages.
#![expect(
    missing_docs,
    reason = "the server macro makes fields of the arguments, which cannot carry documentation"
)]

#[cfg(feature = "ssr")]
mod artefacts;
pub mod board;
pub mod compare;
#[cfg(feature = "ssr")]
mod context;
pub mod failures;
pub mod founding;
pub mod measure;
pub mod runs;

pub use board::{Board, board};
pub use compare::{Compare, Frozen, Share, compare, frozen, share};
pub use failures::{FailureGroup, Failures, failures};
pub use founding::{LoadFounding, load_founding};
pub use measure::{Probe, QueueRun, probe, queue_run};
pub use runs::{
    CancelRun, DeleteRun, Records, RenameRun, Run, Runs, cancel_run, delete_run, records,
    rename_run, run, runs,
};
