//! Profiles and their revisions: made, changed, compared. A revision never changes.

#[cfg(test)]
mod tests;

use sqlx::types::Json;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::{ContentHash, HostId, ProfileId, RevisionId},
    profile::{MAX_PROFILE_NAME, ProfileError, ProfileSpec},
    timestamp::Timestamp,
    views::profiles::{DiffLine, Draft, ProfileCard, ProfileList, ProfileView, RevisionSummary},
};
use tokdyno_engines::{builtin, knowledge, shell};

use crate::{
    Lab, LabError,
    audit::{self, Action, may_operate},
    error::taken,
    launch_rows::{self, Which},
    profile_rows::{add_in, checked, checked_name, insert_revision, lock, newest, twice},
    stages,
};

/// Launches that a profile's page shows.
const LAUNCHES: i64 = 20;
/// Longest text that is read as a command line, in bytes.
const LONGEST_PASTE: usize = 1024 * 1024;

impl Lab {
    /// The page of profiles.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn profiles(&self, actor: &Actor) -> Result<ProfileList, LabError> {
        authorise(actor, Capability::Read)?;
        Ok(ProfileList {
            profiles: self.cards(actor, None).await?,
            builtins: builtin::all(),
            hosts: self.host_choices(actor).await?,
            may_operate: may_operate(actor),
        })
    }

    /// A profile with its revisions. Where an archived one and one in use share the
    /// name, the one in use is meant.
    ///
    /// # Errors
    /// [`LabError::NoSuchProfile`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn profile(&self, actor: &Actor, name: &str) -> Result<ProfileView, LabError> {
        authorise(actor, Capability::Read)?;
        let unknown = || LabError::NoSuchProfile(name.chars().take(MAX_PROFILE_NAME).collect());
        // No other name was ever stored, and this one might hold anything.
        let name = ProfileError::check_name(name).map_err(|_| unknown())?;
        let profile = sqlx::query_scalar!(
            "SELECT id FROM profiles WHERE team_id = $1 AND lower(name) = lower($2)
             ORDER BY deleted_at IS NOT NULL, id DESC LIMIT 1",
            actor.team.0,
            name,
        )
        .fetch_optional(&self.0.pool)
        .await?
        .map(ProfileId)
        .ok_or_else(unknown)?;
        let card = self.cards(actor, Some(profile)).await?.pop();
        let card = card.ok_or_else(unknown)?;
        let which = Which {
            profile: Some(profile),
            most: Some(LAUNCHES),
            ..Which::default()
        };
        Ok(ProfileView {
            revisions: self.revisions(profile).await?,
            known: knowledge::known(&card.spec),
            launches: launch_rows::summaries(&self.0.pool, actor, which).await?,
            hosts: self.host_choices(actor).await?,
            may_operate: may_operate(actor),
            card,
        })
    }

    /// Makes a profile with its first revision. `builtin` names the built-in one it
    /// was made from.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with the first thing found wrong,
    /// [`LabError::Conflict`] if the name is taken, [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn add_profile(
        &self,
        actor: &Actor,
        name: &str,
        spec: &ProfileSpec,
        builtin: Option<&str>,
    ) -> Result<ProfileId, LabError> {
        authorise(actor, Capability::EditProfiles)?;
        if let Some(id) = builtin
            && builtin::find(id).is_none()
        {
            return Err(LabError::Invalid(
                "There is no such built-in profile. Choose one from the page of profiles."
                    .to_owned(),
            ));
        }
        let mut tx = self.0.pool.begin().await?;
        let (profile, _) = add_in(&mut tx, actor, name, spec, builtin).await?;
        tx.commit().await?;
        Ok(profile)
    }

    /// Keeps what a profile says now, as a new revision unless nothing changed.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with the first thing found wrong,
    /// [`LabError::NoSuchProfile`], [`LabError::Conflict`] if it is archived,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn save_profile(
        &self,
        actor: &Actor,
        profile: ProfileId,
        spec: &ProfileSpec,
    ) -> Result<RevisionId, LabError> {
        authorise(actor, Capability::EditProfiles)?;
        checked(spec)?;
        let mut tx = self.0.pool.begin().await?;
        let held = lock(&mut tx, actor, profile).await?;
        held.refuse_archived()?;
        let newest = newest(&mut tx, profile).await?;
        // The notes are no part of the hash.
        if newest.hash == spec.hash() && newest.spec.notes == spec.notes {
            return Ok(newest.id);
        }
        let number = newest.number.saturating_add(1);
        let revision = insert_revision(&mut tx, actor, profile, number, spec).await?;
        let subject = format!("profile {}", held.name);
        let detail = format!("revision {number}");
        audit::note_more(&mut tx, actor, Action::ProfileEdit, subject, &detail).await?;
        tx.commit().await?;
        Ok(revision)
    }

    /// Gives a profile another name.
    ///
    /// # Errors
    /// [`LabError::Invalid`], [`LabError::NoSuchProfile`], [`LabError::Conflict`] if
    /// the name is taken, [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn rename_profile(
        &self,
        actor: &Actor,
        profile: ProfileId,
        name: &str,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::EditProfiles)?;
        let name = checked_name(name)?;
        let mut tx = self.0.pool.begin().await?;
        let held = lock(&mut tx, actor, profile).await?;
        sqlx::query!(
            "UPDATE profiles SET name = $2 WHERE id = $1",
            profile.0,
            name
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| taken(error, || twice(name)))?;
        let subject = format!("profile {name}");
        let detail = format!("was {}", held.name);
        audit::note_more(&mut tx, actor, Action::ProfileEdit, subject, &detail).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes a profile that begins with what another one says now.
    ///
    /// # Errors
    /// As [`Self::add_profile`]; [`LabError::NoSuchProfile`].
    pub async fn duplicate_profile(
        &self,
        actor: &Actor,
        profile: ProfileId,
        new_name: &str,
    ) -> Result<ProfileId, LabError> {
        authorise(actor, Capability::EditProfiles)?;
        let mut tx = self.0.pool.begin().await?;
        let held = lock(&mut tx, actor, profile).await?;
        let newest = newest(&mut tx, profile).await?;
        let builtin = held.builtin.as_deref();
        let (copy, _) = add_in(&mut tx, actor, new_name, &newest.spec, builtin).await?;
        tx.commit().await?;
        Ok(copy)
    }

    /// Archives a profile, so that it is offered no more, or brings it back.
    ///
    /// # Errors
    /// [`LabError::NoSuchProfile`], [`LabError::Conflict`] if another one took the
    /// name meanwhile, [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn archive_profile(
        &self,
        actor: &Actor,
        profile: ProfileId,
        archived: bool,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::EditProfiles)?;
        let mut tx = self.0.pool.begin().await?;
        let held = lock(&mut tx, actor, profile).await?;
        sqlx::query!(
            "UPDATE profiles SET deleted_at = CASE WHEN $2 THEN coalesce(deleted_at, now()) END
             WHERE id = $1",
            profile.0,
            archived,
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| taken(error, || twice(&held.name)))?;
        let subject = format!("profile {}", held.name);
        let detail = if archived { "" } else { "brought back" };
        audit::note_more(&mut tx, actor, Action::ProfileArchive, subject, detail).await?;
        tx.commit().await?;
        Ok(())
    }

    /// What a revision says.
    ///
    /// # Errors
    /// [`LabError::NoSuchProfile`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn revision_spec(
        &self,
        actor: &Actor,
        revision: RevisionId,
    ) -> Result<ProfileSpec, LabError> {
        authorise(actor, Capability::Read)?;
        let spec = sqlx::query_scalar!(
            r#"SELECT spec AS "spec: Json<ProfileSpec>" FROM profile_revisions
               WHERE id = $1 AND team_id = $2"#,
            revision.0,
            actor.team.0,
        )
        .fetch_optional(&self.0.pool)
        .await?;
        let unknown = || LabError::NoSuchProfile(format!("with a revision {revision}"));
        Ok(spec.ok_or_else(unknown)?.0)
    }

    /// How two revisions differ, also of different profiles.
    ///
    /// # Errors
    /// As [`Self::revision_spec`].
    pub async fn profile_diff(
        &self,
        actor: &Actor,
        first: RevisionId,
        second: RevisionId,
    ) -> Result<Vec<DiffLine>, LabError> {
        let first = self.revision_spec(actor, first).await?;
        let second = self.revision_spec(actor, second).await?;
        Ok(tokdyno_engines::diff(&first, &second))
    }

    /// What there is to say of a profile that is being edited.
    ///
    /// # Errors
    /// [`LabError::Forbidden`].
    pub fn draft(&self, actor: &Actor, spec: &ProfileSpec) -> Result<Draft, LabError> {
        authorise(actor, Capability::Read)?;
        Ok(tokdyno_engines::draft(spec.clone(), Vec::new()))
    }

    /// Reads a shell command line as a profile. Nothing is run for it.
    ///
    /// # Errors
    /// [`LabError::Invalid`] for what cannot be read, [`LabError::Forbidden`].
    pub fn paste(&self, actor: &Actor, text: &str) -> Result<Draft, LabError> {
        authorise(actor, Capability::Read)?;
        if text.len() > LONGEST_PASTE {
            return Err(LabError::Invalid(
                "The text is longer than 1 MiB, which no command line is. Paste the command alone."
                    .to_owned(),
            ));
        }
        let pasted = shell::paste(text).map_err(|error| LabError::Invalid(error.to_string()))?;
        Ok(tokdyno_engines::draft(pasted.spec, pasted.left_out))
    }

    async fn cards(
        &self,
        actor: &Actor,
        only: Option<ProfileId>,
    ) -> Result<Vec<ProfileCard>, LabError> {
        let rows = sqlx::query!(
            r#"SELECT p.id, p.name, p.deleted_at IS NOT NULL AS "archived!", p.builtin,
                   r.id AS revision, r.number, r.hash, r.created_at,
                   r.spec AS "spec: Json<ProfileSpec>",
                   (SELECT count(*) FROM launches l
                    JOIN profile_revisions of ON of.id = l.revision_id
                    WHERE of.profile_id = p.id
                      AND l.state IN ('queued', 'starting', 'loading', 'ready', 'stopping')
                   ) AS "alive!"
               FROM profiles p
               JOIN LATERAL (SELECT * FROM profile_revisions
                   WHERE profile_id = p.id ORDER BY number DESC LIMIT 1) r ON true
               -- The cells of an experiment stand on its page.
               WHERE p.team_id = $1 AND (p.id = $2 OR $2::bigint IS NULL AND p.experiment_id IS NULL)
               ORDER BY p.deleted_at IS NOT NULL, lower(p.name), p.id DESC"#,
            actor.team.0,
            only.map(|profile| profile.0),
        )
        .fetch_all(&self.0.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let spec = row.spec.0;
                ProfileCard {
                    id: ProfileId(row.id),
                    archived: row.archived,
                    builtin: row.builtin,
                    revision: RevisionId(row.revision),
                    number: stages::small(row.number.into()),
                    hash: ContentHash(row.hash),
                    changed_at: Timestamp::from_datetime(row.created_at),
                    command: shell::quote(
                        &spec.started_command(&launch_rows::container(&row.name)),
                    ),
                    cautions: knowledge::cautions(&spec, None),
                    alive: stages::small(row.alive),
                    name: row.name,
                    spec,
                }
            })
            .collect())
    }

    async fn revisions(&self, profile: ProfileId) -> Result<Vec<RevisionSummary>, LabError> {
        let rows = sqlx::query!(
            r#"SELECT r.id, r.number, r.hash, r.created_at, a.name AS by,
                   r.spec ->> 'notes' AS "notes!"
               FROM profile_revisions r JOIN actors a ON a.id = r.actor_id
               WHERE r.profile_id = $1 ORDER BY r.number DESC"#,
            profile.0,
        )
        .fetch_all(&self.0.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| RevisionSummary {
                id: RevisionId(row.id),
                number: stages::small(row.number.into()),
                hash: ContentHash(row.hash),
                at: Timestamp::from_datetime(row.created_at),
                by: row.by,
                notes: row.notes,
            })
            .collect())
    }

    /// Hosts to launch on: identity, name and hardware.
    async fn host_choices(&self, actor: &Actor) -> Result<Vec<(HostId, String, String)>, LabError> {
        let hosts = self.hosts(actor).await?;
        Ok(hosts
            .into_iter()
            .map(|host| (host.id, host.name, host.hardware))
            .collect())
    }
}
