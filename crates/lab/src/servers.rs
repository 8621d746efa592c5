//! Servers: what runs where, and a launch, as pages read them.

#[cfg(test)]
mod tests;

use sqlx::types::Json;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    effective::EffectiveConfiguration,
    host::{Keeper, ProcessIdentity},
    ids::{LaunchId, RunId},
    launch::{LaunchFailure, LaunchPlan},
    profile::ProfileSpec,
    run::RunState,
    views::servers::{LaunchRun, LaunchView, ServerList},
};
use tokdyno_engines::shell;

use crate::{
    Lab, LabError,
    audit::may_operate,
    launch_rows::{self, Which, state_of},
    stages::unsigned,
    steps::{Production, Way},
};

/// Launches that are over, on the page of servers.
const OVER: i64 = 50;
/// Runs on a launch's page.
const RUNS: i64 = 100;

impl Lab {
    /// What runs where, and what ran last.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn servers(&self, actor: &Actor) -> Result<ServerList, LabError> {
        authorise(actor, Capability::Read)?;
        let which = |alive, most| Which {
            alive: Some(alive),
            most,
            ..Which::default()
        };
        let pool = &self.0.pool;
        Ok(ServerList {
            alive: launch_rows::summaries(pool, actor, which(true, None)).await?,
            over: launch_rows::summaries(pool, actor, which(false, Some(OVER))).await?,
            may_operate: may_operate(actor),
        })
    }

    /// A launch with its steps, its effective configuration and its runs.
    ///
    /// # Errors
    /// [`LabError::NoSuchLaunch`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn launch(&self, actor: &Actor, launch: LaunchId) -> Result<LaunchView, LabError> {
        authorise(actor, Capability::Read)?;
        let which = Which {
            launch: Some(launch),
            ..Which::default()
        };
        let summary = launch_rows::summaries(&self.0.pool, actor, which)
            .await?
            .pop()
            .ok_or(LabError::NoSuchLaunch(launch))?;
        let row = sqlx::query!(
            r#"SELECT l.plan AS "plan: Json<LaunchPlan>", l.stage_text, l.folder, l.remarks,
                   l.effective AS "effective: Json<EffectiveConfiguration>",
                   l.keeper AS "keeper: Json<Keeper>", l.restores_id, l.restore_due, l.log_size,
                   l.identity AS "identity: Json<ProcessIdentity>",
                   r.spec AS "spec: Json<ProfileSpec>",
                   (SELECT max(b.id) FROM launches b
                       WHERE b.restores_id = coalesce(l.restores_id, l.id) AND b.id > l.id) AS restored_by,
                   (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY
                        extract(epoch FROM e.ready_at - e.started_at)::float8)
                    FROM launches e JOIN profile_revisions of ON of.id = e.revision_id
                    WHERE e.host_id = l.host_id AND of.profile_id = r.profile_id AND e.id < l.id
                      AND e.origin <> 'adopted' AND e.ready_at >= e.started_at) AS usual_load_s
               FROM launches l JOIN profile_revisions r ON r.id = l.revision_id
               WHERE l.id = $1"#,
            launch.0,
        )
        .fetch_one(&self.0.pool)
        .await?;
        let plan = row.plan.0;
        let runs = self.runs_on(launch).await?;
        let production = match plan.restore {
            Some(restore) => self.production(launch, restore).await?,
            None => None,
        };
        // The run that the plan asked for is put in as soon as the launch is ready.
        let planned = runs.last().filter(|_| plan.measure.is_some());
        let steps = Way {
            launch: &summary,
            plan: &plan,
            production: production.as_ref(),
            run: planned,
            restore_due: row.restore_due,
        }
        .steps();
        let container = launch_rows::container(&row.folder);
        Ok(LaunchView {
            steps,
            command: shell::quote(&row.spec.started_command(&container)),
            stage_text: row.stage_text,
            usual_load_s: row.usual_load_s,
            effective: row.effective.map(|effective| effective.0),
            restores: row.restores_id.map(LaunchId).or(plan.restore),
            restored_by: row.restored_by.map(LaunchId),
            plan,
            keeper: row.keeper.0,
            pid: row.identity.map(|identity| identity.pid),
            folder: row.folder,
            remarks: row.remarks,
            runs,
            log_size: unsigned(row.log_size),
            may_operate: may_operate(actor),
            summary,
        })
    }

    /// Runs on a launch, newest first; the first of all is always among them.
    async fn runs_on(&self, launch: LaunchId) -> Result<Vec<LaunchRun>, LabError> {
        let rows = sqlx::query!(
            r#"SELECT id, configuration, workload_text, state FROM runs
               WHERE launch_id = $1 AND deleted_at IS NULL
                 AND (id = (SELECT min(id) FROM runs WHERE launch_id = $1 AND deleted_at IS NULL)
                   OR id IN (SELECT id FROM runs WHERE launch_id = $1 AND deleted_at IS NULL
                             ORDER BY id DESC LIMIT $2))
               ORDER BY id DESC"#,
            launch.0,
            RUNS,
        )
        .fetch_all(&self.0.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| LaunchRun {
                id: RunId(row.id),
                configuration: row.configuration,
                workload: row.workload_text,
                // The words are checked by the database.
                state: RunState::from_word(&row.state).unwrap_or(RunState::Failed),
            })
            .collect())
    }

    /// The server that a launch replaces, and the launch that brought it back since.
    async fn production(
        &self,
        launch: LaunchId,
        restore: LaunchId,
    ) -> Result<Option<Production>, LabError> {
        let row = sqlx::query!(
            r#"SELECT p.name, l.state, back.id AS "back_id?", back.state AS "back_state?",
                   back.failure AS "back_failure: Json<LaunchFailure>"
               FROM launches l
               JOIN profile_revisions r ON r.id = l.revision_id
               JOIN profiles p ON p.id = r.profile_id
               LEFT JOIN LATERAL (SELECT b.id, b.state, b.failure FROM launches b
                   WHERE b.restores_id = coalesce(l.restores_id, l.id) AND b.id > $1
                   ORDER BY b.id LIMIT 1) back ON true
               WHERE l.id = $2"#,
            launch.0,
            restore.0,
        )
        .fetch_optional(&self.0.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let back = match (row.back_id, row.back_state) {
            (Some(id), Some(state)) => {
                let failure = row.back_failure.map(|failure| failure.to_string());
                Some((LaunchId(id), state_of(&state)?, failure))
            }
            _ => None,
        };
        Ok(Some(Production {
            launch: restore,
            name: row.name,
            state: state_of(&row.state)?,
            back,
        }))
    }
}
