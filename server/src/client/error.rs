//! Why a command did not do what was asked.

use std::io;

/// Trouble with the server or what was asked of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody answers.
    #[error(
        "No Tokdyno answers at {server} ({reason}). Start one with `tokdyno serve`, or name another address with --server or TOKDYNO_SERVER."
    )]
    Unreachable {
        /// The address.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// The server said why not.
    #[error("{sentence}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The server's sentence.
        sentence: String,
    },
    /// It answers otherwise than this program expects.
    #[error(
        "What answers at {server} is no Tokdyno of this version ({reason}). Check the address, and use the program that belongs to the server."
    )]
    Strange {
        /// The address.
        server: String,
        /// What is strange.
        reason: String,
    },
    /// TLS.
    #[error(transparent)]
    Trust(#[from] tokdyno_trust::TrustError),
    /// The client could not be set up.
    #[error(
        "No connection can be tried from this machine ({0}). Look at its limits on files and memory."
    )]
    Setup(String),
    /// A file that was named.
    #[error("{name} cannot be read ({reason}). Check its name and its permissions.")]
    File {
        /// Which.
        name: String,
        /// What the system said.
        reason: io::Error,
    },
    /// Not a time of day.
    #[error(
        "`{0}` is no time of day. Write it such as 07:30, or as a moment such as 2030-01-31T07:30:00+01:00."
    )]
    Time(String),
    /// The time zone is not known.
    #[error(
        "The local time zone of this machine cannot be told. Write the moment with its offset, such as 2030-01-31T07:30:00+01:00."
    )]
    Zone,
    /// No launch, or more than one.
    #[error("{0}")]
    Launch(String),
    /// What was waited for went wrong.
    #[error("{0}")]
    Failed(String),
    /// The program itself.
    #[error(
        "The program could not be started ({0}). Look at the machine's limits on processes and memory."
    )]
    Runtime(io::Error),
    /// Nobody reads the output any more, or the disk is full.
    #[error("The answer cannot be written ({0}).")]
    Output(io::Error),
}

impl ClientError {
    /// Is it worth asking again in a moment? The server may be starting anew.
    pub(crate) const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Refused { status: 503, .. }
        )
    }
}
