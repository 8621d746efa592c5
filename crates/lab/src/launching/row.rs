//! A launch as its worker knows it, and the one way of changing its row.

use sqlx::{PgConnection, PgPool, types::Json};
use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Role},
    effective::EffectiveConfiguration,
    host::{Keeper, ProcessIdentity, Reach},
    ids::{ActorId, HostId, LaunchId, RevisionId, TeamId},
    launch::{FailureKind, LaunchFailure, LaunchOrigin, LaunchPlan, LaunchState, LoadStage},
    profile::ProfileSpec,
    timestamp::Timestamp,
};

use super::lease::LaunchLease;
use crate::{LabError, clean, launch_rows, worker::lease::LEASE};

/// A launch with what is needed to drive it.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) id: LaunchId,
    /// On whose behalf.
    pub(crate) actor: Actor,
    pub(crate) host: HostId,
    pub(crate) reach: Reach,
    /// The host has answered at some time.
    pub(crate) host_answered: bool,
    pub(crate) revision: RevisionId,
    pub(crate) spec: ProfileSpec,
    pub(crate) origin: LaunchOrigin,
    /// The adopted launch that this one brings back.
    pub(crate) restores: Option<LaunchId>,
    pub(crate) state: LaunchState,
    pub(crate) port: u16,
    pub(crate) gpus: Option<Vec<u32>>,
    pub(crate) plan: LaunchPlan,
    pub(crate) identity: Option<ProcessIdentity>,
    pub(crate) keeper: Keeper,
    pub(crate) folder: String,
    pub(crate) stage: Option<LoadStage>,
    pub(crate) started_at: Option<Timestamp>,
}

impl Launch {
    /// When ending begins, so that the host is given back in time.
    pub(crate) fn end_by(&self) -> Option<Timestamp> {
        end_by(&self.plan)
    }
}

/// When ending begins by this plan.
pub(super) fn end_by(plan: &LaunchPlan) -> Option<Timestamp> {
    let lead = i64::from(plan.give_back_lead_s) * 1_000_000;
    Some(Timestamp(plan.give_back_at?.0.saturating_sub(lead)))
}

/// Now, by this machine's clock.
pub(super) fn now() -> Timestamp {
    Timestamp::from_datetime(OffsetDateTime::now_utc())
}

/// Reads a launch.
pub(crate) async fn read(pool: &PgPool, launch: LaunchId) -> Result<Launch, LabError> {
    let row = sqlx::query!(
        r#"SELECT l.team_id, l.actor_id, l.host_id,
               h.reach AS "reach: Json<Reach>",
               h.inventory IS NOT NULL AS "host_answered!", l.revision_id,
               r.spec AS "spec: Json<ProfileSpec>", l.origin, l.restores_id, l.state, l.port,
               l.gpus, l.plan AS "plan: Json<LaunchPlan>",
               l.identity AS "identity: Json<ProcessIdentity>",
               l.keeper AS "keeper: Json<Keeper>", l.folder, l.stage,
               l.started_at
           FROM launches l
           JOIN hosts h ON h.id = l.host_id
           JOIN profile_revisions r ON r.id = l.revision_id
           WHERE l.id = $1"#,
        launch.0,
    )
    .fetch_optional(pool)
    .await?
    .ok_or(LabError::NoSuchLaunch(launch))?;
    Ok(Launch {
        id: launch,
        // What it does was allowed when it was asked for.
        actor: Actor {
            id: ActorId(row.actor_id),
            team: TeamId(row.team_id),
            role: Role::Operator,
        },
        host: HostId(row.host_id),
        reach: row.reach.0,
        host_answered: row.host_answered,
        revision: RevisionId(row.revision_id),
        spec: row.spec.0,
        origin: LaunchOrigin::from_word(&row.origin).unwrap_or(LaunchOrigin::Launched),
        restores: row.restores_id.map(LaunchId),
        state: launch_rows::state_of(&row.state)?,
        port: launch_rows::port(row.port),
        gpus: row.gpus.map(launch_rows::read_gpus),
        plan: row.plan.0,
        identity: row.identity.map(|identity| identity.0),
        keeper: row.keeper.0,
        folder: row.folder,
        stage: row.stage.as_deref().and_then(LoadStage::from_word),
        started_at: row.started_at.map(Timestamp::from_datetime),
    })
}

/// What is to be changed of a launch; what is none stays.
#[derive(Debug, Clone, Default)]
pub(super) struct Change {
    pub(super) state: Option<LaunchState>,
    pub(super) step: Option<String>,
    pub(super) failure: Option<LaunchFailure>,
    pub(super) remarks: Vec<String>,
    pub(super) identity: Option<ProcessIdentity>,
    pub(super) keeper: Option<Keeper>,
    pub(super) effective: Option<EffectiveConfiguration>,
    pub(super) engine_version: Option<String>,
    pub(super) simulated: bool,
    pub(super) wants_key: bool,
    pub(super) stage: Option<(LoadStage, String)>,
    pub(super) restore_due: Option<bool>,
    /// Does the host answer? Kept is since when it has not.
    pub(super) reachable: Option<bool>,
}

