//! Hosts: kept, checked, and looked into.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use sqlx::{PgConnection, types::Json};
use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    host::{Inventory, Reach},
    ids::{HostId, LaunchId},
    timestamp::Timestamp,
    views::hosts::{GpuOwner, HostCheck, HostForm, HostSummary, HostView},
};
use tokdyno_remote::{Host, RemoteError};

use crate::{
    Lab, LabError,
    audit::{self, Action, may_operate},
    clean,
    commands::{fits, storable},
    error::taken,
    experiments,
    launch_rows::{self, Which},
    stages,
};

/// Longest name, in characters.
const MAX_NAME: usize = 80;
/// Longest notes, in characters.
const MAX_NOTES: usize = 4_000;
/// Launches that a host's page shows.
const LAUNCHES: i64 = 50;

impl Lab {
    /// All hosts by name.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn hosts(&self, actor: &Actor) -> Result<Vec<HostSummary>, LabError> {
        authorise(actor, Capability::Read)?;
        let hosts = self.host_rows(actor, None).await?;
        Ok(hosts.into_iter().map(|(summary, _)| summary).collect())
    }

    /// A host with its newest inventory and its launches.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn host(&self, actor: &Actor, host: HostId) -> Result<HostView, LabError> {
        authorise(actor, Capability::Read)?;
        let found = self.host_rows(actor, Some(host)).await?.pop();
        let (summary, inventory) = found.ok_or(LabError::NoSuchHost(host))?;
        let which = Which {
            host: Some(host),
            most: Some(LAUNCHES),
            ..Which::default()
        };
        Ok(HostView {
            summary,
            inventory,
            launches: launch_rows::summaries(&self.0.pool, actor, which).await?,
            may_operate: may_operate(actor),
        })
    }

    /// Adds a host. It is not connected to yet, see [`Self::check_host`].
    ///
    /// # Errors
    /// [`LabError::Invalid`] for a name or destination that cannot be used,
    /// [`LabError::Conflict`] if one like it is there, [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn add_host(&self, actor: &Actor, form: &HostForm) -> Result<HostId, LabError> {
        authorise(actor, Capability::EditHosts)?;
        let (name, reach, notes) = checked(form)?;
        let mut tx = self.0.pool.begin().await?;
        let host = HostId(
            sqlx::query_scalar!(
                "INSERT INTO hosts (team_id, actor_id, name, reach, notes)
                 VALUES ($1, $2, $3, $4, $5) RETURNING id",
                actor.team.0,
                actor.id.0,
                name,
                Json(&reach) as _,
                notes,
            )
            .fetch_one(&mut *tx)
            .await
            .map_err(|error| taken(error, || twice(&name, &reach)))?,
        );
        let subject = format!("host {host}");
        audit::note_more(
            &mut tx,
            actor,
            Action::HostAdd,
            subject,
            &said(&name, &reach),
        )
        .await?;
        tx.commit().await?;
        Ok(host)
    }

    /// Changes name, destination and notes.
    ///
    /// # Errors
    /// As [`Self::add_host`]; [`LabError::NoSuchHost`]; [`LabError::Conflict`] when
    /// the destination is to change while launches live on the host.
    pub async fn edit_host(
        &self,
        actor: &Actor,
        host: HostId,
        form: &HostForm,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::EditHosts)?;
        let (name, reach, notes) = checked(form)?;
        let mut tx = self.0.pool.begin().await?;
        let before = lock(&mut tx, actor, host).await?;
        if before != reach {
            refuse_while_used(&mut tx, host, "lead elsewhere").await?;
        }
        // What another machine told is not kept under this destination.
        sqlx::query!(
            "UPDATE hosts SET name = $2, reach = $3, notes = $4,
                 inventory = CASE WHEN reach = $3 THEN inventory END,
                 checked_at = CASE WHEN reach = $3 THEN checked_at END,
                 check_error = CASE WHEN reach = $3 THEN check_error END
             WHERE id = $1",
            host.0,
            name,
            Json(&reach) as _,
            notes,
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| taken(error, || twice(&name, &reach)))?;
        let subject = format!("host {host}");
        audit::note_more(
            &mut tx,
            actor,
            Action::HostEdit,
            subject,
            &said(&name, &reach),
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Removes a host from the list; its launches and runs stay readable.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`], [`LabError::Conflict`] while launches live on it,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn remove_host(&self, actor: &Actor, host: HostId) -> Result<(), LabError> {
        authorise(actor, Capability::EditHosts)?;
        let mut tx = self.0.pool.begin().await?;
        lock(&mut tx, actor, host).await?;
        refuse_while_used(&mut tx, host, "be removed").await?;
        let name = sqlx::query_scalar!(
            "UPDATE hosts SET deleted_at = now() WHERE id = $1 RETURNING name",
            host.0
        )
        .fetch_one(&mut *tx)
        .await?;
        audit::note_more(
            &mut tx,
            actor,
            Action::HostRemove,
            format!("host {host}"),
            &name,
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Connects to a host, reads what is on it and keeps that. That it cannot be
    /// reached is an answer, and kept as well.
    ///
    /// # Errors
    /// [`LabError::NoSuchHost`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn check_host(&self, actor: &Actor, host: HostId) -> Result<HostCheck, LabError> {
        authorise(actor, Capability::Launch)?;
        let reach = {
            let mut connection = self.0.pool.acquire().await?;
            reach_of(&mut connection, actor, host).await?
        };
        let answer = look_into(&Host::open(&self.0.config.remote, &reach)).await;
        let (inventory, error) = match &answer {
            Ok((_, inventory)) => {
                let value = serde_json::to_value(inventory)
                    .map_err(|error| LabError::internal("writing an inventory", error))?;
                (Some(clean::json(value)), None)
            }
            Err(error) => (None, Some(clean::owned(&error.to_string()))),
        };
        // Another destination may have been given meanwhile.
        sqlx::query!(
            "UPDATE hosts SET checked_at = now(), check_error = $2,
                 inventory = coalesce($3, inventory)
             WHERE id = $1 AND reach = $4",
            host.0,
            error,
            inventory,
            Json(&reach) as _,
        )
        .execute(&self.0.pool)
        .await?;
        Ok(match answer {
            Ok((round_trip_ms, inventory)) => HostCheck::Reachable {
                round_trip_ms,
                inventory: Box::new(inventory),
            },
            Err(error) => HostCheck::Unreachable {
                word: error.word().to_owned(),
                reason: error.to_string(),
            },
        })
    }

    /// The way to a host.
    pub(crate) async fn remote_host(&self, actor: &Actor, host: HostId) -> Result<Host, LabError> {
        let mut connection = self.0.pool.acquire().await?;
        let reach = reach_of(&mut connection, actor, host).await?;
        Ok(Host::open(&self.0.config.remote, &reach))
    }

    /// Hosts with their inventories, by name.
    async fn host_rows(
        &self,
        actor: &Actor,
        only: Option<HostId>,
    ) -> Result<Vec<(HostSummary, Option<Inventory>)>, LabError> {
        let rows = sqlx::query!(
            r#"SELECT id, name, reach AS "reach: Json<Reach>", notes, checked_at, check_error,
                   inventory AS "inventory: Json<Inventory>",
                   (SELECT count(*) FROM launches l
                    WHERE l.host_id = hosts.id AND l.state = 'queued') AS "waiting!"
               FROM hosts
               WHERE team_id = $1 AND deleted_at IS NULL AND ($2::bigint IS NULL OR id = $2)
               ORDER BY lower(name)"#,
            actor.team.0,
            only.map(|host| host.0),
        )
        .fetch_all(&self.0.pool)
        .await?;
        let mut owners = self.owners(actor, only).await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let inventory = row.inventory.map(|inventory| inventory.0);
                let summary = HostSummary {
                    id: HostId(row.id),
                    name: row.name,
                    reach: row.reach.0,
                    notes: row.notes,
                    checked_at: row.checked_at.map(Timestamp::from_datetime),
                    check_error: row.check_error,
                    hardware: inventory
                        .as_ref()
                        .map(|inventory| inventory.hardware(None))
                        .unwrap_or_default(),
                    owners: owners.remove(&row.id).unwrap_or_default(),
                    waiting: stages::small(row.waiting),
                };
                (summary, inventory)
            })
            .collect())
    }

    /// Who owns GPUs, by host; who has owned longest comes first.
    async fn owners(
        &self,
        actor: &Actor,
        only: Option<HostId>,
    ) -> Result<HashMap<i64, Vec<GpuOwner>>, LabError> {
        let rows = sqlx::query!(
            r#"SELECT l.id, l.host_id, p.name AS profile, a.name AS by, l.gpus,
                   coalesce(l.started_at, l.created_at) AS "since!: OffsetDateTime",
                   (l.plan ->> 'give_back_at')::bigint AS until
               FROM launches l
               JOIN profile_revisions r ON r.id = l.revision_id
               JOIN profiles p ON p.id = r.profile_id
               JOIN actors a ON a.id = l.actor_id
               WHERE l.team_id = $1 AND ($2::bigint IS NULL OR l.host_id = $2)
                 AND l.state IN ('starting', 'loading', 'ready', 'stopping')
               ORDER BY l.id"#,
            actor.team.0,
            only.map(|host| host.0),
        )
        .fetch_all(&self.0.pool)
        .await?;
        let mut owners: HashMap<i64, Vec<GpuOwner>> = HashMap::new();
        for row in rows {
            owners.entry(row.host_id).or_default().push(GpuOwner {
                launch: LaunchId(row.id),
                profile: row.profile,
                by: row.by,
                gpus: row.gpus.map(launch_rows::read_gpus),
                since: Timestamp::from_datetime(row.since),
                until: row.until.map(Timestamp),
            });
        }
        Ok(owners)
    }
}

async fn look_into(host: &Host) -> Result<(f64, Inventory), RemoteError> {
    let checked = host.check().await?;
    let inventory = host.inventory().await?;
    Ok((checked.round_trip.as_secs_f64() * 1e3, inventory))
}

/// How a host is reached.
pub(crate) async fn reach_of(
    connection: &mut PgConnection,
    actor: &Actor,
    host: HostId,
) -> Result<Reach, LabError> {
    let reach = sqlx::query_scalar!(
        r#"SELECT reach AS "reach: Json<Reach>" FROM hosts
           WHERE id = $1 AND team_id = $2 AND deleted_at IS NULL"#,
        host.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(reach.ok_or(LabError::NoSuchHost(host))?.0)
}

/// Locks a host, so that nothing is launched on it until the transaction ends.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    actor: &Actor,
    host: HostId,
) -> Result<Reach, LabError> {
    let reach = sqlx::query_scalar!(
        r#"SELECT reach AS "reach: Json<Reach>" FROM hosts
           WHERE id = $1 AND team_id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE"#,
        host.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?;
    Ok(reach.ok_or(LabError::NoSuchHost(host))?.0)
}

async fn refuse_while_used(
    connection: &mut PgConnection,
    host: HostId,
    what: &str,
) -> Result<(), LabError> {
    let used = sqlx::query_scalar!(
        "SELECT id FROM launches WHERE host_id = $1
           AND (state IN ('queued', 'starting', 'loading', 'ready', 'stopping') OR restore_due)
         ORDER BY id LIMIT 1",
        host.0,
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(launch) = used {
        return Err(LabError::Conflict(format!(
            "The host cannot {what} while launch {launch} on it is not over. Stop that first."
        )));
    }
    match experiments::using(connection, host).await? {
        None => Ok(()),
        Some(experiment) => Err(LabError::Conflict(format!(
            "The host cannot {what} while experiment {experiment} on it waits or runs. Pause or cancel that first."
        ))),
    }
}

/// Name, way and notes as they are stored.
fn checked(form: &HostForm) -> Result<(String, Reach, String), LabError> {
    for text in [&form.name, &form.destination, &form.notes] {
        storable(text)?;
    }
    let reach = if form.destination.trim().is_empty() {
        Reach::Local
    } else {
        Reach::ssh(&form.destination).map_err(|error| LabError::Invalid(error.to_string()))?
    };
    let name = match form.name.trim() {
        "" => reach.label().chars().take(MAX_NAME).collect(),
        name => name.to_owned(),
    };
    let notes = form.notes.trim();
    fits("The name", &name, MAX_NAME)?;
    fits("The notes", notes, MAX_NOTES)?;
    Ok((name, reach, notes.to_owned()))
}

fn said(name: &str, reach: &Reach) -> String {
    match reach {
        Reach::Local => format!("{name}, this machine"),
        Reach::Ssh { destination } => format!("{name}, over SSH as {destination}"),
    }
}

fn twice(name: &str, reach: &Reach) -> String {
    format!(
        "There is a host called {name} already, or one that is reached as {}. Each machine stands in the list once, because its GPUs can be owned only once; edit the host that is there, or give another name.",
        reach.label()
    )
}
