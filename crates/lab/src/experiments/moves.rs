//! How people move experiments, and what else asks whether one is in its way.

use sqlx::PgConnection;
use tokdyno_domain::{
    access::Actor,
    experiment::{ExperimentState, TrialState},
    ids::{ExperimentId, HostId, LaunchId},
};

use super::rows::{self, stored};
use crate::{LabError, launch_commands::stop_in, launch_rows};

/// An experiment that nobody else changes until the transaction ends.
pub(super) struct Locked {
    pub(super) state: ExperimentState,
    pub(super) host: HostId,
    pub(super) restore: Option<LaunchId>,
    pub(super) skip_measured: bool,
}

/// The host of an experiment of the actor's team. It stays the same.
pub(super) async fn host_of(
    connection: &mut PgConnection,
    actor: &Actor,
    experiment: ExperimentId,
) -> Result<HostId, LabError> {
    let host = sqlx::query_scalar!(
        "SELECT host_id FROM experiments WHERE id = $1 AND team_id = $2",
        experiment.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?;
    host.map(HostId)
        .ok_or(LabError::NoSuchExperiment(experiment))
}

/// Locks an experiment of the actor's team.
pub(super) async fn lock(
    connection: &mut PgConnection,
    actor: &Actor,
    experiment: ExperimentId,
) -> Result<Locked, LabError> {
    let row = sqlx::query!(
        "SELECT state, host_id, restore_id, skip_measured FROM experiments
         WHERE id = $1 AND team_id = $2 FOR NO KEY UPDATE",
        experiment.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?
    .ok_or(LabError::NoSuchExperiment(experiment))?;
    Ok(Locked {
        state: rows::state_of(&row.state)?,
        host: HostId(row.host_id),
        restore: row.restore_id.map(LaunchId),
        skip_measured: row.skip_measured,
    })
}

/// Moves one that nobody drives.
pub(super) async fn become_(
    connection: &mut PgConnection,
    experiment: ExperimentId,
    state: ExperimentState,
) -> Result<(), LabError> {
    sqlx::query!(
        "UPDATE experiments SET state = $2, reason = '',
             ended_at = CASE WHEN $3 THEN now() ELSE ended_at END
         WHERE id = $1",
        experiment.0,
        state.word(),
        state.is_over(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Tells the worker that drives it, and stops the launch that is under way.
pub(super) async fn ask_to_end(
    connection: &mut PgConnection,
    actor: &Actor,
    experiment: ExperimentId,
    becomes: ExperimentState,
) -> Result<(), LabError> {
    // One that was stopping already had a reason of its own, which is none of this.
    sqlx::query!(
        "UPDATE experiments SET state = 'stopping', becomes = $2, reason = '' WHERE id = $1",
        experiment.0,
        becomes.word(),
    )
    .execute(&mut *connection)
    .await?;
    stop_under_way(connection, actor, experiment).await
}

/// Stops the launch of the trial under way, if there is one.
pub(crate) async fn stop_under_way(
    connection: &mut PgConnection,
    actor: &Actor,
    experiment: ExperimentId,
) -> Result<(), LabError> {
    let launch = sqlx::query_scalar!(
        r#"SELECT launch_id AS "launch!" FROM experiment_trials
           WHERE experiment_id = $1 AND state = 'running'"#,
        experiment.0,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(launch) = launch.map(LaunchId) else {
        return Ok(());
    };
    let state = launch_rows::lock(connection, actor, launch).await?.state;
    if state.is_over() {
        return Ok(());
    }
    stop_in(connection, launch, state).await
}

/// Cancels every trial that is not over.
pub(crate) async fn cancel_trials(
    connection: &mut PgConnection,
    experiment: ExperimentId,
) -> Result<(), LabError> {
    let trials = rows::progress(connection, experiment).await?.trials;
    let open: Vec<i32> = trials
        .iter()
        .filter(|trial| !trial.status.is_over())
        .map(|trial| stored(trial.status.trial.number))
        .collect();
    sqlx::query!(
        "UPDATE experiment_trials SET state = $3 WHERE experiment_id = $1 AND number = ANY($2)",
        experiment.0,
        &open,
        TrialState::Cancelled.word(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The experiment for which an adopted server is or will be put aside, if there is one.
pub(crate) async fn restoring(
    connection: &mut PgConnection,
    server: LaunchId,
) -> Result<Option<ExperimentId>, LabError> {
    let experiment = sqlx::query_scalar!(
        "SELECT e.id FROM experiments e JOIN launches named ON named.id = e.restore_id
         WHERE e.state IN ('queued', 'running', 'stopping')
           AND coalesce(named.restores_id, named.id) =
               (SELECT coalesce(restores_id, id) FROM launches WHERE id = $1)
         ORDER BY e.id LIMIT 1",
        server.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(experiment.map(ExperimentId))
}

/// The experiment that waits or runs on a host, if there is one.
pub(crate) async fn using(
    connection: &mut PgConnection,
    host: HostId,
) -> Result<Option<ExperimentId>, LabError> {
    let experiment = sqlx::query_scalar!(
        "SELECT id FROM experiments
         WHERE host_id = $1 AND state IN ('queued', 'running', 'stopping')
         ORDER BY id LIMIT 1",
        host.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(experiment.map(ExperimentId))
}
