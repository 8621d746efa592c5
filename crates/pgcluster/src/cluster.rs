//! The cluster as its owner and as its guests see it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::account::Account;
use crate::binaries::{Binaries, Search};
use crate::connection_url::ConnectionUrl;
use crate::layout::{Layout, create_private};
use crate::lock::OwnerLock;
use crate::start::{Running, start, wait_ready};
use crate::{ClusterError, Config, initialise, postmaster};

/// Wait for a shutdown that lets transactions be rolled back in order.
const FAST_PATIENCE: Duration = Duration::from_secs(30);

/// Wait for one that leaves the rest to recovery.
const IMMEDIATE_PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// A running cluster that this process owns. Dropping it stops PostgreSQL.
#[derive(Debug)]
pub struct Cluster {
    config: Config,
    layout: Layout,
    account: Account,
    binaries: Binaries,
    password: Password,
    running: Running,
    url: ConnectionUrl,
    adopted: bool,
    stopped: bool,
    _lock: OwnerLock,
}

/// Kept apart so that it never shows up in `Debug`.
struct Password(String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Cluster {
    /// Becomes the owner of the cluster below `config.data_dir` and returns
    /// when it accepts connections: made if there is none, started if it is
    /// stopped or has crashed, adopted if it still runs without an owner.
    ///
    /// Blocks for up to about a minute.
    ///
    /// # Errors
    /// Each variant of [`ClusterError`] says what is wrong and what to do.
    pub fn ensure(config: &Config) -> Result<Self, ClusterError> {
        let layout = Layout::create(&config.data_dir)?;
        let lock = OwnerLock::take(&layout)?;
        let account = Account::for_cluster(&layout.cluster_dir())?;
        let (binaries, running, password, adopted) = match adopt(config, &layout)? {
            Some((binaries, running, password)) => (binaries, running, password, true),
            None => {
                let (binaries, password) = prepare(config, &layout, &account)?;
                let running = start(&layout, &account, &binaries, config.durability)?;
                (binaries, running, password, false)
            }
        };
        tracing::info!(
            pid = running.pid,
            adopted,
            version = binaries.major,
            cluster = %layout.cluster_dir().display(),
            "PostgreSQL accepts connections"
        );
        Ok(Self {
            url: ConnectionUrl::on_socket(&running.socket_dir, running.port, &password),
            config: config.clone(),
            layout,
            account,
            binaries,
            password: Password(password),
            running,
            adopted,
            stopped: false,
            _lock: lock,
        })
    }

    /// Where to connect. It stays the same over restarts.
    #[must_use]
    pub fn url(&self) -> &ConnectionUrl {
        &self.url
    }

    /// Process id of the postmaster.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid
    }

    /// Whether PostgreSQL already ran, left over from an earlier owner.
    #[must_use]
    pub fn was_adopted(&self) -> bool {
        self.adopted
    }

    /// The directory of the PostgreSQL programs in use.
    #[must_use]
    pub fn bin_dir(&self) -> &Path {
        &self.binaries.bin_dir
    }

    /// What PostgreSQL writes.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.layout.log_file()
    }

    /// Whether the postmaster runs. It may still be busy recovering.
    pub fn is_alive(&mut self) -> bool {
        match &mut self.running.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => postmaster::is_postmaster(self.running.pid, &self.layout.cluster_dir()),
        }
    }

    /// Starts PostgreSQL again if it has ended, and waits until it accepts
    /// connections. Returns whether it had ended. To be called every second or
    /// so by whoever supervises the cluster.
    ///
    /// # Errors
    /// It does not start; the next call tries again.
    pub fn restart_if_dead(&mut self) -> Result<bool, ClusterError> {
        if self.is_alive() {
            return Ok(false);
        }
        tracing::warn!(
            pid = self.running.pid,
            "PostgreSQL has ended; starting it again"
        );
        // A start that took too long is left running, and is waited for here.
        self.running = if postmaster::running(&self.layout.cluster_dir()).is_some() {
            wait_ready(&self.layout, None, 0)?
        } else {
            start(
                &self.layout,
                &self.account,
                &self.binaries,
                self.config.durability,
            )?
        };
        self.url = ConnectionUrl::on_socket(
            &self.running.socket_dir,
            self.running.port,
            &self.password.0,
        );
        Ok(true)
    }

    /// Stops PostgreSQL: connections are ended, everything is written out.
    ///
    /// # Errors
    /// It does not end; the message names the process.
    pub fn stop(mut self) -> Result<(), ClusterError> {
        self.stop_now()
    }

    fn stop_now(&mut self) -> Result<(), ClusterError> {
        if std::mem::replace(&mut self.stopped, true) {
            return Ok(());
        }
        // SIGINT and SIGQUIT are PostgreSQL's fast and immediate shutdown.
        for (signal, patience) in [
            (Signal::INT, FAST_PATIENCE),
            (Signal::QUIT, IMMEDIATE_PATIENCE),
        ] {
            if self.is_alive() {
                postmaster::send(self.running.pid, signal);
            }
            let begun = Instant::now();
            while begun.elapsed() < patience {
                if !self.is_alive() {
                    self.remove_short_socket_dir();
                    return Ok(());
                }
                std::thread::sleep(PAUSE);
            }
        }
        Err(ClusterError::Stop {
            pid: self.running.pid,
            waited: FAST_PATIENCE + IMMEDIATE_PATIENCE,
        })
    }

    /// The directory outside the data directory is there for a running server only.
    fn remove_short_socket_dir(&self) {
        if !self.running.socket_dir.starts_with(&self.layout.home) {
            // Fails while something is left in it, which is right.
            let _ = std::fs::remove_dir(&self.running.socket_dir);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.stop_now() {
            tracing::error!(%error, "PostgreSQL was left running");
        }
    }
}

