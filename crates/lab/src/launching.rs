//! The worker of launches: starts them, watches them, proves what runs, measures,
//! stops, restores and gives back. One task per launch, under a lease.
//!
//! ```text
//! claim ─▶ prepare ─▶ start ─▶ load ─▶ verify ─▶ measure ─▶ keep | stop ─▶ restore
//! ```
//!
//! Whatever the task holds in memory can be found again: the row says how far it is,
//! the host says what runs. So a worker that takes a launch over goes on where the
//! former one was.

mod adopt;
mod afterwards;
pub(crate) mod aside;
mod command;
mod drive;
mod give_back;
mod keeper;
mod lease;
mod log;
mod notify;
mod patience;
mod prepare;
mod queue;
mod restore;
mod row;
mod start;
mod stop;
#[cfg(test)]
pub(crate) mod tests;
mod trouble;
mod verify;
mod watching;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokdyno_domain::{ids::LaunchId, live::LaunchEvent};
use tokio::{
    sync::{broadcast, watch},
    task::{JoinError, JoinSet},
    time::Instant,
};
use uuid::Uuid;

pub(crate) use self::{
    command::api_key,
    notify::{CHANNEL, announce},
    patience::Patience,
    row::read,
    verify::{WANTS_KEY, address},
};
use self::{lease::LaunchLease, row::Launch};
use crate::{
    Lab, LabError,
    worker::{drive::bounded, lease::LEASE},
};

/// How often the queue is looked at although nothing was announced.
const LOOK: Duration = Duration::from_secs(2);

/// The worker of launches in this process.
pub(crate) struct Launcher {
    lab: Lab,
    owner: Uuid,
    patience: Patience,
    driven: Mutex<HashSet<LaunchId>>,
}

/// Marks a launch as driven by this process while it lives.
struct Driven {
    launcher: Arc<Launcher>,
    launch: LaunchId,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.launcher.driven_launches().remove(&self.launch);
    }
}

impl Launcher {
    pub(crate) fn new(lab: &Lab, owner: Uuid, patience: Patience) -> Arc<Self> {
        Arc::new(Self {
            lab: lab.clone(),
            owner,
            patience,
            driven: Mutex::default(),
        })
    }

    /// Works until it is told to stop. What runs on hosts then goes on running.
    pub(crate) async fn work(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut launches = self.lab.hear_launches_inside();
        let mut tasks = JoinSet::new();
        let mut recovered = false;
        // As for runs: after an outage everybody's lease has lapsed.
        let mut answering_since: Option<Instant> = None;
        while !*stop.borrow() {
            let mut taken = Vec::new();
            match self.turn(&mut taken, &mut recovered, answering_since).await {
                Ok(()) => {
                    answering_since.get_or_insert_with(Instant::now);
                }
                Err(error) => {
                    answering_since = None;
                    if matches!(error, LabError::DatabaseUnavailable) {
                        tracing::debug!(%error, "the queue of launches could not be read");
                    } else {
                        tracing::warn!(%error, "the queue of launches could not be read");
                    }
                }
            }
            for (driven, lease, launch) in taken {
                tasks.spawn(go(driven, lease, launch, stop.clone()));
            }
            tokio::select! {
                _ = stop.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
                () = launch_news(&mut launches) => {}
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report(ended),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    }

    /// Takes what is there to be taken. Trouble with one launch leaves the others
    /// their turn.
    async fn turn(
        self: &Arc<Self>,
        taken: &mut Vec<(Driven, LaunchLease, Launch)>,
        recovered: &mut bool,
        answering_since: Option<Instant>,
    ) -> Result<(), LabError> {
        let pool = &self.lab.0.pool;
        let lapsed_too = answering_since.is_some_and(|since| since.elapsed() > LEASE);
        let driven: Vec<i64> = self.driven_launches().iter().map(|id| id.0).collect();
        let abandoned =
            lease::abandoned(pool, self.owner, !*recovered, lapsed_too, &driven).await?;
        let mut outage = false;
        for (launch, epoch) in abandoned {
            match lease::take_over(pool, self.owner, launch, epoch).await {
                Ok(Some(lease)) => outage |= is_outage(self.take(taken, lease).await),
                Ok(None) => {}
                Err(error) => outage |= is_outage(Err(error)),
            }
        }
        *recovered |= !outage;
        outage |= is_outage(give_back::end_overdue_waiting(pool).await);
        let mut claimed = Vec::new();
        outage |= is_outage(bounded(queue::claim(pool, self.owner, &mut claimed)).await);
        for lease in claimed {
            outage |= is_outage(self.take(taken, lease).await);
        }
        if outage {
            return Err(LabError::DatabaseUnavailable);
        }
        Ok(())
    }

    async fn take(
        self: &Arc<Self>,
        taken: &mut Vec<(Driven, LaunchLease, Launch)>,
        lease: LaunchLease,
    ) -> Result<(), LabError> {
        // Marked at once, so that it is never taken for a leftover.
        let driven = self.mark(lease.launch);
        match row::read(&self.lab.0.pool, lease.launch).await {
            Ok(launch) => taken.push((driven, lease, launch)),
            // The lease lapses, and it is taken again.
            Err(LabError::DatabaseUnavailable) => return Err(LabError::DatabaseUnavailable),
            Err(error) => {
                tracing::error!(launch = %lease.launch, %error, "a launch cannot be read");
                row::fail_unreadable(&self.lab.0.pool, &lease).await?;
            }
        }
        Ok(())
    }

    fn mark(self: &Arc<Self>, launch: LaunchId) -> Driven {
        self.driven_launches().insert(launch);
        Driven {
            launcher: Arc::clone(self),
            launch,
        }
    }

    fn driven_launches(&self) -> std::sync::MutexGuard<'_, HashSet<LaunchId>> {
        // A set is whole after a panic as well.
        self.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn go(driven: Driven, lease: LaunchLease, launch: Launch, stop: watch::Receiver<bool>) {
    drive::drive(&driven.launcher, lease, launch, stop).await;
}

/// Waits until a launch's state has changed: others may be waiting for it.
pub(crate) async fn launch_news(live: &mut broadcast::Receiver<LaunchEvent>) {
    loop {
        match live.recv().await {
            Ok(event) if event.log_size.is_some() => {}
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Was it the database that was away? Any other trouble is told here.
fn is_outage(done: Result<(), LabError>) -> bool {
    match done {
        Ok(()) => false,
        Err(LabError::DatabaseUnavailable) => true,
        Err(error) => {
            tracing::warn!(%error, "a launch could not be taken up; the others are");
            false
        }
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        // Its lease lapses, and the launch is taken over.
        tracing::error!(%error, "a launch's task ended in disorder");
    }
}
