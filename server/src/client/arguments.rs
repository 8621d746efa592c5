//! What the commands are asked for.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tokdyno_domain::{timestamp::Timestamp, workload::Preset};
use url::Url;

use super::moment::next_time;
use crate::bench::PresetName;

/// Which server is asked, and how it is shown.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// Address of the running Tokdyno.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "TOKDYNO_SERVER",
        default_value = "http://127.0.0.1:4000"
    )]
    pub(crate) server: Url,

    /// Print what the server answered as JSON, and nothing else on standard output.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HostsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<HostsCommand>,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostsCommand {
    /// List hosts, what is on them and who owns their GPUs.
    List,
    /// Add a host.
    Add {
        /// As typed after `ssh`.
        #[arg(value_name = "DESTINATION", required_unless_present = "local", value_parser = destination)]
        destination: Option<String>,
        /// The machine that the server itself runs on.
        #[arg(long, conflicts_with = "destination")]
        local: bool,
        /// What it is called; usually as its destination.
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Notes for people.
        #[arg(long, value_name = "TEXT")]
        notes: Option<String>,
    },
    /// Connect to a host and read what is on it.
    Check {
        /// Its name or number.
        host: String,
    },
}

/// A blank one would mean the server's own machine, which is asked for by name.
fn destination(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        Err(
            "the destination is blank; name a host as after `ssh`, or use --local for the machine that the server runs on",
        )
    } else {
        Ok(text.to_owned())
    }
}

#[derive(Debug, Args)]
pub(crate) struct ProfilesArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ProfilesCommand>,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfilesCommand {
    /// List profiles, and built-in ones that can be added.
    List,
    /// Show a profile and its command.
    Show {
        /// Its name or number.
        profile: String,
    },
    /// Make a profile of a shell command line.
    Paste {
        /// Name of the profile; usually one that tells engine and model.
        #[arg(long)]
        name: Option<String>,
        /// A file with the command; `-`, as usual, reads standard input.
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
    },
    /// Add a built-in profile.
    AddBuiltin(AddBuiltinArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AddBuiltinArguments {
    /// Which one, such as sglang-base.
    pub(crate) id: String,
    /// Name of the profile; usually that of the built-in one.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Model: path on the host, or name on a hub.
    #[arg(long, value_name = "PATH")]
    pub(crate) model: Option<String>,
    /// Draft model.
    #[arg(long, value_name = "PATH")]
    pub(crate) drafter: Option<String>,
    /// Ranks of tensor parallelism.
    #[arg(long, value_name = "N")]
    pub(crate) tensor_parallel: Option<u32>,
    /// Port on the host's loopback.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Name under which the model is served.
    #[arg(long, value_name = "NAME")]
    pub(crate) served_name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExperimentsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ExperimentsCommand>,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentsCommand {
    /// List the newest experiments and how far each is.
    List,
    /// Show what an experiment found, and the runs of each configuration.
    Show {
        /// Its number.
        experiment: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LaunchArguments {
    /// Name or number of the profile; its newest revision is launched.
    pub(crate) profile: String,

    /// Name or number of the host.
    pub(crate) host: String,

    /// Measure it once it is ready.
    #[arg(long, value_name = "PRESET", value_enum)]
    pub(crate) measure: Option<PresetName>,

    /// Measure through an SSH port forward rather than on the host itself.
    #[arg(long, requires = "measure")]
    pub(crate) through_forward: bool,

    /// What the configuration is called on the Board; usually as the profile.
    #[arg(long, value_name = "TEXT", requires = "measure")]
    pub(crate) configuration: Option<String>,

    /// Stop it when its work is done.
    #[arg(long, conflicts_with = "keep")]
    pub(crate) stop: bool,

    /// Let it run when its work is done, which is the usual.
    #[arg(long)]
    pub(crate) keep: bool,

    /// The adopted server to stop before and start again afterwards: number of its
    /// launch, or name of its profile.
    #[arg(long, value_name = "LAUNCH")]
    pub(crate) restore: Option<String>,

    /// End it and give the host back by this time of day (local), or by a moment in
    /// RFC 3339.
    #[arg(long, value_name = "HH:MM", value_parser = next_time)]
    pub(crate) give_back_by: Option<Timestamp>,

    /// Have NCCL write its own start-up log, and read it.
    #[arg(long)]
    pub(crate) verify_nccl: bool,

    /// Wait until it is ready, or until all that was asked for is done.
    #[arg(long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// Number of the launch, or name of its profile where only one lives.
    pub(crate) launch: String,

    /// Wait until it has ended, and what it is to bring back is ready.
    #[arg(long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
pub(crate) struct MeasureArguments {
    /// Number of the launch, or name of its profile where only one lives.
    pub(crate) launch: String,

    /// What is sent.
    #[arg(long, value_enum, default_value = "quick")]
    pub(crate) preset: PresetName,

    /// Through an SSH port forward rather than on the host itself.
    #[arg(long)]
    pub(crate) through_forward: bool,

    /// What the configuration is called on the Board; usually as the profile.
    #[arg(long, value_name = "TEXT")]
    pub(crate) configuration: Option<String>,

    /// Wait until the run is over.
    #[arg(long)]
    pub(crate) wait: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

impl LaunchArguments {
    /// The preset that is measured.
    pub(crate) fn preset(&self) -> Option<Preset> {
        self.measure.map(Preset::from)
    }
}