impl Change {
    pub(super) fn to(state: LaunchState) -> Self {
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    pub(super) fn step(step: impl Into<String>) -> Self {
        Self {
            step: Some(step.into()),
            ..Self::default()
        }
    }

    pub(super) fn remark(remark: impl Into<String>) -> Self {
        Self {
            remarks: vec![remark.into()],
            ..Self::default()
        }
    }
}

/// Changes a launch that is held, moves its lease on, and announces it. A state that
/// is over never changes.
///
/// # Errors
/// [`LabError::LeaseLost`] if somebody has taken it over.
pub(super) async fn change(
    connection: &mut PgConnection,
    lease: &LaunchLease,
    change: &Change,
) -> Result<LaunchState, LabError> {
    let json = |value: Result<serde_json::Value, serde_json::Error>| {
        value
            .map(clean::json)
            .map_err(|error| LabError::internal("writing a launch", error))
    };
    let failure = match &change.failure {
        Some(failure) => Some(json(serde_json::to_value(failure))?),
        None => None,
    };
    let effective = match &change.effective {
        Some(effective) => Some(json(serde_json::to_value(effective))?),
        None => None,
    };
    let identity = match &change.identity {
        Some(identity) => Some(json(serde_json::to_value(identity))?),
        None => None,
    };
    let keeper = match &change.keeper {
        Some(keeper) => Some(json(serde_json::to_value(keeper))?),
        None => None,
    };
    let remarks: Vec<String> = change
        .remarks
        .iter()
        .map(|text| clean::owned(text))
        .collect();
    let stage = change.stage.as_ref();
    let state = sqlx::query_scalar!(
        "UPDATE launches SET
             state = coalesce($4, state), step = coalesce($5, step),
             failure = coalesce($6, failure), remarks = remarks || $7::text[],
             identity = coalesce($8, identity), keeper = coalesce($9, keeper),
             effective = coalesce($10, effective), stamp = coalesce($11, stamp),
             engine_version = coalesce($12, engine_version), simulated = simulated OR $13,
             wants_key = wants_key OR $19,
             stage = coalesce($14, stage), stage_text = coalesce($15, stage_text),
             restore_due = coalesce($16, restore_due),
             unreachable_since = CASE
                 WHEN $17::boolean IS NULL THEN unreachable_since
                 WHEN $17 THEN NULL ELSE coalesce(unreachable_since, now()) END,
             started_at = CASE WHEN $4 = 'loading' THEN coalesce(started_at, now())
                 ELSE started_at END,
             ready_at = CASE WHEN $4 = 'ready' THEN coalesce(ready_at, now()) ELSE ready_at END,
             ended_at = CASE WHEN $4 IN ('stopped', 'failed', 'lost') THEN now()
                 ELSE ended_at END,
             lease_expires_at = now() + $18::float8 * interval '1 second'
         WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3
           AND ($4::text IS NULL OR state NOT IN ('stopped', 'failed', 'lost'))
         RETURNING state",
        lease.launch.0,
        lease.epoch,
        lease.owner,
        change.state.map(LaunchState::word),
        change.step.as_deref().map(clean::owned),
        failure,
        &remarks,
        identity,
        keeper,
        effective,
        change.effective.as_ref().map(|read| read.stamp.word()),
        change.engine_version.as_deref().map(clean::owned),
        change.simulated,
        stage.map(|(stage, _)| stage.word()),
        stage.map(|(_, text)| clean::owned(text)),
        change.restore_due,
        change.reachable,
        LEASE.as_secs_f64(),
        change.wants_key,
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(LabError::LeaseLost)?;
    let state = launch_rows::state_of(&state)?;
    launch_rows::announce_state(connection, lease.launch, state).await?;
    Ok(state)
}

/// Ends a launch of which the row cannot be read, so that the others go on.
pub(super) async fn fail_unreadable(pool: &PgPool, lease: &LaunchLease) -> Result<(), LabError> {
    let failed = Change {
        failure: Some(LaunchFailure::new(
            FailureKind::Internal,
            "What is stored of this launch cannot be read",
        )),
        restore_due: Some(false),
        ..Change::to(LaunchState::Failed)
    };
    let mut tx = pool.begin().await?;
    match change(&mut tx, lease, &failed).await {
        // Over already: it only owed a restoring.
        Err(LabError::LeaseLost) => {
            let settled = Change {
                restore_due: Some(false),
                ..Change::remark("What was to be restored could not be read.")
            };
            change(&mut tx, lease, &settled).await?;
        }
        other => {
            other?;
        }
    }
    tx.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::launch::GIVE_BACK_LEAD_S;

    use super::*;

    #[test]
    fn ending_begins_before_the_agreed_time() {
        let plan = LaunchPlan {
            give_back_at: Some(Timestamp(100_000_000)),
            ..LaunchPlan::default()
        };
        let lead = i64::from(GIVE_BACK_LEAD_S) * 1_000_000;
        assert_eq!(end_by(&plan), Some(Timestamp(100_000_000 - lead)));
        assert_eq!(end_by(&LaunchPlan::default()), None);
    }
}
