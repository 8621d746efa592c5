//! Starting a launch and telling how it is.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tokdyno_domain::host::ProcessIdentity;

use super::{
    engines, failure,
    filter::masked_command,
    folder::{self, Folder},
    gpus,
    keeper::KeepOrder,
    process::{self, Stat},
    record::{Exit, Record},
};
use crate::wire::{
    Block, ExitKind, Failure, FailureWord, Leftover, ProcessStatus, RawCommand, Reply, Spawned,
};

/// How long a keeper may take to write down how its program ended.
const NOTE_TIME: Duration = Duration::from_secs(5);

/// Starts `command` under a keeper. Returns once the program runs.
pub(super) fn spawn(name: &str, command: &RawCommand, whole: bool) -> Result<Spawned, Failure> {
    let folder = Folder::made(name)?;
    if let Some(living) = living(&folder).first() {
        return Err(Failure::new(
            FailureWord::StillAlive,
            format!(
                "Process {} of the launch in {} still lives. Stop it first, or use another folder.",
                living.pid,
                folder.path().display()
            ),
        ));
    }
    let order = Block::new(&KeepOrder {
        folder: name.to_owned(),
        whole,
    })?
    .command(command)?
    .finish();
    let broken = |error: std::io::Error| {
        Failure::new(
            FailureWord::System,
            format!("The agent could not start the launch's keeper: {error}."),
        )
    };
    let mut keeper = Command::new("/proc/self/exe")
        .arg0("tokdyno-agent")
        .arg("keep")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(broken)?;
    if let Some(mut input) = keeper.stdin.take() {
        // A keeper that has failed already says so in its answer.
        let _ = input.write_all(&order);
    }
    let mut line = Vec::new();
    if let Some(output) = keeper.stdout.take() {
        BufReader::new(output)
            .read_until(b'\n', &mut line)
            .map_err(broken)?;
    }
    match serde_json::from_slice(&line) {
        Ok(Reply::Ok(spawned)) => Ok(spawned),
        Ok(Reply::Failed(failure)) => {
            // It ends by itself; this only keeps it from staying a zombie.
            let _ = keeper.wait();
            Err(failure)
        }
        Err(_) => Err(Failure::new(
            FailureWord::System,
            "The launch's keeper ended without an answer. The host may be out of memory or processes.",
        )),
    }
}

/// Living processes of the launch in a folder.
fn living(folder: &Folder) -> Vec<Stat> {
    Record::read(folder)
        .map(|record| record.ours(&process::boot_id(), &process::all()))
        .unwrap_or_default()
}

/// How the process `identity` is, of which the folder may tell how it ended.
pub(super) fn status(name: &str, identity: &ProcessIdentity) -> Result<ProcessStatus, Failure> {
    let folder = Folder::named(name)?;
    let boot_id = process::boot_id();
    let until = Instant::now() + NOTE_TIME;
    loop {
        let exit = Exit::read(&folder).filter(|exit| same(&exit.leader, identity));
        if let Some(exit) = exit {
            return Ok(match exit.ended {
                ExitKind::Code(code) => ProcessStatus::Exited { code },
                ExitKind::Signal(signal) => ProcessStatus::Killed { signal },
            });
        }
        if identity.boot_id != boot_id {
            return Ok(ProcessStatus::Rebooted);
        }
        let record = Record::read(&folder).filter(|record| {
            record
                .leader
                .as_ref()
                .is_some_and(|leader| same(leader, identity))
        });
        let lives = Stat::of(identity.pid).is_some_and(|stat| stat.alive() && stat.is(identity));
        if lives {
            let group = record.map_or(1, |record| record.ours(&boot_id, &process::all()).len());
            return Ok(ProcessStatus::Running {
                group: u32::try_from(group.max(1)).unwrap_or(u32::MAX),
            });
        }
        // A keeper that still watches is about to write the end down.
        if !record.is_some_and(|record| record.kept()) || Instant::now() > until {
            // It may have done so between the two looks.
            let noted = Exit::read(&folder).is_some_and(|exit| same(&exit.leader, identity));
            if !noted {
                return Ok(ProcessStatus::Gone);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Boot, number and start: the group may have changed since.
pub(super) fn same(one: &ProcessIdentity, other: &ProcessIdentity) -> bool {
    one.boot_id == other.boot_id && one.pid == other.pid && one.start_ticks == other.start_ticks
}

/// Launches of which processes still live.
pub(super) fn leftovers(prefix: &str) -> Result<Vec<Leftover>, Failure> {
    if !prefix.is_empty() {
        folder::check_name(prefix)?;
    }
    let Ok(entries) = fs::read_dir(folder::launches()) else {
        return Ok(Vec::new());
    };
    let boot_id = process::boot_id();
    let all = process::all();
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    let mut held = None;
    let mut found = Vec::new();
    for name in names {
        let Ok(folder) = Folder::named(&name) else {
            continue;
        };
        let Some(record) = Record::read(&folder) else {
            continue;
        };
        let ours = record.ours(&boot_id, &all);
        let Some(first) = ours.first() else {
            continue;
        };
        // Asked once, and only if there is something to ask about.
        let held = held.get_or_insert_with(gpus::processes);
        let words = process::argv(first.pid).unwrap_or_default();
        found.push(Leftover {
            identity: record
                .leader
                .clone()
                .unwrap_or_else(|| first.identity(&boot_id)),
            command: masked_command(&engines::lossy(&words)).0.join(" "),
            gpu_mib: held
                .iter()
                .filter(|process| ours.iter().any(|stat| stat.pid == process.pid))
                .map(|process| process.used_mib)
                .sum(),
            processes: ours.iter().map(|stat| stat.identity(&boot_id)).collect(),
            folder: name,
        });
    }
    Ok(found)
}

/// Removes the folder of a launch that is over.
pub(super) fn remove(name: &str) -> Result<(), Failure> {
    let folder = Folder::named(name)?;
    let record = Record::read(&folder);
    let alive = record
        .as_ref()
        .map(|record| record.ours(&process::boot_id(), &process::all()));
    if alive.is_some_and(|ours| !ours.is_empty()) {
        return Err(Failure::new(
            FailureWord::StillAlive,
            format!(
                "Processes of the launch in {} still live, so its folder stays. Stop it first.",
                folder.path().display()
            ),
        ));
    }
    match fs::remove_dir_all(folder.path()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failure::file("remove", folder.path(), &error))
        }
        _ => Ok(()),
    }
}
