//! Where the repository is, and running programs in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    // This crate lies two levels below it, and is always run where it was built.
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A `cargo` of the toolchain that runs us, in the root of the repository.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = in_root(program);
    // What is built once and thrown away pays for incremental builds and gains nothing.
    if std::env::var_os("CI").is_some() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// A program in the root of the repository.
pub(crate) fn in_root(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs to the end.
///
/// # Errors
/// The program cannot be started, or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("{} ended with {status}", describe(command));
    }
    Ok(())
}

/// Runs to the end, whatever the end is.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command
        .status()
        .with_context(|| format!("{} cannot be run", describe(command)))
}

/// Asks a child to end, as Ctrl-C does.
///
/// # Errors
/// The system refuses; that the child has ended already is none.
pub(crate) fn interrupt(child: &Child) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(child.id())?).context("no process id")?;
    match kill_process(pid, Signal::INT) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno).context("the child cannot be interrupted"),
    }
}

/// The command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
