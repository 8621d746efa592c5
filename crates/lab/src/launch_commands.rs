//! What people ask of launches: queue, measure, stop. Only rows are written here;
//! the worker of launches moves what runs.

#[cfg(test)]
mod store_tests;

use sqlx::PgConnection;
use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::{HostId, LaunchId, RunId},
    launch::{GIVE_BACK_LEAD_S, LaunchOrigin, LaunchPlan, LaunchState, MeasurePlan},
    timestamp::Timestamp,
    views::{
        measure::{MAX_NAME, WorkloadForm},
        servers::{LaunchForm, MeasureForm},
    },
    workload::Workload,
};

use crate::{
    Lab, LabError,
    audit::{self, Action},
    commands::{fits, fresh_seed, storable, workload_json},
    experiments, hosts,
    launch_rows::{self, NewLaunch, announce_state},
    launch_runs::{LaunchRunPlan, cancel_runs_of, insert_launch_run},
    launching::WANTS_KEY,
    profile_rows,
};

/// Longest time before the agreed one at which ending may begin, in seconds.
const MAX_LEAD_S: u32 = 24 * 60 * 60;
/// Longest time until a host is given back, in days.
const MAX_GIVE_BACK_DAYS: i64 = 7;

impl Lab {
    /// Queues a launch of a profile's newest revision. The worker starts it when no
    /// other launch owns its GPUs.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with the first thing found wrong,
    /// [`LabError::Conflict`] for an archived profile or a server that cannot be
    /// restored, [`LabError::NoSuchProfile`], [`LabError::NoSuchHost`],
    /// [`LabError::NoSuchLaunch`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn queue_launch(
        &self,
        actor: &Actor,
        form: &LaunchForm,
    ) -> Result<LaunchId, LabError> {
        authorise(actor, Capability::Launch)?;
        let workload = form.measure.as_ref().map(workload_of).transpose()?;
        let configuration = configuration_of(&form.configuration)?;
        let mut tx = self.0.pool.begin().await?;
        let profile = profile_rows::lock(&mut tx, actor, form.profile).await?;
        profile.refuse_archived()?;
        // Held until it is queued, so that it is not removed meanwhile.
        hosts::lock(&mut tx, actor, form.host).await?;
        let newest = profile_rows::newest(&mut tx, form.profile).await?;
        // A revision may be older than the rules.
        newest
            .spec
            .check()
            .map_err(|error| LabError::Invalid(error.to_string()))?;
        if let Some(place) = newest.spec.masked() {
            return Err(LabError::Invalid(format!(
                "{place} of the profile {} is no real value: the secret was masked on the host and never left it. Put the real one into a file on the host and have the profile read it there.",
                profile.name
            )));
        }
        if let Some(restore) = form.restore {
            may_be_restored(&mut tx, actor, restore, form.host).await?;
        }
        let lead = form.give_back_lead_s.unwrap_or(GIVE_BACK_LEAD_S);
        if let Some(at) = form.give_back_at {
            let now = Timestamp::from_datetime(OffsetDateTime::now_utc());
            check_give_back(at, lead, now)?;
        }
        let plan = LaunchPlan {
            verify_nccl: form.verify_nccl,
            measure: workload.map(|workload| MeasurePlan {
                configuration: if configuration.is_empty() {
                    profile.name.clone()
                } else {
                    configuration.to_owned()
                },
                workload,
                through_forward: form.through_forward,
            }),
            afterwards: form.afterwards,
            restore: form.restore,
            give_back_at: form.give_back_at,
            give_back_lead_s: lead,
        };
        let new = NewLaunch {
            host: form.host,
            revision: newest.id,
            spec: &newest.spec,
            origin: LaunchOrigin::Launched,
            restores: None,
            plan: &plan,
        };
        let launch = launch_rows::queue(&mut tx, actor, self.0.id, &new).await?;
        let detail = said(&profile.name, form);
        audit::note_more(&mut tx, actor, Action::Launch, subject(launch), &detail).await?;
        tx.commit().await?;
        Ok(launch)
    }

    /// Queues a measurement of a launch that is ready.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with the first thing found wrong,
    /// [`LabError::NoSuchLaunch`], [`LabError::Conflict`] if it is not ready,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn measure_launch(
        &self,
        actor: &Actor,
        form: &MeasureForm,
    ) -> Result<RunId, LabError> {
        authorise(actor, Capability::Launch)?;
        let workload = workload_of(&form.workload)?;
        let configuration = configuration_of(&form.configuration)?;
        let mut tx = self.0.pool.begin().await?;
        let launch = launch_rows::lock(&mut tx, actor, form.launch).await?;
        if launch.state != LaunchState::Ready || launch.stop_requested {
            let state = if launch.state == LaunchState::Ready {
                LaunchState::Stopping
            } else {
                launch.state
            };
            return Err(LabError::Conflict(format!(
                "Launch {} is {state}; only one that is ready can be measured.",
                form.launch
            )));
        }
        if launch.wants_key {
            return Err(LabError::Conflict(format!(
                "Launch {} cannot be measured. {WANTS_KEY} Launch a profile of which the key is known here, or measure its address as an endpoint with its key.",
                form.launch
            )));
        }
        let plan = LaunchRunPlan {
            launch: form.launch,
            configuration,
            workload: &workload,
            through_forward: form.through_forward,
        };
        let run = insert_launch_run(&mut tx, actor, &plan).await?;
        tx.commit().await?;
        Ok(run)
    }

    /// Stops a launch, and before it what is measured on it: at once if it waits,
    /// otherwise the worker ends it and brings back what it owes.
    ///
    /// # Errors
    /// [`LabError::NoSuchLaunch`], [`LabError::Conflict`] if it is over,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn stop_launch(&self, actor: &Actor, launch: LaunchId) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        let mut tx = self.0.pool.begin().await?;
        let state = launch_rows::lock(&mut tx, actor, launch).await?.state;
        if state.is_over() {
            return Err(LabError::Conflict(format!(
                "Launch {launch} is over already ({state}), so there is nothing to stop."
            )));
        }
        stop_in(&mut tx, launch, state).await?;
        audit::note(&mut tx, actor, Action::Stop, subject(launch)).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// Stops a launch that is not over and is locked: at once if it waits, otherwise its
