//! From stored facts to what pages show: pure functions, so that the page, the
//! frozen comparison and the command line say the same.

mod board;
mod charts;
mod compare;
pub mod facts;
mod history;
mod host;
mod launches;
mod levels;
mod meanwhile;
mod reread;
#[cfg(test)]
pub(crate) mod samples;

pub use board::board;
pub(crate) use charts::mark_of;
pub use charts::run_charts;
pub(crate) use compare::{Contest, Judged, contests, judged};
pub use compare::{compare, compare_with};
pub use facts::{RequestPoint, RunFacts};
pub use history::{History, MOST_PAST};
pub use host::{host_charts, host_flags};
pub(crate) use launches::repeats;
pub use levels::{levels, summarise};
pub use reread::{holds_all_repeats, reread, verdicts_changed};
