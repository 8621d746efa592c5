//! Programs that were copied here, named by the SHA-256 of their content.

use std::{
    env, fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::failure;
use crate::wire::{Failure, FailureWord};

/// Where programs lie: beside this one, where executing is known to work.
fn shelf() -> Result<PathBuf, Failure> {
    env::current_exe()
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned))
        .ok_or_else(|| {
            Failure::new(
                FailureWord::System,
                "The agent cannot tell where it lies on the host.",
            )
        })
}

fn place(sha256: &str) -> Result<PathBuf, Failure> {
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::new(
            FailureWord::BadRequest,
            "A program is named by 64 hexadecimal digits.",
        ));
    }
    Ok(shelf()?.join(format!("program-{sha256}")))
}

/// The path of a program, if it is here and whole.
pub(super) fn have(sha256: &str) -> Result<Option<String>, Failure> {
    let path = place(sha256)?;
    let whole = fs::read(&path).is_ok_and(|bytes| hex::encode(Sha256::digest(bytes)) == sha256);
    Ok(whole.then(|| path.display().to_string()))
}

/// Stores a program if it is the one that was announced.
pub(super) fn put(sha256: &str, bytes: &[u8]) -> Result<String, Failure> {
    let path = place(sha256)?;
    if hex::encode(Sha256::digest(bytes)) != sha256 {
        return Err(Failure::new(
            FailureWord::Corrupt,
            "The program arrived damaged and was not stored. Try again.",
        ));
    }
    let part = shelf()?.join(format!(".program-{}.part", std::process::id()));
    let written = store(&part, bytes).and_then(|()| fs::rename(&part, &path));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        failure::file("store", &path, &error)
    })?;
    Ok(path.display().to_string())
}

fn store(part: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = part.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o700)
        .open(part)?;
    file.write_all(bytes)?;
    file.sync_all()
}
