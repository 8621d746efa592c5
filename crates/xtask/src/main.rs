//! What building, testing and developing need beyond cargo: `cargo xtask help`.
//! The Makefile is how people get here.

mod bench;
mod commands;
mod dev;
mod hosts;
mod sqlx_prepare;
mod suite;
mod test_db;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "xtask",
    about = "Builds the browser bundle, and runs what needs services"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the browser bundle into target/site.
    Web {
        /// `release` is small, `dev` is quick.
        #[arg(long, value_enum, default_value_t = web::Profile::Release)]
        profile: web::Profile,
    },
    /// Build the programs that are copied to hosts into target/release/hosts.
    Hosts,
    /// Run a command with DATABASE_URL naming a throwaway PostgreSQL.
    TestDb {
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Renew .sqlx, the answers of PostgreSQL that the build checks queries against.
    SqlxPrepare {
        /// Only compare, and fail if .sqlx is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Run all checks and tests, and say how long each took.
    Test {
        /// Run only the parts whose name contains this.
        #[arg(long)]
        only: Option<String>,
    },
    /// Compare the meter's figures and cost with a bare reader's, and with the
    /// stand-in's log of true times.
    Bench {
        /// Only C = 512, chunks and parser.
        #[arg(long)]
        quick: bool,
        /// Only this level, chunks and parser.
        #[arg(long, conflicts_with = "quick")]
        only: Option<u32>,
    },
    /// Build, serve, and rebuild what changes.
    Dev {
        /// What `tokdyno serve` gets.
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Own a throwaway PostgreSQL until standard input ends; prints its address.
    #[command(hide = true)]
    HoldDb {
        /// Removed at the end.
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Web { profile } => web::build(profile).map(|()| ExitCode::SUCCESS),
        Task::Hosts => hosts::build().map(|()| ExitCode::SUCCESS),
        Task::TestDb { command } => test_db::run(&command),
        Task::SqlxPrepare { check } => sqlx_prepare::run(check).map(|()| ExitCode::SUCCESS),
        Task::Test { only } => suite::run(only.as_deref()),
        Task::Bench { quick, only } => bench::run(if quick { Some(512) } else { only }),
        Task::Dev { arguments } => dev::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::HoldDb { directory } => test_db::hold(&directory).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
