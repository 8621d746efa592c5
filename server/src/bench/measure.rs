//! The measurement: on a thread of its own, stopped by Ctrl-C.

use std::{sync::mpsc, thread};

use tokdyno_domain::meter::{MeterEvent, MeterOutcome, MeterSpec};
use tokdyno_loadgen::{CancelFlag, SpecError, run_blocking};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Measures, and hands each event to `take` on the calling thread. The first
/// Ctrl-C stops in order, which `say` is told, the second ends the program.
///
/// # Errors
/// [`SpecError`], before anything is sent.
pub(crate) fn measure(
    spec: MeterSpec,
    say: impl Fn(&str) + Send + 'static,
    mut take: impl FnMut(MeterEvent),
) -> Result<MeterOutcome, SpecError> {
    let cancel = CancelFlag::new();
    stop_on_signal(cancel.clone(), say);
    run_blocking(spec, &cancel, &mut take)
}

/// Returns once signals are listened for, so that an early Ctrl-C is not lost.
fn stop_on_signal(cancel: CancelFlag, say: impl Fn(&str) + Send + 'static) {
    let (listening, is_listening) = mpsc::channel::<()>();
    let spawned = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            runtime.block_on(async {
                let (Ok(mut interrupt), Ok(mut terminate)) = (
                    signal(SignalKind::interrupt()),
                    signal(SignalKind::terminate()),
                ) else {
                    return;
                };
                drop(listening);
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                cancel.cancel();
                say("Stopping; what is finished is kept. Ctrl-C again ends at once.");
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                std::process::exit(INTERRUPTED);
            });
        });
    if spawned.is_ok() {
        // An error means that the sender is gone: listening, or never will be.
        let _ = is_listening.recv();
    }
}
