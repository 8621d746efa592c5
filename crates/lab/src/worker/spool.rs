//! Spool files: what a meter appends and a worker reads. They lie on the disk of
//! the machine that measures, so that a dead database or server loses nothing.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use tokdyno_domain::{ids::RunId, meter::MeterEvent};
use uuid::Uuid;

use super::ingest::Batch;

/// Bytes read at once.
const PIECE: usize = 1 << 20;
/// Longest line: a request of a million chunks has less.
const LONGEST_LINE: usize = 64 << 20;

/// The folder of spool files, `run-LABORATORY-RUN-EPOCH.jsonl`.
#[derive(Debug, Clone)]
pub(crate) struct SpoolFolder {
    path: PathBuf,
    /// Which database's runs: others' files are never touched.
    laboratory: Uuid,
}

/// A spool file by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpoolName {
    pub(crate) run: RunId,
    /// Epoch of the lease under which it was made.
    pub(crate) epoch: i64,
}

/// Reads a spool file as it grows.
pub(crate) struct Tail {
    file: File,
    buffer: Vec<u8>,
    /// Where the next line begins in the buffer.
    start: usize,
    line: u64,
}

/// Why a spool file cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TailError {
    /// The disk.
    #[error("the spool file cannot be read ({0})")]
    Read(#[from] io::Error),
    /// A line that is no event.
    #[error("line {line} of the spool file cannot be read ({source})")]
    Line {
        line: u64,
        source: serde_json::Error,
    },
    /// A line without end.
    #[error("line {0} of the spool file is too long")]
    TooLong(u64),
}

impl SpoolFolder {
    /// The folder in this data directory; made if missing, mode 0700.
    pub(crate) fn open(data_dir: &Path, laboratory: Uuid) -> io::Result<Self> {
        let path = data_dir.join("spool");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        Ok(Self { path, laboratory })
    }

    /// Makes the spool file of a run, mode 0600, and beside it one for what the
    /// meter has to complain of.
    pub(crate) fn create(&self, run: RunId, epoch: i64) -> io::Result<(PathBuf, File)> {
        // A run is measured once: this one is from before the database was restored.
        for stale in self.of_run(run)? {
            fs::rename(&stale, stale.with_extension("stale"))?;
        }
        let path = self
            .path
            .join(format!("{}{run}-{epoch}.jsonl", self.prefix()));
        let make = |path: &Path| {
            fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(path)
        };
        make(&path)?;
        let log = make(&path.with_extension("log"))?;
        Ok((path, log))
    }

    /// The spool file of a run, if there is one. A run is measured once, so there
    /// is at most one.
    pub(crate) fn find(&self, run: RunId) -> Option<PathBuf> {
        self.of_run(run).ok()?.into_iter().next()
    }

    /// All spool files of this laboratory.
    pub(crate) fn files(&self) -> Vec<(SpoolName, PathBuf)> {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let stem = name.to_str()?.strip_suffix(".jsonl")?;
                let (run, epoch) = stem.strip_prefix(&self.prefix())?.split_once('-')?;
                let name = SpoolName {
                    run: run.parse().ok()?,
                    epoch: epoch.parse().ok()?,
                };
                Some((name, entry.path()))
            })
            .collect()
    }

    /// Removes a spool file that is stored entirely, and the log beside it.
    pub(crate) fn remove(path: &Path) {
        for path in [path.to_owned(), path.with_extension("log")] {
            if let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "a spool file stays behind");
            }
        }
    }

    /// Puts a spool file aside that could not be stored, for a person to look at.
    pub(crate) fn put_aside(path: &Path) {
        if let Err(error) = fs::rename(path, path.with_extension("kept")) {
            tracing::warn!(path = %path.display(), %error, "a spool file could not be put aside");
        }
    }

    fn prefix(&self) -> String {
        format!("run-{}-", self.laboratory.simple())
    }

    fn of_run(&self, run: RunId) -> io::Result<Vec<PathBuf>> {
        let prefix = format!("{}{run}-", self.prefix());
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            if name
                .to_str()
                .is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".jsonl"))
            {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }
}

