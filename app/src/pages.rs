//! One file per page.

pub mod board;
pub mod compare;
pub mod frozen;
pub mod lazy;
pub mod new_run;
pub mod not_found;
pub mod run;
pub mod runs;
