//! The worker: takes runs from the queue, drives their meters, and brings in
//! what dead workers left behind. Several may share one database.

pub(crate) mod drive;
pub(crate) mod ingest;
pub(crate) mod instance;
pub(crate) mod lease;
mod meter;
pub(crate) mod patience;
mod place;
mod recover;
mod sampling;
pub(crate) mod spool;
#[cfg(test)]
mod tests;
mod validity;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokdyno_domain::{
    ids::RunId,
    live::{LiveEvent, LiveKind},
};
use tokio::{
    sync::{broadcast, watch},
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use self::{
    instance::Instance,
    lease::{Claimed, LEASE, Lease},
    recover::Why,
    spool::SpoolFolder,
};
use crate::{
    Lab, LabError,
    launching::{Launcher, Patience},
};

/// How often the queue is looked at although nothing was announced.
const LOOK: Duration = Duration::from_secs(2);
/// How often forgotten spool files are looked for.
const COLLECT: Duration = Duration::from_secs(60);

/// Stops the worker. Dropping it stops the worker as well, unwaited for.
#[must_use = "the worker stops when its handle is dropped"]
pub struct WorkerHandle {
    stop: watch::Sender<bool>,
    runs: JoinHandle<()>,
    launches: JoinHandle<()>,
}

impl WorkerHandle {
    /// Stops the meters, stores what they delivered and ends the worker: within
    /// about ten seconds, or twenty-five if the database is away. What was launched
    /// on hosts goes on running.
    pub async fn shutdown(mut self) {
        self.tell();
        let ended = tokio::join!(&mut self.runs, &mut self.launches);
        for error in [ended.0, ended.1].into_iter().filter_map(Result::err) {
            tracing::error!(%error, "the worker ended in disorder");
        }
    }

    fn tell(&self) {
        // Nobody listening means that it has ended already.
        let _ = self.stop.send(true);
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.tell();
    }
}

impl Lab {
    /// Starts the worker of this process.
    pub fn start_worker(&self) -> WorkerHandle {
        self.start_worker_with(Patience::default())
    }

    /// The same with other time-outs of launches.
    pub(crate) fn start_worker_with(&self, patience: Patience) -> WorkerHandle {
        let (stop, stopped) = watch::channel(false);
        let worker = Arc::new(Worker {
            lab: self.clone(),
            instance: Instance::open(&self.0.config.data_dir),
            driven: Mutex::default(),
        });
        let launcher = Launcher::new(self, worker.instance.id, patience);
        let launches = tokio::spawn(launcher.work(stopped.clone()));
        let runs = tokio::spawn(worker.work(stopped));
        WorkerHandle {
            stop,
            runs,
            launches,
        }
    }
}

struct Worker {
    lab: Lab,
    instance: Instance,
    driven: Mutex<HashSet<RunId>>,
}

/// Marks a run as driven by this process while it lives.
struct Driven {
    worker: Arc<Worker>,
    run: RunId,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.worker.driven_runs().remove(&self.run);
    }
}

