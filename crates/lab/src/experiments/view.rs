//! What pages show of experiments.

use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    experiment::{Design, ExperimentState, Factor, Pace, estimate, results::results},
    ids::{ExperimentId, HostId, ProfileId},
    launch::GIVE_BACK_LEAD_S,
    text,
    timestamp::Timestamp,
    views::experiments::{CellView, ExperimentList, ExperimentSummary, ExperimentView, TrialView},
};

use super::{
    Experiment, Figures, Progress, launch_gpu_s, now, paces, progress, read, rows::state_of,
};
use crate::{Lab, LabError, audit::may_operate, stages};

/// Experiments that the list shows.
const MOST: i64 = 100;

impl Lab {
    /// The newest experiments.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn experiments(&self, actor: &Actor) -> Result<ExperimentList, LabError> {
        authorise(actor, Capability::Read)?;
        Ok(ExperimentList {
            experiments: self.experiment_summaries(actor, None).await?,
            may_operate: may_operate(actor),
        })
    }

    /// One experiment with what it found so far.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<ExperimentView, LabError> {
        authorise(actor, Capability::Read)?;
        let summary = self
            .experiment_summaries(actor, Some(experiment))
            .await?
            .pop()
            .ok_or(LabError::NoSuchExperiment(experiment))?;
        let (stored, progress, paces, running_gpu_s) = {
            let mut connection = self.0.pool.acquire().await?;
            let stored = read(&mut connection, experiment).await?;
            let progress = progress(&mut connection, experiment).await?;
            let paces = paces(
                &mut connection,
                stored.host,
                &stored.cells,
                &stored.base_hash,
                &stored.workload_hash,
                stored.gpus,
            )
            .await?;
            let running = match progress.running().and_then(|trial| trial.launch) {
                Some(launch) => launch_gpu_s(&mut connection, launch, stored.gpus).await?,
                None => 0.0,
            };
            (stored, progress, paces, running)
        };
        let spent_gpu_minutes = (progress.spent_gpu_s + running_gpu_s) / 60.0;
        let figures = Figures::load(&self.0.pool, actor, &progress).await?;
        let statuses = progress.statuses();
        let minutes_per_launch = paces
            .overall
            .and_then(Pace::seconds)
            .map(|seconds| seconds / 60.0);
        let results = (!figures.trials.is_empty())
            .then(|| results(&figures.findings(&stored, &statuses, minutes_per_launch)));
        let spec = &stored.spec;
        let estimate = (!summary.state.is_over()).then(|| {
            estimate(
                &progress.to_come(),
                &paces,
                now(),
                &spec.budget,
                spent_gpu_minutes,
                GIVE_BACK_LEAD_S,
            )
        });
        Ok(ExperimentView {
            workload: spec.workload.describe(),
            launches_per_cell: spec.launches_per_cell,
            looks: spec
                .early_stop
                .as_ref()
                .map(|stop| stop.looks.clone())
                .unwrap_or_default(),
            seed: spec.seed,
            relevant_effect: spec.relevant_effect,
            gpu_minutes: spec.budget.gpu_minutes,
            spent_gpu_minutes,
            give_back_at: spec.budget.give_back_at,
            restore: stored.restore,
            estimate,
            cells: cells(&stored, &progress),
            source: figures.source,
            doubts: figures.doubts,
            results,
            may_operate: may_operate(actor),
            summary,
        })
    }

    async fn experiment_summaries(
        &self,
        actor: &Actor,
        only: Option<ExperimentId>,
    ) -> Result<Vec<ExperimentSummary>, LabError> {
        let rows = sqlx::query!(
            r#"SELECT e.id, e.name, e.state, e.reason, e.host_id, h.name AS host,
                   p.id AS profile_id, p.name AS profile, e.spec -> 'design' AS design,
                   (SELECT count(*) FROM experiment_cells c WHERE c.experiment_id = e.id)
                       AS "cells!",
                   (SELECT count(*) FROM experiment_trials t WHERE t.experiment_id = e.id)
                       AS "launches!",
                   (SELECT count(*) FROM experiment_trials t WHERE t.experiment_id = e.id
                       AND (t.state IN ('done', 'skipped', 'settled', 'cancelled')
                            OR (t.state = 'failed' AND t.failures >= 2))) AS "over!",
                   CASE e.state
                       WHEN 'queued' THEN (
                           SELECT max(other.id) FROM experiments other
                           WHERE other.host_id = e.host_id AND other.id <> e.id
                             AND (other.state IN ('running', 'stopping')
                                  OR (other.state = 'queued'
                                      AND (other.queued_at, other.id) < (e.queued_at, e.id))))
                       END AS waits_for,
                   (SELECT l.waits_for FROM experiment_trials t
                    JOIN launches l ON l.id = t.launch_id
                    WHERE t.experiment_id = e.id AND t.state = 'running'
                      AND l.state = 'queued') AS launch_waits_for,
                   a.name AS by, e.created_at, e.started_at, e.ended_at
               FROM experiments e
               JOIN hosts h ON h.id = e.host_id
               JOIN profile_revisions r ON r.id = e.base_id
               JOIN profiles p ON p.id = r.profile_id
               JOIN actors a ON a.id = e.actor_id
               WHERE e.team_id = $1 AND ($2::bigint IS NULL OR e.id = $2)
               ORDER BY e.id DESC LIMIT $3"#,
            actor.team.0,
            only.map(|experiment| experiment.0),
            MOST,
        )
        .fetch_all(&self.0.pool)
        .await?;
        rows.into_iter()
            .map(|row| {
                let state = state_of(&row.state)?;
                let at = |time: OffsetDateTime| Timestamp::from_datetime(time);
                Ok(ExperimentSummary {
                    id: ExperimentId(row.id),
                    name: row.name,
                    reason: reason(state, row.reason, row.waits_for, row.launch_waits_for),
                    state,
                    host: (HostId(row.host_id), row.host),
                    base: (ProfileId(row.profile_id), row.profile),
                    design: told(row.design, row.cells),
                    cells: stages::small(row.cells),
                    over: stages::small(row.over),
                    launches: stages::small(row.launches),
                    by: row.by,
                    created_at: at(row.created_at),
                    started_at: row.started_at.map(at),
                    ended_at: row.ended_at.map(at),
                })
            })
            .collect()
    }
}

