//! `tokdyno serve`: the pages and the queue.
//!
//! Start: addresses are taken first (a taken port should not cost a minute), then
//! the built files, the programs it starts and the database are found, then the laboratory opens
//! and the worker starts. Stop: no new requests, streams end, meters stop and what
//! they finished is stored, then the private database stops.

use std::{io, net::SocketAddr, path::Path, sync::Arc};

use leptos::config::LeptosOptions;
use tokdyno_app::Surface;
use tokdyno_domain::{access::Actor, meter::Certify, views::run::RunFilter};
use tokdyno_lab::{Lab, LabConfig, LabError};
use tokdyno_remote::RemoteConfig;
use tokio::signal::unix::{SignalKind, signal};
use url::Url;

use crate::{
    cli::ServeArguments,
    data_dir,
    database::{Database, DatabaseError},
    logging,
    programs::{self, Programs},
    safety::{hosts::OwnNames, listen},
    web::{self, AssetStore, Ending, Listener, Site},
};

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    NotLoopback(#[from] listen::NotLoopback),
    #[error(transparent)]
    PublicUrl(#[from] crate::safety::hosts::BadPublicUrl),
    #[error(transparent)]
    Listen(#[from] web::ListenError),
    #[error(transparent)]
    Assets(#[from] web::AssetsError),
    #[error(transparent)]
    Program(#[from] programs::NoProgram),
    #[error(
        "The SSH configuration {shown} is not there. Correct --ssh-config, or leave it out to use ~/.ssh/config."
    )]
    SshConfig { shown: String },
    #[error(transparent)]
    DataDir(#[from] data_dir::NoDataDir),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(
        "The database {shown} does not answer. Check that it runs and that the address, the name and the password are right; without --database-url and DATABASE_URL a private one is used."
    )]
    Unreachable { shown: String },
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(
        "The program could not be started ({0}). Look at the machine's limits on processes and memory."
    )]
    Runtime(io::Error),
    #[error("Serving ended unexpectedly ({0}). Start the program again.")]
    Serving(io::Error),
}

/// Runs until SIGINT or SIGTERM.
///
/// # Errors
/// [`ServeError`] with its remedy.
pub(crate) fn run(arguments: &ServeArguments) -> Result<(), ServeError> {
    logging::start();
    listen::check(arguments.listen, arguments.trust_network)?;
    let listener = Listener::bind(arguments.listen, "--listen")?;
    let share = arguments
        .share_listen
        .map(|address| Listener::bind(address, "--share-listen"))
        .transpose()?;
    let names = own_names(listener.address, arguments)?;
    let store = AssetStore::find(web::is_followed())?;
    let programs = programs::find()?;
    let remote = remote(&programs, arguments)?;
    let data_dir = data_dir::choose(arguments.store.data_dir.as_deref())?;
    let runtime = tokio::runtime::Runtime::new().map_err(ServeError::Runtime)?;

    // From here on a signal is not sudden death: the private database must be
    // stopped, whatever happens.
    let (end, ending) = Ending::new();
    runtime.spawn(end_on_signal(end));
    let database = Database::for_server(arguments.store.database_url.as_deref(), &data_dir)?;
    let config = LabConfig {
        database_url: database.url.clone(),
        data_dir: data_dir.clone(),
        key_file: None,
        meter: programs.meter,
        host_meter: programs.host_meter,
        remote,
        parallel: arguments.parallel,
        certify: Certify::Remembered,
    };
    let started = Start {
        listener,
        share,
        names,
        store,
        load_founding: !arguments.no_founding,
        places: format!(
            "Data are kept in {}; the database is {}.",
            data_dir.display(),
            database.shown
        ),
        database_shown: database.shown.clone(),
    };
    let served = runtime.block_on(started.serve(config, ending));
    // Handlers that are still waiting for the database must not keep us.
    runtime.shutdown_background();
    database.stop();
    served
}