/// worker ends it.
pub(crate) async fn stop_in(
    connection: &mut PgConnection,
    launch: LaunchId,
    state: LaunchState,
) -> Result<(), LabError> {
    let next = if state == LaunchState::Queued {
        LaunchState::Stopped
    } else {
        state
    };
    sqlx::query!(
        "UPDATE launches SET stop_requested_at = coalesce(stop_requested_at, now()),
             state = $2,
             ended_at = CASE WHEN state = 'queued' THEN now() ELSE ended_at END,
             waits_for = CASE WHEN state = 'queued' THEN NULL ELSE waits_for END
         WHERE id = $1",
        launch.0,
        next.word(),
    )
    .execute(&mut *connection)
    .await?;
    cancel_runs_of(connection, launch).await?;
    announce_state(connection, launch, next).await
}

fn subject(launch: LaunchId) -> String {
    format!("launch {launch}")
}

/// The workload of a form, with a seed of its own.
pub(crate) fn workload_of(form: &WorkloadForm) -> Result<Workload, LabError> {
    let mut workload = form
        .workload()
        .map_err(|error| LabError::Invalid(error.to_string()))?;
    workload.seed = fresh_seed()?;
    // Refused now rather than when the launch is ready.
    workload_json(&workload)?;
    Ok(workload)
}

fn configuration_of(text: &str) -> Result<&str, LabError> {
    storable(text)?;
    fits("The configuration's name", text, MAX_NAME)?;
    Ok(text.trim())
}

