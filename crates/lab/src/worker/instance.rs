//! Who this worker is: one identity per data directory, the same after a restart,
//! so that it knows its own leftovers again without waiting for their lease.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

/// An identity, held for as long as it lives.
pub(crate) struct Instance {
    pub(crate) id: Uuid,
    /// Locked while this process uses the identity; none if it is for once only.
    _lock: Option<File>,
}

impl Instance {
    /// The identity of this data directory. If another process uses it just now,
    /// or the directory cannot be written, an identity for once.
    pub(crate) fn open(data_dir: &Path) -> Self {
        match Self::kept(data_dir) {
            Ok(Some(instance)) => instance,
            Ok(None) => {
                tracing::warn!(
                    data_dir = %data_dir.display(),
                    "another process measures from this data directory; after a restart this one's runs are recovered only when their lease has lapsed"
                );
                Self::once()
            }
            Err(error) => {
                tracing::warn!(data_dir = %data_dir.display(), %error, "the identity of this data directory cannot be kept");
                Self::once()
            }
        }
    }

    fn once() -> Self {
        Self {
            id: Uuid::new_v4(),
            _lock: None,
        }
    }

    fn kept(data_dir: &Path) -> io::Result<Option<Self>> {
        let path = data_dir.join("instance");
        let mut file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)?;
        // The lock goes with the process, however it ends.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let text = fs::read_to_string(&path)?;
        let id = match text.trim().parse() {
            Ok(id) => id,
            // New, or cut off when it was written: nobody holds a run under it.
            Err(_) => {
                let id = Uuid::new_v4();
                file.set_len(0)?;
                file.write_all(format!("{id}\n").as_bytes())?;
                file.sync_all()?;
                id
            }
        };
        Ok(Some(Self {
            id,
            _lock: Some(file),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_after_a_restart_and_never_twice_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Instance::open(folder.path());
        let second = Instance::open(folder.path());
        assert_ne!(first.id, second.id);
        let id = first.id;
        drop(first);
        assert_eq!(Instance::open(folder.path()).id, id);
    }
}
