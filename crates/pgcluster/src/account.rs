//! The user that PostgreSQL runs as. It refuses to run as root.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ClusterError;

/// Users to run PostgreSQL as when we are root, best first.
const CANDIDATES: &[&str] = &["postgres", "nobody"];

/// The user PostgreSQL runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Account {
    /// Whoever runs us.
    Own {
        /// Our effective user id.
        uid: u32,
    },
    /// We are root, and become this one.
    Other {
        /// For messages.
        name: String,
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
}

impl Account {
    /// The account for the cluster in `cluster_dir`, which need not exist yet.
    ///
    /// Root keeps an existing cluster's owner, so that a cluster made by an
    /// ordinary user goes on working under root.
    ///
    /// # Errors
    /// The cluster belongs to somebody else, or root has nobody to become.
    pub(crate) fn for_cluster(cluster_dir: &Path) -> Result<Self, ClusterError> {
        let own = rustix::process::geteuid().as_raw();
        let owner = std::fs::metadata(cluster_dir).ok();
        if own != 0 {
            return match owner.map(|metadata| metadata.uid()) {
                Some(owner) if owner != own => Err(ClusterError::WrongOwner {
                    cluster_dir: cluster_dir.to_path_buf(),
                    owner,
                }),
                _ => Ok(Self::Own { uid: own }),
            };
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        if let Some(metadata) = owner
            && metadata.uid() != 0
        {
            let uid = metadata.uid();
            return Ok(Self::Other {
                name: name_of(&passwd, uid).unwrap_or_else(|| uid.to_string()),
                uid,
                gid: metadata.gid(),
            });
        }
        CANDIDATES
            .iter()
            .find_map(|name| look_up(&passwd, name))
            .ok_or(ClusterError::NoAccount)
    }

    /// The user id that files of the cluster belong to.
    pub(crate) fn uid(&self) -> u32 {
        match self {
            Self::Own { uid } | Self::Other { uid, .. } => *uid,
        }
    }

    /// The user's name where it is not our own.
    pub(crate) fn other_name(&self) -> Option<&str> {
        match self {
            Self::Own { .. } => None,
            Self::Other { name, .. } => Some(name),
        }
    }

    /// A command that runs `program` as this user in `directory`, with none of
    /// libpq's variables. The standard library drops root's supplementary
    /// groups when it changes the user.
    pub(crate) fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        if let Self::Other { uid, gid, .. } = self {
            command.uid(*uid).gid(*gid);
        }
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command
            .env("LC_ALL", "C")
            .current_dir(directory)
            .stdin(Stdio::null());
        command
    }

    /// Gives `path` to this user.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn own(&self, path: &Path) -> Result<(), ClusterError> {
        if let Self::Other { uid, gid, .. } = self {
            std::os::unix::fs::lchown(path, Some(*uid), Some(*gid))
                .map_err(ClusterError::io("Changing the owner of", path))?;
        }
        Ok(())
    }

    /// Gives `root` and all below it to this user.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn own_tree(&self, root: &Path) -> Result<(), ClusterError> {
        let mut pending: Vec<PathBuf> = vec![root.to_path_buf()];
        while let Some(path) = pending.pop() {
            self.own(&path)?;
            // `symlink_metadata`: a link is changed, never followed.
            if std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                let entries =
                    std::fs::read_dir(&path).map_err(ClusterError::io("Reading", &path))?;
                pending.extend(entries.flatten().map(|entry| entry.path()));
            }
        }
        Ok(())
    }

    /// Checks, by trying, that this user can enter `directory` and run `program`.
    ///
    /// # Errors
    /// It cannot; the directory that stops it is named.
    pub(crate) fn check_reach(&self, directory: &Path, program: &Path) -> Result<(), ClusterError> {
        let Self::Other { name, uid, gid } = self else {
            return Ok(());
        };
        let tried = self
            .command(program, directory)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let Err(source) = tried else {
            return Ok(());
        };
        match first_closed(directory, *uid, *gid) {
            Some(directory) => Err(ClusterError::NotTraversable {
                directory,
                user: name.clone(),
            }),
            None => Err(ClusterError::CannotRun {
                program: program.to_path_buf(),
                user: Some(name.clone()),
                source,
            }),
        }
    }
}

/// The topmost directory on the way to `directory` that the user may not enter.
fn first_closed(directory: &Path, uid: u32, gid: u32) -> Option<PathBuf> {
    let mut ancestors: Vec<&Path> = directory.ancestors().collect();
    ancestors.reverse();
    ancestors
        .into_iter()
        .find(|ancestor| {
            std::fs::metadata(ancestor).is_ok_and(|metadata| {
                let mode = metadata.mode();
                let may_enter = if metadata.uid() == uid {
                    mode & 0o100
                } else if metadata.gid() == gid {
                    mode & 0o010
                } else {
                    mode & 0o001
                };
                may_enter == 0
            })
        })
        .map(Path::to_path_buf)
}

fn look_up(passwd: &str, wanted: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        if fields.first() != Some(&wanted) {
            return None;
        }
        let uid = fields.get(2)?.parse().ok().filter(|uid| *uid != 0)?;
        Some(Account::Other {
            name: wanted.to_owned(),
            uid,
            gid: fields.get(3)?.parse().ok()?,
        })
    })
}

fn name_of(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n";

    #[test]
    fn reads_users_by_name_and_by_id() {
        assert_eq!(
            look_up(PASSWD, "nobody"),
            Some(Account::Other {
                name: "nobody".into(),
                uid: 65534,
                gid: 65533
            })
        );
        assert_eq!(look_up(PASSWD, "postgres"), None);
        assert_eq!(look_up(PASSWD, "root"), None);
        assert_eq!(name_of(PASSWD, 65534).as_deref(), Some("nobody"));
        assert_eq!(name_of(PASSWD, 7), None);
    }

    #[test]
    fn names_the_directory_that_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| {
            std::fs::create_dir_all(path).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open(root.path(), 0o711);
        let closed = root.path().join("closed");
        let inner = closed.join("inner");
        open(&inner, 0o755);
        open(&closed, 0o700);
        let stranger = rustix::process::geteuid().as_raw() + 7;
        assert_eq!(first_closed(&inner, stranger, stranger), Some(closed));
        assert_eq!(first_closed(root.path(), stranger, stranger), None);
    }
}