/// How hosts are reached.
fn remote(programs: &Programs, arguments: &ServeArguments) -> Result<RemoteConfig, ServeError> {
    let mut remote = RemoteConfig::new(programs.agent.clone());
    remote.ssh.clone_from(&arguments.ssh);
    if let Some(file) = &arguments.ssh_config {
        if !file.is_file() {
            return Err(ServeError::SshConfig {
                shown: file.display().to_string(),
            });
        }
        remote.ssh_config = Some(std::path::absolute(file).unwrap_or_else(|_| file.clone()));
    }
    Ok(remote)
}

fn own_names(address: SocketAddr, arguments: &ServeArguments) -> Result<OwnNames, ServeError> {
    let trusted_name = arguments.trust_network.then(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    });
    let public: Option<&Url> = arguments.public_url.as_ref();
    Ok(OwnNames::new(address.port(), public, trusted_name)?)
}

/// Brings the end about at the first SIGINT or SIGTERM.
async fn end_on_signal(end: tokio::sync::watch::Sender<bool>) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        tracing::error!("signals cannot be listened for; the program has to be killed");
        // Without a sender the end would be now.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("stopping");
    // An error means that nobody waits any more.
    let _ = end.send(true);
    // Whoever presses Ctrl-C again means it.
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::warn!("stopping at once; the next start puts things right");
    std::process::exit(130);
}

/// What is at hand once everything was found.
struct Start {
    listener: Listener,
    share: Option<Listener>,
    names: OwnNames,
    store: AssetStore,
    load_founding: bool,
    places: String,
    database_shown: String,
}

impl Start {
    async fn serve(self, config: LabConfig, ending: Ending) -> Result<(), ServeError> {
        let data_dir = config.data_dir.clone();
        let lab = Lab::open(config).await.map_err(|error| match error {
            LabError::DatabaseUnavailable => ServeError::Unreachable {
                shown: self.database_shown.clone(),
            },
            other => ServeError::Lab(other),
        })?;
        if self.load_founding {
            load_founding_once(&lab, &data_dir).await?;
        }
        let worker = lab.start_worker();
        let site = Site {
            lab,
            surface: Surface::Full,
            store: Arc::new(self.store),
            behind_proxy: self.names.has_public(),
            ending: ending.clone(),
            options: LeptosOptions::builder().output_name("tokdyno").build(),
        };
        println!("Tokdyno is at http://{}", self.listener.address);
        if let Some(share) = &self.share {
            println!("Shared comparisons are at http://{}/c/…", share.address);
        }
        println!("{}", self.places);
        if !self.listener.address.ip().to_canonical().is_loopback() {
            println!(
                "Others on the network can reach it and may measure, read and delete (--trust-network). Launching needs the operator's password: `tokdyno set-password`."
            );
        }

        let shared = self
            .share
            .map(|share| (share, web::shared(site.for_shared())));
        let main = web::serve(
            self.listener,
            web::full(site, Arc::new(self.names)),
            ending.clone(),
        );
        let beside = async {
            match shared {
                Some((listener, router)) => web::serve(listener, router, ending).await,
                None => Ok(()),
            }
        };
        let served = tokio::try_join!(main, beside);
        worker.shutdown().await;
        served.map(|_| ()).map_err(ServeError::Serving)
    }
}

/// Says in the data directory that the founding figures were offered, so that who
/// deletes them does not get them back at the next start.
const OFFERED: &str = "founding-offered";

/// Loads the founding figures at the very first start, into a store without runs.
async fn load_founding_once(lab: &Lab, data_dir: &Path) -> Result<(), LabError> {
    let mark = data_dir.join(OFFERED);
    if mark.exists() {
        return Ok(());
    }
    let stored = lab.runs(&Actor::LOCAL, &RunFilter::default()).await?;
    if stored.total == 0 {
        let loaded = lab.load_founding(&Actor::LOCAL).await?;
        tracing::info!(loaded, "loaded the founding figures into the empty store");
    }
    if let Err(error) = std::fs::write(&mark, "") {
        // At worst they are offered to an empty store once more.
        tracing::warn!(path = %mark.display(), %error, "the mark cannot be written");
    }
    Ok(())
}
