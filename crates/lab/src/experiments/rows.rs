//! Experiments as rows: put in, and read back.

use sqlx::{PgConnection, types::Json};
use tokdyno_domain::{
    access::{Actor, Role},
    experiment::{Cell, ExperimentSpec, ExperimentState, StepSet, Trial, TrialState, TrialStatus},
    ids::{
        ActorId, ContentHash, ExperimentId, HostId, LaunchId, ProfileId, RevisionId, RunId, TeamId,
    },
    profile::ProfileSpec,
};

use super::plan::Planned;
use crate::{LabError, clean, profile_rows, stages};

/// What of an experiment never changes while it is driven.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    /// On whose behalf.
    pub(crate) actor: Actor,
    pub(crate) host: HostId,
    /// Name of the base profile.
    pub(crate) base: String,
    pub(crate) base_hash: ContentHash,
    pub(crate) spec: ExperimentSpec,
    pub(crate) workload_hash: ContentHash,
    pub(crate) gpus: u32,
    /// The adopted launch that is put aside for it.
    pub(crate) restore: Option<LaunchId>,
    pub(crate) cells: Vec<Cell>,
    /// What is launched of each cell.
    pub(crate) revisions: Vec<RevisionId>,
}

/// Where an experiment stands.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) state: ExperimentState,
    /// What it becomes once the trial under way is ended.
    pub(crate) becomes: Option<ExperimentState>,
    pub(crate) restore_due: bool,
    /// GPU seconds of launches that are over.
    pub(crate) spent_gpu_s: f64,
    pub(crate) trials: Vec<StoredTrial>,
}

/// A trial as stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredTrial {
    pub(crate) status: TrialStatus,
    pub(crate) interruptions: u32,
    pub(crate) reason: String,
    pub(crate) launch: Option<LaunchId>,
    pub(crate) run: Option<RunId>,
}

impl Progress {
    pub(crate) fn statuses(&self) -> Vec<TrialStatus> {
        self.trials.iter().map(|trial| trial.status).collect()
    }

    /// The trial under way.
    pub(crate) fn running(&self) -> Option<&StoredTrial> {
        self.trials
            .iter()
            .find(|trial| trial.status.state == TrialState::Running)
    }

    /// The trials whose turn is still to come, in order.
    pub(crate) fn to_come(&self) -> Vec<Trial> {
        let given_up = tokdyno_domain::experiment::given_up(&self.statuses());
        self.trials
            .iter()
            .map(|trial| &trial.status)
            .filter(|status| !status.is_over() && !given_up.contains(&status.trial.cell))
            .map(|status| status.trial)
            .collect()
    }
}

/// Puts a planned experiment into the queue, with a profile of its own that holds a
/// revision per cell.
pub(super) async fn insert(
    connection: &mut PgConnection,
    actor: &Actor,
    planned: &Planned,
) -> Result<ExperimentId, LabError> {
    let spec = serde_json::to_value(&planned.spec)
        .map_err(|error| LabError::internal("writing an experiment", error))?;
    if clean::json(spec.clone()) != spec {
        return Err(LabError::Invalid(
            "A name or a value of the experiment holds a NUL character, which cannot be stored. Type it again."
                .to_owned(),
        ));
    }
    let workload = &planned.spec.workload;
    let experiment = ExperimentId(
        sqlx::query_scalar!(
            "INSERT INTO experiments (team_id, actor_id, name, host_id, base_id, spec,
                 workload_hash, workload_text, skip_measured, gpus, state, restore_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'queued', $11) RETURNING id",
            actor.team.0,
            actor.id.0,
            planned.spec.name,
            planned.host.0,
            planned.base.revision.0,
            spec,
            workload.hash().0,
            workload.describe(),
            planned.skip_measured,
            stored(planned.paces.gpus),
            planned.restore.map(|launch| launch.0),
        )
        .fetch_one(&mut *connection)
        .await?,
    );
    let profile = ProfileId(
        sqlx::query_scalar!(
            "INSERT INTO profiles (team_id, actor_id, name, deleted_at, experiment_id)
             VALUES ($1, $2, $3, now(), $4) RETURNING id",
            actor.team.0,
            actor.id.0,
            format!("experiment-{experiment}"),
            experiment.0,
        )
        .fetch_one(&mut *connection)
        .await?,
    );
    for cell in &planned.plan.cells {
        let number = stored(cell.index).saturating_add(1);
        let revision =
            profile_rows::insert_revision(connection, actor, profile, number, &cell.spec).await?;
        sqlx::query!(
            "INSERT INTO experiment_cells (experiment_id, place, title, levels, also, steps,
                 revision_id, hash)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            experiment.0,
            stored(cell.index),
            cell.title,
            Json(&cell.levels) as _,
            Json(&cell.also) as _,
            cell.steps.map(|steps| i64::from(steps.0)),
            revision.0,
            cell.hash.0,
        )
        .execute(&mut *connection)
        .await?;
    }
    let column = |of: fn(&Trial) -> u32| -> Vec<i32> {
        planned
            .plan
            .trials
            .iter()
            .map(|trial| stored(of(trial)))
            .collect()
    };
    sqlx::query!(
        "INSERT INTO experiment_trials (experiment_id, number, block, cell, state)
         SELECT $1, number, block, cell, 'planned'
         FROM unnest($2::integer[], $3::integer[], $4::integer[]) AS of (number, block, cell)",
        experiment.0,
        &column(|trial| trial.number),
        &column(|trial| trial.block),
        &column(|trial| trial.cell),
    )
    .execute(&mut *connection)
    .await?;
    Ok(experiment)
}

