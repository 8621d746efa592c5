//! Engines that others started: adopted, asked before they are stopped, and what a
//! crashed launch left behind.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection, types::Json};
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    host::{FoundEngine, Keeper, ProcessIdentity},
    ids::{HostId, LaunchId, ProfileId},
    launch::{LaunchOrigin, LaunchPlan, LaunchState},
    profile::{MAX_PROFILE_NAME, ProfileSpec},
    views::{
        hosts::Leftover,
        servers::{AdoptForm, StopQuestion},
    },
};
use tokdyno_engines::{in_flight, profile_of, recognise, suggested_name};
use tokdyno_remote::Host;

use super::{command::api_key, keeper, lease::NOBODY, row, verify::address};
use crate::{
    Lab, LabError,
    audit::{self, Action},
    clean, hosts, launch_rows, profile_rows,
};

/// How long leftovers get before they are killed.
const GRACE: Duration = Duration::from_secs(10);
/// Names that are tried for a profile whose suggested name is taken.
const NAMES: u32 = 50;

impl Lab {
    /// Adopts an engine that was found running: reads its command and environment
    /// into a profile, keeps on the host what is needed to start it again, and has
    /// it watched. It is *loading* until the worker has asked it, then *ready*.
    ///
    /// # Errors
    /// [`LabError::Conflict`] if it is gone, is none, or is adopted already;
    /// [`LabError::Invalid`] for a name that cannot be used or an engine without a
    /// port; [`LabError::Host`], [`LabError::NoSuchHost`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn adopt(&self, actor: &Actor, form: &AdoptForm) -> Result<LaunchId, LabError> {
        authorise(actor, Capability::Launch)?;
        authorise(actor, Capability::EditProfiles)?;
        let host = self.remote_host(actor, form.host).await?;
        let found = look_again(&host, &form.engine).await?;
        let Some(port) = found.port else {
            return Err(LabError::Invalid(
                "The engine's port is not known: neither its command names one, nor does it listen yet. Wait until it serves, then adopt it."
                    .to_owned(),
            ));
        };
        let mut spec = profile_of(&found);
        spec.parameters.port = port;
        spec.check()
            .map_err(|error| LabError::Invalid(error.to_string()))?;
        refuse_twice(&mut *self.0.pool.acquire().await?, form.host, &found).await?;
        let launch = LaunchId(
            sqlx::query_scalar!(
                r#"SELECT nextval(pg_get_serial_sequence('launches', 'id')) AS "id!""#
            )
            .fetch_one(&self.0.pool)
            .await?,
        );
        let folder = launch_rows::folder(self.0.id, launch);
        let pid = found.process.identity.pid;
        let kept = host.keep_process(&folder, pid).await;
        if found.process.keeper == Keeper::Process {
            // Without this it could not be started again.
            kept?;
        }
        let made = self.insert_adopted(actor, form, &found, &spec, launch, &folder);
        match made.await {
            Ok(()) => Ok(launch),
            Err(error) => {
                if let Err(error) = host.remove(&folder).await {
                    tracing::warn!(%error, folder, "a folder stays behind on a host");
                }
                Err(error)
            }
        }
    }

    async fn insert_adopted(
        &self,
        actor: &Actor,
        form: &AdoptForm,
        found: &FoundEngine,
        spec: &ProfileSpec,
        launch: LaunchId,
        folder: &str,
    ) -> Result<(), LabError> {
        let mut tx = self.0.pool.begin().await?;
        // One after another: whoever comes second finds what the first has made.
        hosts::lock(&mut tx, actor, form.host).await?;
        refuse_twice(&mut tx, form.host, found).await?;
        let profile = profile_for(&mut tx, actor, form.profile_name.trim(), spec).await?;
        let newest = profile_rows::newest(&mut tx, profile).await?;
        let gpus = if found.process.gpus.is_empty() {
            spec.gpus()
        } else {
            Some(found.process.gpus.clone())
        };
        let gpus = gpus.map(|gpus| launch_rows::stored_gpus(&gpus));
        let json = |value: Result<serde_json::Value, serde_json::Error>| {
            value
                .map(clean::json)
                .map_err(|error| LabError::internal("writing an adopted launch", error))
        };
        sqlx::query!(
            "INSERT INTO launches (id, team_id, actor_id, host_id, revision_id, origin, state,
                 port, gpus, plan, identity, keeper, folder, engine, started_at,
                 lease_owner, lease_expires_at)
             OVERRIDING SYSTEM VALUE
             VALUES ($1, $2, $3, $4, $5, $6, 'loading', $7, $8, $9, $10, $11, $12, $13, now(),
                 $14, now())",
            launch.0,
            actor.team.0,
            actor.id.0,
            form.host.0,
            newest.id.0,
            LaunchOrigin::Adopted.word(),
            i32::from(spec.parameters.port),
            gpus.as_deref(),
            json(serde_json::to_value(LaunchPlan::default()))?,
            json(serde_json::to_value(&found.process.identity))?,
            json(serde_json::to_value(&found.process.keeper))?,
            folder,
            spec.engine.word(),
            NOBODY,
        )
        .execute(&mut *tx)
        .await?;
        let detail = format!(
            "process {} on host {}",
            found.process.identity.pid, form.host
        );
        let subject = format!("launch {launch}");
        audit::note_more(&mut tx, actor, Action::Adopt, subject, &detail).await?;
        launch_rows::announce_state(&mut tx, launch, LaunchState::Loading).await?;
        tx.commit().await?;
        Ok(())
    }

    /// What there is to know before a launch is stopped.
    ///
    /// # Errors
    /// [`LabError::NoSuchLaunch`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`]. A host or engine that does not answer is an
    /// answer.
    pub async fn stop_question(
        &self,
        actor: &Actor,
        launch: LaunchId,
    ) -> Result<StopQuestion, LabError> {
        authorise(actor, Capability::Launch)?;
        let launch = self.launch_of_team(actor, launch).await?;
        let how = keeper::how(&launch.keeper, launch.origin == LaunchOrigin::Launched);
        if launch.state != LaunchState::Ready {
            return Ok(StopQuestion {
                in_flight: None,
                note: Some("It is not ready, so it works on no requests.".to_owned()),
                how,
            });
        }
        let host = Host::open(&self.0.config.remote, &launch.reach);
        let asked = match host.forward(launch.port).await {
            Ok(forward) => {
                let key = api_key(&launch.spec);
                in_flight(launch.spec.engine, &address(&forward)?, key.as_ref()).await
            }
            Err(error) => Err(error.to_string()),
        };
        let (in_flight, note) = match asked {
            Ok(Some(count)) => (Some(count), None),
            Ok(None) => (
                None,
                Some("The engine does not tell how many requests it works on.".to_owned()),
            ),
            Err(why) => (None, Some(format!("It could not be asked. {why}"))),
        };
        Ok(StopQuestion {
            in_flight,
            note,
            how,
        })
    }

    async fn launch_of_team(
        &self,
        actor: &Actor,
        launch: LaunchId,
    ) -> Result<row::Launch, LabError> {
        let read = row::read(&self.0.pool, launch).await?;
        if read.actor.team != actor.team {
            return Err(LabError::NoSuchLaunch(launch));
        }
        Ok(read)
    }

    /// Does something rely on this launch's folder? A living server that was restored
    /// from it, or one that is owed a restoring.
    async fn still_needed(&self, launch: LaunchId) -> Result<Option<String>, LabError> {
        let living = sqlx::query_scalar!(
            "SELECT id FROM launches WHERE restores_id = $1
               AND state IN ('queued', 'starting', 'loading', 'ready', 'stopping') LIMIT 1",
            launch.0,
        )
        .fetch_optional(&self.0.pool)
        .await?;
        if let Some(living) = living {
            return Ok(Some(format!(
                "Launch {living} was restored from the folder of launch {launch} and lives, so that folder is kept."
            )));
        }
        let owed = sqlx::query_scalar!(
            "SELECT o.id FROM launches o
             JOIN launches named ON named.id = (o.plan ->> 'restore')::bigint
             WHERE coalesce(named.restores_id, named.id) = $1
               AND (o.restore_due
                   OR o.state IN ('queued', 'starting', 'loading', 'ready', 'stopping'))
             LIMIT 1",
            launch.0,
        )
        .fetch_optional(&self.0.pool)
        .await?;
        Ok(owed.map(|owed| {
            format!(
                "Launch {launch} is restored from its folder after launch {owed}, so that folder is kept."
            )
        }))
    }

    /// Ends what a launch of this laboratory left behind on a host, and removes its
    /// folder there.
    ///
    /// # Errors
    /// [`LabError::Invalid`] for a folder of somebody else, [`LabError::NoSuchLaunch`]
    /// for one of another team, [`LabError::Conflict`] if the launch lives or is one of
    /// another host, if nothing of it is left, if a server is restored from the folder,
    /// or if something of it cannot be ended; [`LabError::Host`],
    /// [`LabError::NoSuchHost`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn clean_up(
        &self,
        actor: &Actor,
        host: HostId,
        leftover: &Leftover,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        let folder = leftover.folder.as_str();
        let Some(launch) = launch_rows::launch_of(self.0.id, folder) else {
            return Err(LabError::Invalid(format!(
                "{folder} is not a folder of this laboratory's launches, so it is left alone. End it from where it was started."
            )));
        };
        let remote = self.remote_host(actor, host).await?;
        let known = match row::read(&self.0.pool, launch).await {
            Ok(known) if known.actor.team == actor.team => Some(known),
            // Another team's is none of the actor's business.
            Ok(_) => return Err(LabError::NoSuchLaunch(launch)),
            // The database is an older copy: the folder's name still says whose it is.
            Err(LabError::NoSuchLaunch(_)) => None,
            Err(error) => return Err(error),
        };
        if let Some(known) = known.as_ref().filter(|known| known.host != host) {
            return Err(LabError::Conflict(format!(
                "Launch {launch} is one of host {}, not of host {host}. Look at the host again.",
                known.host
            )));
        }
        if known.as_ref().is_some_and(|known| !known.state.is_over()) {
            return Err(LabError::Conflict(format!(
                "Launch {launch} lives; stop it rather than cleaning up after it."
            )));
        }
        if let Some(why) = self.still_needed(launch).await? {
            return Err(LabError::Conflict(why));
        }
        // Looked at again: what was shown may have ended meanwhile. A folder without
        // processes may hold what somebody is restored from, so it is left alone.
        let there = remote.leftovers(folder).await?;
        let Some(left) = there.into_iter().find(|left| left.folder == folder) else {
            return Err(LabError::Conflict(format!(
                "Nothing of {folder} runs on the host, so there is nothing to clean up. Look at the host again."
            )));
        };
        if !same(&left.identity, &leftover.identity) {
            return Err(LabError::Conflict(
                "Another process runs in that folder by now. Look at the host again.".to_owned(),
            ));
        }
        // Noted before anything is done, so that what fails midway has left a trace.
        self.note_clean_up(actor, launch, &format!("asked, on host {host}"))
            .await?;
        if let Some(known) = &known
            && known.origin == LaunchOrigin::Launched
        {
            keeper::stop(&remote, &known.keeper, GRACE).await?;
        }
        let stopped = remote.stop(folder, &left.identity, GRACE).await?;
        if let Some(alive) = stopped.left.first() {
            return Err(LabError::Conflict(format!(
                "Process {} lives even after a kill. Look at it on the host.",
                alive.pid
            )));
        }
        remote.remove(folder).await?;
        self.note_clean_up(actor, launch, &format!("done, on host {host}"))
            .await
    }

    async fn note_clean_up(
        &self,
        actor: &Actor,
        launch: LaunchId,
        detail: &str,
    ) -> Result<(), LabError> {
        let mut connection = self.0.pool.acquire().await?;
        let subject = format!("launch {launch}");
        audit::note_more(&mut connection, actor, Action::CleanUp, subject, detail).await
    }
}

