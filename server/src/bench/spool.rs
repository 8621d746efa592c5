//! What a measurement leaves beside its result's place while it runs, so that its
//! death loses no finished request: the meter's events, and a file that says what
//! they are events of. Both are removed once the result is written.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tokdyno_domain::{
    meter::{METER_SCHEMA, MeterEvent, MeterOutcome},
    result_file::{ResultFile, TOOL},
};

use super::{Circumstances, Collected};

/// Version of the companion's form.
const SPEC_SCHEMA: u32 = 1;
/// What the events' file is called behind the result's name.
const EVENTS: &str = ".events.jsonl";
/// What its companion is called behind the result's name.
const SPEC: &str = ".spec.json";

/// The files of a measurement under way.
#[derive(Debug)]
pub(crate) struct Spool {
    events: PathBuf,
    spec: PathBuf,
    /// Locked as long as the measurement lives, however it ends.
    _lock: File,
}

/// Do two paths lead to one file that is there?
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The companion: what the events do not say of themselves.
#[derive(Debug, Serialize, Deserialize)]
struct Companion {
    schema_version: u32,
    tool: String,
    tool_version: String,
    meter_schema: u32,
    #[serde(flatten)]
    circumstances: Circumstances,
}

/// Why events cannot be kept, or no result be made of them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    #[error(
        "{events} holds what a measurement finished before it was interrupted. Make its result with `tokdyno bench --recover {events} --json {result}`, or delete the file to begin anew."
    )]
    Left { events: String, result: String },
    #[error(
        "Another measurement is writing to {0} at this moment. Wait for its end, or name another file."
    )]
    UnderWay(String),
    #[error(
        "{path} cannot be written ({reason}). Check the folder, its permissions and the free space."
    )]
    Write { path: String, reason: io::Error },
    #[error("{path} cannot be read ({reason}). Check its name and its permissions.")]
    Read { path: String, reason: io::Error },
    #[error(
        "The name {0} is not text in UTF-8, so events cannot be kept beside it. Choose another name for the result."
    )]
    Name(String),
    #[error(
        "{0} is no file of events: its name does not end with {EVENTS}. Name the file that the interrupted measurement left."
    )]
    NoEvents(String),
    #[error(
        "{path} cannot be understood ({reason}). Recover with the version of Tokdyno that measured."
    )]
    Companion { path: String, reason: String },
    #[error(
        "Line {line} of {path} is no event ({reason}). The file was changed after it was written; remove the line to recover the others."
    )]
    Event {
        path: String,
        line: usize,
        reason: serde_json::Error,
    },
    #[error(
        "{0} holds no finished request, so there is no result to make. Delete it and its companion, and measure again."
    )]
    Nothing(String),
}

/// What was recovered.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// The result.
    pub(crate) result: ResultFile,
    /// The files it came from.
    pub(crate) spool: Spool,
}

impl Spool {
    /// Begins to keep what is measured for the result at `result`.
    ///
    /// # Errors
    /// [`SpoolError`]; above all, that events of another measurement are there.
    pub(crate) fn begin(result: &Path, around: &Circumstances) -> Result<Self, SpoolError> {
        let events = behind(result, EVENTS);
        let spec = behind(result, SPEC);
        let failed = |reason| SpoolError::Write {
            path: spec.display().to_string(),
            reason,
        };
        let mut file = File::options()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&spec)
            .map_err(failed)?;
        lock(&file, result)?;
        if events.exists() {
            return Err(SpoolError::Left {
                events: events.display().to_string(),
                result: result.display().to_string(),
            });
        }
        let companion = Companion {
            schema_version: SPEC_SCHEMA,
            tool: TOOL.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            meter_schema: METER_SCHEMA,
            circumstances: around.clone(),
        };
        serde_json::to_vec_pretty(&companion)
            .map_err(io::Error::from)
            .and_then(|text| {
                file.set_len(0)?;
                file.write_all(&text)?;
                file.sync_all()
            })
            .map_err(failed)?;
        Ok(Self {
            events,
            spec,
            _lock: file,
        })
    }

    /// The events' file, as the meter is told.
    ///
    /// # Errors
    /// Its name is not UTF-8.
    pub(crate) fn events(&self) -> Result<String, SpoolError> {
        let name = self.events.to_str().map(str::to_owned);
        name.ok_or_else(|| SpoolError::Name(self.events.display().to_string()))
    }

    /// Is this one of its files?
    pub(crate) fn holds(&self, path: &Path) -> bool {
        same_file(&self.events, path) || same_file(&self.spec, path)
    }

    /// Removes the files: the result holds what they held.
    pub(crate) fn remove(self) {
        // Events first: a companion alone stands in nobody's way.
        for path in [&self.events, &self.spec] {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!("{} could not be removed: {error}", path.display());
            }
        }
    }

    /// Removes the companion if nothing was measured, and leaves the events.
    pub(crate) fn abandon(self) {
        if !self.events.exists() {
            self.remove();
        }
    }
}

