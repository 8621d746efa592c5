//! A private PostgreSQL cluster in a data directory: found, created, started,
//! adopted, supervised and stopped.
//!
//! [`Cluster::ensure`] is the whole of it for a server: whatever the state of
//! the directory (empty, stopped, crashed, still running from an owner that
//! was killed), afterwards a PostgreSQL of ours accepts connections on a unix
//! socket, and [`Cluster::url`] says where. [`attach_if_running`] is for a
//! command-line tool that wants the same database while a server owns it.
//!
//! Below a data directory `D` lie:
//!
//! | path | what |
//! |---|---|
//! | `D/postgres.lock` | locked by the one owner; holds its process id |
//! | `D/postgres/cluster/` | PostgreSQL's own data directory |
//! | `D/postgres/password` | the superuser's password, mode 0600 |
//! | `D/postgres/log` | what PostgreSQL writes; `log.1` is the one before |
//! | `D/postgres/socket/` | the socket, unless that path will not do for one |
//!
//! Everything here blocks: call it from a thread that may wait.

mod account;
mod binaries;
mod cluster;
mod config;
mod connection_url;
mod error;
mod initialise;
mod layout;
mod lock;
mod postmaster;
mod readiness;
mod start;

pub use cluster::{Cluster, attach_if_running};
pub use config::{Config, Durability};
pub use connection_url::ConnectionUrl;
pub use error::ClusterError;

/// Name of the superuser and of the database that every cluster of ours has.
pub const DATABASE_NAME: &str = "tokdyno";

/// The oldest major version of PostgreSQL that is used.
pub const OLDEST_VERSION: u32 = 14;
