//! What the program writes about itself: to standard error, so that standard
//! output stays for results.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// The variable that chooses what is logged, such as `tokdyno_lab=debug`.
const VARIABLE: &str = "TOKDYNO_LOG";

/// Our own crates at `info`, everybody else's at `warn`.
const USUAL: &str = "warn,tokdyno=info,tokdyno_app=info,tokdyno_engines=info,tokdyno_lab=info,tokdyno_loadgen=info,tokdyno_pgcluster=info,tokdyno_simulator=info";

/// Starts logging. A filter that cannot be read is said so and ignored.
pub(crate) fn start() {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => EnvFilter::try_new(&text).unwrap_or_else(|error| {
            eprintln!("tokdyno: {VARIABLE}={text} cannot be read ({error}); the usual filter is used. Write it such as `{VARIABLE}=tokdyno_lab=debug`.");
            EnvFilter::new(USUAL)
        }),
        _ => EnvFilter::new(USUAL),
    };
    // A second start (in tests) is no fault.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
