//! Launches on this very machine: real processes under the real agent, with the
//! stand-in as the engine, against a real PostgreSQL.

pub(crate) mod adopted;
mod failures;
mod life;
mod measured;
mod over_ssh;
mod sharing;
pub(crate) mod support;
mod takeover;
