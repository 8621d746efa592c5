//! What can go wrong in the laboratory. Every message is the sentence that
//! people see; what lies behind an internal fault is logged here, once, and
//! never leaves the process.

use std::fmt;

use tokdyno_domain::{
    access::Forbidden,
    ids::{ExperimentId, GateId, HostId, LaunchId, RunId},
};
use tokdyno_remote::RemoteError;

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
    /// No such gate.
    #[error(
        "There is no gate {0}. The number may have been mistyped; the pages of runs and comparisons show theirs."
    )]
    NoSuchGate(GateId),
    /// No such host, or it was removed.
    #[error(
        "There is no host {0}. It may have been removed, or the address was mistyped; the list of hosts shows what there is."
    )]
    NoSuchHost(HostId),
    /// No profile of this name or number.
    #[error(
        "There is no profile {0}. It may have been renamed, or the address was mistyped; the list of profiles shows what there is."
    )]
    NoSuchProfile(String),
    /// No such launch.
    #[error(
        "There is no launch {0}. The address may have been mistyped; the list of servers shows what there is."
    )]
    NoSuchLaunch(LaunchId),
    /// No such experiment.
    #[error(
        "There is no experiment {0}. The address may have been mistyped; the list of experiments shows what there is."
    )]
    NoSuchExperiment(ExperimentId),
    /// The host did not do what was asked of it.
    #[error(transparent)]
    Host(#[from] RemoteError),
    /// Another password was given.
    #[error(
        "This is not the operator's password. Try again; after a few failures one has to wait."
    )]
    WrongPassword,
    /// Too many failures; the sentence says how long to wait.
    #[error("{0}")]
    TooMany(String),
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
            Self::WrongPassword => 401,
            Self::Forbidden(_) => 403,
            Self::NoSuchRun(_)
            | Self::NoSuchComparison
            | Self::NoSuchGate(_)
            | Self::NoSuchHost(_)
            | Self::NoSuchProfile(_)
            | Self::NoSuchLaunch(_)
            | Self::NoSuchExperiment(_) => 404,
            Self::Invalid(_) => 422,
            Self::Conflict(_) | Self::LeaseLost => 409,
            Self::TooMany(_) => 429,
            Self::Internal(_) => 500,
            Self::Host(_) => 502,
            Self::DatabaseUnavailable => 503,
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

/// Was something to be stored a second time that may be there once? Then a conflict
/// that says so; any other trouble as ever.
pub(crate) fn taken(error: sqlx::Error, sentence: impl FnOnce() -> String) -> LabError {
    let twice = error
        .as_database_error()
        .is_some_and(sqlx::error::DatabaseError::is_unique_violation);
    if twice {
        LabError::Conflict(sentence())
    } else {
        error.into()
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
