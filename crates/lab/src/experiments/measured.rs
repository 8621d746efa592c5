//! What was measured: the figures of an experiment's trials, and what earlier
//! experiments measured under the same hashes.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{PgConnection, PgPool};
use tokdyno_domain::{
    access::Actor,
    experiment::{
        Cell, ExperimentSpec, Measured, Trial, TrialFigures, TrialState, TrialStatus,
        results::{Doubt, Findings},
        skip_measured,
    },
    ids::{ContentHash, ExperimentId, HostId, RunId},
    metrics::METRIC_VERSION,
    source::Source,
};

use super::rows::{Experiment, Progress, stored};
use crate::{LabError, commands::version, facts, stages};

/// What the runs of an experiment say.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) trials: Vec<TrialFigures>,
    pub(crate) doubts: Vec<Doubt>,
    pub(crate) source: Source,
}

impl Figures {
    /// Loads them. Runs that were deleted have none.
    pub(crate) async fn load(
        pool: &PgPool,
        actor: &Actor,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let trials: BTreeMap<i64, Trial> = progress
            .trials
            .iter()
            .filter(|trial| matches!(trial.status.state, TrialState::Done | TrialState::Skipped))
            .filter_map(|trial| Some((trial.run?.0, trial.status.trial)))
            .collect();
        let ids: Vec<i64> = trials.keys().copied().collect();
        let there = sqlx::query_scalar!(
            "SELECT id FROM runs WHERE id = ANY($1) AND team_id = $2 AND deleted_at IS NULL",
            &ids,
            actor.team.0,
        )
        .fetch_all(pool)
        .await?;
        let there: Vec<RunId> = there.into_iter().map(RunId).collect();
        let details = facts::details(pool, actor, &there).await?;
        let mut figures = Self {
            trials: Vec::new(),
            doubts: Vec::new(),
            source: Source::Measured,
        };
        for facts in details.iter().map(|details| &details.facts) {
            let run = facts.summary.id;
            let Some(trial) = trials.get(&run.0) else {
                continue;
            };
            let of_run = TrialFigures::of_stages(trial.cell, trial.block, run, &facts.stages);
            figures.trials.push(of_run);
            figures.doubts.extend(Doubt::of_run(facts));
            figures.source = figures.source.max(facts.summary.source);
        }
        Ok(figures)
    }

    /// All that is known, for the analysis.
    pub(crate) fn findings<'a>(
        &'a self,
        experiment: &'a Experiment,
        trials: &'a [TrialStatus],
        minutes_per_launch: Option<f64>,
    ) -> Findings<'a> {
        Findings {
            spec: &experiment.spec,
            cells: &experiment.cells,
            trials,
            figures: &self.trials,
            doubts: &self.doubts,
            source: self.source,
            minutes_per_launch,
        }
    }
}

/// What an earlier experiment measured, and in which run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Earlier {
    measured: Measured,
    run: RunId,
    experiment: ExperimentId,
}

/// What earlier experiments on this host measured of these cells, the newest of each
/// block: under the workload of `spec`, from where the client stands in it, and by
/// today's definitions of the metrics, since figures of another kind are no repeats.
pub(super) async fn earlier(
    connection: &mut PgConnection,
    actor: &Actor,
    host: HostId,
    cells: &[Cell],
    spec: &ExperimentSpec,
) -> Result<Vec<Earlier>, LabError> {
    let workload = spec.workload.hash();
    let hashes: Vec<String> = cells.iter().map(|cell| cell.hash.0.clone()).collect();
    let rows = sqlx::query!(
        r#"SELECT DISTINCT ON (c.hash, t.block) c.hash, t.block, t.run_id AS "run!", e.id
           FROM experiment_trials t
           JOIN experiments e ON e.id = t.experiment_id
           JOIN experiment_cells c ON c.experiment_id = t.experiment_id AND c.place = t.cell
           JOIN runs r ON r.id = t.run_id
           WHERE e.team_id = $1 AND e.host_id = $2 AND e.workload_hash = $3
             AND c.hash = ANY($4) AND t.state = 'done' AND r.deleted_at IS NULL
             AND (e.spec ->> 'through_forward')::boolean = $5 AND r.metric_version = $6
           ORDER BY c.hash, t.block, t.run_id DESC"#,
        actor.team.0,
        host.0,
        workload.0,
        &hashes,
        spec.through_forward,
        version(METRIC_VERSION),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Earlier {
            measured: Measured {
                cell: ContentHash(row.hash),
                workload: workload.clone(),
                block: stages::small(row.block.into()),
            },
            run: RunId(row.run),
            experiment: ExperimentId(row.id),
        })
        .collect())
}

/// The planned trials that need not be run, with what stands for each.
pub(super) fn taken_over<'a>(
    trials: &[TrialStatus],
    cells: &[Cell],
    workload: &ContentHash,
    earlier: &'a [Earlier],
) -> Vec<(Trial, &'a Earlier)> {
    let measured: Vec<Measured> = earlier.iter().map(|one| one.measured.clone()).collect();
    let numbers: BTreeSet<u32> = skip_measured(trials, cells, workload, &measured)
        .into_iter()
        .collect();
    trials
        .iter()
        .map(|status| status.trial)
        .filter(|trial| numbers.contains(&trial.number))
        .filter_map(|trial| {
            let hash = &cells.iter().find(|cell| cell.index == trial.cell)?.hash;
            let found = earlier
                .iter()
                .find(|one| one.measured.cell == *hash && one.measured.block == trial.block)?;
            Some((trial, found))
        })
        .collect()
}

/// Takes over what was measured before.
pub(super) async fn skip(
    connection: &mut PgConnection,
    experiment: ExperimentId,
    taken_over: &[(Trial, &Earlier)],
) -> Result<(), LabError> {
    for (trial, earlier) in taken_over {
        sqlx::query!(
            "UPDATE experiment_trials SET state = 'skipped', run_id = $3, launch_id = NULL,
                 reason = $4
             WHERE experiment_id = $1 AND number = $2 AND state = 'planned'",
            experiment.0,
            stored(trial.number),
            earlier.run.0,
            format!("Measured before, in experiment {}.", earlier.experiment),
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
