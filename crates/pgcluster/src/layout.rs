//! Where the parts of a cluster lie.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::ClusterError;
use crate::account::Account;

/// Longest path of a unix socket on Linux, without the closing zero byte.
const LONGEST_SOCKET_PATH: usize = 107;

/// The port only names the socket's file: nothing listens on TCP.
pub(crate) const PORT: u16 = 5432;

/// The paths of one cluster, all absolute.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// The program's data directory.
    pub(crate) data_dir: PathBuf,
    /// All of PostgreSQL's.
    pub(crate) home: PathBuf,
}

impl Layout {
    /// The layout below `data_dir`, which is made if missing.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(crate) fn create(data_dir: &Path) -> Result<Self, ClusterError> {
        if !data_dir.is_dir() {
            // Root's data directory must let PostgreSQL's user through, and no further.
            let mode = if rustix::process::geteuid().is_root() {
                0o711
            } else {
                0o700
            };
            if let Some(parent) = data_dir.parent() {
                std::fs::create_dir_all(parent).map_err(ClusterError::io("Making", parent))?;
            }
            DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(data_dir)
                .map_err(ClusterError::io("Making", data_dir))?;
        }
        Self::open(data_dir)
    }

    /// The layout below a `data_dir` that exists.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, ClusterError> {
        let data_dir = data_dir
            .canonicalize()
            .map_err(ClusterError::io("Opening", data_dir))?;
        let home = data_dir.join("postgres");
        Ok(Self { data_dir, home })
    }

    pub(crate) fn cluster_dir(&self) -> PathBuf {
        self.home.join("cluster")
    }

    /// Where a cluster is prepared; renamed when it is complete.
    pub(crate) fn unfinished_dir(&self) -> PathBuf {
        self.home.join("cluster.unfinished")
    }

    pub(crate) fn password_file(&self) -> PathBuf {
        self.home.join("password")
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.home.join("log")
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.data_dir.join("postgres.lock")
    }

    /// The major version that made the cluster, if there is one.
    pub(crate) fn cluster_version(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.cluster_dir().join("PG_VERSION")).ok()?;
        Some(text.trim().to_owned())
    }

    /// Makes the directory for the socket: beside the cluster, or, where that
    /// path would not do for a socket, in a short private one.
    ///
    /// # Errors
    /// Neither can be used.
    pub(crate) fn create_socket_dir(&self, account: &Account) -> Result<PathBuf, ClusterError> {
        let beside = self.home.join("socket");
        if fits(&beside) {
            create_private(&beside, account)?;
            account.own(&beside)?;
            return Ok(beside);
        }
        let root = if rustix::process::geteuid().is_root() && Path::new("/run").is_dir() {
            Path::new("/run")
        } else {
            Path::new("/tmp")
        };
        let short = root.join(format!(
            "tokdyno-{}-{:016x}",
            account.uid(),
            fnv1a(self.data_dir.as_os_str().as_encoded_bytes())
        ));
        let usable = create_private(&short, account).is_ok() && is_private(&short, account);
        if usable {
            Ok(short)
        } else {
            Err(ClusterError::NoSocketPlace {
                wanted: beside,
                fallback: short,
            })
        }
    }
}

/// Makes `directory` with mode 0700 for `account`; one that exists is left as it is.
pub(crate) fn create_private(directory: &Path, account: &Account) -> Result<(), ClusterError> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => account.own(directory),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(ClusterError::io("Making", directory)(error)),
    }
}

/// Writes `content` to `path` with mode 0600 for `account`, by renaming.
pub(crate) fn write_private(
    path: &Path,
    content: &str,
    account: &Account,
) -> Result<(), ClusterError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    let fresh = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        // A draft that a crash left behind, or a link that somebody put here.
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(content.as_bytes())?;
        file.sync_all()
    };
    write().map_err(ClusterError::io("Writing", &fresh))?;
    account.own(&fresh)?;
    std::fs::rename(&fresh, path).map_err(ClusterError::io("Writing", path))
}

/// Whether a directory in a place that anybody may write to is really ours:
/// somebody else may have made it first, or put a link there.
fn is_private(directory: &Path, account: &Account) -> bool {
    std::fs::symlink_metadata(directory).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == account.uid() && metadata.mode() & 0o077 == 0
    })
}

/// Whether a socket can lie there: libpq takes a comma for the end of a name.
fn fits(socket_dir: &Path) -> bool {
    let bytes = socket_dir.as_os_str().as_encoded_bytes();
    !bytes.contains(&b',') && bytes.len() + format!("/.s.PGSQL.{PORT}").len() <= LONGEST_SOCKET_PATH
}

/// FNV-1a, 64 bits: short, and the same in every build.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_socket_path_is_known_to_the_byte() {
        let longest = "/".repeat(LONGEST_SOCKET_PATH - "/.s.PGSQL.5432".len());
        assert!(fits(Path::new(&longest)));
        assert!(!fits(Path::new(&format!("{longest}x"))));
        assert!(!fits(Path::new("/a,b")));
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn a_directory_that_others_can_read_is_not_private() {
        let root = tempfile::tempdir().unwrap();
        let own = Account::Own {
            uid: rustix::process::geteuid().as_raw(),
        };
        let directory = root.path().join("socket");
        create_private(&directory, &own).unwrap();
        assert!(is_private(&directory, &own));
        std::fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        assert!(!is_private(&directory, &own));
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert!(!is_private(&link, &own));
    }
}
