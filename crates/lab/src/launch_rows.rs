//! Launches as rows: put in, read back for lists, announced. What moves them is the
//! worker's.

use sqlx::{PgConnection, PgPool, types::Json};
use time::OffsetDateTime;
use tokdyno_domain::{
    access::Actor,
    effective::Stamp,
    engine::EngineKind,
    ids::{ContentHash, HostId, LaunchId, ProfileId, RevisionId},
    launch::{LaunchFailure, LaunchOrigin, LaunchPlan, LaunchState, LoadStage},
    live::LaunchEvent,
    profile::ProfileSpec,
    timestamp::Timestamp,
    views::servers::LaunchSummary,
};
use uuid::Uuid;

use crate::{LabError, error::taken, launching, stages};

/// A launch about to be queued.
pub(crate) struct NewLaunch<'a> {
    pub(crate) host: HostId,
    pub(crate) revision: RevisionId,
    /// What the revision says: port, GPUs and engine are taken from it.
    pub(crate) spec: &'a ProfileSpec,
    pub(crate) origin: LaunchOrigin,
    /// The launch that this one brings back.
    pub(crate) restores: Option<LaunchId>,
    pub(crate) plan: &'a LaunchPlan,
}

/// Puts a launch into the queue and announces it. Its folder on the host is named
/// here, before anything is done there.
pub(crate) async fn queue(
    connection: &mut PgConnection,
    actor: &Actor,
    laboratory: Uuid,
    new: &NewLaunch<'_>,
) -> Result<LaunchId, LabError> {
    let gpus = new.spec.gpus().map(|gpus| stored_gpus(&gpus));
    let plan = serde_json::to_value(new.plan)
        .map_err(|error| LabError::internal("writing a launch's plan", error))?;
    let launch = LaunchId(
        sqlx::query_scalar!(
            "INSERT INTO launches (team_id, actor_id, host_id, revision_id, origin, restores_id,
                 state, port, gpus, plan, engine)
             VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, $8, $9, $10) RETURNING id",
            actor.team.0,
            actor.id.0,
            new.host.0,
            new.revision.0,
            new.origin.word(),
            new.restores.map(|launch| launch.0),
            i32::from(new.spec.parameters.port),
            gpus.as_deref(),
            plan,
            new.spec.engine.word(),
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| {
            taken(error, || {
                "The server is being restored already, or runs again. Look at its newest launch."
                    .to_owned()
            })
        })?,
    );
    sqlx::query!(
        "UPDATE launches SET folder = $2 WHERE id = $1",
        launch.0,
        folder(laboratory, launch),
    )
    .execute(&mut *connection)
    .await?;
    announce_state(connection, launch, LaunchState::Queued).await?;
    Ok(launch)
}

/// Numbers of GPUs as stored.
pub(crate) fn stored_gpus(gpus: &[u32]) -> Vec<i32> {
    gpus.iter()
        .map(|gpu| i32::try_from(*gpu).unwrap_or(i32::MAX))
        .collect()
}

/// Numbers of GPUs as read.
pub(crate) fn read_gpus(gpus: Vec<i32>) -> Vec<u32> {
    gpus.into_iter()
        .map(|gpu| u32::try_from(gpu).unwrap_or(0))
        .collect()
}

/// The folder of a launch on its host. Several laboratories may share a host.
pub(crate) fn folder(laboratory: Uuid, launch: LaunchId) -> String {
    format!("{}{launch}", folder_prefix(laboratory))
}

/// What the folders of a laboratory's launches begin with.
pub(crate) fn folder_prefix(laboratory: Uuid) -> String {
    let id = laboratory.simple().to_string();
    format!("{}-launch-", id.get(..8).unwrap_or(&id))
}

/// The launch of such a folder, if it is one of this laboratory.
pub(crate) fn launch_of(laboratory: Uuid, folder: &str) -> Option<LaunchId> {
    folder
        .strip_prefix(&folder_prefix(laboratory))?
        .parse()
        .ok()
}

