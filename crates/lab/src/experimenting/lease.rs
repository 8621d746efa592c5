//! Leases of experiments: who may write to one that runs. As for runs and launches: a
//! holder is known by (owner, epoch), whoever takes over raises the epoch, and from then
//! on the former holder's writes find no row.

use sqlx::{PgConnection, PgPool};
use tokdyno_domain::{experiment::ExperimentState, ids::ExperimentId};
use uuid::Uuid;

use crate::{
    LabError,
    experiments::{actor_of, cancel_trials, state_of, stop_under_way},
    worker::lease::LEASE,
};

/// The right to write to an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExperimentLease {
    pub(super) experiment: ExperimentId,
    pub(super) owner: Uuid,
    pub(super) epoch: i64,
}

/// Begins waiting experiments: of each host the oldest, if none runs there.
pub(super) async fn claim(pool: &PgPool, owner: Uuid) -> Result<Vec<ExperimentLease>, LabError> {
    let mut claimed = Vec::new();
    loop {
        let row = sqlx::query!(
            "UPDATE experiments SET state = 'running', lease_owner = $1,
                 lease_epoch = lease_epoch + 1, started_at = coalesce(started_at, now()),
                 lease_expires_at = now() + $2::float8 * interval '1 second'
             WHERE id = (
                 SELECT id FROM experiments waiting
                 WHERE state = 'queued' AND NOT EXISTS (
                     SELECT 1 FROM experiments other
                     WHERE other.host_id = waiting.host_id AND other.id <> waiting.id
                       AND (other.state IN ('running', 'stopping')
                            OR (other.state = 'queued'
                                AND (other.queued_at, other.id)
                                    < (waiting.queued_at, waiting.id))))
                 ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
             RETURNING id, lease_epoch",
            owner,
            LEASE.as_secs_f64(),
        )
        .fetch_optional(pool)
        .await;
        match row {
            Ok(Some(row)) => claimed.push(ExperimentLease {
                experiment: ExperimentId(row.id),
                owner,
                epoch: row.lease_epoch,
            }),
            Ok(None) => return Ok(claimed),
            // Another worker has begun one on this host in the same moment.
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                return Ok(claimed);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes over what runs and nobody drives: `own` ones of this very instance from before
/// a restart; `lapsed` ones whose holder fell silent.
pub(super) async fn take_over(
    pool: &PgPool,
    owner: Uuid,
    own: bool,
    lapsed: bool,
    driven: &[i64],
) -> Result<Vec<ExperimentLease>, LabError> {
    let rows = sqlx::query!(
        "UPDATE experiments SET lease_owner = $1, lease_epoch = lease_epoch + 1,
             lease_expires_at = now() + $2::float8 * interval '1 second'
         WHERE state IN ('running', 'stopping') AND id <> ALL($5)
           AND (($3 AND lease_owner = $1) OR ($4 AND lease_expires_at < now()))
         RETURNING id, lease_epoch",
        owner,
        LEASE.as_secs_f64(),
        own,
        lapsed,
        driven,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ExperimentLease {
            experiment: ExperimentId(row.id),
            owner,
            epoch: row.lease_epoch,
        })
        .collect())
}

/// The fence before a write: locks the experiment for the transaction and moves the
/// lease on. Says where the experiment stands.
///
/// # Errors
/// [`LabError::LeaseLost`] if somebody has taken it over.
pub(super) async fn hold(
    connection: &mut PgConnection,
    lease: &ExperimentLease,
) -> Result<ExperimentState, LabError> {
    let state = sqlx::query_scalar!(
        "UPDATE experiments SET lease_expires_at = now() + $4::float8 * interval '1 second'
         WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3
         RETURNING state",
        lease.experiment.0,
        lease.epoch,
        lease.owner,
        LEASE.as_secs_f64(),
    )
    .fetch_optional(connection)
    .await?
    .ok_or(LabError::LeaseLost)?;
    state_of(&state)
}

/// Ends an experiment of which the row cannot be read, so that the others go on: the
/// launch under way is stopped, and no other is begun. One that owes a restoring is left
/// for whoever can read it.
pub(super) async fn fail_unreadable(
    pool: &PgPool,
    lease: &ExperimentLease,
) -> Result<(), LabError> {
    let mut tx = pool.begin().await?;
    let row = sqlx::query!(
        "UPDATE experiments SET state = 'failed', becomes = NULL, ended_at = now(),
             reason = 'What is stored of this experiment cannot be read, so nothing more of it is run. Plan it again; if that happens again, look into the program''s log.'
         WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3 AND NOT restore_due
         RETURNING actor_id, team_id",
        lease.experiment.0,
        lease.epoch,
        lease.owner,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else {
        return Ok(());
    };
    let actor = actor_of(row.actor_id, row.team_id);
    stop_under_way(&mut tx, &actor, lease.experiment).await?;
    cancel_trials(&mut tx, lease.experiment).await?;
    tx.commit().await?;
    Ok(())
}
