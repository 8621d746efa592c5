//! One experiment, step by step, until it is over or paused or this worker leaves off.

use sqlx::PgConnection;
use tokdyno_domain::{
    experiment::{ExperimentState, TrialState},
    ids::LaunchId,
    live::LaunchEvent,
};
use tokio::sync::{broadcast, watch};

use super::{
    LOOK,
    lease::{self, ExperimentLease},
    outcome::{self, Outcome},
};
use crate::{
    Lab, LabError, clean,
    experiments::{
        self, Experiment, Progress, StoredTrial, cancel_trials, launch_gpu_s, now, progress, stored,
    },
    hosts,
    launching::{aside, launch_news},
    worker::{drive::bounded, patience::persist},
};

/// How often in a row a trial may be interrupted before somebody has to look.
const MOST_INTERRUPTIONS: u32 = 3;

/// What comes after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another step.
    Again,
    /// Another one, when something has changed elsewhere.
    Wait,
    /// Nothing: it is over or paused.
    Over,
}

/// Whoever drives one experiment.
pub(super) struct Drive {
    pub(super) lab: Lab,
    pub(super) lease: ExperimentLease,
    pub(super) experiment: Experiment,
}

/// Drives an experiment.
pub(super) async fn drive(lab: &Lab, lease: ExperimentLease, stop: watch::Receiver<bool>) {
    let id = lease.experiment;
    tracing::info!(experiment = %id, "an experiment is driven");
    match live(lab, lease, stop).await {
        Ok(Next::Over) => tracing::info!(experiment = %id, "an experiment is over or paused"),
        Ok(_) => tracing::info!(experiment = %id, "an experiment is left as it is"),
        Err(LabError::LeaseLost) => {
            tracing::warn!(experiment = %id, "another worker has taken the experiment over");
        }
        Err(error) => {
            // Its lease lapses, and it is taken up again.
            tracing::warn!(experiment = %id, %error, "an experiment could not be driven on");
        }
    }
}

async fn live(
    lab: &Lab,
    lease: ExperimentLease,
    mut stop: watch::Receiver<bool>,
) -> Result<Next, LabError> {
    let mut news = lab.hear_launches_inside();
    let experiment = match persist!(&stop, read(lab, lease)) {
        Ok(experiment) => experiment,
        Err(LabError::Internal(_)) => {
            persist!(&stop, lease::fail_unreadable(&lab.0.pool, &lease))?;
            return Ok(Next::Over);
        }
        Err(error) => return Err(error),
    };
    let drive = Drive {
        lab: lab.clone(),
        lease,
        experiment,
    };
    while !*stop.borrow() {
        match persist!(&stop, bounded(drive.step()))? {
            Next::Again => {}
            Next::Over => return Ok(Next::Over),
            Next::Wait => wait(&mut stop, &mut news).await,
        }
    }
    Ok(Next::Wait)
}

async fn read(lab: &Lab, lease: ExperimentLease) -> Result<Experiment, LabError> {
    let mut connection = lab.0.pool.acquire().await?;
    experiments::read(&mut connection, lease.experiment).await
}

async fn wait(stop: &mut watch::Receiver<bool>, news: &mut broadcast::Receiver<LaunchEvent>) {
    tokio::select! {
        _ = stop.changed() => {}
        () = tokio::time::sleep(LOOK) => {}
        () = launch_news(news) => {}
    }
}

impl Drive {
    async fn step(&self) -> Result<Next, LabError> {
        let mut connection = self.lab.0.pool.acquire().await?;
        lease::hold(&mut connection, &self.lease).await?;
        let progress = progress(&mut connection, self.lease.experiment).await?;
        drop(connection);
        match (progress.running(), progress.state) {
            (Some(trial), _) => self.watch(&progress, trial).await,
            (None, ExperimentState::Running) => self.go_on(&progress).await,
            (None, ExperimentState::Stopping) => {
                let becomes = progress.becomes.unwrap_or(ExperimentState::Paused);
                self.end(ExperimentState::Stopping, becomes, None).await
            }
            (None, _) => Ok(Next::Over),
        }
    }

