//! The worker of experiments: one task per experiment, under a lease.
//!
//! ```text
//! claim ─▶ (put production aside ─▶ queue the next launch ─▶ wait for it ─▶ note it)… ─▶ bring back, end
//! ```
//!
//! It touches no host. It writes rows, and the workers of launches and runs do what
//! stands in them, so each of its steps is one transaction and can be done again by
//! whoever takes the experiment over. Every step moves the lease on, and none waits for
//! anything but the database: there is no heartbeat beside it.

mod drive;
mod fit;
mod lease;
mod outcome;
#[cfg(test)]
mod tests;
mod turn;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokdyno_domain::ids::ExperimentId;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::Instant,
};
use uuid::Uuid;

use self::lease::ExperimentLease;
use crate::{
    Lab, LabError,
    worker::{drive::bounded, lease::LEASE},
};

/// How often one looks although nothing was announced.
const LOOK: Duration = Duration::from_secs(2);

/// The worker of experiments in this process.
pub(crate) struct Experimenter {
    lab: Lab,
    owner: Uuid,
    driven: Mutex<HashSet<ExperimentId>>,
}

/// Marks an experiment as driven by this process while it lives.
struct Driven {
    experimenter: Arc<Experimenter>,
    experiment: ExperimentId,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.experimenter.driven().remove(&self.experiment);
    }
}

impl Experimenter {
    pub(crate) fn new(lab: &Lab, owner: Uuid) -> Arc<Self> {
        Arc::new(Self {
            lab: lab.clone(),
            owner,
            driven: Mutex::default(),
        })
    }

    /// Works until it is told to stop. What was queued then goes on.
    pub(crate) async fn work(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut tasks = JoinSet::new();
        let mut recovered = false;
        // As for runs: after an outage everybody's lease has lapsed.
        let mut answering_since: Option<Instant> = None;
        while !*stop.borrow() {
            let lapsed_too = answering_since.is_some_and(|since| since.elapsed() > LEASE);
            match bounded(self.take(!recovered, lapsed_too)).await {
                Ok(taken) => {
                    recovered = true;
                    answering_since.get_or_insert_with(Instant::now);
                    for (driven, lease) in taken {
                        tasks.spawn(go(driven, lease, stop.clone()));
                    }
                }
                Err(error) => {
                    answering_since = None;
                    tracing::debug!(%error, "the queue of experiments could not be read");
                }
            }
            tokio::select! {
                _ = stop.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report(ended),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    }

    /// Takes what nobody drives: left behind, and waiting.
    async fn take(
        self: &Arc<Self>,
        own: bool,
        lapsed: bool,
    ) -> Result<Vec<(Driven, ExperimentLease)>, LabError> {
        let pool = &self.lab.0.pool;
        let driven: Vec<i64> = self
            .driven()
            .iter()
            .map(|experiment| experiment.0)
            .collect();
        let mut taken = lease::take_over(pool, self.owner, own, lapsed, &driven).await?;
        taken.extend(lease::claim(pool, self.owner).await?);
        Ok(taken
            .into_iter()
            .map(|lease| (self.mark(lease.experiment), lease))
            .collect())
    }

    fn mark(self: &Arc<Self>, experiment: ExperimentId) -> Driven {
        self.driven().insert(experiment);
        Driven {
            experimenter: Arc::clone(self),
            experiment,
        }
    }

    fn driven(&self) -> std::sync::MutexGuard<'_, HashSet<ExperimentId>> {
        // A set is whole after a panic as well.
        self.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn go(driven: Driven, lease: ExperimentLease, stop: watch::Receiver<bool>) {
    drive::drive(&driven.experimenter.lab, lease, stop).await;
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        // Its lease lapses, and the experiment is taken over.
        tracing::error!(%error, "an experiment's task ended in disorder");
    }
}
