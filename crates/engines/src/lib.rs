//! What is known about serving engines: vLLM, SGLang and whatever else speaks the
//! OpenAI protocol. For now: asking an address, before a measurement, who it is.

mod error;
mod fetch;
mod mask;
mod probe;
mod replies;
mod settings;
mod title;

pub use error::ProbeError;
pub use probe::{ProbeReport, probe};
pub use title::{preferred_model, title_of_configuration};
