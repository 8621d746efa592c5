//! Runs whose worker is gone: what their meter had written is brought in, and
//! they are ended with a reason.

use std::{path::Path, time::Duration};

use sqlx::PgPool;
use tokdyno_domain::{ids::RunId, meter::MeterOutcome, run::RunState, timestamp::Timestamp};
use tokio::{sync::watch, time::Instant};

use super::{
    Worker,
    drive::{Ending, bounded, next_batch},
    ingest,
    lease::{self, Heartbeat, TakenOver},
    meter,
    patience::persist,
    spool::{SpoolFolder, Tail},
};
use crate::LabError;

/// How long an orphaned meter may take to notice that it is one.
const ORPHAN: Duration = Duration::from_secs(10);
/// How long a meter may take to write its first line.
const FIRST_LINE: Duration = Duration::from_secs(2);

/// Why a run is recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// This instance drove it before a restart.
    Restarted,
    /// Its holder has been silent for too long.
    Silent,
}

impl Why {
    const fn sentence(self) -> &'static str {
        match self {
            Self::Restarted => {
                "Tokdyno ended unexpectedly while this run was being measured. What had been finished is kept; measure again."
            }
            Self::Silent => {
                "The program that measured this run has not reported for 20 seconds: it, its machine or its network died. What had reached the database is kept; measure again."
            }
        }
    }
}

/// Ends a run that was taken over.
pub(super) async fn settle(
    worker: &Worker,
    taken: &TakenOver,
    why: Why,
    stop: &watch::Receiver<bool>,
) -> Result<(), LabError> {
    let lease = taken.lease;
    let _heartbeat = Heartbeat::start(&worker.lab, lease);
    let path = worker
        .spool_folder()
        .and_then(|folder| folder.find(lease.run));
    let finished = match &path {
        Some(path) => bring_in(worker, taken, path, stop).await?,
        None => None,
    };
    let at = finished.as_ref().map(|(_, at)| *at);
    let ending = match finished.map(|(outcome, _)| outcome) {
        Some(MeterOutcome::Complete) => Ending::new(RunState::Finished, None),
        Some(MeterOutcome::Failed { reason }) => Ending::new(RunState::Failed, reason),
        // An orphaned meter stops by itself: nobody has cancelled it.
        _ if taken.cancel_requested => Ending::new(RunState::Cancelled, None),
        _ => Ending::new(RunState::Interrupted, why.sentence().to_owned()),
    };
    persist!(
        stop,
        ingest::conclude(
            &worker.lab.0.pool,
            &lease,
            &taken.workload,
            ending.state,
            ending.reason.as_deref(),
            at,
        )
    )?;
    tracing::info!(run = %lease.run, state = %ending.state, "a run was recovered");
    if let Some(path) = &path {
        SpoolFolder::remove(path);
    }
    Ok(())
}

/// Stores the whole spool file, once its meter has ended.
async fn bring_in(
    worker: &Worker,
    taken: &TakenOver,
    path: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<Option<(MeterOutcome, Timestamp)>, LabError> {
    let program = &worker.lab.0.config.meter;
    let mut reading = Reading::default();
    reading.read_on(worker, taken, path, stop).await?;
    let begun = Instant::now();
    while reading.finished.is_none() {
        let wait = match reading.meter_pid {
            Some(pid) if meter::is_alive(pid, program) => {
                if begun.elapsed() >= ORPHAN {
                    tracing::warn!(run = %taken.lease.run, pid, "an orphaned meter is killed");
                    meter::kill(pid);
                }
                begun.elapsed() < ORPHAN + FIRST_LINE
            }
            // It is gone. It may have written something between our last look and
            // its end.
            Some(_) => false,
            // It may not have got round to its first line.
            None => begun.elapsed() < FIRST_LINE,
        };
        if wait {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        reading.read_on(worker, taken, path, stop).await?;
        if !wait {
            break;
        }
    }
    Ok(reading.finished)
}

#[derive(Default)]
struct Reading {
    tail: Option<Tail>,
    broken: bool,
    meter_pid: Option<u32>,
    finished: Option<(MeterOutcome, Timestamp)>,
}

impl Reading {
    async fn read_on(
        &mut self,
        worker: &Worker,
        taken: &TakenOver,
        path: &Path,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), LabError> {
        let plan = taken.workload.plan();
        while !self.broken {
            let tail = match self.tail.take() {
                Some(tail) => tail,
                None => Tail::open(path)
                    .map_err(|error| LabError::internal("opening a spool file", error))?,
            };
            let Ok((tail, mut batch)) = next_batch(Some(tail)).await else {
                // After a power cut a file may end in anything; what stands before
                // it counts.
                self.broken = true;
                return Ok(());
            };
            self.tail = Some(tail);
            self.meter_pid = self.meter_pid.or(batch.meter_pid);
            self.finished = self.finished.take().or(batch.finished.take());
            if batch.is_empty() {
                return Ok(());
            }
            batch.progress = None;
            persist!(
                stop,
                bounded(ingest::apply(
                    &worker.lab.0.pool,
                    &taken.lease,
                    &plan,
                    &batch,
                ))
            )?;
        }
        Ok(())
    }
}

/// Spool files that lie here although nobody reads them: of runs that another
/// worker had to give up while this machine was cut off. What they hold is
/// brought in; files of runs that are over and stored are removed.
pub(super) async fn collect(worker: &Worker, stop: &watch::Receiver<bool>) -> Result<(), LabError> {
    let Some(folder) = worker.spool_folder() else {
        return Ok(());
    };
    for run in folder.runs() {
        if worker.is_driven(run) {
            continue;
        }
        let Some(path) = folder.find(run) else {
            continue;
        };
        let Some((state, epoch)) = state_of(&worker.lab.0.pool, run).await? else {
            continue;
        };
        match state {
            RunState::Interrupted => {
                let owner = worker.instance.id;
                let pool = &worker.lab.0.pool;
                let Some(taken) = lease::take_over(pool, owner, run, epoch).await? else {
                    continue;
                };
                bring_in(worker, &taken, &path, stop).await?;
                let mut connection = pool.acquire().await?;
                let held = lease::hold(&mut connection, &taken.lease).await?;
                drop(connection);
                if held.ingested_seq > taken.ingested_seq {
                    ingest::refigure(pool, &taken.lease, &taken.workload).await?;
                    tracing::info!(%run, "requests of an interrupted run were brought in");
                }
                SpoolFolder::remove(&path);
            }
            RunState::Finished | RunState::Failed | RunState::Cancelled => {
                SpoolFolder::remove(&path);
            }
            // Somebody's: the queue's, or another worker's until its lease lapses.
            RunState::Queued | RunState::Running => {}
        }
    }
    Ok(())
}

async fn state_of(pool: &PgPool, run: RunId) -> Result<Option<(RunState, i64)>, LabError> {
    let row = sqlx::query!(
        "SELECT state, lease_epoch FROM runs WHERE id = $1 AND deleted_at IS NULL",
        run.0
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.and_then(|row| Some((RunState::from_word(&row.state)?, row.lease_epoch))))
}
