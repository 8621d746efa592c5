//! Being told to stop.

use tokio::signal::unix::{SignalKind, signal};

/// By which signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// SIGINT, from a terminal.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn stop_signal() -> Stop {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Stop::Interrupt,
        _ = terminate.recv() => Stop::Terminate,
    }
}
