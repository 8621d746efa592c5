//! From the meter's lines to rows: in batches, one transaction each, and
//! idempotent, so that reading a spool file again after any crash stores nothing
//! twice and loses nothing.

use sqlx::{PgConnection, PgPool, types::Json};
use tokdyno_domain::{
    conditions::StageConditions,
    ids::RunId,
    live::{LiveEvent, LiveKind},
    meter::{ClientInfo, MeterEvent, MeterEventKind, MeterOutcome, Progress},
    metrics::{StageFigures, StageFlag, whole_stage},
    run::RunState,
    source::Source,
    timestamp::Timestamp,
    workload::{StagePlan, Workload},
};

use super::{
    lease::{self, Held, Lease},
    validity,
};
use crate::{
    LabError, clean,
    live::{announce, emit},
    requests::{self, Columns, ROWS},
    skipped,
    stages::{self, NewStage},
};

/// Lines of the meter that are stored together.
#[derive(Default)]
pub(crate) struct Batch {
    lines: u64,
    last_seq: i64,
    columns: Columns,
    started: Option<Started>,
    stages: Vec<Finished>,
    skipped: Vec<(u32, String)>,
    simulated: bool,
    /// The last progress, if it is to be stored.
    pub(crate) progress: Option<Progress>,
    /// Process id of the meter, as it told.
    pub(crate) meter_pid: Option<u32>,
    /// How the meter ended, and when, as it told.
    pub(crate) finished: Option<(MeterOutcome, Timestamp)>,
}

struct Finished {
    stage: u32,
    figures: Box<StageFigures>,
    conditions: Box<StageConditions>,
}

struct Started {
    at: Timestamp,
    meter_version: String,
    client: ClientInfo,
    model: String,
    dropped_fields: Vec<String>,
}

impl Batch {
    /// Adds a line. Lines up to `stored` are stored already; of them only what
    /// the worker itself must know is taken.
    pub(crate) fn push(&mut self, event: MeterEvent, stored: i64) {
        self.lines += 1;
        let seq = clean::big(event.seq);
        let news = seq > stored.max(self.last_seq);
        match event.kind {
            MeterEventKind::Started {
                meter_version,
                client,
                model,
                dropped_fields,
                ..
            } => {
                self.meter_pid = Some(client.pid);
                if news {
                    self.started = Some(Started {
                        at: event.at,
                        meter_version,
                        client,
                        model,
                        dropped_fields,
                    });
                }
            }
            MeterEventKind::Finished { outcome } => self.finished = Some((outcome, event.at)),
            _ if !news => {}
            MeterEventKind::StageStarted { .. } => {}
            MeterEventKind::Request(request) => {
                self.simulated |= request.record.simulated;
                self.columns.push(&request.record, request.trace.as_ref());
            }
            MeterEventKind::Progress(progress) => self.progress = Some(progress),
            MeterEventKind::StageFinished {
                stage,
                figures,
                conditions,
            } => self.stages.push(Finished {
                stage,
                figures,
                conditions,
            }),
            MeterEventKind::StageSkipped { stage, reason } => self.skipped.push((stage, reason)),
        }
        if news {
            self.last_seq = seq;
        }
    }

    /// Was nothing read?
    pub(crate) const fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Is there anything that is not stored yet?
    pub(crate) const fn has_news(&self) -> bool {
        self.last_seq != 0
    }

    /// Enough for one transaction?
    pub(crate) fn is_full(&self) -> bool {
        self.columns.len() >= ROWS
    }

    /// Number of the last line that is not stored yet, 0 if there is none.
    pub(crate) const fn last_seq(&self) -> i64 {
        self.last_seq
    }
}

