//! The agent's file: which content, and for which machines.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
    time::SystemTime,
};

use sha2::{Digest, Sha256};

/// A program's content in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Build {
    pub(super) sha256: String,
    pub(super) size: u64,
    /// `x86_64` and the like; none if the file does not tell.
    pub(super) arch: Option<&'static str>,
}

type Known = HashMap<(PathBuf, SystemTime, u64), Build>;

impl Build {
    /// Reads a file, once for as long as it does not change.
    ///
    /// # Errors
    /// As reading a file.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
        let facts = fs::metadata(path)?;
        let key = (path.to_owned(), facts.modified()?, facts.len());
        let known = KNOWN.get_or_init(Mutex::default);
        let find = |known: &Known| known.get(&key).cloned();
        if let Some(build) = find(&known.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(build);
        }
        let build = Self::from_bytes(&fs::read(path)?);
        known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, build.clone());
        Ok(build)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            sha256: hex::encode(Sha256::digest(bytes)),
            size: bytes.len() as u64,
            arch: arch(bytes),
        }
    }
}

/// `e_machine` of an ELF header (elf(5)).
fn arch(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    match u16::from_le_bytes([*bytes.get(18)?, *bytes.get(19)?]) {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        243 => Some("riscv64"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_what_it_is_built_for() {
        let this = std::env::current_exe().expect("a path");
        let build = Build::of(&this).expect("readable");
        assert_eq!(build.arch, Some(std::env::consts::ARCH));
        assert_eq!(build.sha256.len(), 64);
        assert_eq!(Build::of(&this).expect("readable"), build);
        assert_eq!(Build::from_bytes(b"#!/bin/sh\n").arch, None);
    }
}
