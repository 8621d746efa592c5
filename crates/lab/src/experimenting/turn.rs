//! What is next of an experiment of which nothing is under way.

use sqlx::PgConnection;
use tokdyno_domain::{
    experiment::{
        Budget, Design, ExperimentState, Trial, TrialState, due_look, given_up, next_trial,
        results::ByFigures, settled,
    },
    ids::LaunchId,
    launch::{Afterwards, GIVE_BACK_LEAD_S, LaunchOrigin, LaunchPlan, LaunchState, MeasurePlan},
    views::measure::MAX_NAME,
    workload::Workload,
};

use super::{
    drive::{Drive, Next},
    fit::misfit,
    lease,
};
use crate::{
    LabError,
    audit::{self, Action},
    commands::fresh_seed,
    experiments::{Figures, Progress, paces, stored},
    launch_rows::{self, NewLaunch},
    launching::aside,
};

/// Said of what is not run because another launch of its cell failed for good.
const GIVEN_UP: &str = "Its configuration was given up after a launch that failed twice.";
/// Said of what is not run because it would decide nothing more.
const SETTLED: &str = "Its configuration was settled at a look that was declared.";

impl Drive {
    /// Leaves out what need not be run, then begins the next trial, or ends.
    pub(super) async fn go_on(&self, progress: &Progress) -> Result<Next, LabError> {
        let statuses = progress.statuses();
        let given_up = given_up(&statuses);
        let lost = planned(progress, |cell| given_up.contains(&cell));
        if !lost.is_empty() {
            return self.leave_out(&lost, TrialState::Skipped, GIVEN_UP).await;
        }
        let early_stop = self.experiment.spec.early_stop.as_ref();
        if let Some(stop) = early_stop.filter(|stop| due_look(stop, &statuses).is_some()) {
            let actor = &self.experiment.actor;
            let figures = Figures::load(&self.lab.0.pool, actor, progress).await?;
            // The pace is for advice, and none is given here.
            let findings = figures.findings(&self.experiment, &statuses, None);
            let cells = settled(stop, &statuses, &mut ByFigures::new(findings));
            let decided = planned(progress, |cell| cells.contains(&cell));
            if !decided.is_empty() {
                return self.leave_out(&decided, TrialState::Settled, SETTLED).await;
            }
        }
        let Some(next) = next_trial(&statuses) else {
            return self.conclude(progress).await;
        };
        if let Some(why) = self.does_not_fit(next, progress).await? {
            return self.pause(&why).await;
        }
        if !self.put_aside(progress).await? {
            return Ok(Next::Wait);
        }
        self.begin(next).await
    }

    async fn leave_out(
        &self,
        numbers: &[i32],
        state: TrialState,
        reason: &str,
    ) -> Result<Next, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        lease::hold(&mut tx, &self.lease).await?;
        sqlx::query!(
            "UPDATE experiment_trials SET state = $3, reason = $4
             WHERE experiment_id = $1 AND number = ANY($2) AND state = 'planned'",
            self.lease.experiment.0,
            numbers,
            state.word(),
            reason,
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(Next::Again)
    }

    /// Every trial is over.
    async fn conclude(&self, progress: &Progress) -> Result<Next, LabError> {
        let from = ExperimentState::Running;
        let any_measured = progress.trials.iter().any(|trial| {
            let state = trial.status.state;
            matches!(state, TrialState::Done | TrialState::Skipped) && trial.run.is_some()
        });
        if any_measured {
            return self.end(from, ExperimentState::Finished, Some("")).await;
        }
        let last = progress
            .trials
            .iter()
            .rfind(|trial| trial.status.state == TrialState::Failed)
            .map_or("", |trial| &trial.reason);
        let why = format!("Every configuration was given up, so nothing was measured. {last}");
        self.end(from, ExperimentState::Failed, Some(why.trim_end()))
            .await
    }

