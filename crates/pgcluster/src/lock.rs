//! One owner per data directory.

use std::fs::File;
use std::io::{Read, Seek, Write};

use rustix::fs::{FlockOperation, flock};

use crate::ClusterError;
use crate::layout::Layout;

/// Held while this value lives. The kernel lets go of it when the process
/// ends, however it ends; PostgreSQL does not inherit it.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    _file: File,
}

impl OwnerLock {
    /// Becomes the owner.
    ///
    /// # Errors
    /// Another process is, or the file cannot be opened.
    pub(crate) fn take(layout: &Layout) -> Result<Self, ClusterError> {
        let path = layout.lock_file();
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(ClusterError::io("Opening", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // The id is for the message only, so that it may be missing.
                let _ = file.read_to_string(&mut text);
                return Err(ClusterError::Busy {
                    data_dir: layout.data_dir.clone(),
                    owner: text.trim().parse().ok(),
                });
            }
            Err(errno) => return Err(ClusterError::io("Locking", &path)(errno.into())),
        }
        let mut write = || {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write().map_err(ClusterError::io("Writing", &path))?;
        Ok(Self { _file: file })
    }
}
