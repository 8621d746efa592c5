//! One file per sub-command.

pub(crate) mod bench;
pub(crate) mod import;
pub(crate) mod serve;
pub(crate) mod simulate;
