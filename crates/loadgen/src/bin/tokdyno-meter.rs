//! The program that measures. It reads one line of JSON, the specification,
//! from standard input, and then the word `cancel`; the end of the input means
//! that its parent is gone. Events go to standard output, one a line.
//!
//! Exit codes: 0 complete, 1 failed, 2 bad specification, 3 cancelled.

use std::{
    io::{self, BufRead, Read, Write},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use tokdyno_domain::{
    meter::{CANCEL_WORD, MeterEvent, MeterEventKind, MeterOutcome, MeterSpec},
    timestamp::Timestamp,
};
use tokdyno_loadgen::{CancelFlag, run_lines};

const FAILED: u8 = 1;
const BAD_SPECIFICATION: u8 = 2;
const CANCELLED: u8 = 3;

/// Longest specification: the largest prompt file, escaped, with room to spare.
const MAX_SPEC_BYTES: u64 = 128 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        None => {}
        Some("--version") if arguments.len() == 1 => {
            println!("tokdyno-meter {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(_) => {
            eprintln!(
                "tokdyno-meter takes no arguments but --version. Give the specification as a line of JSON on standard input."
            );
            return ExitCode::from(BAD_SPECIFICATION);
        }
    }
    let spec = match read_spec() {
        Ok(spec) => spec,
        Err(reason) => return refuse(reason),
    };
    let cancel = CancelFlag::new();
    let flag = cancel.clone();
    std::thread::spawn(move || listen(&flag));
    let flag = cancel.clone();
    std::thread::spawn(move || heed_signals(&flag));
    match run_lines(spec, &cancel, io::stdout()) {
        Ok(MeterOutcome::Complete) => ExitCode::SUCCESS,
        Ok(MeterOutcome::Cancelled) => ExitCode::from(CANCELLED),
        Ok(MeterOutcome::Failed { reason }) => {
            eprintln!("{reason}");
            ExitCode::from(FAILED)
        }
        Err(error) => refuse(error.to_string()),
    }
}

fn read_spec() -> Result<MeterSpec, String> {
    let mut line = String::new();
    io::stdin()
        .lock()
        .take(MAX_SPEC_BYTES)
        .read_line(&mut line)
        .map_err(|error| format!("The specification cannot be read: {error}. Give it as a line of JSON on standard input."))?;
    if line.trim().is_empty() {
        return Err(
            "There is no specification. Give it as a line of JSON on standard input.".to_owned(),
        );
    }
    serde_json::from_str(&line)
        .map_err(|error| format!("The specification does not read: {error}. Use a meter and a server of the same version."))
}

/// Says why nothing was measured: as the only event, and for people.
fn refuse(reason: String) -> ExitCode {
    eprintln!("{reason}");
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let event = MeterEvent {
        seq: 1,
        at: Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
        kind: MeterEventKind::Finished {
            outcome: MeterOutcome::Failed { reason },
        },
    };
    if let Ok(line) = serde_json::to_string(&event) {
        // With nobody listening the exit code has to do.
        let _ = writeln!(io::stdout(), "{line}");
    }
    ExitCode::from(BAD_SPECIFICATION)
}

/// Waits for the word, or for the end of the input.
fn listen(cancel: &CancelFlag) {
    for line in io::stdin().lock().lines() {
        match line {
            Ok(line) if line.trim() == CANCEL_WORD => break,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    cancel.cancel();
}

/// Interrupt and termination stop the run in order, too.
fn heed_signals(cancel: &CancelFlag) {
    use tokio::signal::unix::{SignalKind, signal};
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
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    });
}
