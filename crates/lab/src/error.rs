//! What can go wrong in the laboratory. Every message is the sentence that
//! people see; what lies behind an internal fault is logged here, once, and
//! never leaves the process.

use std::fmt;

use tokdyno_domain::{access::Forbidden, ids::RunId};

/// Why the laboratory could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No such run, or it was deleted.
    #[error(
        "There is no run {0}. It may have been deleted, or the address was mistyped; the list of runs shows what there is."
    )]
    NoSuchRun(RunId),
    /// No frozen comparison has this address.
    #[error(
        "There is no comparison at this address. Copy the whole link again, or ask its sender."
    )]
    NoSuchComparison,
    /// The actor's role does not reach.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// What was given cannot be used; the sentence says why and what to do.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be done in the present state; the sentence says why.
    #[error("{0}")]
    Conflict(String),
    /// The database does not answer.
    #[error(
        "The database does not answer at the moment. Nothing that was stored is lost; try again in a few seconds, and look into the program's log if it lasts."
    )]
    DatabaseUnavailable,
    /// Another worker has taken the run over: this one's writes are refused.
    #[error(
        "The run was taken over by another worker because this one did not report in time. What this one measured since is not stored twice."
    )]
    LeaseLost,
    /// The program's own fault; the text says during what.
    #[error(
        "Something went wrong inside the program while {0}. Look into its log, and report it with what stands there."
    )]
    Internal(String),
}

impl LabError {
    /// The HTTP status that says the same.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::NoSuchRun(_) | Self::NoSuchComparison => 404,
            Self::Forbidden(_) => 403,
            Self::Invalid(_) => 422,
            Self::Conflict(_) | Self::LeaseLost => 409,
            Self::DatabaseUnavailable => 503,
            Self::Internal(_) => 500,
        }
    }

    /// An internal fault; its source is logged here and nowhere else.
    pub(crate) fn internal(doing: &str, source: impl fmt::Display) -> Self {
        tracing::error!(doing, error = %source, "internal fault");
        Self::Internal(doing.to_owned())
    }
}

impl From<sqlx::Error> for LabError {
    fn from(error: sqlx::Error) -> Self {
        if is_outage(&error) {
            tracing::warn!(error = %error, "the database does not answer");
            Self::DatabaseUnavailable
        } else {
            Self::internal("asking the database", error)
        }
    }
}

/// Is the database away, rather than the question wrong?
fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Classes of SQLSTATE: 08 connection, 53 resources, 57 operator
        // intervention (shutting down, starting up), 58 system.
        sqlx::Error::Database(database) => database.code().is_some_and(|code| {
            ["08", "53", "57", "58"]
                .iter()
                .any(|class| code.starts_with(class))
        }),
        _ => false,
    }
}