/// Makes the result of a measurement that died, from the events it left.
///
/// # Errors
/// [`SpoolError`].
pub(crate) fn recover(events: &Path) -> Result<Recovered, SpoolError> {
    let shown = || events.display().to_string();
    let name = events.to_str().ok_or_else(|| SpoolError::Name(shown()))?;
    let result = name
        .strip_suffix(EVENTS)
        .ok_or_else(|| SpoolError::NoEvents(shown()))?;
    let spec = behind(Path::new(result), SPEC);
    let unread = |path: &Path| {
        let path = path.display().to_string();
        move |reason| SpoolError::Read { path, reason }
    };
    let bytes = BufReader::new(File::open(events).map_err(unread(events))?);
    let file = File::open(&spec).map_err(unread(&spec))?;
    lock(&file, Path::new(result))?;
    let companion = read_companion(&spec, &fs::read(&spec).map_err(unread(&spec))?)?;
    let collected = read_events(&shown(), bytes)?;
    let outcome = collected.outcome().cloned().unwrap_or_else(interrupted);
    let result = collected.result(outcome, companion.circumstances);
    if result.stages.is_empty() {
        return Err(SpoolError::Nothing(shown()));
    }
    Ok(Recovered {
        result,
        spool: Spool {
            events: events.to_owned(),
            spec,
            _lock: file,
        },
    })
}

fn interrupted() -> MeterOutcome {
    MeterOutcome::Failed {
        reason: "interrupted: the measuring program ended before the measurement did; the figures rest on what was finished until then.".to_owned(),
    }
}

fn read_companion(path: &Path, text: &[u8]) -> Result<Companion, SpoolError> {
    let wrong = |reason: String| SpoolError::Companion {
        path: path.display().to_string(),
        reason,
    };
    let companion: Companion =
        serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
    if companion.schema_version != SPEC_SCHEMA || companion.meter_schema != METER_SCHEMA {
        return Err(wrong(format!(
            "it was written by version {}",
            companion.tool_version
        )));
    }
    Ok(companion)
}

/// The last line may be cut off where the program died; no other may.
fn read_events(path: &str, mut lines: impl BufRead) -> Result<Collected, SpoolError> {
    let mut collected = Collected::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = lines.read_until(b'\n', &mut line);
        let read = read.map_err(|reason| SpoolError::Read {
            path: path.to_owned(),
            reason,
        })?;
        if read == 0 || line.last() != Some(&b'\n') {
            break;
        }
        match serde_json::from_slice::<MeterEvent>(&line) {
            Ok(event) => collected.take(event),
            Err(reason) => {
                return Err(SpoolError::Event {
                    path: path.to_owned(),
                    line: number,
                    reason,
                });
            }
        }
    }
    Ok(collected)
}

/// Locks the companion for this process. File systems that know no locks get none.
fn lock(file: &File, result: &Path) -> Result<(), SpoolError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(SpoolError::UnderWay(result.display().to_string()))
        }
        _ => Ok(()),
    }
}

fn behind(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
