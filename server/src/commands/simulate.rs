//! `tokdyno simulate vllm|sglang …`: the stand-in engine.

use std::process::ExitCode;

use tokdyno_simulator::SimulateArgs;
use tokio::signal::unix::{SignalKind, signal};

use crate::logging;

/// Runs until SIGINT or SIGTERM.
pub(crate) fn run(arguments: SimulateArgs) -> ExitCode {
    logging::start();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!(
                "tokdyno: The program could not be started ({error}). Look at the machine's limits on processes and memory."
            );
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(tokdyno_simulator::serve(arguments, stopped())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tokdyno: {error:#}");
            ExitCode::from(tokdyno_simulator::exit_code(&error))
        }
    }
}

async fn stopped() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