/// Why it stands where it stands, or what it waits for.
fn reason(
    state: ExperimentState,
    stored: String,
    experiment: Option<i64>,
    launch: Option<String>,
) -> String {
    match (state, experiment, launch) {
        (ExperimentState::Queued, Some(other), _) => {
            format!("Waits for experiment {other} on the same host.")
        }
        (ExperimentState::Running, _, Some(waits_for)) => format!("Waits for {waits_for}."),
        _ => stored,
    }
}

/// The stored design in a few words. One that cannot be read must not hide the others.
fn told(design: Option<serde_json::Value>, cells: i64) -> String {
    match serde_json::from_value(design.unwrap_or_default()) {
        Ok(design) => describe(&design, cells),
        Err(_) => "a design that this version cannot read".to_owned(),
    }
}

/// The design in a few words.
fn describe(design: &Design, cells: i64) -> String {
    let names = |factors: &[Factor], between: &str| -> String {
        let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
        names.join(between)
    };
    match design {
        Design::OneAtATime { factors } => {
            format!("one at a time: {}", names(factors, ", "))
        }
        Design::FullGrid { factors } => format!("full grid of {}", names(factors, " × ")),
        Design::Ablation { steps } => format!(
            "ablation in {}",
            text::plural(steps.len() as u64, "step", "steps")
        ),
        Design::Profiles => text::plural(u64::try_from(cells).unwrap_or(0), "profile", "profiles"),
    }
}

fn cells(experiment: &Experiment, progress: &Progress) -> Vec<CellView> {
    experiment
        .cells
        .iter()
        .map(|cell| CellView {
            index: cell.index,
            title: cell.title.clone(),
            levels: cell.levels.clone(),
            trials: progress
                .trials
                .iter()
                .filter(|trial| trial.status.trial.cell == cell.index)
                .map(|trial| TrialView {
                    number: trial.status.trial.number,
                    block: trial.status.trial.block,
                    state: trial.status.state,
                    failures: trial.status.failures,
                    reason: trial.reason.clone(),
                    launch: trial.launch,
                    run: trial.run,
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::experiment::nccl_factors;

    use super::*;

    #[test]
    fn a_design_is_told_in_a_few_words() {
        let factors = nccl_factors();
        let grid = Design::FullGrid {
            factors: factors[..2].to_vec(),
        };
        assert_eq!(describe(&grid, 12), "full grid of NCCL_PROTO × NCCL_ALGO");
        assert_eq!(describe(&Design::Profiles, 3), "3 profiles");
        let unknown = told(Some(serde_json::json!({"design": "new"})), 3);
        assert!(unknown.contains("cannot read"), "{unknown}");
    }

    #[test]
    fn what_it_waits_for_is_told_while_it_waits() {
        let told = |state, experiment, launch: Option<&str>| {
            reason(
                state,
                "stored".to_owned(),
                experiment,
                launch.map(str::to_owned),
            )
        };
        assert!(told(ExperimentState::Queued, Some(7), None).contains("experiment 7"));
        assert_eq!(
            told(ExperimentState::Running, None, Some("launch 3")),
            "Waits for launch 3."
        );
        assert_eq!(told(ExperimentState::Paused, None, None), "stored");
    }
}
