//! Where the result goes.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};
use tokdyno_domain::result_file::ResultFile;

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
        let failed = |reason| OutputError::File {
            path: path.display().to_string(),
            reason,
        };
        Target::of(path)
            .and_then(|target| target.check())
            .map_err(failed)
    }

    /// Writes the result: a regular file appears complete or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, result: &ResultFile) -> Result<(), OutputError> {
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
                    .map_err(|reason| OutputError::File {
                        path: path.display().to_string(),
                        reason,
                    })
            }
        }
    }
}

/// What the path given leads to, links followed.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, there or not yet: replaced as a whole.
    Regular(PathBuf),
    /// A device or a FIFO: written into, because a file in its place would be
    /// something else.
    Special(PathBuf),
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // Renamed onto what the link leads to, so that the link stays.
            Ok(found) if found.is_file() => fs::canonicalize(path).map(Self::Regular),
            Ok(_) => Ok(Self::Special(path.to_owned())),
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
                let mut file = fs::OpenOptions::new().write(true).open(path)?;
                file.write_all(text)?;
                file.flush()
            }
        }
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
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_noticed_before_measuring() {
        let folder = tempfile::tempdir().expect("a folder");
        let good = Destination::named(Some(&folder.path().join("r.json")));
        good.check().expect("writable");
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("listed").count(),
            0,
            "nothing is left behind"
        );
        let missing = Destination::named(Some(&folder.path().join("no/r.json")));
        let error = missing.check().expect_err("not writable").to_string();
        assert!(error.contains("Check the folder"), "{error}");
        assert!(Destination::named(Some(folder.path())).check().is_err());
    }

    #[test]
    fn a_dash_is_standard_output() {
        assert_eq!(
            Destination::named(Some(Path::new("-"))),
            Destination::StandardOutput
        );
        assert_eq!(Destination::named(None), Destination::Table);
    }

    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("far")).expect("a folder");
        fs::write(at("far/old.json"), "old").expect("written");
        for (link, leads_to) in [
            ("to_old", "far/old.json"),
            ("to_new", "far/new.json"),
            ("to_link", "to_new"),
        ] {
            std::os::unix::fs::symlink(leads_to, at(link)).expect("a link");
        }
        for (link, file) in [
            ("to_old", "far/old.json"),
            ("to_link", "far/new.json"),
            ("to_new", "far/new.json"),
        ] {
            let target = Target::of(&at(link)).expect("a target");
            target.check().expect("writable");
            target.write(link.as_bytes()).expect("written");
            assert!(at(link).is_symlink(), "{link} stays a link");
            assert!(!at(file).is_symlink(), "{file} is the file");
            assert_eq!(fs::read_to_string(at(file)).expect("read"), link);
        }
        let left = fs::read_dir(at("far")).expect("listed").count();
        assert_eq!(left, 2, "nothing else is left behind");
    }

    #[test]
    fn a_circle_of_links_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("b", at("a")).expect("a link");
        std::os::unix::fs::symlink("a", at("b")).expect("a link");
        assert!(Destination::named(Some(&at("a"))).check().is_err());
    }

    #[test]
    fn a_pipe_is_written_into_and_stays_a_pipe() {
        use std::os::unix::fs::FileTypeExt;

        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe");
        // Nobody reads yet, and this must not wait for anybody.
        Destination::named(Some(&pipe)).check().expect("writable");
        // Open in both directions, so that a writer that never comes ends in a
        // failed assertion rather than in a wait.
        let mut reader = fs::File::options()
            .read(true)
            .write(true)
            .open(&pipe)
            .expect("opened");
        let target = Target::of(&pipe).expect("a target");
        target.write(b"{}\n").expect("written");
        let kind = fs::symlink_metadata(&pipe).expect("there").file_type();
        assert!(kind.is_fifo(), "{kind:?}");
        let mut text = [0; 3];
        io::Read::read_exact(&mut reader, &mut text).expect("read");
        assert_eq!(&text, b"{}\n");
    }
}
