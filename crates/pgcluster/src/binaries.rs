//! Finding the programs of PostgreSQL.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{ClusterError, OLDEST_VERSION};

/// Directories that hold one subdirectory per major version, and where the
/// programs lie below it (Debian and Ubuntu; the PostgreSQL project's RPMs).
const VERSIONED_ROOTS: &[(&str, &str)] = &[("/usr/lib/postgresql", "bin"), ("/usr", "bin")];

/// A directory with the server's programs, and their major version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binaries {
    pub(crate) bin_dir: PathBuf,
    pub(crate) major: u32,
}

/// Where to look, in this order; the first of the two named places that is set
/// is the only one looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    pub(crate) explicit: Option<PathBuf>,
    pub(crate) from_env: Option<PathBuf>,
    pub(crate) installed: Vec<PathBuf>,
    pub(crate) path: Option<OsString>,
}

impl Search {
    /// The places of this machine.
    pub(crate) fn of_this_machine(explicit: Option<&Path>) -> Self {
        Self {
            explicit: explicit.map(Path::to_path_buf),
            from_env: std::env::var_os("TOKDYNO_PG_BIN")
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            installed: installed_directories(),
            path: std::env::var_os("PATH"),
        }
    }

    /// The programs for a cluster: those of `wanted_major` where a cluster
    /// exists already, else the newest.
    ///
    /// # Errors
    /// Nothing was found, or nothing new enough.
    pub(crate) fn find(&self, wanted_major: Option<u32>) -> Result<Binaries, ClusterError> {
        let named = self.explicit.as_ref().or(self.from_env.as_ref());
        let candidates: Vec<PathBuf> = match named {
            Some(directory) => vec![directory.clone()],
            None => self
                .installed
                .iter()
                .cloned()
                .chain(self.path.as_deref().into_iter().flat_map(on_path))
                .collect(),
        };
        let mut found: Vec<Binaries> = candidates.iter().filter_map(|dir| probe(dir)).collect();
        found.sort_by_key(|binaries| std::cmp::Reverse(binaries.major));
        let newest = found.first().ok_or_else(|| ClusterError::NoBinaries {
            searched: named.map_or_else(
                || "/usr/lib/postgresql/*/bin or on PATH".to_owned(),
                |directory| directory.display().to_string(),
            ),
        })?;
        if newest.major < OLDEST_VERSION {
            return Err(ClusterError::TooOld {
                bin_dir: newest.bin_dir.clone(),
                found: newest.major,
                oldest: OLDEST_VERSION,
            });
        }
        let matching = found.iter().find(|b| Some(b.major) == wanted_major);
        Ok(matching.unwrap_or(newest).clone())
    }
}

fn installed_directories() -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for (root, bin) in VERSIONED_ROOTS {
        let Ok(entries) = std::fs::read_dir(root) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if *root != "/usr" || name.starts_with("pgsql-") {
                directories.push(entry.path().join(bin));
            }
        }
    }
    directories
}

/// The directories on `PATH` that hold `initdb`, and where `pg_config` points.
fn on_path(path: &OsStr) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for directory in std::env::split_paths(path) {
        if let Ok(initdb) = directory.join("initdb").canonicalize()
            && let Some(parent) = initdb.parent()
        {
            directories.push(parent.to_path_buf());
        }
        let pg_config = directory.join("pg_config");
        if pg_config.is_file()
            && let Ok(output) = Command::new(&pg_config).arg("--bindir").output()
        {
            let printed = String::from_utf8_lossy(&output.stdout);
            directories.push(PathBuf::from(printed.trim()));
        }
    }
    directories
}

/// The programs in `directory`, if both needed ones are there and run.
fn probe(directory: &Path) -> Option<Binaries> {
    let bin_dir = directory.canonicalize().ok()?;
    if !bin_dir.join("initdb").is_file() {
        return None;
    }
    let output = Command::new(bin_dir.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    let major = major_version(&String::from_utf8_lossy(&output.stdout))?;
    Some(Binaries { bin_dir, major })
}

/// The major version in a line such as `postgres (PostgreSQL) 15.14 (Debian …)`.
fn major_version(line: &str) -> Option<u32> {
    let (_, after) = line.split_once("(PostgreSQL)")?;
    let digits: String = after
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fake(root: &Path, name: &str, version_line: &str) -> PathBuf {
        let directory = root.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        for program in ["initdb", "postgres"] {
            let file = directory.join(program);
            std::fs::write(&file, format!("#!/bin/sh\necho '{version_line}'\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory.canonicalize().unwrap()
    }

    #[test]
    fn reads_the_major_version_of_releases_and_betas() {
        assert_eq!(
            major_version("postgres (PostgreSQL) 15.14 (Debian 15.14-0)"),
            Some(15)
        );
        assert_eq!(major_version("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(major_version("initdb: command not found"), None);
    }

    #[test]
    fn takes_the_newest_unless_a_cluster_needs_another() {
        let root = tempfile::tempdir().unwrap();
        let old = fake(root.path(), "15", "postgres (PostgreSQL) 15.1");
        let new = fake(root.path(), "17", "postgres (PostgreSQL) 17.2");
        let search = Search {
            installed: vec![old.clone(), new.clone()],
            ..Search::default()
        };
        assert_eq!(search.find(None).unwrap().bin_dir, new);
        assert_eq!(search.find(Some(15)).unwrap().bin_dir, old);
        assert_eq!(search.find(Some(16)).unwrap().bin_dir, new);
    }

    #[test]
    fn a_named_directory_is_the_only_one_looked_at() {
        let root = tempfile::tempdir().unwrap();
        let good = fake(root.path(), "17", "postgres (PostgreSQL) 17.2");
        let search = Search {
            explicit: Some(root.path().join("nothing")),
            installed: vec![good],
            ..Search::default()
        };
        let error = search.find(None).unwrap_err();
        assert!(matches!(error, ClusterError::NoBinaries { .. }));
        assert!(error.to_string().contains("apt-get install postgresql"));
    }

    #[test]
    fn too_old_is_said() {
        let root = tempfile::tempdir().unwrap();
        let old = fake(root.path(), "11", "postgres (PostgreSQL) 11.22");
        let search = Search {
            installed: vec![old],
            ..Search::default()
        };
        assert!(matches!(
            search.find(None).unwrap_err(),
            ClusterError::TooOld { found: 11, .. }
        ));
    }

    #[test]
    fn finds_them_on_the_path() {
        let root = tempfile::tempdir().unwrap();
        let real = fake(root.path(), "real", "postgres (PostgreSQL) 16.0");
        let links = root.path().join("links");
        std::fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink(real.join("initdb"), links.join("initdb")).unwrap();
        let search = Search {
            path: Some(links.into_os_string()),
            ..Search::default()
        };
        assert_eq!(search.find(None).unwrap().bin_dir, real);
    }
}
