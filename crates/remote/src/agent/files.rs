//! Files: read, listed, and followed while they grow.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::Path,
    time::Duration,
};

use super::{failure, folder::Folder, liveness::Client};
use crate::wire::{Failure, FailureWord, FileFacts};

/// How often a file is looked at.
const STEP: Duration = Duration::from_millis(50);
/// Most bytes of one frame.
const FRAME: usize = 256 << 10;

/// The first `most` bytes of a file; none if it is not there.
pub(super) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Failure> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure::file("read", path, &error)),
    };
    // A pipe or a device could be waited for without end.
    if !file.metadata().is_ok_and(|facts| facts.is_file()) {
        return Err(Failure::new(
            FailureWord::BadRequest,
            format!("{} is no plain file. Name a file.", path.display()),
        ));
    }
    let mut bytes = Vec::new();
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| failure::file("read", path, &error))?;
    Ok(Some(bytes))
}

/// Files of a state folder by name, those for inner use left out.
pub(super) fn list(folder: &Folder) -> Result<Vec<FileFacts>, Failure> {
    let entries = fs::read_dir(folder.path())
        .map_err(|error| failure::file("read", folder.path(), &error))?;
    let mut files: Vec<FileFacts> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let facts = entry.metadata().ok()?;
            (facts.is_file() && !name.starts_with('.')).then_some(FileFacts {
                name,
                size: facts.len(),
            })
        })
        .collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// Sends a file from `offset` on as it grows, until the client goes or the file is
/// removed; then the empty frame ends it.
pub(super) fn follow(
    path: &Path,
    offset: u64,
    out: &mut impl Write,
    client: &mut Client,
) -> io::Result<()> {
    let mut open: Option<File> = None;
    let mut position = offset;
    let mut bytes = vec![0; FRAME];
    loop {
        let file = match &mut open {
            Some(file) => file,
            None => match File::open(path) {
                Ok(mut file) => {
                    file.seek(SeekFrom::Start(position))?;
                    open.insert(file)
                }
                // A log is there a moment after its launch.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if !path.parent().is_some_and(Path::is_dir) {
                        return end(out);
                    }
                    if !client.there_after(STEP) {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        let length = file.read(&mut bytes)?;
        if length > 0 {
            position += length as u64;
            frame(out, &bytes[..length])?;
            if !client.there_after(Duration::ZERO) {
                return Ok(());
            }
        } else if file.metadata()?.nlink() == 0 {
            return end(out);
        } else if !client.there_after(STEP) {
            return Ok(());
        }
    }
}

fn frame(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(bytes)?;
    out.flush()
}

fn end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&0_u32.to_be_bytes())?;
    out.flush()
}
