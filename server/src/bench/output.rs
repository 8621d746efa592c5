//! Where the result goes.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

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
        if path.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let temporary = beside(path);
        std::fs::File::create(&temporary).map_err(failed)?;
        std::fs::remove_file(&temporary).map_err(failed)
    }

    /// Writes the result: a file appears complete or not at all.
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
                let temporary = beside(path);
                let written = std::fs::File::create(&temporary).and_then(|mut file| {
                    file.write_all(&text)?;
                    file.sync_all()?;
                    std::fs::rename(&temporary, path)
                });
                written.map_err(|reason| {
                    // What is left of the attempt is of no use.
                    let _ = std::fs::remove_file(&temporary);
                    OutputError::File {
                        path: path.display().to_string(),
                        reason,
                    }
                })
            }
        }
    }
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
}
