//! A stand-in engine on its own:
//! `cargo run -p tokdyno-simulator --bin stand-in -- sglang --port 0`.

use std::process::ExitCode;

use clap::Parser;
use tokdyno_simulator::{SimulateArgs, run};

/// A stand-in engine.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    simulate: SimulateArgs,
}

fn main() -> ExitCode {
    run(Cli::parse().simulate)
}
