//! Where the program keeps its own files.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// No place for the data directory is known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "No data directory is known, because neither HOME nor XDG_DATA_HOME is set. Name one with --data-dir."
)]
pub(crate) struct NoDataDir;

/// Root keeps its data where the account that runs PostgreSQL can reach it;
/// everybody else keeps them in their home.
const OF_ROOT: &str = "/var/lib/tokdyno";

/// The data directory: as named, or the usual place.
///
/// # Errors
/// [`NoDataDir`] when nothing is named and there is no home.
pub(crate) fn choose(named: Option<&Path>) -> Result<PathBuf, NoDataDir> {
    if let Some(named) = named {
        // Children run in other directories, so a relative path must not reach them.
        return Ok(std::path::absolute(named).unwrap_or_else(|_| named.to_owned()));
    }
    usual(rustix::process::geteuid().is_root(), |name| {
        std::env::var_os(name)
    })
}

fn usual(is_root: bool, variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, NoDataDir> {
    if is_root {
        return Ok(PathBuf::from(OF_ROOT));
    }
    // The XDG specification says that relative values are to be ignored.
    let absolute = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("tokdyno"))
        .ok_or(NoDataDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual_with(is_root: bool, set: &[(&str, &str)]) -> Result<PathBuf, NoDataDir> {
        usual(is_root, |name| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_usual_places() {
        let path = |text: &str| Ok(PathBuf::from(text));
        assert_eq!(
            usual_with(true, &[("HOME", "/root")]),
            path("/var/lib/tokdyno")
        );
        assert_eq!(
            usual_with(false, &[("HOME", "/home/a")]),
            path("/home/a/.local/share/tokdyno")
        );
        assert_eq!(
            usual_with(false, &[("HOME", "/home/a"), ("XDG_DATA_HOME", "/data")]),
            path("/data/tokdyno")
        );
        assert_eq!(
            usual_with(false, &[("HOME", "/home/a"), ("XDG_DATA_HOME", "data")]),
            path("/home/a/.local/share/tokdyno")
        );
        assert_eq!(usual_with(false, &[]), Err(NoDataDir));
    }

    #[test]
    fn a_named_place_becomes_absolute() {
        let chosen = choose(Some(Path::new("here"))).expect("a place");
        assert!(chosen.is_absolute() && chosen.ends_with("here"));
    }
}
