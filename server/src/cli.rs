//! The command line: what can be asked for. `docs/command-line.md` explains it.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use tokdyno_simulator::SimulateArgs;
use url::Url;

use crate::{
    bench::BenchArguments,
    client::{
        ExperimentsArguments, HostsArguments, LaunchArguments, MeasureArguments, ProfilesArguments,
        StopArguments,
    },
    gate::GateArguments,
};

/// Measures LLM serving engines, keeps every figure, and shares comparisons.
#[derive(Debug, Parser)]
#[command(name = "tokdyno", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the pages and run the queue of measurements.
    Serve(ServeArguments),
    /// Measure a server from the command line.
    Bench(Box<BenchArguments>),
    /// Store result files that `tokdyno bench --json` wrote.
    Import(ImportArguments),
    /// Hosts of a running server: list, add, check.
    Hosts(HostsArguments),
    /// Profiles of a running server: list, show, paste, add built-in ones.
    Profiles(ProfilesArguments),
    /// Experiments of a running server: list, show.
    #[command(visible_alias = "experiment")]
    Experiments(ExperimentsArguments),
    /// Launch a profile on a host.
    Launch(Box<LaunchArguments>),
    /// Stop a launch.
    Stop(StopArguments),
    /// Measure a launch that is ready.
    Measure(MeasureArguments),
    /// Hold runs of a running server, or result files, to rules.
    Gate(Box<GateArguments>),
    /// Set the operator's password, with which launching is allowed from other
    /// machines.
    SetPassword(SetPasswordArguments),
    /// Be the stand-in engine: same flags and endpoints, nothing generated.
    Simulate(SimulateArgs),
}

/// Which database, and where files are kept.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// PostgreSQL to use, such as postgres://user:password@host/name. Without
    /// it a private cluster is kept in the data directory.
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,

    /// Where files are kept. Usually /var/lib/tokdyno for root, and
    /// ~/.local/share/tokdyno for everybody else.
    #[arg(long, value_name = "DIR", env = "TOKDYNO_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Address and port to listen on; port 0 lets the system choose.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4000")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) store: StoreArguments,

    /// The address people type, where a proxy stands in front. Its host is then
    /// accepted besides the loopback names, and shared links begin with it.
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<Url>,

    /// Listen on an address that others reach. Whoever reaches the port may then
    /// measure, read and delete. Launching, and editing hosts and profiles, still
    /// needs the operator's password (`tokdyno set-password`).
    #[arg(long)]
    pub(crate) trust_network: bool,

    /// A second address that serves shared comparisons (/c/…) and nothing else.
    #[arg(long, value_name = "ADDR")]
    pub(crate) share_listen: Option<SocketAddr>,

    /// Measurements at once. More than one disturb each other unless they run
    /// against different machines.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) parallel: u32,

    /// Do not load the founding figures into an empty store.
    #[arg(long)]
    pub(crate) no_founding: bool,

    /// Configuration of the SSH client to use instead of ~/.ssh/config.
    #[arg(long, value_name = "FILE")]
    pub(crate) ssh_config: Option<PathBuf>,

    /// The SSH client.
    #[arg(long, value_name = "PROGRAM", default_value = "ssh")]
    pub(crate) ssh: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Result files; `-` reads standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SetPasswordArguments {
    /// Read the password once from standard input instead of twice from the
    /// terminal.
    #[arg(long)]
    pub(crate) stdin: bool,

    #[command(flatten)]
    pub(crate) store: StoreArguments,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_of_the_engines_pass_through() {
        let cli = Cli::try_parse_from(["tokdyno", "simulate", "sglang", "--tp", "8", "--help"])
            .expect("parsed");
        assert!(matches!(cli.command, Some(Command::Simulate(_))));
    }

    #[test]
    fn the_database_address_is_no_part_of_help() {
        let help = Cli::command()
            .find_subcommand_mut("serve")
            .expect("serve")
            .render_long_help()
            .to_string();
        assert!(help.contains("DATABASE_URL") && !help.contains("DATABASE_URL="));
    }
}
