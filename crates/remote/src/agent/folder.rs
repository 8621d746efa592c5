//! State folders: where a launch keeps its log and how it ended.

use std::{
    env, fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::failure;
use crate::wire::{Failure, FailureWord};

/// A folder of one launch, `${XDG_STATE_HOME:-$HOME/.local/state}/tokdyno/launches/NAME`.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

/// The user's home directory; `/` where none is known.
pub(super) fn home() -> PathBuf {
    absolute("HOME").unwrap_or_else(|| PathBuf::from("/"))
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Where all state folders lie.
pub(super) fn launches() -> PathBuf {
    absolute("XDG_STATE_HOME")
        .unwrap_or_else(|| home().join(".local/state"))
        .join("tokdyno/launches")
}

/// Is `name` one plain word that cannot lead anywhere else?
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let plain = !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    if plain {
        Ok(())
    } else {
        Err(Failure::new(
            FailureWord::BadRequest,
            format!(
                "`{}` is no name for a state folder or a file in it. Use letters, digits, `.`, `_` and `-`, not beginning with a dot.",
                name.escape_debug()
            ),
        ))
    }
}

impl Folder {
    /// The folder of that name, whether it exists or not.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        check_name(name)?;
        Ok(Self {
            path: launches().join(name),
        })
    }

    /// The folder of that name, which must exist.
    pub(super) fn existing(name: &str) -> Result<Self, Failure> {
        let folder = Self::named(name)?;
        if folder.path.is_dir() {
            Ok(folder)
        } else {
            Err(Failure::new(
                FailureWord::NoSuchFolder,
                format!(
                    "There is no state folder {} on the host. It was removed, or the host keeps its state elsewhere now.",
                    folder.path.display()
                ),
            ))
        }
    }

    /// The folder of that name, made if it is not there; for its owner's eyes only.
    pub(super) fn made(name: &str) -> Result<Self, Failure> {
        let folder = Self::named(name)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder.path)
            .map_err(|error| failure::file("make", &folder.path, &error))?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file of the folder.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, Failure> {
        check_name(name)?;
        Ok(self.path.join(name))
    }

    /// Writes a file so that readers see all of it or none, for its owner only.
    pub(super) fn write(&self, name: &str, content: &mut impl io::Read) -> Result<(), Failure> {
        let path = self.file(name)?;
        let part = self
            .path
            .join(format!(".{name}.{}.part", std::process::id()));
        let written = write_new(&part, content).and_then(|()| fs::rename(&part, &path));
        written.map_err(|error| {
            // Nothing useful can be done if this fails too.
            let _ = fs::remove_file(&part);
            failure::file("write", &path, &error)
        })
    }
}

fn write_new(path: &Path, content: &mut impl io::Read) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    io::copy(content, &mut file)?;
    file.flush()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_lead_out_of_the_folder() {
        for name in ["a", "launch-1.b_C"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", "a/b", "/etc", "a b", "ä", "a\n", ".hidden"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
