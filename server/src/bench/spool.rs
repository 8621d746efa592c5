//! What a measurement leaves beside its result's place while it runs, so that its
//! death loses no finished request: the meter's events, and a file that says what
//! they are events of. Both are removed once the result is written.

mod error;
mod events;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufReader, Read, Seek, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tokdyno_domain::{
    meter::{METER_SCHEMA, MeterOutcome},
    result_file::{ResultFile, TOOL},
};

pub(crate) use self::error::SpoolError;
use self::events::Events;
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

/// How much of a measurement its files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All of it.
    Whole,
    /// What came before they could not be written any more.
    Part,
    /// Nothing that a result can be made of.
    Nothing,
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

/// What tells a companion, of whichever version, from other people's files.
#[derive(Debug, Deserialize)]
struct Mark {
    tool: String,
    #[serde(rename = "meter_schema")]
    _meter_schema: u32,
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
        let left = || SpoolError::Left {
            events: events.display().to_string(),
            result: result.display().to_string(),
        };
        // Without a companion nobody is writing them, and none is made.
        if events.exists() && !spec.exists() {
            return Err(left());
        }
        let mut file = File::options()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&spec)
            .map_err(failed)?;
        lock(&file, result)?;
        if events.exists() {
            return Err(left());
        }
        if !may_be_replaced(&mut file).map_err(failed)? {
            return Err(SpoolError::Foreign(spec.display().to_string()));
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
                file.rewind()?;
                file.write_all(&text)?;
                file.sync_all()
            })
            .map_err(|reason| {
                // Half of one would be taken for somebody else's file.
                let _ = fs::remove_file(&spec);
                failed(reason)
            })?;
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

    /// How much of the measurement the files hold, looked at anew: the disk may have
    /// been full, or the folder moved away.
    pub(crate) fn kept(&self) -> Kept {
        let has_companion =
            fs::read(&self.spec).is_ok_and(|text| read_companion(&self.spec, &text).is_ok());
        let events = File::open(&self.events)
            .ok()
            .and_then(|file| Events::read("", BufReader::new(file)).ok());
        match events {
            Some(events) if has_companion && events.is_whole() => Kept::Whole,
            Some(events) if has_companion && events.collected.has_requests() => Kept::Part,
            _ => Kept::Nothing,
        }
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
    let collected = Events::read(&shown(), bytes)?.collected;
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

/// No companion is longer: a workload holds 16 MiB of prompts at most, which escaping
/// may lengthen sixfold.
const LONGEST_COMPANION: u64 = 128 << 20;

/// Is this file empty, or the companion of a measurement that never began?
fn may_be_replaced(file: &mut File) -> io::Result<bool> {
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut text = Vec::new();
    file.take(LONGEST_COMPANION).read_to_end(&mut text)?;
    Ok(text.is_empty() || serde_json::from_slice(&text).is_ok_and(|mark: Mark| mark.tool == TOOL))
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