/// Makes a profile under the name that was typed, or under one that is free.
async fn profile_for(
    connection: &mut PgConnection,
    actor: &Actor,
    name: &str,
    spec: &ProfileSpec,
) -> Result<ProfileId, LabError> {
    if !name.is_empty() {
        let (profile, _) = profile_rows::add_in(connection, actor, name, spec, None).await?;
        return Ok(profile);
    }
    let suggested = suggested_name(spec);
    let mut tried = 1;
    loop {
        let name = if tried == 1 {
            suggested.clone()
        } else {
            let short: String = suggested.chars().take(MAX_PROFILE_NAME - 4).collect();
            format!("{short}-{tried}")
        };
        // A name that is taken must not spoil the transaction around it.
        let mut attempt = connection.begin().await?;
        match profile_rows::add_in(&mut attempt, actor, &name, spec, None).await {
            Ok((profile, _)) => {
                attempt.commit().await?;
                return Ok(profile);
            }
            Err(LabError::Conflict(_)) if tried < NAMES => tried += 1,
            Err(error) => return Err(error),
        }
        attempt.rollback().await?;
    }
}

async fn refuse_twice(
    connection: &mut PgConnection,
    host: HostId,
    found: &FoundEngine,
) -> Result<(), LabError> {
    let rows = sqlx::query!(
        r#"SELECT id, identity AS "identity: Json<ProcessIdentity>" FROM launches
           WHERE host_id = $1 AND identity IS NOT NULL
             AND state IN ('starting', 'loading', 'ready', 'stopping')"#,
        host.0,
    )
    .fetch_all(connection)
    .await?;
    let own = &found.process.identity;
    let known = rows
        .iter()
        .find(|row| row.identity.as_ref().is_some_and(|known| same(known, own)));
    match known {
        None => Ok(()),
        Some(row) => Err(LabError::Conflict(format!(
            "This engine is launch {} already.",
            row.id
        ))),
    }
}

/// The engine as it is now.
async fn look_again(host: &Host, shown: &FoundEngine) -> Result<FoundEngine, LabError> {
    let gone = || {
        LabError::Conflict(
            "The engine is not there any more as it was shown. Look at the host again.".to_owned(),
        )
    };
    let identity = &shown.process.identity;
    let status = host.process(identity.pid, &[]).await?;
    let facts = status
        .filter(|facts| same(&facts.identity, identity))
        .ok_or_else(gone)?;
    recognise(facts).ok_or_else(gone)
}

fn same(one: &ProcessIdentity, other: &ProcessIdentity) -> bool {
    one.boot_id == other.boot_id && one.pid == other.pid && one.start_ticks == other.start_ticks
}
