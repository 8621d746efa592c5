//! Runs whose worker is gone: what their meter had written is brought in, and
//! they are ended with a reason.

use std::{path::Path, time::Duration};

use sqlx::PgPool;
use tokdyno_domain::{
    ids::RunId, meter::MeterOutcome, run::RunState, timestamp::Timestamp, workload::Workload,
};
use tokio::{sync::watch, time::Instant};

use super::{
    Worker,
    drive::{Ending, bounded, next_batch},
    ingest,
    lease::{self, Lease, TakenOver},
    meter,
    patience::persist,
    spool::{SpoolFolder, SpoolName, Tail},
};
use crate::{LabError, heartbeat::Heartbeat};

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
    let Reading {
        finished, broken, ..
    } = match &path {
        Some(path) => bring_in(worker, taken, path, stop).await?,
        None => Reading::default(),
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
        if broken {
            SpoolFolder::put_aside(path);
        } else {
            SpoolFolder::remove(path);
        }
    }
    Ok(())
}

/// Ends a run that cannot be recovered, so that the others can go on. What its
/// meter wrote is put aside.
pub(super) async fn give_up(
    worker: &Worker,
    lease: &Lease,
    workload: Option<&Workload>,
    error: &LabError,
    stop: &watch::Receiver<bool>,
) -> Result<(), LabError> {
    let run = lease.run;
    tracing::error!(%run, %error, "a run cannot be recovered; its spool file is put aside");
    if let Some(path) = worker.spool_folder().and_then(|folder| folder.find(run)) {
        SpoolFolder::put_aside(&path);
    }
    let pool = &worker.lab.0.pool;
    let state = RunState::Interrupted;
    let reason = "The worker that measured this run is gone, and what its meter had written could not all be stored. What had been stored is kept; measure again, and look into the program's log.";
    let mut concluded = match workload {
        Some(workload) => persist!(
            stop,
            ingest::conclude(pool, lease, workload, state, Some(reason), None)
        ),
        None => persist!(stop, ingest::close(pool, lease, state, reason)),
    };
    if let (Some(_), Err(LabError::Internal(_))) = (workload, &concluded) {
        concluded = persist!(stop, ingest::close(pool, lease, state, reason));
    }
    match concluded {
        Err(LabError::DatabaseUnavailable) => Err(LabError::DatabaseUnavailable),
        Err(error) => {
            tracing::error!(%run, %error, "the end of a run was not stored");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Stores the whole spool file, once its meter has ended.
async fn bring_in(
    worker: &Worker,
    taken: &TakenOver,
    path: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<Reading, LabError> {
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
    Ok(reading)
}

#[derive(Default)]
struct Reading {
    tail: Option<Tail>,
    /// It cannot be read to its end.
    broken: bool,
    /// Last line that was not stored before.
    last_seq: i64,
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
            let Ok((tail, mut batch)) = next_batch(Some(tail), taken.ingested_seq).await else {
                // After a power cut a file may end in anything; what stands before
                // it counts, and is stored.
                self.broken = true;
                return Ok(());
            };
            self.tail = Some(tail);
            if !taken.elsewhere {
                self.meter_pid = self.meter_pid.or(batch.meter_pid);
            }
            self.finished = self.finished.take().or(batch.finished.take());
            if batch.is_empty() {
                return Ok(());
            }
            if !batch.has_news() {
                continue;
            }
            self.last_seq = self.last_seq.max(batch.last_seq());
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
/// worker had to end while this machine was cut off. What they hold is brought in;
/// files that are stored entirely, and those of deleted runs, are removed.
pub(super) async fn collect(worker: &Worker, stop: &watch::Receiver<bool>) -> Result<(), LabError> {
    let Some(folder) = worker.spool_folder() else {
        return Ok(());
    };
    for (SpoolName { run, epoch }, path) in folder.files() {
        if worker.is_driven(run) {
            continue;
        }
        let Some(known) = known(&worker.lab.0.pool, run).await? else {
            continue;
        };
        match known.state {
            // Somebody's: the queue's, or another worker's until its lease lapses.
            RunState::Queued | RunState::Running => continue,
            RunState::Interrupted | RunState::Finished | RunState::Failed | RunState::Cancelled => {
            }
        }
        // Never measured under this lease: the database is an older copy.
        if known.epoch < epoch {
            tracing::warn!(%run, "a spool file is not of the run of this number; it is put aside");
            SpoolFolder::put_aside(&path);
            continue;
        }
        if known.deleted {
            SpoolFolder::remove(&path);
            continue;
        }
        match collect_one(worker, run, &known, &path, stop).await {
            Ok(()) => {}
            // Somebody else does it.
            Err(LabError::LeaseLost) => {}
            Err(LabError::DatabaseUnavailable) => return Err(LabError::DatabaseUnavailable),
            // One file must not stop the queue.
            Err(error) => {
                tracing::error!(%run, %error, "a spool file cannot be brought in; it is put aside");
                SpoolFolder::put_aside(&path);
            }
        }
    }
    Ok(())
}

/// Brings in what is still missing of a run that is over.
async fn collect_one(
    worker: &Worker,
    run: RunId,
    known: &Known,
    path: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<(), LabError> {
    let (pool, owner) = (&worker.lab.0.pool, worker.instance.id);
    let Some(taken) = lease::take_over(pool, owner, run, known.epoch).await? else {
        return Ok(());
    };
    let reading = bring_in(worker, &taken, path, stop).await?;
    let mut connection = pool.acquire().await?;
    let held = lease::hold(&mut connection, &taken.lease).await?;
    drop(connection);
    if held.ingested_seq > taken.ingested_seq {
        ingest::refigure(pool, &taken.lease, &taken.workload, known.state).await?;
        tracing::info!(%run, state = %known.state, "requests of a run that is over were brought in");
    }
    if reading.broken {
        SpoolFolder::put_aside(path);
    } else if reading.last_seq <= held.ingested_seq {
        SpoolFolder::remove(path);
    }
    Ok(())
}

/// What the database says of a run with a spool file.
struct Known {
    state: RunState,
    epoch: i64,
    deleted: bool,
}

async fn known(pool: &PgPool, run: RunId) -> Result<Option<Known>, LabError> {
    let row = sqlx::query!(
        r#"SELECT state, lease_epoch, deleted_at IS NOT NULL AS "deleted!"
           FROM runs WHERE id = $1"#,
        run.0
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.and_then(|row| {
        Some(Known {
            state: RunState::from_word(&row.state)?,
            epoch: row.lease_epoch,
            deleted: row.deleted,
        })
    }))
}
