//! The laboratory itself: the handle everybody holds.

use std::{path::PathBuf, sync::Arc, time::Duration};

use sqlx::{
    PgPool,
    migrate::{MigrateError, Migrator},
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokdyno_domain::{
    live::{LaunchEvent, LiveEvent},
    meter::Certify,
};
use tokdyno_remote::RemoteConfig;
use tokio::{sync::broadcast, task::JoinHandle};
use uuid::Uuid;

use crate::{LabError, live, secrets::KeyFile};

/// The numbered changes of the database's form.
pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// Connections of one process: pages, the worker, and one that listens.
const CONNECTIONS: u32 = 12;
/// How long a page waits for a connection before it says that there is none.
const ACQUIRE: Duration = Duration::from_secs(3);
/// How long a health check waits.
const READY: Duration = Duration::from_secs(2);

/// Where things are.
#[derive(Clone)]
pub struct LabConfig {
    /// The database's address.
    pub database_url: String,
    /// Where spool files and the key file are kept.
    pub data_dir: PathBuf,
    /// The key file, if it is not `secret.key` in the data directory.
    pub key_file: Option<PathBuf>,
    /// The measuring program, `tokdyno-meter`.
    pub meter: PathBuf,
    /// The same for hosts: a build that runs on other distributions too. None sends
    /// [`Self::meter`].
    pub host_meter: Option<PathBuf>,
    /// How hosts are reached.
    pub remote: RemoteConfig,
    /// Measurements at once in this process.
    pub parallel: u32,
    /// Whether a meter first measures what its own machine can time truthfully.
    pub certify: Certify,
}

impl std::fmt::Debug for LabConfig {
    // The address may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LabConfig")
            .field("data_dir", &self.data_dir)
            .field("key_file", &self.key_file)
            .field("meter", &self.meter)
            .field("host_meter", &self.host_meter)
            .field("parallel", &self.parallel)
            .field("certify", &self.certify)
            .finish_non_exhaustive()
    }
}

/// The laboratory: store and workers. Cheap to clone.
#[derive(Clone)]
pub struct Lab(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) pool: PgPool,
    /// Which database this is.
    pub(crate) id: Uuid,
    pub(crate) config: LabConfig,
    pub(crate) key_file: KeyFile,
    pub(crate) live: broadcast::Sender<LiveEvent>,
    pub(crate) launches: broadcast::Sender<LaunchEvent>,
    /// Large files are brought in one after another: each takes a good deal of
    /// memory, and several at once would leave no processor to the pages.
    pub(crate) importing: Arc<tokio::sync::Semaphore>,
    listener: std::sync::OnceLock<JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.get() {
            listener.abort();
        }
    }
}

impl Lab {
    /// Connects, brings the database to this program's form, and begins to listen
    /// for events.
    ///
    /// # Errors
    /// [`LabError::Invalid`] for an address or key file that cannot be used,
    /// [`LabError::DatabaseUnavailable`], or [`LabError::Conflict`] if a newer
    /// program has changed the database.
    pub async fn open(config: LabConfig) -> Result<Self, LabError> {
        let options: PgConnectOptions = config.database_url.parse().map_err(|_| {
            // The parser's message may quote a password.
            LabError::Invalid(
                "The database's address cannot be read. It must look like postgres://user:password@host:5432/name."
                    .to_owned(),
            )
        })?;
        let options = options
            .application_name("tokdyno")
            .options([("statement_timeout", "60s")]);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE)
            .connect_with(options)
            .await?;
        Self::with_pool(pool, config).await
    }

    /// The same over a pool that exists.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn with_pool(pool: PgPool, config: LabConfig) -> Result<Self, LabError> {
        // The migrator holds an advisory lock, so that programs that start
        // together do not migrate together.
        MIGRATOR.run(&pool).await.map_err(migration_error)?;
        let id = sqlx::query_scalar!("SELECT id FROM laboratory")
            .fetch_one(&pool)
            .await?;
        let path = config
            .key_file
            .clone()
            .unwrap_or_else(|| config.data_dir.join("secret.key"));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| {
                LabError::Invalid(format!(
                    "The folder {} cannot be made ({error}). Check its permissions, or name another data directory.",
                    folder.display()
                ))
            })?;
        }
        let key_file =
            KeyFile::open(&path).map_err(|error| LabError::Invalid(error.to_string()))?;
        let lab = Self(Arc::new(Inner {
            pool,
            id,
            config,
            key_file,
            live: broadcast::channel(live::BACKLOG).0,
            launches: broadcast::channel(live::BACKLOG).0,
            importing: Arc::new(tokio::sync::Semaphore::new(1)),
            listener: std::sync::OnceLock::new(),
        }));
        let listener = tokio::spawn(live::listen(Arc::downgrade(&lab.0)));
        // Set once, here.
        let _ = lab.0.listener.set(listener);
        Ok(lab)
    }

    /// Does the database answer?
    ///
    /// # Errors
    /// [`LabError::DatabaseUnavailable`] if not within two seconds.
    pub async fn ready(&self) -> Result<(), LabError> {
        let asked = sqlx::query_scalar!(r#"SELECT 1 AS "one!""#).fetch_one(&self.0.pool);
        match tokio::time::timeout(READY, asked).await {
            Ok(answer) => Ok(answer.map(drop)?),
            Err(_) => Err(LabError::DatabaseUnavailable),
        }
    }
}

fn migration_error(error: MigrateError) -> LabError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        MigrateError::VersionMissing(_) | MigrateError::VersionTooNew(..) => LabError::Conflict(
            "The database was changed by a newer version of Tokdyno. Start that version, or give this one a database of its own."
                .to_owned(),
        ),
        error => LabError::internal("bringing the database to this program's form", error),
    }
}
