//! Reporting for a lease while somebody works under it for long.

use std::fmt;

use sqlx::{PgConnection, PgPool};
use tokio::{
    sync::{broadcast, watch},
    task::JoinHandle,
};

use crate::{
    Lab, LabError,
    worker::lease::{BEAT, LEASE},
};

/// A lease that is reported for.
pub(crate) trait Reported: Copy + fmt::Debug + Send + Sync + 'static {
    /// What is announced of its like.
    type News: Clone + Send + 'static;

    /// Listens.
    fn news(lab: &Lab) -> broadcast::Receiver<Self::News>;

    /// Is this about what is held, and may it tell of a request to end?
    fn is_concerned(&self, news: &Self::News) -> bool;

    /// Moves the lease on. Says whether its holder was asked to end.
    ///
    /// # Errors
    /// [`LabError::LeaseLost`] if somebody has taken over what is held.
    fn move_on(
        &self,
        connection: &mut PgConnection,
    ) -> impl Future<Output = Result<bool, LabError>> + Send;
}

/// What was learnt by reporting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    /// The holder was asked to end.
    pub(crate) end_requested: bool,
    /// Somebody has taken over.
    pub(crate) lost: bool,
}

/// Reports for a lease until it is dropped.
pub(crate) struct Heartbeat {
    task: JoinHandle<()>,
    beat: watch::Receiver<Beat>,
}

impl Heartbeat {
    /// Begins to report.
    pub(crate) fn start<L: Reported>(lab: &Lab, lease: L) -> Self {
        let (sender, beat) = watch::channel(Beat::default());
        let task = tokio::spawn(report(lab.0.pool.clone(), lease, L::news(lab), sender));
        Self { task, beat }
    }

    /// What was learnt last.
    pub(crate) fn now(&self) -> Beat {
        *self.beat.borrow()
    }

    /// Waits until something holds of what was learnt.
    pub(crate) async fn until(&self, holds: impl FnMut(&Beat) -> bool) {
        if self.beat.clone().wait_for(holds).await.is_err() {
            // The reporting task has ended, which it does only when lost, and then
            // says so first.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn report<L: Reported>(
    pool: PgPool,
    lease: L,
    mut news: broadcast::Receiver<L::News>,
    sender: watch::Sender<Beat>,
) {
    let mut clock = tokio::time::interval(BEAT);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut deaf = false;
    loop {
        tokio::select! {
            _ = clock.tick() => {}
            // A request to end is announced: no need to wait for the next beat.
            heard = news.recv(), if !deaf => match heard {
                Ok(news) if !lease.is_concerned(&news) => continue,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => deaf = true,
            },
        }
        let beat = async {
            let mut connection = pool.acquire().await?;
            lease.move_on(&mut connection).await
        };
        // An outage is waited out: until somebody else takes over, nothing is lost.
        match tokio::time::timeout(LEASE / 2, beat).await {
            Ok(Ok(asked)) => {
                sender.send_if_modified(|beat| {
                    let is_new = asked && !beat.end_requested;
                    beat.end_requested |= asked;
                    is_new
                });
            }
            Ok(Err(LabError::LeaseLost)) => {
                sender.send_modify(|beat| beat.lost = true);
                // The sender stays until nobody asks any more.
                sender.closed().await;
                return;
            }
            Ok(Err(error)) => tracing::debug!(?lease, %error, "a heartbeat failed"),
            Err(_) => tracing::debug!(?lease, "a heartbeat took too long"),
        }
    }
}
