//! Where the result goes.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, OFlags, access, fcntl_setfl};
use serde::Serialize;

use crate::json_text::json_text;

/// Where the result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Nowhere: the table is all.
    Table,
    /// To standard output, which then holds nothing else.
    StandardOutput,
    /// To a file.
    File(PathBuf),
}

/// The result cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error(
        "The result cannot be written to {path} ({reason}). Check the folder, its permissions and the free space."
    )]
    File { path: String, reason: io::Error },
    #[error("The result cannot be written to standard output ({0}). Check where it leads.")]
    StandardOutput(io::Error),
    #[error(
        "No result is written to {path}: it is {kind}. Name a file, or use `--json -` and lead standard output there."
    )]
    Kind { path: String, kind: &'static str },
    #[error("The table cannot be written to standard output ({0}). Check where it leads.")]
    Table(io::Error),
    #[error("The result cannot be put into JSON ({0}). Report this with the command you gave.")]
    Json(#[from] serde_json::Error),
}

impl Destination {
    /// As the command line has it.
    pub(crate) fn named(file: Option<&Path>) -> Self {
        match file {
            None => Self::Table,
            Some(path) if path == Path::new("-") => Self::StandardOutput,
            Some(path) => Self::File(path.to_owned()),
        }
    }

    /// Can the file be written at all? Asked before an hour of measuring.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check(&self) -> Result<(), OutputError> {
        let Self::File(path) = self else {
            return Ok(());
        };
        Target::of(path)
            .and_then(|target| target.check())
            .map_err(|reason| failed(path, reason))
    }

    /// The regular file that the result will be; none where it goes elsewhere.
    pub(crate) fn regular_file(&self) -> Option<PathBuf> {
        let Self::File(path) = self else {
            return None;
        };
        match Target::of(path) {
            // As it was named, unless that is a link: what stands beside the result
            // is looked for beside the result.
            Ok(Target::Regular(_)) if !path.is_symlink() => Some(path.clone()),
            Ok(Target::Regular(end)) => Some(end),
            _ => None,
        }
    }

    /// Writes the result: a regular file appears complete or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, result: &impl Serialize) -> Result<(), OutputError> {
        match self {
            Self::Table => Ok(()),
            Self::StandardOutput => {
                let text = json_text(result)?;
                let mut out = io::stdout().lock();
                out.write_all(&text)
                    .and_then(|()| out.flush())
                    .map_err(OutputError::StandardOutput)
            }
            Self::File(path) => {
                let text = json_text(result)?;
                Target::of(path)
                    .and_then(|target| target.write(&text))
                    .map_err(|reason| failed(path, reason))
            }
        }
    }
}

/// In words, if it is a file of a kind that is not written into.
fn failed(path: &Path, reason: io::Error) -> OutputError {
    let path = path.display().to_string();
    match reason.downcast::<WrongKind>() {
        Ok(WrongKind(kind)) => OutputError::Kind { path, kind },
        Err(reason) => OutputError::File { path, reason },
    }
}

/// A file of a kind that no result is written into.
#[derive(Debug, thiserror::Error)]
#[error("it is {0}")]
struct WrongKind(&'static str);

/// What the path given leads to, links followed.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, there or not yet: replaced as a whole.
    Regular(PathBuf),
    /// A terminal, `/dev/null`, or a pipe of the shell's: written into, because a
    /// file in its place would be something else.
    Special(PathBuf),
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // Renamed onto what the link leads to, so that the link stays.
            Ok(found) if found.is_file() => fs::canonicalize(path).map(Self::Regular),
            Ok(found) => match wrong_kind(path, found.file_type()) {
                Some(kind) => Err(io::Error::other(WrongKind(kind))),
                None => Ok(Self::Special(path.to_owned())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::Regular(end_of_links(path)?))
            }
            Err(error) => Err(error),
        }
    }

    fn check(&self) -> io::Result<()> {
        match self {
            Self::Regular(path) => {
                let temporary = beside(path);
                fs::File::create(&temporary)?;
                fs::remove_file(&temporary)
            }
            // Opening it would wait for a reader, or show the reader an end.
            Self::Special(path) => Ok(access(path, Access::WRITE_OK)?),
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Regular(path) => {
                let temporary = beside(path);
                let written = fs::File::create(&temporary).and_then(|mut file| {
                    file.write_all(text)?;
                    file.sync_all()?;
                    fs::rename(&temporary, path)
                });
                if written.is_err() {
                    // What is left of the attempt is of no use.
                    let _ = fs::remove_file(&temporary);
                }
                written
            }
            // Not synced: neither pipes nor most devices can be.
            Self::Special(path) => {
                let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
                // A pipe whose reader is gone would be waited for for ever.
                let mut file = fs::OpenOptions::new()
                    .write(true)
                    .custom_flags(nonblocking)
                    .open(path)?;
                fcntl_setfl(&file, OFlags::empty())?;
                file.write_all(text)?;
                file.flush()
            }
        }
    }
}

/// What it is, if a result would wait there for ever, or destroy it.
fn wrong_kind(path: &Path, found: fs::FileType) -> Option<&'static str> {
    if found.is_fifo() {
        // One of the shell's, as in `--json >(jq .)`, has a reader and no name.
        fs::canonicalize(path)
            .is_ok()
            .then_some("a named pipe, which may have no reader")
    } else if found.is_socket() {
        Some("a socket")
    } else {
        found.is_block_device().then_some("a disk")
    }
}

/// Where links lead that end at nothing yet.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_owned();
    // A circle does not come here: asking for its metadata fails otherwise.
    while fs::symlink_metadata(&end).is_ok_and(|found| found.is_symlink()) {
        let next = fs::read_link(&end)?;
        end = end.parent().unwrap_or(Path::new("")).join(next);
    }
    Ok(end)
}

/// A name in the same folder, because a rename does not cross file systems.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests;
