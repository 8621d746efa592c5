//! Leases: who may write to a run that is being measured.
//!
//! A worker holds a run by (owner, epoch) until a moment that it keeps moving
//! on. Whoever takes a run over raises the epoch; from then on every write of
//! the former holder finds no row and fails with [`LabError::LeaseLost`]. Times
//! are the database's, so that clocks of several machines do not matter.

use std::time::Duration;

use sqlx::{PgConnection, PgPool, types::Json};
use time::OffsetDateTime;
use tokdyno_domain::{
    endpoint::{EndpointUrl, TlsTrust},
    ids::{LaunchId, RunId},
    live::{LiveEvent, LiveKind},
    run::RunState,
    views::run_host::ClientPlace,
    workload::Workload,
};
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::{Lab, LabError, commands::emit_state, heartbeat::Reported};

/// How long a holder may be silent.
pub(crate) const LEASE: Duration = Duration::from_secs(20);
/// How often it reports.
pub(crate) const BEAT: Duration = Duration::from_secs(5);

/// The right to write to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) run: RunId,
    pub(crate) owner: Uuid,
    pub(crate) epoch: i64,
}

/// A run that was claimed, with what is needed to measure it.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) lease: Lease,
    pub(crate) endpoint: EndpointUrl,
    pub(crate) tls: TlsTrust,
    pub(crate) requested_model: Option<String>,
    pub(crate) workload: Workload,
    /// The launch that it measures, if it is one.
    pub(crate) launch: Option<LaunchId>,
    /// Where the client is to stand.
    pub(crate) place: ClientPlace,
}

/// A run that was taken over from a holder that fell silent.
#[derive(Debug)]
pub(crate) struct TakenOver {
    pub(crate) lease: Lease,
    pub(crate) workload: Workload,
    pub(crate) cancel_requested: bool,
    pub(crate) ingested_seq: i64,
    /// Its meter may run on another machine, where its number means nothing here.
    pub(crate) elsewhere: bool,
}

/// What a holder learns whenever it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) cancel_requested: bool,
    pub(crate) simulated: bool,
    pub(crate) event_seq: i64,
    pub(crate) ingested_seq: i64,
}

/// Takes the oldest waiting run whose server is free. One whose stored form cannot
/// be read is ended as failed, so that it does not hold up the others.
pub(crate) async fn claim(pool: &PgPool, owner: Uuid) -> Result<Option<Claimed>, LabError> {
    loop {
        match claim_one(pool, owner).await? {
            Claim::None => return Ok(None),
            Claim::Run(claimed) => return Ok(Some(*claimed)),
            Claim::Unreadable => {}
        }
    }
}

enum Claim {
    None,
    Run(Box<Claimed>),
    Unreadable,
}

async fn claim_one(pool: &PgPool, owner: Uuid) -> Result<Claim, LabError> {
    let mut tx = pool.begin().await?;
    // Of the runs of one server only the oldest may go: were it locked by another
    // worker just now, the next of the same server must not overtake it.
    let row = sqlx::query!(
        r#"UPDATE runs SET state = 'running', lease_owner = $1, lease_epoch = lease_epoch + 1,
               lease_expires_at = now() + $2::float8 * interval '1 second', started_at = now()
           WHERE id = (
               SELECT id FROM runs waiting
               WHERE state = 'queued' AND deleted_at IS NULL
                 AND NOT EXISTS (
                     SELECT 1 FROM runs other
                     WHERE other.endpoint_key = waiting.endpoint_key
                       AND (other.state = 'running'
                            OR (other.state = 'queued' AND other.deleted_at IS NULL
                                AND other.id < waiting.id)))
               ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
           RETURNING id, lease_epoch, endpoint_url, tls, requested_model, workload,
               launch_id, client_place"#,
        owner,
        LEASE.as_secs_f64(),
    )
    .fetch_optional(&mut *tx)
    .await;
    let row = match row {
        Ok(Some(row)) => row,
        Ok(None) => return Ok(Claim::None),
        // Another worker has begun on this server in the same moment.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => return Ok(Claim::None),
        Err(error) => return Err(error.into()),
    };
    let run = RunId(row.id);
    let lease = Lease {
        run,
        owner,
        epoch: row.lease_epoch,
    };
    let stored = || -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
        let endpoint: EndpointUrl = row.endpoint_url.as_deref().unwrap_or_default().parse()?;
        let tls: TlsTrust = serde_json::from_value(row.tls)?;
        let workload: Workload = serde_json::from_value(row.workload)?;
        Ok((endpoint, tls, workload))
    };
    let (endpoint, tls, workload) = match stored() {
        Ok(stored) => stored,
        Err(error) => {
            tracing::error!(%run, %error, "a waiting run cannot be read");
            let reason = "What is stored of this run cannot be read, so it was not measured. Queue it again; if that happens again, look into the program's log.";
            end(&mut tx, &lease, RunState::Failed, Some(reason), None).await?;
            tx.commit().await?;
            return Ok(Claim::Unreadable);
        }
    };
    emit_state(&mut tx, run, RunState::Running).await?;
    tx.commit().await?;
    Ok(Claim::Run(Box::new(Claimed {
        lease,
        endpoint,
        tls,
        requested_model: row.requested_model,
        workload,
        launch: row.launch_id.map(LaunchId),
        place: ClientPlace::from_word(&row.client_place).unwrap_or_default(),
    })))
}

