//! Files that are read whole.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Most bytes that are read of a file. The conversations in circulation are files of
/// some hundred MB; a device that never ends is longer.
const MOST_BYTES: u64 = 1 << 30;

/// All that is in a file.
///
/// # Errors
/// It cannot be read, or is longer than 1 GiB.
pub(super) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, MOST_BYTES)
}

fn read_within(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more shows that there is more.
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "it is longer than {} MiB, the most that is read",
                most >> 20
            ),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_ends_is_refused() {
        let error = read_within(Path::new("/dev/zero"), 2 << 20).expect_err("endless");
        assert_eq!(
            error.to_string(),
            "it is longer than 2 MiB, the most that is read"
        );
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [b'a'; 9]).expect("written");
        assert_eq!(read_within(file.path(), 9).expect("read"), [b'a'; 9]);
        assert!(read_within(file.path(), 8).is_err());
    }
}
