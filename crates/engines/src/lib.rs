//! What is known about serving engines: vLLM, SGLang and whatever else speaks the
//! OpenAI protocol.
//!
//! * [`probe()`], [`health`], [`one_token`], [`in_flight`]: asking an address.
//! * [`shell`]: a profile from a pasted command line, and the reverse.
//! * [`knowledge`]: what flags and variables mean, and what to beware of.
//! * [`builtin`]: the profiles to begin with.
//! * [`LogReader`], [`ended`]: how far a start-up is, and why it failed.
//! * [`readable_by`]: what is shown to whom, as far as secrets go.
//! * [`effective()`]: what really runs, item by item against what was asked.
//! * [`metrics`]: what an engine counts of itself.
//!
//! Everything but the asking is pure. The asking, and the HTTP client it takes, is
//! the feature `ask` (on by default); the meter does without.

pub mod builtin;
pub mod knowledge;
pub mod metrics;
pub mod shell;

#[cfg(feature = "ask")]
mod asking;
mod container;
mod diff;
mod drafter;
mod effective;
#[cfg(feature = "ask")]
mod error;
#[cfg(feature = "ask")]
mod fetch;
mod found;
mod line;
mod log;
mod mask;
#[cfg(feature = "ask")]
mod probe;
mod python;
mod readers;
#[cfg(feature = "ask")]
mod replies;
#[cfg(feature = "ask")]
mod settings;
mod title;
mod version;
mod words;

#[cfg(feature = "ask")]
pub use asking::{Health, health, in_flight, one_token};
pub use container::{ContainerFacts, ContainerFactsError};
pub use diff::{diff, draft};
pub use drafter::{DrafterCheck, DrafterLayers, check_drafter, drafter_layers};
pub use effective::{Evidence, effective};
#[cfg(feature = "ask")]
pub use error::ProbeError;
pub use found::{profile_of, recognise, suggested_name};
pub use log::{LogReader, ended};
#[cfg(feature = "ask")]
pub use probe::{ProbeReport, probe};
pub use readers::{HoldsSecrets, readable_by};
pub use title::{preferred_model, title_of_configuration};
