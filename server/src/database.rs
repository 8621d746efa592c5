//! The database behind a command: one that somebody names, or the private cluster
//! of the data directory.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread::JoinHandle,
    time::Duration,
};

use tokdyno_domain::meter::Certify;
use tokdyno_lab::{Lab, LabConfig, LabError};
use tokdyno_pgcluster::{Cluster, ClusterError, Config, attach_if_running};
use tokdyno_remote::RemoteConfig;
use url::Url;

/// How often the private cluster is looked after.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Why there is no database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// The address that was named is none.
    #[error(
        "The database address cannot be read ({0}). Write it such as postgres://user:password@host/name, in --database-url or DATABASE_URL."
    )]
    Address(String),
    /// The private cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// No thread could be started.
    #[error(
        "The database cannot be looked after ({0}). Free some memory or processes and try again."
    )]
    Thread(std::io::Error),
}

/// The database of a command.
pub(crate) struct Database {
    /// Its address, password and all: for connecting, never for showing.
    pub(crate) url: String,
    /// What people may see of it.
    pub(crate) shown: String,
    private: Option<PrivateCluster>,
}

/// The cluster and the thread that looks after it.
struct PrivateCluster {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Database {
    /// The database for a server: as named, or the private cluster, created and
    /// started where needed, and kept alive from now on. May take a minute.
    ///
    /// # Errors
    /// [`DatabaseError`] with its remedy.
    pub(crate) fn for_server(named: Option<&str>, data_dir: &Path) -> Result<Self, DatabaseError> {
        match named.map(str::trim).filter(|url| !url.is_empty()) {
            Some(url) => Self::named(url),
            None => Self::private(data_dir),
        }
    }

    /// The database for a passing command: as named, or the private cluster of a
    /// server that is running, or that cluster started for the time being.
    ///
    /// # Errors
    /// [`DatabaseError`] with its remedy.
    pub(crate) fn for_command(named: Option<&str>, data_dir: &Path) -> Result<Self, DatabaseError> {
        if let Some(url) = named.map(str::trim).filter(|url| !url.is_empty()) {
            return Self::named(url);
        }
        match attach_if_running(&Config::new(data_dir))? {
            Some(url) => Ok(Self {
                url: url.as_str().to_owned(),
                shown: url.redacted().to_owned(),
                private: None,
            }),
            None => Self::private(data_dir),
        }
    }

    fn named(url: &str) -> Result<Self, DatabaseError> {
        Ok(Self {
            shown: redacted(url)?,
            url: url.to_owned(),
            private: None,
        })
    }

    fn private(data_dir: &Path) -> Result<Self, DatabaseError> {
        let cluster = Cluster::ensure(&Config::new(data_dir))?;
        if cluster.was_adopted() {
            tracing::info!("took over the private database of a server that was killed");
        }
        let url = cluster.url().clone();
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("private-database".to_owned())
            .spawn(move || look_after(cluster, &stopped))
            .map_err(DatabaseError::Thread)?;
        Ok(Self {
            url: url.as_str().to_owned(),
            shown: format!("private PostgreSQL below {}", data_dir.display()),
            private: Some(PrivateCluster { stop, thread }),
        })
    }

    /// Stops the private cluster, if there is one, and waits for that.
    pub(crate) fn stop(self) {
        if let Some(private) = self.private {
            // An error means that the thread is gone already; joining tells.
            let _ = private.stop.send(());
            if private.thread.join().is_err() {
                tracing::error!("the thread that looks after the private database broke down");
            }
        }
    }
}

/// The laboratory for a passing command: without a worker, so that nothing is
/// measured and no host is touched.
///
/// # Errors
/// As [`Lab::open`].
pub(crate) async fn open_without_worker(
    database: &Database,
    data_dir: PathBuf,
) -> Result<Lab, LabError> {
    Lab::open(LabConfig {
        database_url: database.url.clone(),
        data_dir,
        key_file: None,
        meter: PathBuf::new(),
        host_meter: None,
        remote: RemoteConfig::new(PathBuf::new()),
        parallel: 1,
        certify: Certify::Remembered,
    })
    .await
}

/// Restarts the cluster whenever it is dead, until told to stop.
fn look_after(mut cluster: Cluster, stopped: &mpsc::Receiver<()>) {
    let mut failing = false;
    loop {
        match stopped.recv_timeout(LOOK_AFTER) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        match cluster.restart_if_dead() {
            Ok(true) => tracing::warn!("the private database had died and was started again"),
            Ok(false) => {}
            // Said once, not every second.
            Err(error) if !failing => {
                failing = true;
                tracing::error!(%error, "the private database cannot be started again; trying on");
                continue;
            }
            Err(_) => continue,
        }
        failing = false;
    }
    if let Err(error) = cluster.stop() {
        tracing::warn!(%error, "the private database did not stop cleanly; it recovers at the next start");
    }
}

/// The address without its password, also where that stands in the query.
fn redacted(url: &str) -> Result<String, DatabaseError> {
    // The parser's words never hold the address itself.
    let mut parsed = Url::parse(url).map_err(|error| DatabaseError::Address(error.to_string()))?;
    if !matches!(parsed.scheme(), "postgres" | "postgresql") {
        return Err(DatabaseError::Address(format!(
            "its scheme is `{}`",
            parsed.scheme()
        )));
    }
    if parsed.password().is_some() {
        // Cannot fail: an address with a password has a host.
        let _ = parsed.set_password(Some("***"));
    }
    let kept: Vec<(String, String)> = parsed
        .query_pairs()
        .map(|(key, value)| {
            let secret = key.contains("password");
            let value = if secret { "***".into() } else { value };
            (key.into_owned(), value.into_owned())
        })
        .collect();
    if !kept.is_empty() {
        parsed.query_pairs_mut().clear().extend_pairs(kept);
    }
    Ok(parsed.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, expected) in [
            ("postgres://a:secret@h/db", "postgres://a:***@h/db"),
            ("postgresql://h/db", "postgresql://h/db"),
            (
                "postgres://h/db?user=a&password=secret",
                "postgres://h/db?user=a&password=***",
            ),
        ] {
            let shown = redacted(url).expect("an address");
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn what_is_no_address_is_said_without_repeating_it() {
        for bad in ["secret", "mysql://a:secret@h/db"] {
            let error = redacted(bad).expect_err("refused").to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("postgres://user:password@host/name"));
        }
    }
}
