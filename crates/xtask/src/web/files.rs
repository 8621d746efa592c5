//! Files of the bundle that need no compiler.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::Profile;
use super::compress;

/// Endings of files that compression makes smaller.
const COMPRESSIBLE: &[&str] = &[
    "css",
    "html",
    "ico",
    "js",
    "json",
    "svg",
    "txt",
    "wasm",
    "webmanifest",
    "xml",
];

/// One file of the bundle.
#[derive(Debug, Clone)]
pub(super) struct Asset {
    /// Its address: `/pkg/tokdyno.0123456789ab.js`, `/favicon.svg`.
    pub(super) path: String,
    pub(super) content: Vec<u8>,
}

impl Asset {
    /// A file whose name carries the hash of its content.
    pub(super) fn hashed(name: &str, extension: &str, content: Vec<u8>) -> Self {
        Self {
            path: format!("/pkg/{name}.{}.{extension}", short_hash(&[&content])),
            content,
        }
    }

    /// Writes it below `site`, compressed forms beside it, and returns the
    /// paths. What is there with the same content is left alone.
    pub(super) fn write(&self, site: &Path, profile: Profile) -> Result<Vec<PathBuf>> {
        let path = site.join(self.path.trim_start_matches('/'));
        let mut written = vec![path.clone()];
        let same = std::fs::read(&path).is_ok_and(|there| there == self.content);
        if !same {
            put(&path, &self.content)?;
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if !COMPRESSIBLE.contains(&extension.as_ref()) {
            return Ok(written);
        }
        for encoding in compress::ENCODINGS {
            let compressed = append_extension(&path, encoding.extension);
            if !same || !compressed.exists() {
                put(&compressed, &(encoding.compress)(&self.content, profile)?)?;
            }
            written.push(compressed);
        }
        Ok(written)
    }
}

/// All style sheets of `directory` in the order of their names, as one.
///
/// # Errors
/// The directory or a file cannot be read.
pub(super) fn style_sheet(directory: &Path) -> Result<Asset> {
    let mut whole = Vec::new();
    for file in files_below(directory)? {
        if file.extension().is_some_and(|extension| extension == "css") {
            whole.extend(std::fs::read(&file)?);
            whole.push(b'\n');
        }
    }
    Ok(Asset::hashed("tokdyno", "css", whole))
}

/// All files of `directory`, under their own names; none if it is not there.
///
/// # Errors
/// The directory or a file cannot be read.
pub(super) fn public_files(directory: &Path) -> Result<Vec<Asset>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    files_below(directory)?
        .into_iter()
        .map(|file| {
            let name = file.strip_prefix(directory)?.to_string_lossy().into_owned();
            Ok(Asset {
                path: format!("/{name}"),
                content: std::fs::read(&file)?,
            })
        })
        .collect()
}

/// The files below a directory, sorted, hidden ones left out.
pub(super) fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("{} cannot be read", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if hidden {
                continue;
            }
            if path.is_dir() {
                pending.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The first 12 hexadecimal digits of the parts' hash.
pub(super) fn short_hash(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut text = hex::encode(digest.finalize());
    text.truncate(12);
    text
}

/// Writes a file so that it is there wholly or not at all.
pub(super) fn put(path: &Path, content: &[u8]) -> Result<()> {
    let write = || -> std::io::Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let fresh = append_extension(path, "new");
        std::fs::write(&fresh, content)?;
        std::fs::rename(&fresh, path)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}

fn append_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_sheets_are_joined_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("20-b.css"), "b{}").unwrap();
        std::fs::write(directory.path().join("10-a.css"), "a{}").unwrap();
        std::fs::write(directory.path().join("notes.txt"), "no").unwrap();
        let sheet = style_sheet(directory.path()).unwrap();
        assert_eq!(sheet.content, b"a{}\nb{}\n");
        assert!(sheet.path.starts_with("/pkg/tokdyno.") && sheet.path.ends_with(".css"));
    }

    #[test]
    fn static_files_keep_their_names() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("fonts")).unwrap();
        std::fs::write(directory.path().join("fonts/a.woff2"), "x").unwrap();
        std::fs::write(directory.path().join(".hidden"), "x").unwrap();
        let files = public_files(directory.path()).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["/fonts/a.woff2"]);
        let site = tempfile::tempdir().unwrap();
        let written = files[0].write(site.path(), Profile::Dev).unwrap();
        assert_eq!(written, [site.path().join("fonts/a.woff2")]);
    }

    #[test]
    fn the_name_changes_with_the_content_alone() {
        let one = Asset::hashed("a", "js", b"1".to_vec()).path;
        assert_eq!(one, Asset::hashed("a", "js", b"1".to_vec()).path);
        assert_ne!(one, Asset::hashed("a", "js", b"2".to_vec()).path);
    }
}