    async fn pause(&self, why: &str) -> Result<Next, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        lease::hold(&mut tx, &self.lease).await?;
        self.turn_to_pausing(&mut tx, why).await?;
        tx.commit().await?;
        Ok(Next::Again)
    }

    /// Why a trial may not begin within budget and time; none if it may.
    async fn does_not_fit(
        &self,
        trial: Trial,
        progress: &Progress,
    ) -> Result<Option<String>, LabError> {
        let budget = self.experiment.spec.budget;
        if budget == Budget::default() {
            return Ok(None);
        }
        let mut connection = self.lab.0.pool.acquire().await?;
        let of = &self.experiment;
        let paces = paces(
            &mut connection,
            of.host,
            &of.cells,
            &of.base_hash,
            &of.workload_hash,
            of.gpus,
        )
        .await?;
        Ok(misfit(
            trial,
            &paces,
            &budget,
            progress.spent_gpu_s / 60.0,
            &of.base,
        ))
    }

    /// Puts the adopted server aside, unless it is: also one that somebody has started
    /// again meanwhile. False while it is waited for. Only once it is ready, so that it
    /// is known to work when it is brought back.
    pub(super) async fn put_aside(&self, progress: &Progress) -> Result<bool, LabError> {
        let Some(named) = self.experiment.restore else {
            return Ok(true);
        };
        let mut tx = self.lab.0.pool.begin().await?;
        if lease::hold(&mut tx, &self.lease).await? != ExperimentState::Running {
            return Ok(false);
        }
        let Some(living) = aside::living(&mut tx, named).await? else {
            if progress.restore_due
                && let Some((launch, detail)) = aside::not_stopped(&mut tx, named).await?
            {
                let why = format!(
                    "Launch {launch} was to give way to the experiment. {detail} Resume when that is settled."
                );
                self.turn_to_pausing(&mut tx, &why).await?;
                tx.commit().await?;
                return Ok(false);
            }
            return Ok(true);
        };
        if matches!(living.state, LaunchState::Ready | LaunchState::Stopping) {
            sqlx::query!(
                "UPDATE experiments SET restore_due = true WHERE id = $1",
                self.lease.experiment.0,
            )
            .execute(&mut *tx)
            .await?;
            let remark = format!(
                "Stopped for experiment {}, after which it is restored.",
                self.lease.experiment
            );
            aside::ask_to_end(&mut tx, &self.experiment.actor, living.launch, &remark).await?;
            tx.commit().await?;
        }
        Ok(false)
    }

    /// Queues a trial's launch, which is measured and stopped.
    async fn begin(&self, trial: Trial) -> Result<Next, LabError> {
        let of = &self.experiment;
        let place = trial.cell as usize;
        let (Some(cell), Some(revision)) = (of.cells.get(place), of.revisions.get(place)) else {
            return Err(LabError::internal("beginning a trial", "it has no cell"));
        };
        let plan = LaunchPlan {
            measure: Some(MeasurePlan {
                configuration: self.configuration(trial.cell),
                // Prompts that no launch before has met.
                workload: Workload {
                    seed: fresh_seed()?,
                    ..of.spec.workload.clone()
                },
                through_forward: of.spec.through_forward,
            }),
            afterwards: Afterwards::Stop,
            give_back_at: of.spec.budget.give_back_at,
            give_back_lead_s: GIVE_BACK_LEAD_S,
            ..LaunchPlan::default()
        };
        let new = NewLaunch {
            host: of.host,
            revision: *revision,
            spec: &cell.spec,
            origin: LaunchOrigin::Launched,
            restores: None,
            plan: &plan,
        };
        let mut tx = self.lab.0.pool.begin().await?;
        if lease::hold(&mut tx, &self.lease).await? != ExperimentState::Running {
            return Ok(Next::Again);
        }
        let launch = launch_rows::queue(&mut tx, &of.actor, self.lab.0.id, &new).await?;
        self.note_begun(&mut tx, trial, launch).await?;
        tx.commit().await?;
        Ok(Next::Wait)
    }

    async fn note_begun(
        &self,
        connection: &mut PgConnection,
        trial: Trial,
        launch: LaunchId,
    ) -> Result<(), LabError> {
        sqlx::query!(
            "UPDATE experiment_trials SET state = 'running', launch_id = $3, run_id = NULL,
                 reason = ''
             WHERE experiment_id = $1 AND number = $2",
            self.lease.experiment.0,
            stored(trial.number),
            launch.0,
        )
        .execute(&mut *connection)
        .await?;
        let detail = format!(
            "{}, for experiment {}",
            self.title(trial.cell),
            self.lease.experiment
        );
        let subject = format!("launch {launch}");
        audit::note_more(
            connection,
            &self.experiment.actor,
            Action::Launch,
            subject,
            &detail,
        )
        .await
    }

    /// What a cell's runs are called on the Board. Given profiles keep their names, so
    /// that their other runs stand beside.
    fn configuration(&self, cell: u32) -> String {
        let title = self.title(cell);
        let is_profile = self.experiment.spec.design == Design::Profiles;
        let name = if is_profile {
            title.to_owned()
        } else {
            format!("{}: {title}", self.experiment.base)
        };
        name.chars().take(MAX_NAME).collect()
    }
}

/// Numbers of the trials of some cells whose turn has not come, as stored.
fn planned(progress: &Progress, of: impl Fn(u32) -> bool) -> Vec<i32> {
    progress
        .trials
        .iter()
        .map(|trial| trial.status)
        .filter(|status| status.state == TrialState::Planned && of(status.trial.cell))
        .map(|status| stored(status.trial.number))
        .collect()
}
