//! Keys of endpoints while they wait in the queue: ChaCha20-Poly1305 under a key
//! that stands in a file of its own, so that a copy of the database alone gives
//! no key away.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use chacha20poly1305::{
    ChaCha20Poly1305, Key, KeyInit, Nonce,
    aead::{Aead, Payload},
};
use tokdyno_domain::{ids::RunId, meter::ApiKey};

/// The key file, read.
pub(crate) struct KeyFile {
    path: PathBuf,
    cipher: ChaCha20Poly1305,
}

/// An encrypted key as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// 12 random bytes, used once.
    pub(crate) nonce: Vec<u8>,
    /// Key and authentication tag.
    pub(crate) ciphertext: Vec<u8>,
}

/// What can be wrong with key file and secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    /// It cannot be read or made.
    #[error(
        "The key file {path} cannot be read or made ({source}). Check the folder and its permissions."
    )]
    File { path: PathBuf, source: io::Error },
    /// Others may read it.
    #[error(
        "The key file {path} may be read by others (mode {mode:03o}). Run `chmod 600 {path}`; if others had access to the machine, delete the file and queue waiting measurements again."
    )]
    Open { path: PathBuf, mode: u32 },
    /// It is no key.
    #[error(
        "The key file {path} does not hold 64 hexadecimal digits. Restore it, or delete it so that a new one is made; keys of waiting measurements must then be given again."
    )]
    NoKey { path: PathBuf },
    /// Another key, or changed bytes.
    #[error(
        "The endpoint's key cannot be decrypted: the key file {path} is not the one it was stored with. Restore that file, or queue the measurement again with its key."
    )]
    OtherKey { path: PathBuf },
    /// No randomness.
    #[error("The system gives no random numbers ({0}).")]
    Random(getrandom::Error),
}

impl KeyFile {
    /// Reads the file, or makes it with 32 random bytes, mode 0600. Two programs
    /// that make it at once end with the same key: the one that was first.
    pub(crate) fn open(path: &Path) -> Result<Self, SecretError> {
        let wrap = |source| SecretError::File {
            path: path.to_owned(),
            source,
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(path)?;
                fs::read_to_string(path).map_err(wrap)?
            }
            Err(error) => return Err(wrap(error)),
        };
        let mode = fs::metadata(path).map_err(wrap)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(SecretError::Open {
                path: path.to_owned(),
                mode,
            });
        }
        let mut key = [0_u8; 32];
        hex::decode_to_slice(text.trim(), &mut key).map_err(|_| SecretError::NoKey {
            path: path.to_owned(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            cipher: ChaCha20Poly1305::new(Key::from_slice(&key)),
        })
    }

    /// Encrypts a key for one run: under another run's number it does not open.
    pub(crate) fn seal(&self, run: RunId, key: &ApiKey) -> Result<Sealed, SecretError> {
        let mut nonce = [0_u8; 12];
        getrandom::fill(&mut nonce).map_err(SecretError::Random)?;
        let ciphertext = self
            .cipher
            .encrypt(
                Nonce::from_slice(&nonce),
                Payload {
                    msg: key.reveal().as_bytes(),
                    aad: &run.0.to_be_bytes(),
                },
            )
            .map_err(|_| SecretError::OtherKey {
                path: self.path.clone(),
            })?;
        Ok(Sealed {
            nonce: nonce.to_vec(),
            ciphertext,
        })
    }

    /// Decrypts it again.
    pub(crate) fn open_sealed(&self, run: RunId, sealed: &Sealed) -> Result<ApiKey, SecretError> {
        let other = || SecretError::OtherKey {
            path: self.path.clone(),
        };
        if sealed.nonce.len() != 12 {
            return Err(other());
        }
        let plain = self
            .cipher
            .decrypt(
                Nonce::from_slice(&sealed.nonce),
                Payload {
                    msg: &sealed.ciphertext,
                    aad: &run.0.to_be_bytes(),
                },
            )
            .map_err(|_| other())?;
        std::str::from_utf8(&plain)
            .ok()
            .and_then(ApiKey::new)
            .ok_or_else(other)
    }
}

fn make(path: &Path) -> Result<(), SecretError> {
    let wrap = |source| SecretError::File {
        path: path.to_owned(),
        source,
    };
    let mut key = [0_u8; 32];
    getrandom::fill(&mut key).map_err(SecretError::Random)?;
    let mut tag = [0_u8; 8];
    getrandom::fill(&mut tag).map_err(SecretError::Random)?;
    let draft = path.with_extension(format!("draft-{}", hex::encode(tag)));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(wrap)?;
    let written = file
        .write_all(format!("{}\n", hex::encode(key)).as_bytes())
        .and_then(|()| file.sync_all());
    // A hard link appears whole or not at all, and never replaces a key.
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let removed = fs::remove_file(&draft);
    linked.and(removed).map_err(wrap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ApiKey {
        ApiKey::new("sk-very-secret").expect("a key")
    }

    #[test]
    fn a_key_opens_again_and_stands_nowhere_in_the_clear() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let sealed = KeyFile::open(&path)
            .expect("made")
            .seal(RunId(7), &key())
            .expect("sealed");
        assert!(!sealed.ciphertext.windows(6).any(|bytes| bytes == b"secret"));
        let again = KeyFile::open(&path).expect("read");
        assert_eq!(again.open_sealed(RunId(7), &sealed).expect("opens"), key());
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(folder.path()).expect("listed").count(),
            1,
            "no draft is left"
        );
    }

    #[test]
    fn another_run_or_another_file_does_not_open_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = KeyFile::open(&folder.path().join("one")).expect("made");
        let two = KeyFile::open(&folder.path().join("two")).expect("made");
        let sealed = one.seal(RunId(7), &key()).expect("sealed");
        for refused in [
            one.open_sealed(RunId(8), &sealed),
            two.open_sealed(RunId(7), &sealed),
        ] {
            let said = refused.expect_err("a refusal").to_string();
            assert!(said.contains("is not the one"), "{said}");
        }
    }

    #[test]
    fn a_file_that_others_read_or_that_is_no_key_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        KeyFile::open(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(matches!(
            KeyFile::open(&path),
            Err(SecretError::Open { mode: 0o644, .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
        fs::write(&path, "hello").expect("written");
        assert!(matches!(
            KeyFile::open(&path),
            Err(SecretError::NoKey { .. })
        ));
    }
}
