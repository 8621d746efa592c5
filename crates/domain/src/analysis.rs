//! From stored facts to what pages show: pure functions, so that the page, the
//! frozen comparison and the command line say the same.

mod board;
mod charts;
mod compare;
pub mod facts;
mod host;
mod launches;
mod levels;
mod meanwhile;
#[cfg(test)]
pub(crate) mod samples;

pub use board::board;
pub(crate) use charts::mark_of;
pub use charts::run_charts;
pub use compare::compare;
pub(crate) use compare::{Contest, Judged, contests, judged};
pub use facts::{RequestPoint, RunFacts};
pub use host::{host_charts, host_flags};
pub use levels::{levels, summarise};