/// Stores a batch.
///
/// # Errors
/// [`LabError::LeaseLost`], [`LabError::DatabaseUnavailable`] (then nothing of it
/// is stored, and it may be tried again), [`LabError::Internal`].
pub(crate) async fn apply(
    pool: &PgPool,
    lease: &Lease,
    plan: &[StagePlan],
    batch: &Batch,
) -> Result<Held, LabError> {
    let mut tx = pool.begin().await?;
    let mut held = lease::hold(&mut tx, lease).await?;
    let run = lease.run;
    batch.columns.store(&mut tx, run).await?;
    if let Some(started) = &batch.started {
        store_started(&mut tx, run, started).await?;
    }
    if batch.simulated && !held.simulated {
        held.simulated = true;
        mark_simulated(&mut tx, run).await?;
    }
    if let Some(progress) = &batch.progress {
        sqlx::query!(
            "UPDATE runs SET progress = $2 WHERE id = $1",
            run.0,
            Json(progress) as _
        )
        .execute(&mut *tx)
        .await?;
        let event = LiveEvent {
            run,
            seq: held.event_seq,
            kind: LiveKind::Progress(progress.clone()),
        };
        announce(&mut tx, &event).await?;
    }
    for finished in &batch.stages {
        let index = finished.stage;
        let complete = !finished.figures.flags.contains(&StageFlag::Partial);
        let stage = Stage {
            planned: planned(plan, run, index)?,
            complete,
            simulated: held.simulated,
            figures: &finished.figures,
            conditions: &finished.conditions,
        };
        stage.store(&mut tx, run).await?;
        emit(&mut tx, run, LiveKind::Stage { index }).await?;
    }
    for (index, reason) in &batch.skipped {
        planned(plan, run, *index)?;
        skipped::store(&mut tx, run, *index, Some(reason)).await?;
        emit(&mut tx, run, LiveKind::Stage { index: *index }).await?;
    }
    sqlx::query!(
        "UPDATE runs SET ingested_seq = greatest(ingested_seq, $2) WHERE id = $1",
        run.0,
        batch.last_seq
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(held)
}

fn planned(plan: &[StagePlan], run: RunId, index: u32) -> Result<&StagePlan, LabError> {
    plan.iter()
        .find(|planned| planned.index == index)
        .ok_or_else(|| {
            LabError::internal(
                "storing a stage",
                format!("stage {index} of run {run} is not planned"),
            )
        })
}

/// Ends a run; before that, stages which the meter did not finish get the figures
/// of the requests that are stored, and the run is checked as a whole.
pub(crate) async fn conclude(
    pool: &PgPool,
    lease: &Lease,
    workload: &Workload,
    state: RunState,
    reason: Option<&str>,
    finished_at: Option<Timestamp>,
) -> Result<(), LabError> {
    let mut tx = pool.begin().await?;
    let held = lease::hold(&mut tx, lease).await?;
    partial_stages(&mut tx, lease.run, workload, held.simulated).await?;
    validity::store(&mut tx, lease.run, workload).await?;
    let finished_at = finished_at.map(Timestamp::to_datetime);
    lease::end(&mut tx, lease, state, reason, finished_at).await?;
    tx.commit().await?;
    Ok(())
}

/// Ends a run whose figures cannot be worked out.
pub(crate) async fn close(
    pool: &PgPool,
    lease: &Lease,
    state: RunState,
    reason: &str,
) -> Result<(), LabError> {
    let mut tx = pool.begin().await?;
    lease::end(&mut tx, lease, state, Some(reason), None).await?;
    tx.commit().await?;
    Ok(())
}

/// Brings partial figures up to date after the end, which stays what it was: more
/// requests were found.
pub(crate) async fn refigure(
    pool: &PgPool,
    lease: &Lease,
    workload: &Workload,
    state: RunState,
) -> Result<(), LabError> {
    let mut tx = pool.begin().await?;
    let held = lease::hold(&mut tx, lease).await?;
    partial_stages(&mut tx, lease.run, workload, held.simulated).await?;
    validity::store(&mut tx, lease.run, workload).await?;
    emit(&mut tx, lease.run, LiveKind::State { state }).await?;
    tx.commit().await?;
    Ok(())
}

async fn partial_stages(
    connection: &mut PgConnection,
    run: RunId,
    workload: &Workload,
    simulated: bool,
) -> Result<(), LabError> {
    let open = sqlx::query_scalar!(
        "SELECT DISTINCT stage FROM requests
         WHERE run_id = $1
           AND stage NOT IN (SELECT stage FROM stages WHERE run_id = $1 AND complete)
         ORDER BY stage",
        run.0
    )
    .fetch_all(&mut *connection)
    .await?;
    let plan = workload.plan();
    for stage in open {
        let Some(planned) = plan
            .iter()
            .find(|planned| i64::from(planned.index) == stage)
            .copied()
        else {
            continue;
        };
        let traced = requests::traced(&mut *connection, run, Some(stage)).await?;
        // What the meter said of it, if it came that far, is not worked out again.
        let conditions = stages::conditions(&mut *connection, run, planned.index).await?;
        // A large stage takes a while to work out; pages must not wait for it.
        let (asked, kind) = (workload.clone(), planned.level.kind);
        let (figures, conditions) = tokio::task::spawn_blocking(move || {
            let figures = whole_stage(&asked, kind, false, &traced, &conditions);
            (figures, conditions)
        })
        .await
        .map_err(|error| LabError::internal("working out a stage's figures", error))?;
        let stage = Stage {
            planned: &planned,
            complete: false,
            simulated,
            figures: &figures,
            conditions: &conditions,
        };
        stage.store(connection, run).await?;
    }
    Ok(())
}

/// A stage that was measured, to its end or not.
struct Stage<'a> {
    planned: &'a StagePlan,
    complete: bool,
    simulated: bool,
    figures: &'a StageFigures,
    conditions: &'a StageConditions,
}

impl Stage<'_> {
    async fn store(&self, connection: &mut PgConnection, run: RunId) -> Result<(), LabError> {
        let stage = NewStage {
            index: self.planned.index,
            kind: self.planned.level.kind,
            repeat: self.planned.repeat,
            complete: self.complete,
            source: if self.simulated {
                Source::Simulated
            } else {
                Source::Measured
            },
            disputed: false,
            remark: None,
            figures: self.figures,
            conditions: self.conditions,
            histograms: None,
        };
        stages::store(connection, run, &stage).await
    }
}

async fn store_started(
    connection: &mut PgConnection,
    run: RunId,
    started: &Started,
) -> Result<(), LabError> {
    let remarks: Vec<String> = if started.dropped_fields.is_empty() {
        Vec::new()
    } else {
        vec![clean::owned(&format!(
            "The server refused these request fields, so they were not sent: {}.",
            started.dropped_fields.join(", ")
        ))]
    };
    sqlx::query!(
        "UPDATE runs SET started_at = $2, tool_version = $3, client = $4,
             model = CASE WHEN $5 = '' THEN model ELSE $5 END, remarks = remarks || $6::text[]
         WHERE id = $1",
        run.0,
        started.at.to_datetime(),
        clean::owned(&started.meter_version),
        clean::json(serde_json::to_value(&started.client).unwrap_or_default()),
        clean::owned(&started.model),
        &remarks,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// One simulated reply makes the whole run simulated.
pub(crate) async fn mark_simulated(
    connection: &mut PgConnection,
    run: RunId,
) -> Result<(), LabError> {
    sqlx::query!(
        "UPDATE runs SET simulated = true, source = 'simulated' WHERE id = $1",
        run.0
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE stages SET source = 'simulated' WHERE run_id = $1",
        run.0
    )
    .execute(connection)
    .await?;
    Ok(())
}
