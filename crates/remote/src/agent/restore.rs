//! Saving how a process was started, and starting it again. What is saved never
//! leaves the host.

use std::{
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, ffi::OsStringExt},
};

use tokdyno_domain::host::ProcessFacts;

use super::{engines, execute, failure, folder::Folder, launch, process, process::Stat};
use crate::wire::{Block, Failure, FailureWord, Fields, RawCommand, Spawned};

/// File of a saved start: a block, as a request's.
const KEPT: &str = "kept";

/// Saves arguments, environment and directory of `pid` into a folder.
pub(super) fn keep(name: &str, pid: u32) -> Result<ProcessFacts, Failure> {
    let before = Stat::of(pid).filter(Stat::alive).ok_or_else(|| gone(pid))?;
    let unreadable = |what: &str| {
        Failure::new(
            FailureWord::NotReadable,
            format!(
                "The {what} of process {pid} cannot be read, so it could not be started again the same way. Connect as its owner or as root; a process that renames itself hides its environment, unless SPT_NOENV=1 is set."
            ),
        )
    };
    let mut argv = process::argv(pid).ok_or_else(|| unreadable("command line"))?;
    let environment = process::environ(pid).ok_or_else(|| unreadable("environment"))?;
    let directory = fs::read_link(format!("/proc/{pid}/cwd"))
        .map_err(|_| unreadable("directory"))?
        .into_os_string();
    let search = environment
        .iter()
        .rev()
        .find(|(name, _)| name == b"PATH")
        .map(|(_, value)| std::ffi::OsStr::from_bytes(value).to_owned());
    let findable = argv.first().is_some_and(|program| {
        execute::find(
            std::ffi::OsStr::from_bytes(program),
            search.as_deref(),
            directory.as_ref(),
        )
        .is_ok()
    });
    if !findable {
        // Its first word is a title or was relative to a place it has left.
        let program = fs::read_link(format!("/proc/{pid}/exe"))
            .map_err(|_| unreadable("program"))?
            .into_os_string()
            .into_vec();
        if let Some(first) = argv.first_mut() {
            *first = program;
        }
    }
    let facts = engines::facts(pid, &[])?.ok_or_else(|| gone(pid))?;
    if facts.identity.start_ticks != before.start_ticks {
        return Err(gone(pid));
    }
    let command = RawCommand {
        argv,
        environment,
        directory: Some(directory.into_vec()),
    };
    let bytes = Block::new(&facts.identity)?.command(&command)?.finish();
    Folder::made(name)?.write(KEPT, &mut bytes.as_slice())?;
    Ok(facts)
}

fn gone(pid: u32) -> Failure {
    Failure::new(
        FailureWord::NoSuchProcess,
        format!("Process {pid} is not there any more. Look again at what runs."),
    )
}

/// Starts, in `folder`, what was saved in `kept`.
pub(super) fn respawn(folder: &str, kept: &str) -> Result<Spawned, Failure> {
    let path = Folder::existing(kept)?.file(KEPT)?;
    let bytes = fs::read(&path).map_err(|error| failure::file("read", &path, &error))?;
    let damaged = |_| {
        Failure::new(
            FailureWord::Corrupt,
            format!(
                "What was saved in {} is damaged. Start the server by hand.",
                path.display()
            ),
        )
    };
    let mut fields = Fields::read(&mut bytes.as_slice().take(u64::MAX)).map_err(damaged)?;
    fields.order::<tokdyno_domain::host::ProcessIdentity>()?;
    launch::spawn(folder, &fields.command()?, true)
}
