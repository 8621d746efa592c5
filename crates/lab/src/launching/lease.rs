//! Leases of launches: who may write to one that lives. As for runs: a holder is
//! known by (owner, epoch), whoever takes over raises the epoch, and from then on
//! the former holder's writes find no row.

use sqlx::{PgConnection, PgPool};
use tokdyno_domain::{ids::LaunchId, live::LaunchEvent};
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::{Lab, LabError, heartbeat::Reported, worker::lease::LEASE};

/// Nobody's: a launch that waits for its first holder.
pub(super) const NOBODY: Uuid = Uuid::nil();

/// The right to write to a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchLease {
    pub(crate) launch: LaunchId,
    pub(crate) owner: Uuid,
    pub(crate) epoch: i64,
}

/// Launches that somebody must look after and nobody does: those that live, and
/// those that are over and owe a restoring. Nobody's at once; `own` ones of this
/// very instance from before a restart; `lapsed` ones whose holder fell silent.
pub(super) async fn abandoned(
    pool: &PgPool,
    owner: Uuid,
    own: bool,
    lapsed: bool,
    driven: &[i64],
) -> Result<Vec<(LaunchId, i64)>, LabError> {
    let rows = sqlx::query!(
        "SELECT id, lease_epoch FROM launches
         WHERE id <> ALL($5)
           AND (state IN ('starting', 'loading', 'ready', 'stopping') OR restore_due)
           AND (lease_owner IS NULL OR lease_owner = $2 OR ($3 AND lease_owner = $1)
                OR ($4 AND lease_expires_at < now()))
           AND state <> 'queued'
         ORDER BY id",
        owner,
        NOBODY,
        own,
        lapsed,
        driven,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (LaunchId(row.id), row.lease_epoch))
        .collect())
}

/// Takes a launch over; none if somebody else was quicker.
pub(super) async fn take_over(
    pool: &PgPool,
    owner: Uuid,
    launch: LaunchId,
    epoch: i64,
) -> Result<Option<LaunchLease>, LabError> {
    let epoch = sqlx::query_scalar!(
        "UPDATE launches SET lease_owner = $1, lease_epoch = lease_epoch + 1,
             lease_expires_at = now() + $2::float8 * interval '1 second'
         WHERE id = $3 AND lease_epoch = $4
           AND (lease_owner IS NULL OR lease_owner IN ($1, $5) OR lease_expires_at < now())
         RETURNING lease_epoch",
        owner,
        LEASE.as_secs_f64(),
        launch.0,
        epoch,
        NOBODY,
    )
    .fetch_optional(pool)
    .await?;
    Ok(epoch.map(|epoch| LaunchLease {
        launch,
        owner,
        epoch,
    }))
}

/// The fence before a write: locks the launch for the transaction and moves the
/// lease on. Says whether it was asked to stop.
///
/// # Errors
/// [`LabError::LeaseLost`] if somebody has taken the launch over.
pub(super) async fn hold(
    connection: &mut PgConnection,
    lease: &LaunchLease,
) -> Result<bool, LabError> {
    sqlx::query_scalar!(
        r#"UPDATE launches SET lease_expires_at = now() + $4::float8 * interval '1 second'
           WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3
           RETURNING stop_requested_at IS NOT NULL AS "stop_requested!""#,
        lease.launch.0,
        lease.epoch,
        lease.owner,
        LEASE.as_secs_f64(),
    )
    .fetch_optional(connection)
    .await?
    .ok_or(LabError::LeaseLost)
}

impl Reported for LaunchLease {
    type News = LaunchEvent;

    fn news(lab: &Lab) -> broadcast::Receiver<LaunchEvent> {
        lab.hear_launches_inside()
    }

    fn is_concerned(&self, news: &LaunchEvent) -> bool {
        news.launch == self.launch && news.log_size.is_none()
    }

    async fn move_on(&self, connection: &mut PgConnection) -> Result<bool, LabError> {
        hold(connection, self).await
    }
}
