//! What an engine counts of itself: reading the text of `/metrics` (vLLM, SGLang),
//! and what two readings and those in between say of the time from the first to the
//! last.
//!
//! Counters are summed over a server's engines (vLLM) or data-parallel ranks
//! (SGLang). Of the ranks that work together on the same requests only the first
//! counts; SGLang can be told to let all of them report.
//!
//! What an engine does not tell is none, never zero.

mod capacity;
mod kinds;
mod report;
mod text;

pub use capacity::max_running_requests;
pub use kinds::{Readings, Summed};
pub use report::{counters_fell, report};
pub use text::{Label, Sample, samples};
