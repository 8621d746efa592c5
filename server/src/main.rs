//! The program `tokdyno`: the web server and the command line.
//!
//! This file reads the command line and turns the outcome into an exit code;
//! each sub-command has a file below [`commands`].

#![recursion_limit = "256"]

mod bench;
mod cli;
mod client;
mod commands;
mod data_dir;
mod database;
mod gate;
mod json_text;
mod logging;
mod password;
mod programs;
mod safety;
mod web;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tokdyno: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        None => Cli::command().print_help()?,
        Some(Command::Serve(arguments)) => commands::serve::run(&arguments)?,
        Some(Command::Bench(arguments)) => return Ok(commands::bench::run(*arguments)),
        Some(Command::Import(arguments)) => return Ok(commands::import::run(&arguments)?),
        Some(Command::Hosts(arguments)) => commands::client::hosts(arguments)?,
        Some(Command::Profiles(arguments)) => commands::client::profiles(arguments)?,
        Some(Command::Experiments(arguments)) => commands::client::experiments(arguments)?,
        Some(Command::Launch(arguments)) => commands::client::launch(&arguments)?,
        Some(Command::Stop(arguments)) => commands::client::stop(&arguments)?,
        Some(Command::Measure(arguments)) => commands::client::measure(&arguments)?,
        Some(Command::Gate(arguments)) => return Ok(commands::gate::run(&arguments)),
        Some(Command::SetPassword(arguments)) => commands::set_password::run(&arguments)?,
        Some(Command::Simulate(arguments)) => return Ok(commands::simulate::run(arguments)),
    }
    Ok(ExitCode::SUCCESS)
}
