//! Measuring from the command line: what is asked for, the measurement itself, and
//! what is said of it.

mod arguments;
mod collect;
mod compare;
mod input;
mod measure;
mod output;
mod progress;
mod rules;
mod seed;
mod spool;
mod subject;
mod table;
mod terminal;

pub(crate) use arguments::{ArgumentError, BenchArguments, PresetName, endpoint};
pub(crate) use collect::{Circumstances, Collected};
pub(crate) use compare::{CompareError, compare, measured};
pub(crate) use measure::measure;
pub(crate) use output::{Destination, OutputError};
pub(crate) use progress::Display;
pub(crate) use rules::{FailIf, judge};
pub(crate) use seed::{SeedError, fresh_seed};
pub(crate) use spool::{Kept, Spool, SpoolError, recover, same_file};
pub(crate) use subject::{Subject, SubjectError, ask};
pub(crate) use table::{nothing_succeeded, report};
pub(crate) use terminal::{put, tell, width};
pub(crate) use tokdyno_loadgen::SpecError;
