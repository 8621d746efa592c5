//! Servers that were adopted and are put aside for a time: by a launch, or by an
//! experiment for all of its launches. Whoever puts one aside owes its restoring.

use sqlx::{PgConnection, types::Json};
use tokdyno_domain::{
    access::Actor,
    ids::{HostId, LaunchId, RevisionId},
    launch::{FailureKind, LaunchFailure, LaunchOrigin, LaunchPlan, LaunchState},
    profile::ProfileSpec,
};
use uuid::Uuid;

use crate::{
    LabError,
    audit::{self, Action},
    launch_rows::{self, NewLaunch},
};

/// The living incarnation of an adopted server.
pub(crate) struct Living {
    pub(crate) launch: LaunchId,
    pub(crate) state: LaunchState,
    /// It was told to end.
    pub(crate) ending: bool,
    pub(crate) profile: String,
}

/// What of an adopted server lives, by the number of any of its incarnations.
pub(crate) async fn living(
    connection: &mut PgConnection,
    named: LaunchId,
) -> Result<Option<Living>, LabError> {
    let row = sqlx::query!(
        r#"SELECT l.id, l.state, p.name,
             (l.state = 'stopping' OR l.stop_requested_at IS NOT NULL) AS "ending!"
         FROM launches l
         JOIN profile_revisions r ON r.id = l.revision_id
         JOIN profiles p ON p.id = r.profile_id
         WHERE l.state IN ('queued', 'starting', 'loading', 'ready', 'stopping')
           AND coalesce(l.restores_id, l.id) =
               (SELECT coalesce(restores_id, id) FROM launches WHERE id = $1)
         ORDER BY l.id DESC LIMIT 1"#,
        named.0,
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(Living {
            launch: LaunchId(row.id),
            state: launch_rows::state_of(&row.state)?,
            ending: row.ending,
            profile: row.name,
        })
    })
    .transpose()
}

/// Asks a server to end, unless somebody has before.
pub(crate) async fn ask_to_end(
    connection: &mut PgConnection,
    actor: &Actor,
    launch: LaunchId,
    remark: &str,
) -> Result<(), LabError> {
    let state = sqlx::query_scalar!(
        "UPDATE launches SET stop_requested_at = now(), remarks = remarks || $2::text
         WHERE id = $1 AND stop_requested_at IS NULL
           AND state IN ('starting', 'loading', 'ready', 'stopping')
         RETURNING state",
        launch.0,
        remark,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(state) = state else { return Ok(()) };
    let subject = format!("launch {launch}");
    audit::note_more(connection, actor, Action::Stop, subject, remark).await?;
    launch_rows::announce_state(connection, launch, launch_rows::state_of(&state)?).await
}

/// Does what was asked to give way go on running all the same? Which, and why.
pub(crate) async fn not_stopped(
    connection: &mut PgConnection,
    named: LaunchId,
) -> Result<Option<(LaunchId, String)>, LabError> {
    let newest = sqlx::query!(
        r#"SELECT id, failure AS "failure: Json<LaunchFailure>" FROM launches
           WHERE coalesce(restores_id, id) =
               (SELECT coalesce(restores_id, id) FROM launches WHERE id = $1)
           ORDER BY id DESC LIMIT 1"#,
        named.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(newest.and_then(|newest| {
        let failure = newest.failure?.0;
        let stays = failure.kind == FailureKind::NotStopped;
        stays.then_some((LaunchId(newest.id), failure.detail))
    }))
}

/// Queues the restoring of an adopted server, or of one that was restored before. Its
/// host must be locked, and nothing of it live.
pub(crate) async fn queue_restoring(
    connection: &mut PgConnection,
    actor: &Actor,
    laboratory: Uuid,
    named: LaunchId,
) -> Result<LaunchId, LabError> {
    let row = sqlx::query!(
        r#"SELECT root.id, root.host_id, root.revision_id, r.spec AS "spec: Json<ProfileSpec>"
           FROM launches l
           JOIN launches root ON root.id = coalesce(l.restores_id, l.id)
           JOIN profile_revisions r ON r.id = root.revision_id
           WHERE l.id = $1"#,
        named.0,
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(LabError::NoSuchLaunch(named))?;
    let new = NewLaunch {
        host: HostId(row.host_id),
        revision: RevisionId(row.revision_id),
        spec: &row.spec.0,
        origin: LaunchOrigin::Restored,
        restores: Some(LaunchId(row.id)),
        plan: &LaunchPlan::default(),
    };
    let restored = launch_rows::queue(connection, actor, laboratory, &new).await?;
    sqlx::query!(
        "UPDATE launches SET (keeper, gpus, port) =
             (SELECT keeper, gpus, port FROM launches root WHERE root.id = $2)
         WHERE id = $1",
        restored.0,
        row.id,
    )
    .execute(&mut *connection)
    .await?;
    let detail = format!("launch {named}, as launch {restored}");
    let subject = format!("launch {restored}");
    audit::note_more(connection, actor, Action::Restore, subject, &detail).await?;
    Ok(restored)
}
