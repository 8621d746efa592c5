//! Words and rules of Tokdyno.
//!
//! Everything here is pure: no I/O, no clock, no randomness that is not passed
//! in, and it compiles to WebAssembly, so that the browser, the server, the
//! measuring engine and the stand-in engine mean the same thing by the same
//! word. Who may import whom is drawn in `docs/ARCHITECTURE.md`; this crate
//! imports none of the others.

pub mod access;
pub mod analysis;

pub mod chart;
pub mod comparison;
pub mod conditions;
pub mod effective;
pub mod endpoint;
pub mod engine;
pub mod experiment;
pub mod founding;
pub mod gate;
pub mod goodput;
pub mod histogram;
pub mod host;
pub mod ids;
pub mod launch;
pub mod live;
pub mod meter;
pub mod metrics;
pub mod profile;
pub mod prompts;
pub mod record;
pub mod result_file;
pub mod run;
pub mod secrets;
pub mod source;
pub mod statistics;
pub mod text;
pub mod timestamp;
pub mod validity;
pub mod verdict;
pub mod views;
pub mod workload;
