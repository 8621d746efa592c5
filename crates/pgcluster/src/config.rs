//! What a caller decides about a cluster.

use std::path::PathBuf;

/// Whether committed data must outlive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Every commit reaches the disk. The only choice for people's data.
    #[default]
    Durable,
    /// Nothing waits for the disk: for clusters that a test throws away.
    Throwaway,
}

/// Where a cluster lives and which PostgreSQL runs it.
#[derive(Debug, Clone)]
pub struct Config {
    /// The program's data directory; the cluster takes `postgres/` below it.
    /// Made if missing.
    pub data_dir: PathBuf,
    /// Directory with `initdb` and `postgres`. `None` looks in
    /// `TOKDYNO_PG_BIN`, in the places of the usual packages, and on `PATH`.
    pub bin_dir: Option<PathBuf>,
    /// Whether commits wait for the disk.
    pub durability: Durability,
}

impl Config {
    /// A durable cluster below `data_dir`, run by whatever PostgreSQL is installed.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            bin_dir: None,
            durability: Durability::Durable,
        }
    }
}