/// The address of the cluster below `config.data_dir` if it runs, for a
/// command-line tool beside the server that owns it. Starts nothing, and takes
/// no lock.
///
/// # Errors
/// The cluster runs, but its password cannot be read.
pub fn attach_if_running(config: &Config) -> Result<Option<ConnectionUrl>, ClusterError> {
    if !config.data_dir.is_dir() {
        return Ok(None);
    }
    let layout = Layout::open(&config.data_dir)?;
    if postmaster::running(&layout.cluster_dir()).is_none() {
        return Ok(None);
    }
    let Some(password) = initialise::read_password(&layout)? else {
        return Ok(None);
    };
    let running = wait_ready(&layout, None, 0)?;
    Ok(Some(ConnectionUrl::on_socket(
        &running.socket_dir,
        running.port,
        &password,
    )))
}

/// Takes over a postmaster that runs without an owner. `None` if none runs,
/// or if it was just ending.
fn adopt(
    config: &Config,
    layout: &Layout,
) -> Result<Option<(Binaries, Running, String)>, ClusterError> {
    let cluster_dir = layout.cluster_dir();
    let Some(orphan) = postmaster::running(&cluster_dir) else {
        return Ok(None);
    };
    let Some(password) = initialise::read_password(layout)? else {
        // Without its password it is of no use: it is stopped, and gets a new one.
        return stop_orphan(layout, orphan.pid).map(|()| None);
    };
    match wait_ready(layout, None, 0) {
        Ok(running) => {
            let binaries = find_binaries(config, layout)?;
            Ok(Some((binaries, running, password)))
        }
        Err(ClusterError::Start { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

fn stop_orphan(layout: &Layout, pid: u32) -> Result<(), ClusterError> {
    postmaster::send(pid, Signal::INT);
    let begun = Instant::now();
    while postmaster::is_postmaster(pid, &layout.cluster_dir()) {
        if begun.elapsed() > FAST_PATIENCE {
            return Err(ClusterError::Stop {
                pid,
                waited: FAST_PATIENCE,
            });
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Sees to it that there is a cluster that these programs and this user can
/// start, and returns them with its password.
fn prepare(
    config: &Config,
    layout: &Layout,
    account: &Account,
) -> Result<(Binaries, String), ClusterError> {
    let cluster_dir = layout.cluster_dir();
    let version = layout.cluster_version();
    if version.is_none() && cluster_dir.exists() {
        return Err(ClusterError::NotACluster { cluster_dir });
    }
    let binaries = find_binaries(config, layout)?;
    create_private(&layout.home, account)?;
    account.own(&layout.home)?;
    account.check_reach(&layout.home, &binaries.bin_dir.join("postgres"))?;
    let (password, is_new) = initialise::password(layout, account)?;
    if version.is_none() {
        tracing::info!(cluster = %cluster_dir.display(), version = binaries.major, "making a new database");
        initialise::create_cluster(config, layout, account, &binaries)?;
        return Ok((binaries, password));
    }
    if is_owned_by_root(&cluster_dir) {
        // Copied by root, say from a backup: PostgreSQL insists on its owner.
        account.own_tree(&layout.home)?;
    }
    if is_new {
        initialise::set_password(layout, account, &binaries, &password)?;
    }
    Ok((binaries, password))
}

/// The programs that fit the cluster, if there is one already.
fn find_binaries(config: &Config, layout: &Layout) -> Result<Binaries, ClusterError> {
    let version = layout.cluster_version();
    let wanted = version.as_deref().and_then(|version| version.parse().ok());
    let binaries = Search::of_this_machine(config.bin_dir.as_deref()).find(wanted)?;
    match version {
        Some(cluster) if wanted != Some(binaries.major) => Err(ClusterError::VersionMismatch {
            cluster_dir: layout.cluster_dir(),
            cluster,
            installed: binaries.major,
        }),
        _ => Ok(binaries),
    }
}

fn is_owned_by_root(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.uid() == 0)
}
