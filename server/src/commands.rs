//! One file per sub-command.

pub(crate) mod bench;
pub(crate) mod client;
pub(crate) mod gate;
pub(crate) mod import;
pub(crate) mod serve;
pub(crate) mod set_password;
pub(crate) mod simulate;
