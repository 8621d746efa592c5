//! Runs and result files held to rules from the command line: what is asked for, and
//! what is said of it.

mod arguments;
mod shown;

pub(crate) use arguments::{ArgumentError, GateArguments, Subject};
pub(crate) use shown::{Said, text};