/// A small number as stored.
pub(crate) fn stored(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Reads a stored state.
pub(crate) fn state_of(word: &str) -> Result<ExperimentState, LabError> {
    ExperimentState::from_word(word)
        .ok_or_else(|| LabError::internal("reading an experiment's state", format!("`{word}`")))
}

/// Whoever asked for an experiment. What it does was allowed when it was asked for.
pub(crate) fn actor_of(id: i64, team: i64) -> Actor {
    Actor {
        id: ActorId(id),
        team: TeamId(team),
        role: Role::Operator,
    }
}

/// An experiment of any team: who may see it is the caller's to know.
pub(crate) async fn read(
    connection: &mut PgConnection,
    experiment: ExperimentId,
) -> Result<Experiment, LabError> {
    let row = sqlx::query!(
        r#"SELECT e.team_id, e.actor_id, e.host_id, e.spec AS "spec: Json<ExperimentSpec>",
               e.workload_hash, e.gpus, e.restore_id, r.hash AS base_hash, p.name AS base
           FROM experiments e
           JOIN profile_revisions r ON r.id = e.base_id
           JOIN profiles p ON p.id = r.profile_id
           WHERE e.id = $1"#,
        experiment.0,
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(LabError::NoSuchExperiment(experiment))?;
    let cells = sqlx::query!(
        r#"SELECT c.place, c.title, c.levels AS "levels: Json<Vec<(String, String)>>",
               c.also AS "also: Json<Vec<Vec<(String, String)>>>", c.steps, c.revision_id,
               c.hash, r.spec AS "spec: Json<ProfileSpec>"
           FROM experiment_cells c JOIN profile_revisions r ON r.id = c.revision_id
           WHERE c.experiment_id = $1 ORDER BY c.place"#,
        experiment.0,
    )
    .fetch_all(connection)
    .await?;
    let (cells, revisions) = cells
        .into_iter()
        .map(|row| {
            let cell = Cell {
                index: stages::small(row.place.into()),
                title: row.title,
                levels: row.levels.0,
                also: row.also.0,
                steps: row.steps.map(|steps| StepSet(stages::small(steps))),
                spec: row.spec.0,
                hash: ContentHash(row.hash),
            };
            (cell, RevisionId(row.revision_id))
        })
        .unzip();
    Ok(Experiment {
        actor: actor_of(row.actor_id, row.team_id),
        host: HostId(row.host_id),
        base: row.base,
        base_hash: ContentHash(row.base_hash),
        spec: row.spec.0,
        workload_hash: ContentHash(row.workload_hash),
        gpus: stages::small(row.gpus.into()),
        restore: row.restore_id.map(LaunchId),
        cells,
        revisions,
    })
}

/// Where it stands now.
pub(crate) async fn progress(
    connection: &mut PgConnection,
    experiment: ExperimentId,
) -> Result<Progress, LabError> {
    let row = sqlx::query!(
        "SELECT state, becomes, restore_due, spent_gpu_s FROM experiments WHERE id = $1",
        experiment.0,
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(LabError::NoSuchExperiment(experiment))?;
    let trials = sqlx::query!(
        "SELECT number, block, cell, state, failures, interruptions, reason, launch_id, run_id
         FROM experiment_trials WHERE experiment_id = $1 ORDER BY number",
        experiment.0,
    )
    .fetch_all(connection)
    .await?;
    let trials = trials
        .into_iter()
        .map(|row| {
            let state = TrialState::from_word(&row.state).ok_or_else(|| {
                LabError::internal("reading a trial's state", format!("`{}`", row.state))
            })?;
            Ok(StoredTrial {
                status: TrialStatus {
                    trial: Trial {
                        number: stages::small(row.number.into()),
                        block: stages::small(row.block.into()),
                        cell: stages::small(row.cell.into()),
                    },
                    state,
                    failures: stages::small(row.failures.into()),
                },
                interruptions: stages::small(row.interruptions.into()),
                reason: row.reason,
                launch: row.launch_id.map(LaunchId),
                run: row.run_id.map(RunId),
            })
        })
        .collect::<Result<_, LabError>>()?;
    Ok(Progress {
        state: state_of(&row.state)?,
        becomes: row.becomes.as_deref().map(state_of).transpose()?,
        restore_due: row.restore_due,
        spent_gpu_s: row.spent_gpu_s,
        trials,
    })
}