/// Runs that are marked as running although nobody drives them: those of this
/// very instance from before a restart, at once; others when their lease lapsed.
/// `driven` are the runs that this process does drive.
pub(crate) async fn abandoned(
    pool: &PgPool,
    owner: Uuid,
    own_only: bool,
    driven: &[i64],
) -> Result<Vec<(RunId, i64)>, LabError> {
    let rows = sqlx::query!(
        "SELECT id, lease_epoch FROM runs
         WHERE state = 'running' AND id <> ALL($3)
           AND (($2 AND lease_owner = $1) OR (NOT $2 AND lease_expires_at < now()))
         ORDER BY id",
        owner,
        own_only,
        driven,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (RunId(row.id), row.lease_epoch))
        .collect())
}

/// Takes a run over from a silent holder; none if somebody else was quicker, or
/// the holder has reported after all. A run that is over may be taken over to bring
/// in what its meter had still written; what it ended as stays.
pub(crate) async fn take_over(
    pool: &PgPool,
    owner: Uuid,
    run: RunId,
    epoch: i64,
) -> Result<Option<TakenOver>, LabError> {
    let row = sqlx::query!(
        r#"UPDATE runs SET lease_owner = $1, lease_epoch = lease_epoch + 1,
               lease_expires_at = now() + $2::float8 * interval '1 second'
           WHERE id = $3 AND lease_epoch = $4 AND deleted_at IS NULL
             AND (state IN ('interrupted', 'cancelled', 'failed', 'finished')
                  OR (state = 'running' AND (lease_owner = $1 OR lease_expires_at < now())))
           RETURNING lease_epoch, workload AS "workload: Json<Workload>",
               cancel_requested_at IS NOT NULL AS "cancel_requested!", ingested_seq,
               (client_place = 'host' AND EXISTS (
                   SELECT 1 FROM launches l JOIN hosts h ON h.id = l.host_id
                   WHERE l.id = runs.launch_id AND h.reach ->> 'reach' = 'ssh')) AS "elsewhere!"
           "#,
        owner,
        LEASE.as_secs_f64(),
        run.0,
        epoch,
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|row| TakenOver {
        lease: Lease {
            run,
            owner,
            epoch: row.lease_epoch,
        },
        workload: row.workload.0,
        cancel_requested: row.cancel_requested,
        ingested_seq: row.ingested_seq,
        elsewhere: row.elsewhere,
    }))
}

/// The fence before every write of a worker: locks the run for the transaction,
/// and moves the lease on.
///
/// # Errors
/// [`LabError::LeaseLost`] if somebody has taken the run over.
pub(crate) async fn hold(connection: &mut PgConnection, lease: &Lease) -> Result<Held, LabError> {
    sqlx::query_as!(
        Held,
        r#"UPDATE runs SET lease_expires_at = now() + $4::float8 * interval '1 second'
           WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3
           RETURNING cancel_requested_at IS NOT NULL AS "cancel_requested!", simulated,
               event_seq, ingested_seq"#,
        lease.run.0,
        lease.epoch,
        lease.owner,
        LEASE.as_secs_f64(),
    )
    .fetch_optional(connection)
    .await?
    .ok_or(LabError::LeaseLost)
}

/// Ends a run that is held. What it ended as is final.
pub(crate) async fn end(
    connection: &mut PgConnection,
    lease: &Lease,
    state: RunState,
    reason: Option<&str>,
    finished_at: Option<OffsetDateTime>,
) -> Result<(), LabError> {
    let ended = sqlx::query!(
        "UPDATE runs SET state = $4, reason = $5, finished_at = coalesce($6, now()),
             lease_expires_at = NULL, progress = NULL
         WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3 AND state = 'running'",
        lease.run.0,
        lease.epoch,
        lease.owner,
        state.word(),
        reason,
        finished_at,
    )
    .execute(&mut *connection)
    .await?;
    if ended.rows_affected() == 0 {
        return Err(LabError::LeaseLost);
    }
    // The key has done its work.
    sqlx::query!("DELETE FROM secrets WHERE run_id = $1", lease.run.0)
        .execute(&mut *connection)
        .await?;
    emit_state(connection, lease.run, state).await
}

impl Reported for Lease {
    type News = LiveEvent;

    fn news(lab: &Lab) -> broadcast::Receiver<LiveEvent> {
        lab.hear()
    }

    fn is_concerned(&self, news: &LiveEvent) -> bool {
        news.run == self.run && matches!(news.kind, LiveKind::State { .. })
    }

    async fn move_on(&self, connection: &mut PgConnection) -> Result<bool, LabError> {
        Ok(hold(connection, self).await?.cancel_requested)
    }
}
