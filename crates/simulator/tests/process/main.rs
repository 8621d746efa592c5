//! The stand-in as a process: start-up, failures, GPUs, stopping. Everything that
//! a library call cannot show.

mod failing;
mod gpus;
mod starting;
mod stopping;
mod support;