/// Can this server be stopped for a launch and started again afterwards?
pub(crate) async fn may_be_restored(
    connection: &mut PgConnection,
    actor: &Actor,
    restore: LaunchId,
    host: HostId,
) -> Result<(), LabError> {
    let server = launch_rows::lock(connection, actor, restore).await?;
    let refuse = |why: &str| Err(LabError::Conflict(format!("Launch {restore} {why}")));
    if server.host != host {
        return refuse(
            "is on another host. Only a server that holds this host's GPUs is stopped before and restored afterwards.",
        );
    }
    if server.origin == LaunchOrigin::Launched {
        return refuse(
            "was started from here, and only a server that was adopted is restored. Stop it, and launch its profile again afterwards.",
        );
    }
    match server.state {
        _ if server.state.is_over() => {
            return refuse(
                "does not run any more, so there is nothing to restore. Choose the one that runs now.",
            );
        }
        LaunchState::Queued | LaunchState::Starting | LaunchState::Loading => {
            return refuse("is not ready yet. Wait until it is, then ask again.");
        }
        _ if server.stop_requested || server.state == LaunchState::Stopping => {
            return refuse(
                "is about to end, so there is nothing to restore. Choose the one that runs then.",
            );
        }
        _ => {}
    }
    let other = sqlx::query_scalar!(
        "SELECT id FROM launches
         WHERE (plan ->> 'restore')::bigint = $1
           AND (state IN ('queued', 'starting', 'loading', 'ready', 'stopping') OR restore_due)
         LIMIT 1",
        restore.0,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(other) = other {
        return refuse(&format!(
            "is already restored after launch {other}. Wait until that is over, then name the server that runs then."
        ));
    }
    match experiments::restoring(connection, restore).await? {
        None => Ok(()),
        Some(other) => refuse(&format!(
            "is put aside for experiment {other} and restored after it. Wait until that is over or paused, then name the server that runs then."
        )),
    }
}

/// Can a host be given back by then, counted from now?
pub(crate) fn check_give_back(at: Timestamp, lead: u32, now: Timestamp) -> Result<(), LabError> {
    if !(1..=MAX_LEAD_S).contains(&lead) {
        return Err(LabError::Invalid(
            "Ending must begin between a second and 24 hours before the host is given back. Leave the field empty for a minute."
                .to_owned(),
        ));
    }
    if at.0.saturating_sub(i64::from(lead) * 1_000_000) <= now.0 {
        return Err(LabError::Invalid(format!(
            "The host is to be given back at {}, and ending begins {lead} s before: that time has come already. Name a later one.",
            at.exact()
        )));
    }
    if at.0.saturating_sub(now.0) > MAX_GIVE_BACK_DAYS * 86_400_000_000 {
        return Err(LabError::Invalid(format!(
            "The host is to be given back at {}; that is more than {MAX_GIVE_BACK_DAYS} days ahead. Name an earlier time, or none and stop the launch by hand.",
            at.exact()
        )));
    }
    Ok(())
}

fn said(profile: &str, form: &LaunchForm) -> String {
    let mut said = format!("{profile} on host {}", form.host);
    if form.measure.is_some() {
        said.push_str(", then measured");
    }
    if let Some(restore) = form.restore {
        said.push_str(&format!(", launch {restore} restored afterwards"));
    }
    if let Some(at) = form.give_back_at {
        said.push_str(&format!(", given back by {}", at.exact()));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_given_back_at_a_time_that_can_be_kept() {
        let now = Timestamp(1_000_000_000);
        let after = |seconds: i64| Timestamp(now.0 + seconds * 1_000_000);
        assert!(check_give_back(after(61), 60, now).is_ok());
        assert!(check_give_back(after(7 * 86_400), 60, now).is_ok());
        for (at, lead) in [
            (after(60), 60),
            (after(-5), 60),
            (Timestamp(i64::MIN), 60),
            (after(3600), 0),
            (after(600_000), MAX_LEAD_S + 1),
            (after(7 * 86_400 + 1), 60),
            (Timestamp(i64::MAX), 60),
        ] {
            let refused = check_give_back(at, lead, now).expect_err("a refusal");
            assert_eq!(refused.status(), 422);
        }
    }
}