/// The container of a launch, where its profile has one.
pub(crate) fn container(folder: &str) -> String {
    format!("tokdyno-{folder}")
}

/// Announces, when the transaction is committed, that a launch changed.
pub(crate) async fn announce_state(
    connection: &mut PgConnection,
    launch: LaunchId,
    state: LaunchState,
) -> Result<(), LabError> {
    let event = LaunchEvent {
        launch,
        state,
        log_size: None,
    };
    launching::announce(connection, &event).await
}

/// Reads a stored state.
pub(crate) fn state_of(word: &str) -> Result<LaunchState, LabError> {
    LaunchState::from_word(word)
        .ok_or_else(|| LabError::internal("reading a launch's state", format!("`{word}`")))
}

/// A launch that nobody else changes until the transaction ends.
pub(crate) struct Locked {
    pub(crate) state: LaunchState,
    pub(crate) host: HostId,
    pub(crate) origin: LaunchOrigin,
    pub(crate) stop_requested: bool,
    /// It serves only with a key that is not known here.
    pub(crate) wants_key: bool,
}

/// The host of a launch of the actor's team, which never changes.
pub(crate) async fn host_of(
    connection: &mut PgConnection,
    actor: &Actor,
    launch: LaunchId,
) -> Result<HostId, LabError> {
    let host = sqlx::query_scalar!(
        "SELECT host_id FROM launches WHERE id = $1 AND team_id = $2",
        launch.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?;
    host.map(HostId).ok_or(LabError::NoSuchLaunch(launch))
}

/// Locks a launch of the actor's team. Not against rows that merely name it: their
/// foreign keys are checked again at later writes of theirs, in transactions that may
/// hold what this one is about to lock.
pub(crate) async fn lock(
    connection: &mut PgConnection,
    actor: &Actor,
    launch: LaunchId,
) -> Result<Locked, LabError> {
    let row = sqlx::query!(
        r#"SELECT state, host_id, origin, stop_requested_at IS NOT NULL AS "stop_requested!",
               wants_key
           FROM launches WHERE id = $1 AND team_id = $2 FOR NO KEY UPDATE"#,
        launch.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?
    .ok_or(LabError::NoSuchLaunch(launch))?;
    Ok(Locked {
        state: state_of(&row.state)?,
        host: HostId(row.host_id),
        origin: origin_of(&row.origin),
        stop_requested: row.stop_requested,
        wants_key: row.wants_key,
    })
}

// The words are checked by the database.
fn origin_of(word: &str) -> LaunchOrigin {
    LaunchOrigin::from_word(word).unwrap_or(LaunchOrigin::Launched)
}

/// Which launches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Which {
    /// Those that live, or those that are over; none for both.
    pub(crate) alive: Option<bool>,
    pub(crate) host: Option<HostId>,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) launch: Option<LaunchId>,
    /// At most so many; none for all.
    pub(crate) most: Option<i64>,
}