impl Worker {
    async fn work(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let parallel = usize::try_from(self.lab.0.config.parallel.max(1)).unwrap_or(1);
        let mut live = self.lab.hear();
        let mut measurements = JoinSet::new();
        let mut recovered = false;
        // Since when the database has answered without a gap. Only who has seen it
        // for longer than a lease may call another worker silent: after an outage
        // everybody's lease has lapsed.
        let mut answering_since: Option<Instant> = None;
        let mut collected: Option<Instant> = None;
        while !*stop.borrow() {
            let mut claimed = Vec::new();
            let turn = async {
                if !recovered {
                    self.recover(true, &stop).await?;
                    recovered = true;
                }
                if answering_since.is_some_and(|since| since.elapsed() > LEASE) {
                    self.recover(false, &stop).await?;
                }
                if collected.is_none_or(|at| at.elapsed() > COLLECT) {
                    recover::collect(&self, &stop).await?;
                    collected = Some(Instant::now());
                }
                while measurements.len() + claimed.len() < parallel && !*stop.borrow() {
                    let Some(run) = self.claim().await? else {
                        break;
                    };
                    // Marked at once, so that it is never taken for a leftover.
                    claimed.push((self.mark(run.lease.run), run));
                }
                Ok::<(), LabError>(())
            };
            match turn.await {
                Ok(()) => {
                    answering_since.get_or_insert_with(Instant::now);
                }
                Err(error) => {
                    answering_since = None;
                    tracing::debug!(%error, "the queue could not be read");
                }
            }
            for (driven, run) in claimed {
                measurements.spawn(measure(driven, run, stop.clone()));
            }
            tokio::select! {
                _ = stop.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
                () = news(&mut live) => {}
                Some(ended) = measurements.join_next(), if !measurements.is_empty() => {
                    report(ended);
                    // A run whose lease was lost may have left a spool file.
                    collected = None;
                }
            }
        }
        while let Some(ended) = measurements.join_next().await {
            report(ended);
        }
    }

    async fn claim(&self) -> Result<Option<Claimed>, LabError> {
        drive::bounded(lease::claim(&self.lab.0.pool, self.instance.id)).await
    }

    async fn recover(
        self: &Arc<Self>,
        own_only: bool,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), LabError> {
        let (pool, owner) = (&self.lab.0.pool, self.instance.id);
        let driven: Vec<i64> = self.driven_runs().iter().map(|run| run.0).collect();
        for (run, epoch) in lease::abandoned(pool, owner, own_only, &driven).await? {
            let _driven = self.mark(run);
            let why = if own_only {
                Why::Restarted
            } else {
                Why::Silent
            };
            let (lease, workload, settled) = match lease::take_over(pool, owner, run, epoch).await {
                Ok(None) => continue,
                Ok(Some(taken)) => {
                    let settled = recover::settle(self, &taken, why, stop).await;
                    (taken.lease, Some(taken.workload), settled)
                }
                // It is taken over all the same: only the answer cannot be read.
                Err(error) => {
                    let epoch = epoch + 1;
                    (Lease { run, owner, epoch }, None, Err(error))
                }
            };
            match settled {
                Ok(()) => {}
                // Somebody else does it.
                Err(LabError::LeaseLost) => {}
                Err(LabError::DatabaseUnavailable) => return Err(LabError::DatabaseUnavailable),
                // One run must not stop the queue.
                Err(error) => {
                    recover::give_up(self, &lease, workload.as_ref(), &error, stop).await?;
                }
            }
        }
        Ok(())
    }

    fn spool_folder(&self) -> Option<SpoolFolder> {
        SpoolFolder::open(&self.lab.0.config.data_dir, self.lab.0.id)
            .inspect_err(|error| tracing::error!(%error, "the spool folder cannot be made"))
            .ok()
    }

    fn mark(self: &Arc<Self>, run: RunId) -> Driven {
        self.driven_runs().insert(run);
        Driven {
            worker: Arc::clone(self),
            run,
        }
    }

    fn is_driven(&self, run: RunId) -> bool {
        self.driven_runs().contains(&run)
    }

    fn driven_runs(&self) -> std::sync::MutexGuard<'_, HashSet<RunId>> {
        // A set is whole after a panic as well.
        self.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn measure(driven: Driven, claimed: Claimed, stop: watch::Receiver<bool>) {
    drive::drive(&driven.worker, &claimed, &stop).await;
}

/// Waits until a run has changed.
async fn news(live: &mut broadcast::Receiver<LiveEvent>) {
    loop {
        match live.recv().await {
            Ok(event) if !matches!(event.kind, LiveKind::State { .. }) => {}
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        // Its lease lapses, and the run is recovered.
        tracing::error!(%error, "a measurement's task ended in disorder");
    }
}
