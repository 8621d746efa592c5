//! Profiles and revisions as rows: put in, locked, read.

use sqlx::{PgConnection, types::Json};
use tokdyno_domain::{
    access::Actor,
    ids::{ContentHash, ProfileId, RevisionId},
    profile::{ProfileError, ProfileSpec},
};

use crate::{
    LabError,
    audit::{self, Action},
    error::taken,
};

/// A profile that nobody else changes until the transaction ends.
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) builtin: Option<String>,
    archived: bool,
}

impl Held {
    pub(crate) fn refuse_archived(&self) -> Result<(), LabError> {
        if self.archived {
            return Err(LabError::Conflict(format!(
                "The profile {} is archived. Bring it back first, or duplicate it.",
                self.name
            )));
        }
        Ok(())
    }
}

/// Locks a profile of the actor's team.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    actor: &Actor,
    profile: ProfileId,
) -> Result<Held, LabError> {
    sqlx::query_as!(
        Held,
        r#"SELECT name, builtin, deleted_at IS NOT NULL AS "archived!" FROM profiles
           WHERE id = $1 AND team_id = $2 FOR NO KEY UPDATE"#,
        profile.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?
    .ok_or_else(|| no_such(profile))
}

/// The same, for whoever changes nothing.
pub(crate) async fn read(
    connection: &mut PgConnection,
    actor: &Actor,
    profile: ProfileId,
) -> Result<Held, LabError> {
    sqlx::query_as!(
        Held,
        r#"SELECT name, builtin, deleted_at IS NOT NULL AS "archived!" FROM profiles
           WHERE id = $1 AND team_id = $2"#,
        profile.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?
    .ok_or_else(|| no_such(profile))
}

fn no_such(profile: ProfileId) -> LabError {
    LabError::NoSuchProfile(format!("of the number {profile}"))
}

/// A profile's newest revision.
pub(crate) struct Newest {
    pub(crate) id: RevisionId,
    pub(crate) number: i32,
    pub(crate) hash: ContentHash,
    pub(crate) spec: ProfileSpec,
}

/// Reads the newest revision.
pub(crate) async fn newest(
    connection: &mut PgConnection,
    profile: ProfileId,
) -> Result<Newest, LabError> {
    let row = sqlx::query!(
        r#"SELECT id, number, hash, spec AS "spec: Json<ProfileSpec>" FROM profile_revisions
           WHERE profile_id = $1 ORDER BY number DESC LIMIT 1"#,
        profile.0,
    )
    .fetch_one(connection)
    .await?;
    Ok(Newest {
        id: RevisionId(row.id),
        number: row.number,
        hash: ContentHash(row.hash),
        spec: row.spec.0,
    })
}

/// Makes a profile with its first revision, in a transaction.
pub(crate) async fn add_in(
    connection: &mut PgConnection,
    actor: &Actor,
    name: &str,
    spec: &ProfileSpec,
    builtin: Option<&str>,
) -> Result<(ProfileId, RevisionId), LabError> {
    let name = checked_name(name)?;
    checked(spec)?;
    let profile = ProfileId(
        sqlx::query_scalar!(
            "INSERT INTO profiles (team_id, actor_id, name, builtin) VALUES ($1, $2, $3, $4)
             RETURNING id",
            actor.team.0,
            actor.id.0,
            name,
            builtin,
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| taken(error, || twice(name)))?,
    );
    let revision = insert_revision(connection, actor, profile, 1, spec).await?;
    let subject = format!("profile {name}");
    let detail = builtin.map(|id| format!("from {id}")).unwrap_or_default();
    audit::note_more(connection, actor, Action::ProfileAdd, subject, &detail).await?;
    Ok((profile, revision))
}

/// Keeps a revision, which never changes.
pub(crate) async fn insert_revision(
    connection: &mut PgConnection,
    actor: &Actor,
    profile: ProfileId,
    number: i32,
    spec: &ProfileSpec,
) -> Result<RevisionId, LabError> {
    let revision = sqlx::query_scalar!(
        "INSERT INTO profile_revisions (profile_id, team_id, actor_id, number, hash, spec)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
        profile.0,
        actor.team.0,
        actor.id.0,
        number,
        spec.hash().0,
        Json(spec) as _,
    )
    .fetch_one(connection)
    .await?;
    Ok(RevisionId(revision))
}

/// Refuses what cannot be launched.
pub(crate) fn checked(spec: &ProfileSpec) -> Result<(), LabError> {
    spec.check()
        .map_err(|error| LabError::Invalid(error.to_string()))
}

/// The name as stored.
pub(crate) fn checked_name(name: &str) -> Result<&str, LabError> {
    ProfileError::check_name(name).map_err(|error| LabError::Invalid(error.to_string()))
}

/// Why a name cannot be given again.
pub(crate) fn twice(name: &str) -> String {
    format!("There is a profile called {name} already. Choose another name, or edit that one.")
}