/// Launches of the actor's team, newest first.
pub(crate) async fn summaries(
    pool: &PgPool,
    actor: &Actor,
    which: Which,
) -> Result<Vec<LaunchSummary>, LabError> {
    // The plan may hold prompts of megabytes: only its time is taken from it.
    let rows = sqlx::query_as!(
        SummaryRow,
        r#"SELECT l.id, l.origin, l.state, l.failure AS "failure: Json<LaunchFailure>",
               l.host_id, h.name AS host_name, p.id AS profile_id, p.name AS profile_name,
               r.number, r.hash, l.engine, l.engine_version, l.simulated, l.port, l.gpus,
               l.effective -> 'stamp' AS "stamp: Json<Stamp>", a.name AS by,
               l.created_at, l.started_at, l.ready_at, l.ended_at, l.stage,
               CASE WHEN l.state = 'queued' THEN l.waits_for END AS waits_for,
               l.step, l.stop_requested_at IS NOT NULL AS "stop_requested!",
               l.unreachable_since,
               (l.plan ->> 'give_back_at')::bigint AS give_back_at
           FROM launches l
           JOIN hosts h ON h.id = l.host_id
           JOIN profile_revisions r ON r.id = l.revision_id
           JOIN profiles p ON p.id = r.profile_id
           JOIN actors a ON a.id = l.actor_id
           WHERE l.team_id = $1
             AND ($2::boolean IS NULL
                 OR (l.state IN ('queued', 'starting', 'loading', 'ready', 'stopping')) = $2)
             AND ($3::bigint IS NULL OR l.host_id = $3)
             AND ($4::bigint IS NULL OR r.profile_id = $4)
             AND ($5::bigint IS NULL OR l.id = $5)
           ORDER BY l.id DESC LIMIT $6"#,
        actor.team.0,
        which.alive,
        which.host.map(|host| host.0),
        which.profile.map(|profile| profile.0),
        which.launch.map(|launch| launch.0),
        which.most,
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(SummaryRow::summary).collect()
}

struct SummaryRow {
    id: i64,
    origin: String,
    state: String,
    failure: Option<Json<LaunchFailure>>,
    host_id: i64,
    host_name: String,
    profile_id: i64,
    profile_name: String,
    number: i32,
    hash: String,
    engine: String,
    engine_version: Option<String>,
    simulated: bool,
    port: i32,
    gpus: Option<Vec<i32>>,
    stamp: Option<Json<Stamp>>,
    by: String,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    ready_at: Option<OffsetDateTime>,
    ended_at: Option<OffsetDateTime>,
    stage: Option<String>,
    waits_for: Option<String>,
    step: String,
    stop_requested: bool,
    unreachable_since: Option<OffsetDateTime>,
    give_back_at: Option<i64>,
}

impl SummaryRow {
    fn summary(self) -> Result<LaunchSummary, LabError> {
        Ok(LaunchSummary {
            id: LaunchId(self.id),
            origin: origin_of(&self.origin),
            state: state_of(&self.state)?,
            failure: self.failure.map(|failure| failure.0),
            host: (HostId(self.host_id), self.host_name),
            profile: (
                ProfileId(self.profile_id),
                self.profile_name,
                stages::small(self.number.into()),
                ContentHash(self.hash),
            ),
            engine: EngineKind::from_word(&self.engine).unwrap_or(EngineKind::Other),
            engine_version: self.engine_version,
            simulated: self.simulated,
            port: port(self.port),
            gpus: self.gpus.map(read_gpus),
            stamp: self.stamp.map(|stamp| stamp.0),
            by: self.by,
            created_at: Timestamp::from_datetime(self.created_at),
            started_at: self.started_at.map(Timestamp::from_datetime),
            ready_at: self.ready_at.map(Timestamp::from_datetime),
            ended_at: self.ended_at.map(Timestamp::from_datetime),
            stage: self.stage.as_deref().and_then(LoadStage::from_word),
            waits_for: self.waits_for,
            step: self.step,
            stop_requested: self.stop_requested,
            unreachable_since: self.unreachable_since.map(Timestamp::from_datetime),
            give_back_at: self.give_back_at.map(Timestamp),
        })
    }
}

/// A port as read; the database holds none beyond.
pub(crate) fn port(stored: i32) -> u16 {
    u16::try_from(stored).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_laboratory_and_launch_and_reads_back() {
        let ours = Uuid::from_u128(0x1234_5678_9abc_def0_0000_0000_0000_0000);
        let name = folder(ours, LaunchId(7));
        assert_eq!(name, "12345678-launch-7");
        assert_eq!(launch_of(ours, &name), Some(LaunchId(7)));
        assert_eq!(launch_of(Uuid::nil(), &name), None);
        assert_eq!(launch_of(ours, "12345678-launch-x"), None);
    }
}
