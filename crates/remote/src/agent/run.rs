//! One command from start to end, for as long as somebody waits for it.

use std::{
    fs::File,
    io::{Read, Write},
    os::unix::process::CommandExt,
    process::Stdio,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{execute::Prepared, liveness::Client};
use crate::wire::{ExitKind, Failure, FailureWord, MAX_OUTPUT, Output, RawCommand};

/// How long output may still come in once the command has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// Runs `raw` with `stdin` and collects what it writes. Its process group ends with
/// it, and with the client.
pub(super) fn run(raw: &RawCommand, stdin: Vec<u8>, client: Client) -> Result<Output, Failure> {
    let mut prepared = Prepared::new(raw, false)?;
    let mut child = prepared
        .command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| prepared.failure(&error))?;
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| Failure::new(FailureWord::System, "The command has no process number."))?;
    let over = Arc::new(Mutex::new(false));
    end_with_client(pid, client, Arc::clone(&over));
    if let Some(mut input) = child.stdin.take() {
        thread::spawn(move || {
            // A command need not read what it is given.
            let _ = input.write_all(&stdin);
        });
    }
    let (done, drained) = mpsc::sync_channel(2);
    let stdout = child.stdout.take().map(|pipe| collect(pipe, done.clone()));
    let stderr = child.stderr.take().map(|pipe| collect(pipe, done));

    // Seen but not reaped: until then the group's number cannot pass to another.
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(
        waitid(WaitId::Pid(pid), exited),
        Err(rustix::io::Errno::INTR)
    ) {}
    if let Ok(mut over) = over.lock() {
        *over = true;
    }
    let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    let status = child.wait().map_err(|error| {
        Failure::new(
            FailureWord::System,
            format!("How the command ended could not be read: {error}."),
        )
    })?;
    // What left the group may hold the pipes open; it is not waited for.
    for _ in 0..2 {
        if drained.recv_timeout(DRAIN).is_err() {
            break;
        }
    }
    let (stdout, cut_out) = stdout.map(taken).unwrap_or_default();
    let (stderr, cut_err) = stderr.map(taken).unwrap_or_default();
    Ok(Output {
        status: std::os::unix::process::ExitStatusExt::signal(&status).map_or_else(
            || ExitKind::Code(status.code().unwrap_or(-1)),
            ExitKind::Signal,
        ),
        stdout,
        stderr,
        truncated: cut_out || cut_err,
    })
}

/// Kills the group and ends this process once the client is gone, unless the
/// command is `over`: its group's number may belong to others by then.
fn end_with_client(group: Pid, mut client: Client, over: Arc<Mutex<bool>>) {
    thread::spawn(move || {
        while client.there_after(Duration::from_secs(1)) {}
        if over.lock().is_ok_and(|over| !*over) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            std::process::exit(1);
        }
    });
}

type Collected = Arc<Mutex<(Vec<u8>, bool)>>;

fn collect(mut pipe: impl Read + Send + 'static, done: mpsc::SyncSender<()>) -> Collected {
    let collected = Collected::default();
    let filled = Arc::clone(&collected);
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        loop {
            match pipe.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => keep(&filled, &bytes[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Nobody may be waiting any more.
        let _ = done.try_send(());
    });
    collected
}

fn keep(collected: &Collected, bytes: &[u8]) {
    if let Ok(mut kept) = collected.lock() {
        let room = MAX_OUTPUT - kept.0.len();
        kept.1 |= bytes.len() > room;
        kept.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the last use of what was collected"
)]
fn taken(collected: Collected) -> (Vec<u8>, bool) {
    collected
        .lock()
        .map(|mut kept| std::mem::take(&mut *kept))
        .unwrap_or_default()
}

/// Becomes `raw`. Returns only if that failed.
pub(super) fn become_program(
    raw: &RawCommand,
    announce: impl FnOnce() -> std::io::Result<()>,
) -> Failure {
    let mut prepared = match Prepared::new(raw, false) {
        Ok(prepared) => prepared,
        Err(failure) => return failure,
    };
    if let Err(error) = announce() {
        return Failure::new(
            FailureWord::System,
            format!("Nobody waits for the program any more: {error}."),
        );
    }
    let error = prepared.command.exec();
    prepared.failure(&error)
}

/// Reads exactly `size` bytes.
pub(super) fn payload(input: &mut File, size: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = input.take(size).read_to_end(&mut bytes);
    if read.is_ok_and(|length| length as u64 == size) {
        Ok(bytes)
    } else {
        Err(Failure::new(
            FailureWord::Corrupt,
            "The connection was cut before everything had arrived. Nothing was done; try again.",
        ))
    }
}
