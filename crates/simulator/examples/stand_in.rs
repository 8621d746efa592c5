//! A stand-in engine on its own:
//! `cargo run -p tokdyno-simulator --example stand_in -- sglang --port 0`.

use std::process::ExitCode;

use clap::Parser;
use tokdyno_simulator::{SimulateArgs, exit_code, serve};

/// A stand-in engine.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    simulate: SimulateArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    let stop = async {
        // Without a handler the process simply ends at the signal.
        let _ = tokio::signal::ctrl_c().await;
    };
    match serve(Cli::parse().simulate, stop).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}