    /// Looks at the launch under way, and notes how it ended once it has.
    async fn watch(&self, progress: &Progress, trial: &StoredTrial) -> Result<Next, LabError> {
        let Some(launch) = trial.launch else {
            return Err(LabError::internal("reading a trial", "it has no launch"));
        };
        let mut tx = self.lab.0.pool.begin().await?;
        let state = lease::hold(&mut tx, &self.lease).await?;
        let seen = outcome::look(&mut tx, launch).await?;
        let Some((outcome, pause)) = seen.outcome(now()) else {
            drop(tx);
            if seen.is_waiting() {
                // It may wait for production that somebody has started again.
                self.put_aside(progress).await?;
            }
            return Ok(Next::Wait);
        };
        let asked = state == ExperimentState::Stopping;
        let interrupted = trial.interruptions + 1;
        let (next, failures, interruptions, reason) = match &outcome {
            Outcome::Done => (TrialState::Done, 0, 0, String::new()),
            Outcome::Failed(why) if !asked => (TrialState::Failed, 1, 0, why.clone()),
            Outcome::Interrupted(why) if !asked => {
                (TrialState::Planned, 0, interrupted, why.clone())
            }
            // Ended because somebody wanted it to: nothing is held against it.
            Outcome::Failed(_) | Outcome::Interrupted(_) => {
                (TrialState::Planned, 0, trial.interruptions, String::new())
            }
        };
        let number = trial.status.trial.number;
        sqlx::query!(
            "UPDATE experiment_trials SET state = $3, failures = failures + $4,
                 interruptions = $5, reason = $6, run_id = $7
             WHERE experiment_id = $1 AND number = $2",
            self.lease.experiment.0,
            stored(number),
            next.word(),
            failures,
            stored(interruptions),
            reason,
            seen.run(),
        )
        .execute(&mut *tx)
        .await?;
        self.note_spent(&mut tx, launch).await?;
        let often = (interruptions >= MOST_INTERRUPTIONS).then(|| {
            format!(
                "A launch of {} was interrupted {interruptions} times in a row. {reason} Look at the host, then resume.",
                self.title(trial.status.trial.cell)
            )
        });
        if let (false, Some(why)) = (asked, pause.or(often)) {
            self.turn_to_pausing(&mut tx, &why).await?;
        }
        tx.commit().await?;
        tracing::info!(experiment = %self.lease.experiment, number, ?outcome, "a trial is over");
        Ok(Next::Again)
    }

    /// What people call a cell.
    pub(super) fn title(&self, cell: u32) -> &str {
        let cell = self.experiment.cells.get(cell as usize);
        cell.map_or("", |cell| &cell.title)
    }

    /// Pauses it for a reason of its own, once nothing of it is under way.
    pub(super) async fn turn_to_pausing(
        &self,
        connection: &mut PgConnection,
        reason: &str,
    ) -> Result<(), LabError> {
        sqlx::query!(
            "UPDATE experiments SET state = 'stopping', becomes = 'paused', reason = $2
             WHERE id = $1 AND state = 'running'",
            self.lease.experiment.0,
            clean::owned(reason),
        )
        .execute(connection)
        .await?;
        Ok(())
    }

    async fn note_spent(
        &self,
        connection: &mut PgConnection,
        launch: LaunchId,
    ) -> Result<(), LabError> {
        let seconds = launch_gpu_s(connection, launch, self.experiment.gpus).await?;
        sqlx::query!(
            "UPDATE experiments SET spent_gpu_s = spent_gpu_s + $2 WHERE id = $1",
            self.lease.experiment.0,
            seconds,
        )
        .execute(connection)
        .await?;
        Ok(())
    }

    /// Ends or pauses it. What was put aside is queued to be brought back in the same
    /// moment, so that it is owed until then and never afterwards; what of it is still
    /// ending is waited for.
    pub(super) async fn end(
        &self,
        from: ExperimentState,
        becomes: ExperimentState,
        reason: Option<&str>,
    ) -> Result<Next, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        let actor = &self.experiment.actor;
        // The host before the experiment, as where one is resumed.
        hosts::lock(&mut tx, actor, self.experiment.host).await?;
        if lease::hold(&mut tx, &self.lease).await? != from {
            return Ok(Next::Again);
        }
        let due = progress(&mut tx, self.lease.experiment).await?.restore_due;
        if let (true, Some(named)) = (due, self.experiment.restore) {
            match aside::living(&mut tx, named).await? {
                Some(living) if living.ending => return Ok(Next::Wait),
                Some(_) => {}
                None => {
                    aside::queue_restoring(&mut tx, actor, self.lab.0.id, named).await?;
                }
            }
        }
        sqlx::query!(
            "UPDATE experiments SET state = $2, becomes = NULL, reason = coalesce($3, reason), restore_due = false,
                 ended_at = CASE WHEN $4 THEN now() ELSE ended_at END
             WHERE id = $1",
            self.lease.experiment.0,
            becomes.word(),
            reason.map(clean::owned),
            becomes.is_over(),
        )
        .execute(&mut *tx)
        .await?;
        if becomes == ExperimentState::Cancelled {
            cancel_trials(&mut tx, self.lease.experiment).await?;
        }
        tx.commit().await?;
        tracing::info!(experiment = %self.lease.experiment, state = %becomes, "an experiment has ended or pauses");
        Ok(Next::Over)
    }
}
