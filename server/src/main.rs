//! The program `tokdyno`: the web server and the command line.
//!
//! This file reads the command line and turns the outcome into an exit code;
//! each sub-command has a file below [`commands`].

#![recursion_limit = "256"]

mod bench;
mod cli;
mod commands;
mod data_dir;
mod database;
mod json_text;
mod logging;
mod meter_path;
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
        Some(Command::Simulate(arguments)) => return Ok(commands::simulate::run(arguments)),
    }
    Ok(ExitCode::SUCCESS)
}
