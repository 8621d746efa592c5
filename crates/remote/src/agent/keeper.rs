//! The keeper: one process per launch that watches it, whoever comes and goes.

use std::{
    fs,
    io::{self, Write},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::Path,
    process::{ExitCode, Stdio},
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, WaitOptions, setsid, wait},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};
use serde::{Deserialize, Serialize};
use tokdyno_domain::host::ProcessIdentity;

use super::{
    execute::Prepared,
    failure,
    folder::Folder,
    process::{self, Stat},
    record::{EXIT, Exit, Record},
};
use crate::wire::{ExitKind, Failure, FailureWord, Fields, LOG, Reply, Spawned};

/// What a keeper is told; the command follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeepOrder {
    /// Name of the state folder, which exists.
    pub(super) folder: String,
    /// Is the command's environment all that the program gets?
    pub(super) whole: bool,
}

/// Held by the keeper as long as it lives.
const LOCK: &str = "lock";
/// Room for [`Exit`], taken before it is needed: the disk may be full by then.
const RESERVE: &str = ".exit.reserve";
const RESERVE_BYTES: usize = 1024;

/// Starts the program that standard input describes, answers on standard output,
/// and watches until the last process of the launch is gone.
pub(super) fn keep() -> ExitCode {
    // Refused if this leads a group already, and then it leads a session too.
    let _ = setsid();
    let started = start();
    let reply = match &started {
        Ok(kept) => Reply::Ok(kept.spawned.clone()),
        Err(failure) => Reply::Failed(failure.clone()),
    };
    let answered = answer(&reply);
    // From here on nobody listens, and no pipe may be held open.
    if let Ok(null) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        let _ = dup2_stdin(&null);
        let _ = dup2_stdout(&null);
        let _ = dup2_stderr(&null);
    }
    match started {
        Ok(kept) => {
            if answered.is_err() {
                tracing::debug!("nobody waits for the answer; the launch is watched all the same");
            }
            watch(&kept);
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(reply: &Reply<Spawned>) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

struct Kept {
    folder: Folder,
    leader: ProcessIdentity,
    spawned: Spawned,
    /// Released by the system when this process ends.
    _lock: fs::File,
}

fn start() -> Result<Kept, Failure> {
    let mut fields = Fields::read(&mut io::stdin().lock()).map_err(|error| {
        Failure::new(
            FailureWord::BadRequest,
            format!("The keeper did not get its order: {error}."),
        )
    })?;
    let order: KeepOrder = fields.order()?;
    let raw = fields.command()?;
    let folder = Folder::existing(&order.folder)?;
    let lock = lock(&folder)?;

    let boot_id = process::boot_id();
    let me = Stat::of(std::process::id())
        .ok_or_else(|| Failure::new(FailureWord::System, "The host's /proc cannot be read, so no process could be told from another. Mount it."))?
        .identity(&boot_id);
    let mut prepared = Prepared::new(&raw, order.whole)?;
    reserve(&folder)?;
    let mut record = Record {
        keeper: me,
        leader: None,
    };
    record.write(&folder)?;
    // Orphans of the launch become children of this process instead of being lost.
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(%error, "orphans will be found by their session only");
    }
    let log = open_log(&folder.file(LOG)?)?;
    let log_again = log
        .try_clone()
        .map_err(|error| failure::file("open", &folder.path().join(LOG), &error))?;
    let child = prepared
        .command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(log_again)
        .spawn()
        .map_err(|error| prepared.failure(&error))?;
    // It cannot have been reaped: nobody waits yet. So its entry is there.
    let leader = Stat::of(child.id()).map(|stat| stat.identity(&boot_id));
    let written = match &leader {
        Some(leader) => {
            record.leader = Some(leader.clone());
            record.write(&folder)
        }
        None => Err(Failure::new(
            FailureWord::System,
            "The started program could not be found in the host's /proc.",
        )),
    };
    match (leader, written) {
        (Some(leader), Ok(())) => Ok(Kept {
            spawned: Spawned {
                identity: leader.clone(),
                folder_path: folder.path().display().to_string(),
            },
            folder,
            leader,
            _lock: lock,
        }),
        (_, written) => {
            // A launch that cannot be found again must not stay.
            kill_group(child.id());
            while let Ok(Some(_)) = wait(WaitOptions::empty()) {}
            Err(written.err().unwrap_or_else(|| {
                Failure::new(FailureWord::System, "The launch could not be recorded.")
            }))
        }
    }
}

fn kill_group(leader: u32) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

fn lock(folder: &Folder) -> Result<fs::File, Failure> {
    let path = folder.path().join(LOCK);
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| failure::file("open", &path, &error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Failure::new(
            FailureWord::StillAlive,
            format!(
                "A launch in {} is still alive. Stop it first, or use another folder.",
                folder.path().display()
            ),
        )),
        // Some network file systems have no locks; the record is checked besides.
        Ok(()) | Err(_) => Ok(file),
    }
}

fn reserve(folder: &Folder) -> Result<(), Failure> {
    let exit = folder.path().join(EXIT);
    if let Err(error) = fs::remove_file(&exit)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failure::file("remove", &exit, &error));
    }
    let path = folder.path().join(RESERVE);
    let blank = [b' '; RESERVE_BYTES];
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| {
            file.write_all(&blank)?;
            file.sync_all()
        })
        .map_err(|error| failure::file("write", &path, &error))
}

fn open_log(path: &Path) -> Result<fs::File, Failure> {
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| failure::file("open", path, &error))
}

/// Reaps until nothing is left. The first end written down is the program's own.
fn watch(kept: &Kept) {
    let mut ended = None;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let is_leader = u32::try_from(pid.as_raw_nonzero().get())
                    .is_ok_and(|pid| pid == kept.leader.pid);
                if is_leader && ended.is_none() {
                    let how = status.terminating_signal().map_or_else(
                        || ExitKind::Code(status.exit_status().unwrap_or(-1)),
                        ExitKind::Signal,
                    );
                    ended = Some(how);
                    note(kept, how, false);
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            // No children left.
            Err(_) => break,
        }
    }
    if let Some(how) = ended {
        note(kept, how, true);
    }
}

/// Writes the end down. Where the disk is full the room taken beforehand serves.
fn note(kept: &Kept, ended: ExitKind, all_gone: bool) {
    let exit = Exit {
        leader: kept.leader.clone(),
        ended,
        all_gone,
    };
    let json = serde_json::to_vec(&exit).unwrap_or_default();
    for attempt in 0..5 {
        if kept.folder.write(EXIT, &mut json.as_slice()).is_ok()
            || write_into_reserve(&kept.folder, &json).is_ok()
        {
            return;
        }
        thread::sleep(Duration::from_millis(100 << attempt));
    }
}

fn write_into_reserve(folder: &Folder, json: &[u8]) -> io::Result<()> {
    let path = folder.path().join(RESERVE);
    // Blanks after the value are JSON too, so the length need not change.
    let mut content = json.to_vec();
    content.resize(RESERVE_BYTES.max(json.len()), b' ');
    let mut file = fs::OpenOptions::new().write(true).open(&path)?;
    file.write_all(&content)?;
    file.sync_all()?;
    fs::rename(path, folder.path().join(EXIT))
}
