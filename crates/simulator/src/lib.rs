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
pub mod gpu;
mod http;
mod info;
mod life;
pub mod model;
pub mod nccl;
pub mod noise;
mod nvidia_smi;
mod openai;
pub mod options;
pub mod pacer;
mod prefix_cache;
mod resolved;
mod routes;
mod server;
mod sink;
pub mod startup;
mod stats;
mod stop;
mod text;
mod truth;
pub mod virtual_time;
mod worker;

pub use args::{SimulateArgs, run};
pub use config::{Engine, SimConfig};
pub use flags::FlagError;
pub use options::SimOptions;
pub use server::{SimError, Simulator};
