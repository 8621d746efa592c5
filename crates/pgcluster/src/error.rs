//! What can go wrong with a cluster, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why there is no cluster to work with.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No PostgreSQL server programs were found.
    #[error(
        "No PostgreSQL server programs (initdb, postgres) were found in {searched}. Install them \
         (`apt-get install postgresql`), name their directory in TOKDYNO_PG_BIN, or name a \
         database in DATABASE_URL."
    )]
    NoBinaries {
        /// The places that were looked at, for people.
        searched: String,
    },
    /// Only versions that are too old were found.
    #[error(
        "PostgreSQL {found} in {} is too old; version {oldest} or newer is needed. Install a newer \
         one, or name its directory in TOKDYNO_PG_BIN.", bin_dir.display()
    )]
    TooOld {
        /// Where the newest one lies.
        bin_dir: PathBuf,
        /// Its major version.
        found: u32,
        /// The oldest major version that would do.
        oldest: u32,
    },
    /// The data were written by another major version.
    #[error(
        "The database in {} was made by PostgreSQL {cluster}, and the installed programs are \
         version {installed}. Install PostgreSQL {cluster} beside them (`apt-get install \
         postgresql-{cluster}`), or move the data with pg_upgrade.", cluster_dir.display()
    )]
    VersionMismatch {
        /// PostgreSQL's data directory.
        cluster_dir: PathBuf,
        /// The major version that made it.
        cluster: String,
        /// The major version of the newest programs at hand.
        installed: u32,
    },
    /// Another living process owns the cluster.
    #[error(
        "The database in {} is already in use by {}. Stop that program first, or choose another \
         --data-dir.", data_dir.display(), owner_words(*.owner)
    )]
    Busy {
        /// The program's data directory.
        data_dir: PathBuf,
        /// The owner's process id, if it could be read.
        owner: Option<u32>,
    },
    /// The unprivileged user cannot reach the data directory.
    #[error(
        "PostgreSQL does not run as root, and the user {user} cannot enter {}. Choose a data \
         directory that this user can reach, for example --data-dir /var/lib/tokdyno.",
        directory.display()
    )]
    NotTraversable {
        /// The directory that stops it.
        directory: PathBuf,
        /// The user PostgreSQL would run as.
        user: String,
    },
    /// Root has nobody to run PostgreSQL as.
    #[error(
        "PostgreSQL does not run as root, and there is neither a user `postgres` nor a user \
         `nobody` to run it as. Add one (`useradd --system postgres`), or start the program as \
         an ordinary user."
    )]
    NoAccount,
    /// A program of PostgreSQL could not be run at all.
    #[error(
        "{} could not be run{}: {source}. Check that the file is executable for that user.",
        program.display(), as_user(.user.as_deref())
    )]
    CannotRun {
        /// The program.
        program: PathBuf,
        /// The user it was to run as, if not our own.
        user: Option<String>,
        /// Why not.
        source: io::Error,
    },
    /// The data directory belongs to somebody else.
    #[error(
        "The database in {} belongs to the user with id {owner}, not to the one who started this \
         program. Start it as that user, or choose another --data-dir.", cluster_dir.display()
    )]
    WrongOwner {
        /// PostgreSQL's data directory.
        cluster_dir: PathBuf,
        /// Its owner's user id.
        owner: u32,
    },
    /// Something else lies where the cluster should be.
    #[error(
        "{} exists but holds no PostgreSQL database. Move it away, or choose another --data-dir.",
        cluster_dir.display()
    )]
    NotACluster {
        /// PostgreSQL's data directory.
        cluster_dir: PathBuf,
    },
    /// `initdb` or the first set-up failed.
    #[error("A new database could not be made: {step} failed and said: {output}")]
    Initialise {
        /// Which step.
        step: &'static str,
        /// What it wrote last.
        output: String,
    },
    /// PostgreSQL ended while it started.
    #[error("PostgreSQL did not start. Its log {} ends with: {tail}", log.display())]
    Start {
        /// The log file.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// PostgreSQL runs, but does not accept connections yet.
    #[error(
        "PostgreSQL was started but accepts no connections after {} s; it may still be recovering \
         from a crash. Look at {}, then start this program again: it goes on where it was.",
        waited.as_secs(), log.display()
    )]
    NotReady {
        /// How long it was waited for.
        waited: Duration,
        /// The log file.
        log: PathBuf,
    },
    /// PostgreSQL did not end.
    #[error("PostgreSQL (process {pid}) did not stop within {} s. End it by hand.", waited.as_secs())]
    Stop {
        /// The postmaster's process id.
        pid: u32,
        /// How long it was waited for.
        waited: Duration,
    },
    /// No place is left for a socket.
    #[error(
        "There is no safe place for PostgreSQL's socket: {} is too long a path for one (or has \
         a comma in it), and {} cannot be used. Choose a shorter --data-dir.", wanted.display(), fallback.display()
    )]
    NoSocketPlace {
        /// The path that will not do.
        wanted: PathBuf,
        /// The short one that did not work.
        fallback: PathBuf,
    },
    /// A file operation failed.
    #[error("{doing} {} failed: {source}. Check the directory's owner and the free space.", path.display())]
    Io {
        /// What was attempted, as the start of a sentence.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// No random bytes for a password.
    #[error("The system gave no random bytes for a password: {0}.")]
    Random(getrandom::Error),
}

impl ClusterError {
    /// Wraps the error of a file operation on `path`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}

fn owner_words(owner: Option<u32>) -> String {
    owner.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

fn as_user(user: Option<&str>) -> String {
    user.map_or_else(String::new, |user| format!(" as user {user}"))
}
