//! One file per page.

pub mod audit;
pub mod board;
pub mod compare;
pub mod experiment;
pub mod experiments;
pub mod frozen;
pub mod host;
pub mod hosts;
pub mod lazy;
pub mod new_experiment;
pub mod new_launch;
pub mod new_profile;
pub mod new_run;
pub mod not_found;
pub mod profile;
mod profile_editor;
pub mod profiles;
pub mod run;
pub mod runs;
pub mod server;
pub mod servers;
pub mod sign_in;
