//! Measuring from the command line: what is asked for, the measurement itself, and
//! what is said of it.

mod arguments;
mod collect;
mod measure;
mod output;
mod progress;
mod subject;
mod table;

pub(crate) use arguments::{ArgumentError, BenchArguments, PresetName};
pub(crate) use collect::{Circumstances, Collected};
pub(crate) use measure::measure;
pub(crate) use output::{Destination, OutputError};
pub(crate) use progress::Display;
pub(crate) use subject::{Subject, SubjectError, ask};
pub(crate) use table::report;
pub(crate) use tokdyno_loadgen::SpecError;
