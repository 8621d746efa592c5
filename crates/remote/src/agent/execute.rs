//! From a raw command to a process: nothing is interpreted on the way.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use super::{failure, folder};
use crate::wire::{Failure, FailureWord, RawCommand};

/// A command that is ready to be started, and what to say if it does not.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) command: Command,
    program: String,
    path: PathBuf,
}

impl Prepared {
    /// Finds program and directory. With `whole`, the command's environment is all
    /// that the program gets; otherwise it is laid over the login environment.
    ///
    /// # Errors
    /// No such program, no such directory, not executable.
    pub(super) fn new(raw: &RawCommand, whole: bool) -> Result<Self, Failure> {
        let directory = directory(raw)?;
        let word = raw.argv.first().ok_or_else(|| {
            Failure::new(
                FailureWord::BadRequest,
                "The command is empty: name a program to start.",
            )
        })?;
        let program = String::from_utf8_lossy(word).into_owned();
        let search = raw
            .environment
            .iter()
            .rev()
            .find(|(name, _)| name == b"PATH")
            .map(|(_, value)| OsStr::from_bytes(value).to_owned())
            .or_else(|| if whole { None } else { env::var_os("PATH") });
        let path = find(OsStr::from_bytes(word), search.as_deref(), &directory)?;

        let mut command = Command::new(&path);
        command
            .arg0(OsStr::from_bytes(word))
            .args(raw.argv.iter().skip(1).map(|word| OsStr::from_bytes(word)))
            .current_dir(&directory);
        if whole {
            command.env_clear();
        }
        for (name, value) in &raw.environment {
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        Ok(Self {
            command,
            program,
            path,
        })
    }

    /// What `error`, met while starting it, means.
    pub(super) fn failure(&self, error: &std::io::Error) -> Failure {
        failure::start(&self.program, &self.path, error)
    }
}

fn directory(raw: &RawCommand) -> Result<PathBuf, Failure> {
    let path = match &raw.directory {
        Some(bytes) => folder::home().join(OsStr::from_bytes(bytes)),
        None => Some(folder::home())
            .filter(|home| home.is_dir())
            .unwrap_or_else(|| PathBuf::from("/")),
    };
    match path.metadata() {
        Ok(facts) if facts.is_dir() => Ok(path),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(failure::file("enter", &path, &error))
        }
        _ => Err(Failure::new(
            FailureWord::NoSuchDirectory,
            format!(
                "The working directory {} is not on the host. Make it there, or correct the profile.",
                path.display()
            ),
        )),
    }
}

/// Searches as execvp(3) does: names with a slash are paths, others are looked for
/// in every directory of `search`.
pub(super) fn find(
    program: &OsStr,
    search: Option<&OsStr>,
    directory: &Path,
) -> Result<PathBuf, Failure> {
    let shown = program.to_string_lossy();
    if program.as_bytes().contains(&b'/') {
        let path = directory.join(program);
        return match path.metadata() {
            Ok(facts) if facts.is_dir() => Err(not_executable(&path)),
            Ok(_) => Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(failure::file("reach", &path, &error))
            }
            Err(_) => Err(Failure::new(
                FailureWord::NoSuchProgram,
                format!(
                    "There is no program {} on the host. Install it there, or correct the path.",
                    path.display()
                ),
            )),
        };
    }
    let default = OsString::from("/usr/local/bin:/usr/bin:/bin");
    let search = search.unwrap_or(&default);
    let mut unusable = None;
    for place in env::split_paths(search) {
        let path = directory.join(place).join(program);
        match path.metadata() {
            Ok(facts) if facts.is_file() && facts.permissions().mode() & 0o111 != 0 => {
                return Ok(path);
            }
            Ok(facts) if facts.is_file() => unusable = Some(path),
            _ => {}
        }
    }
    Err(unusable.map_or_else(
        || {
            Failure::new(
                FailureWord::NoSuchProgram,
                format!(
                    "There is no program `{shown}` on the PATH of the host ({}). Install it there, give its whole path, or activate its environment.",
                    search.to_string_lossy()
                ),
            )
        },
        |path| not_executable(&path),
    ))
}

fn not_executable(path: &Path) -> Failure {
    Failure::new(
        FailureWord::NotExecutable,
        format!(
            "{} may not be executed. Set its execute permission, or name the program inside it.",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_on_the_path_it_gets() {
        let root = Path::new("/");
        let found = find(OsStr::new("sh"), Some(OsStr::new("/nowhere:/bin")), root);
        assert_eq!(found, Ok(PathBuf::from("/bin/sh")));
        let missing = find(OsStr::new("sh"), Some(OsStr::new("/nowhere")), root);
        assert_eq!(
            missing.expect_err("not there").word,
            FailureWord::NoSuchProgram
        );
        let text = find(OsStr::new("/etc"), None, root);
        assert_eq!(
            text.expect_err("a directory").word,
            FailureWord::NotExecutable
        );
    }
}