/// The last characters of what the meter complained of.
pub(crate) fn complaints(spool: &Path) -> Option<String> {
    let text = fs::read(spool.with_extension("log")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().map(str::trim).find(|l| !l.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(300).collect())
}

impl Tail {
    /// Begins at the beginning.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            buffer: Vec::new(),
            start: 0,
            line: 0,
        })
    }

    /// The next lines, as many as make a batch or as there are. A line without
    /// its end is left until it has one. Where the file cannot be read on, what
    /// stands before is given first, and the error by the next call. Blocks on the
    /// disk.
    pub(crate) fn next_batch(&mut self, stored: i64) -> Result<Batch, TailError> {
        let mut batch = Batch::default();
        loop {
            while let Some(length) = self.buffer[self.start..].iter().position(|b| *b == b'\n') {
                let line = &self.buffer[self.start..self.start + length];
                if !line.trim_ascii().is_empty() {
                    match serde_json::from_slice::<MeterEvent>(line) {
                        Ok(event) => batch.push(event, stored),
                        // The line stays: the next call comes upon it first.
                        Err(_) if !batch.is_empty() => return Ok(batch),
                        Err(source) => {
                            return Err(TailError::Line {
                                line: self.line + 1,
                                source,
                            });
                        }
                    }
                }
                self.line += 1;
                self.start += length + 1;
                if batch.is_full() {
                    return Ok(batch);
                }
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.len() > LONGEST_LINE {
                if !batch.is_empty() {
                    return Ok(batch);
                }
                return Err(TailError::TooLong(self.line + 1));
            }
            let more = (&self.file)
                .take(PIECE as u64)
                .read_to_end(&mut self.buffer);
            match more {
                Ok(0) => return Ok(batch),
                Ok(_) => {}
                Err(_) if !batch.is_empty() => return Ok(batch),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokdyno_domain::{
        meter::{MeterEventKind, MeterOutcome, Phase, Progress},
        timestamp::Timestamp,
    };

    use super::*;

    fn progress(seq: u64) -> String {
        line(
            seq,
            MeterEventKind::Progress(Progress {
                stage: 0,
                stages: 1,
                phase: Phase::Measuring,
                done: seq,
                failed: 0,
                planned: None,
                in_flight: 1,
                current_tps: None,
                elapsed_s: 1.0,
                left_s: None,
            }),
        )
    }

    fn line(seq: u64, kind: MeterEventKind) -> String {
        let event = MeterEvent {
            seq,
            at: Timestamp(1),
            kind,
        };
        serde_json::to_string(&event).expect("serialises") + "\n"
    }

    #[test]
    fn a_growing_file_is_read_line_by_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = SpoolFolder::open(folder.path(), Uuid::nil()).expect("made");
        let (path, _) = spool.create(RunId(7), 1).expect("made");
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("opens");
        let mut tail = Tail::open(&path).expect("opens");
        assert!(tail.next_batch(0).expect("read").is_empty());

        let second = progress(2);
        let (head, rest) = second.split_at(10);
        write!(file, "{}{head}", progress(1)).expect("written");
        let batch = tail.next_batch(0).expect("read");
        assert_eq!(batch.last_seq(), 1, "half a line is left");
        write!(file, "{rest}").expect("written");
        let batch = tail.next_batch(0).expect("read");
        assert_eq!(batch.last_seq(), 2);

        let ended = MeterEventKind::Finished {
            outcome: MeterOutcome::Complete,
        };
        write!(file, "{}", line(3, ended)).expect("written");
        let mut again = Tail::open(&path).expect("opens");
        let batch = again.next_batch(3).expect("read");
        assert!(!batch.has_news(), "all of it is stored already");
        assert!(batch.finished.is_some(), "but its end is known");

        writeln!(file, "{}no event", progress(4)).expect("written");
        let batch = again.next_batch(3).expect("what stands before");
        assert_eq!(batch.last_seq(), 4);
        for _ in 0..2 {
            assert!(matches!(
                again.next_batch(3),
                Err(TailError::Line { line: 5, .. })
            ));
        }
    }

    #[test]
    fn a_file_of_another_database_is_not_taken_for_this_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = SpoolFolder::open(folder.path(), Uuid::from_u128(2)).expect("made");
        let (foreign, _) = other.create(RunId(7), 1).expect("made");
        other.create(RunId(8), 1).expect("made");
        let spool = SpoolFolder::open(folder.path(), Uuid::from_u128(1)).expect("made");
        spool.create(RunId(7), 1).expect("made");
        let (path, _) = spool.create(RunId(7), 2).expect("made");
        spool.create(RunId(71), 1).expect("made");
        assert_eq!(spool.find(RunId(7)), Some(path));
        assert_eq!(spool.find(RunId(8)), None);
        let mut names: Vec<SpoolName> = spool.files().into_iter().map(|(name, _)| name).collect();
        names.sort();
        let name = |run, epoch| SpoolName {
            run: RunId(run),
            epoch,
        };
        assert_eq!(names, [name(7, 2), name(71, 1)]);
        assert_eq!(other.find(RunId(7)), Some(foreign), "untouched");
    }
}
