//! Why a measurement's files cannot be used.

use std::io;

use super::EVENTS;

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
        "{0} is no file of a measurement, and it stands where one is kept while measuring. Move it away, or name another file for the result."
    )]
    Foreign(String),
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
        "Line {line} of {path} does not follow from the line before: its number was there already, or the measurement had ended. The file holds more than one measurement; keep the lines of one of them."
    )]
    Order { path: String, line: usize },
    #[error(
        "{0} holds no finished request, so there is no result to make. Delete it and its companion, and measure again."
    )]
    Nothing(String),
}
