//! Commands that ask a running server, as a script would over REST: its pages and
//! they show the same.

mod arguments;
mod connection;
mod error;
mod experiments;
mod follow;
mod moment;
mod names;
#[cfg(test)]
mod samples;
mod show;

pub(crate) use arguments::{
    AddBuiltinArguments, ExperimentsArguments, ExperimentsCommand, HostsArguments, HostsCommand,
    LaunchArguments, MeasureArguments, ProfilesArguments, ProfilesCommand, ServerArguments,
    StopArguments,
};
pub(crate) use connection::Connection;
pub(crate) use error::ClientError;
pub(crate) use experiments::{experiment, experiments};
pub(crate) use follow::{Ending, follow_launch, follow_run, follow_stop};
pub(crate) use names::living_launch;
pub(crate) use show::{builtins, card, hosts, json, profiles, servers};
