//! Experiments as people ask for them: planned, shown, paused, resumed, cancelled. Only
//! rows are written here; the worker of experiments (`experimenting`) moves what runs.

mod design;
mod measured;
mod moves;
mod paces;
mod plan;
mod rows;
#[cfg(test)]
mod store_tests;
mod view;

use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    experiment::ExperimentState,
    ids::ExperimentId,
    launch::LaunchState,
    views::experiments::{ExperimentForm, ExperimentPreview},
};

use self::moves::{ask_to_end, become_, host_of, lock};
pub(crate) use self::{
    measured::Figures,
    moves::{cancel_trials, restoring, stop_under_way, using},
    paces::{launch_gpu_s, paces},
    plan::now,
    rows::{Experiment, Progress, StoredTrial, actor_of, progress, read, state_of, stored},
};
use crate::{
    Lab, LabError,
    audit::{self, Action},
    hosts,
    launch_commands::may_be_restored,
    launching::aside,
};

impl Lab {
    /// What an experiment would do and cost, without starting it.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with the first thing found wrong, [`LabError::Conflict`]
    /// for an archived profile or a server that cannot be restored,
    /// [`LabError::NoSuchHost`], [`LabError::NoSuchProfile`],
    /// [`LabError::NoSuchLaunch`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn preview_experiment(
        &self,
        actor: &Actor,
        form: &ExperimentForm,
    ) -> Result<ExperimentPreview, LabError> {
        authorise(actor, Capability::Launch)?;
        // Nothing of it is held: whoever looks is in nobody's way. Never committed.
        let mut tx = self.0.pool.begin().await?;
        Ok(plan::plan(&mut tx, actor, form).await?.preview())
    }

    /// Plans an experiment and queues it. The worker begins it when no other experiment
    /// runs on its host.
    ///
    /// # Errors
    /// As [`Self::preview_experiment`].
    pub async fn queue_experiment(
        &self,
        actor: &Actor,
        form: &ExperimentForm,
    ) -> Result<ExperimentId, LabError> {
        authorise(actor, Capability::Launch)?;
        let mut tx = self.0.pool.begin().await?;
        plan::hold(&mut tx, actor, form).await?;
        let planned = plan::plan(&mut tx, actor, form).await?;
        let experiment = rows::insert(&mut tx, actor, &planned).await?;
        measured::skip(&mut tx, experiment, &planned.taken_over()).await?;
        let detail = format!(
            "{}: {} configurations, {} launches",
            planned.spec.name,
            planned.plan.cells.len(),
            planned.plan.trials.len()
        );
        let (action, subject) = (Action::ExperimentPlan, subject(experiment));
        audit::note_more(&mut tx, actor, action, subject, &detail).await?;
        tx.commit().await?;
        Ok(experiment)
    }

    /// Asks for a pause: the trial under way is stopped and planned again, and what was
    /// put aside on the host is brought back.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Conflict`] if it neither waits nor
    /// runs, [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn pause_experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        let mut tx = self.0.pool.begin().await?;
        let held = lock(&mut tx, actor, experiment).await?;
        match held.state {
            ExperimentState::Queued => {
                become_(&mut tx, experiment, ExperimentState::Paused).await?;
            }
            ExperimentState::Running => {
                ask_to_end(&mut tx, actor, experiment, ExperimentState::Paused).await?;
            }
            state => {
                return Err(LabError::Conflict(format!(
                    "Experiment {experiment} is {state}, so it cannot be paused."
                )));
            }
        }
        audit::note(&mut tx, actor, Action::ExperimentPause, subject(experiment)).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Queues a paused experiment again. A time for giving the host back that has passed
    /// holds no longer; a budget of GPU minutes stays.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Conflict`] if it is not paused or its
    /// server cannot be put aside now, [`LabError::NoSuchHost`] if the host was removed,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn resume_experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        let mut tx = self.0.pool.begin().await?;
        // The host before the experiment, as where it ends; whether it is still there
        // matters only to one that is paused.
        let host = host_of(&mut tx, actor, experiment).await?;
        let host = hosts::lock(&mut tx, actor, host).await;
        let held = lock(&mut tx, actor, experiment).await?;
        if held.state != ExperimentState::Paused {
            return Err(LabError::Conflict(format!(
                "Experiment {experiment} is {}; only one that is paused can be resumed.",
                held.state
            )));
        }
        host?;
        // One that does not run at all is in nobody's way.
        if let Some(named) = held.restore
            && let Some(living) = aside::living(&mut tx, named).await?
            && living.state == LaunchState::Ready
        {
            may_be_restored(&mut tx, actor, living.launch, held.host).await?;
        }
        sqlx::query!(
            "UPDATE experiments SET state = 'queued', reason = '', queued_at = now(),
                 spec = CASE WHEN (spec #>> '{budget,give_back_at}')::bigint
                         <= extract(epoch FROM now()) * 1000000
                     THEN jsonb_set(spec, '{budget,give_back_at}', 'null') ELSE spec END
             WHERE id = $1",
            experiment.0,
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "UPDATE experiment_trials SET interruptions = 0 WHERE experiment_id = $1",
            experiment.0,
        )
        .execute(&mut *tx)
        .await?;
        if held.skip_measured {
            let stored = rows::read(&mut tx, experiment).await?;
            let trials = rows::progress(&mut tx, experiment).await?.statuses();
            let earlier =
                measured::earlier(&mut tx, actor, held.host, &stored.cells, &stored.spec).await?;
            let workload = &stored.workload_hash;
            let taken = measured::taken_over(&trials, &stored.cells, workload, &earlier);
            measured::skip(&mut tx, experiment, &taken).await?;
        }
        audit::note(
            &mut tx,
            actor,
            Action::ExperimentResume,
            subject(experiment),
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Ends an experiment: the trial under way is stopped, the others are not run, and
    /// what was put aside on the host is brought back.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Conflict`] if it is over,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn cancel_experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        let mut tx = self.0.pool.begin().await?;
        let held = lock(&mut tx, actor, experiment).await?;
        match held.state {
            ExperimentState::Queued | ExperimentState::Paused => {
                become_(&mut tx, experiment, ExperimentState::Cancelled).await?;
                cancel_trials(&mut tx, experiment).await?;
            }
            ExperimentState::Running | ExperimentState::Stopping => {
                ask_to_end(&mut tx, actor, experiment, ExperimentState::Cancelled).await?;
            }
            state => {
                return Err(LabError::Conflict(format!(
                    "Experiment {experiment} is over already ({state}), so there is nothing to cancel."
                )));
            }
        }
        audit::note(
            &mut tx,
            actor,
            Action::ExperimentCancel,
            subject(experiment),
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }
}

fn subject(experiment: ExperimentId) -> String {
    format!("experiment {experiment}")
}

/// Why nothing is begun under a limit while nothing is known.
pub(crate) fn unknown_pace(base: &str) -> String {
    format!(
        "How long a launch takes here under this workload is not known yet, so with a limit of time or GPU minutes none is begun. Launch and measure {base} once under this workload, or set no limit."
    )
}
