//! The stand-in engine: a program that looks like vLLM or SGLang from outside
//! and generates nothing.
//!
//! It takes the engines' flags, serves their endpoints and paces tokens by
//! absolute deadlines from a model of the step time. The model and the
//! scheduler are pure ([`model`], [`pacer`]); the live server ([`Simulator`])
//! and the run in virtual time ([`virtual_time`]) drive the same code, so that
//! what a test proves of the one holds for the other. Every reply carries
//! [`tokdyno_domain::engine::SIMULATED_MARKER`]: nothing measured here can pass
//! for a measurement of an engine.
//!
//! What is taken from recorded figures and what is invented stands in
//! `docs/simulator.md`.

pub mod acceptance;
pub mod args;
pub mod config;
mod engine;
pub mod fault;
pub mod flags;
mod http;
mod info;
pub mod model;
pub mod noise;
mod openai;
pub mod pacer;
mod routes;
mod server;
mod sink;
mod stats;
mod text;
mod truth;
pub mod virtual_time;

pub use args::{SimulateArgs, exit_code, serve};
pub use config::{Engine, SimConfig};
pub use flags::FlagError;
pub use server::{SimError, Simulator};
