//! `tokdyno simulate vllm|sglang|nvidia-smi …`: the stand-in engine and the tool
//! that looks at its GPUs.

use std::process::ExitCode;

use tokdyno_simulator::SimulateArgs;

use crate::logging;

/// Runs until it is done, or until SIGINT or SIGTERM.
pub(crate) fn run(arguments: SimulateArgs) -> ExitCode {
    logging::start();
    tokdyno_simulator::run(arguments)
}
