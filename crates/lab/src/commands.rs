//! What people ask for: queue, cancel, rename, delete.

use sqlx::{PgConnection, types::Json};
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::RunId,
    live::LiveKind,
    meter::ApiKey,
    metrics::METRIC_VERSION,
    run::RunState,
    source::Source,
    statistics::ANALYSIS_VERSION,
    views::measure::{MAX_NAME, NewRun},
    workload::Workload,
};

use crate::{
    Lab, LabError,
    audit::{self, Action},
    live,
};

/// A seed that no run before had, almost surely, so that no prompt is met again in a
/// server's cache. It has 32 bits: every reader of JSON keeps it whole.
pub(crate) fn fresh_seed() -> Result<u64, LabError> {
    getrandom::u32()
        .map(u64::from)
        .map_err(|error| LabError::internal("drawing random numbers", error))
}

impl Lab {
    /// Queues a measurement. The server is asked who it is when its turn comes.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with the first thing found wrong,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn queue_run(&self, actor: &Actor, new: &NewRun) -> Result<RunId, LabError> {
        authorise(actor, Capability::Measure)?;
        let (endpoint, mut workload) = new
            .check()
            .map_err(|error| LabError::Invalid(error.to_string()))?;
        workload.seed = fresh_seed()?;
        let requested_model = new
            .model
            .as_deref()
            .map(str::trim)
            .filter(|m| !m.is_empty());
        for text in [
            new.configuration.as_str(),
            &new.hardware,
            requested_model.unwrap_or(""),
        ] {
            storable(text)?;
        }
        let workload_json = workload_json(&workload)?;
        let mut tx = self.0.pool.begin().await?;
        let run = RunId(
            sqlx::query_scalar!(
                "INSERT INTO runs (team_id, actor_id, metric_version, analysis_version, state,
                     source, configuration, hardware, endpoint_url, endpoint_key, tls,
                     requested_model, model, engine, workload, workload_hash, workload_name,
                     workload_text, queued_at)
                 VALUES ($1, $2, $3, $4, 'queued', $5, $6, $7, $8, $8, $9, $10, $11, 'other',
                     $12, $13, $14, $15, now())
                 RETURNING id",
                actor.team.0,
                actor.id.0,
                version(METRIC_VERSION),
                version(ANALYSIS_VERSION),
                Source::Measured.word(),
                new.configuration.trim(),
                new.hardware.trim(),
                endpoint.to_string(),
                Json(&new.endpoint.tls) as _,
                requested_model,
                requested_model.unwrap_or(""),
                workload_json,
                workload.hash().0,
                workload.name,
                workload.describe(),
            )
            .fetch_one(&mut *tx)
            .await?,
        );
        if let Some(key) = &new.endpoint.api_key
            && let Some(key) = ApiKey::new(key.reveal())
        {
            let sealed = self
                .0
                .key_file
                .seal(run, &key)
                .map_err(|error| LabError::internal("encrypting the endpoint's key", error))?;
            sqlx::query!(
                "INSERT INTO secrets (run_id, team_id, actor_id, nonce, ciphertext)
                 VALUES ($1, $2, $3, $4, $5)",
                run.0,
                actor.team.0,
                actor.id.0,
                sealed.nonce,
                sealed.ciphertext,
            )
            .execute(&mut *tx)
            .await?;
        }
        audit::note(&mut tx, actor, Action::Queue, format!("run {run}")).await?;
        emit_state(&mut tx, run, RunState::Queued).await?;
        tx.commit().await?;
        Ok(run)
    }

    /// Stops a run: at once if it waits, within about ten seconds if it runs. What
    /// was finished is kept.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Conflict`] if it is over,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn cancel_run(&self, actor: &Actor, run: RunId) -> Result<(), LabError> {
        authorise(actor, Capability::Measure)?;
        let mut tx = self.0.pool.begin().await?;
        let state = locked_state(&mut tx, actor, run).await?;
        if !cancel(&mut tx, run, state).await? {
            return Err(LabError::Conflict(format!(
                "Run {run} is over already ({state}), so there is nothing to stop."
            )));
        }
        audit::note(&mut tx, actor, Action::Cancel, format!("run {run}")).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Names a run's configuration and hardware anew.
    ///
    /// # Errors
    /// [`LabError::Invalid`] for a blank or overlong name, [`LabError::NoSuchRun`],
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn rename_run(
        &self,
        actor: &Actor,
        run: RunId,
        configuration: &str,
        hardware: &str,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Measure)?;
        let (configuration, hardware) = (configuration.trim(), hardware.trim());
        if configuration.is_empty() {
            return Err(LabError::Invalid(
                "The configuration needs a name: under it the Board gathers its runs. Type one."
                    .to_owned(),
            ));
        }
        for (what, text) in [("The name", configuration), ("The hardware", hardware)] {
            storable(text)?;
            fits(what, text, MAX_NAME)?;
        }
        let mut tx = self.0.pool.begin().await?;
        let state = locked_state(&mut tx, actor, run).await?;
        sqlx::query!(
            "UPDATE runs SET configuration = $2, hardware = $3 WHERE id = $1",
            run.0,
            configuration,
            hardware,
        )
        .execute(&mut *tx)
        .await?;
        emit_state(&mut tx, run, state).await?;
        audit::note(&mut tx, actor, Action::Rename, format!("run {run}")).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Deletes a run: it stands in no list any more. Frozen comparisons made from
    /// it stay as they are. A waiting run is cancelled by it.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Conflict`] while it runs,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn delete_run(&self, actor: &Actor, run: RunId) -> Result<(), LabError> {
        authorise(actor, Capability::Delete)?;
        let mut tx = self.0.pool.begin().await?;
        let state = match locked_state(&mut tx, actor, run).await? {
            RunState::Running => {
                return Err(LabError::Conflict(format!(
                    "Run {run} is being measured. Stop it first, then delete it."
                )));
            }
            RunState::Queued => {
                end_queued(&mut tx, run).await?;
                RunState::Cancelled
            }
            state => state,
        };
        sqlx::query!("UPDATE runs SET deleted_at = now() WHERE id = $1", run.0)
            .execute(&mut *tx)
            .await?;
        emit_state(&mut tx, run, state).await?;
        audit::note(&mut tx, actor, Action::Delete, format!("run {run}")).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// A version as stored.
pub(crate) fn version(version: u32) -> i32 {
    i32::try_from(version).unwrap_or(i32::MAX)
}

/// The workload as stored.
pub(crate) fn workload_json(workload: &Workload) -> Result<serde_json::Value, LabError> {
    let value = serde_json::to_value(workload)
        .map_err(|error| LabError::internal("writing a workload", error))?;
    // Replacing it would change what is sent, and with it the hash.
    if crate::clean::json(value.clone()) != value {
        return Err(LabError::Invalid(
            "The prompts hold a NUL character, which cannot be stored. Remove it from the file."
                .to_owned(),
        ));
    }
    Ok(value)
}

/// Tells everybody that a run changed.
pub(crate) async fn emit_state(
    connection: &mut PgConnection,
    run: RunId,
    state: RunState,
) -> Result<(), LabError> {
    live::emit(connection, run, LiveKind::State { state }).await
}

/// Refuses what Postgres cannot keep.
pub(crate) fn storable(text: &str) -> Result<(), LabError> {
    if text.contains('\0') {
        return Err(LabError::Invalid(
            "A name holds a NUL character, which cannot be stored. Type it again.".to_owned(),
        ));
    }
    Ok(())
}

/// Refuses what is longer than is kept, in characters.
pub(crate) fn fits(what: &str, text: &str, most: usize) -> Result<(), LabError> {
    let length = text.chars().count();
    if length > most {
        return Err(LabError::Invalid(format!(
            "{what}: {length} characters are more than the {most} that are kept. Shorten it."
        )));
    }
    Ok(())
}

/// Ends a waiting run, or asks a running one to end. False if it is over. Its row
/// must be locked.
pub(crate) async fn cancel(
    connection: &mut PgConnection,
    run: RunId,
    state: RunState,
) -> Result<bool, LabError> {
    match state {
        RunState::Queued => {
            end_queued(connection, run).await?;
            emit_state(connection, run, RunState::Cancelled).await?;
        }
        RunState::Running => {
            sqlx::query!(
                "UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, now())
                 WHERE id = $1",
                run.0
            )
            .execute(&mut *connection)
            .await?;
            emit_state(connection, run, RunState::Running).await?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

async fn locked_state(
    connection: &mut PgConnection,
    actor: &Actor,
    run: RunId,
) -> Result<RunState, LabError> {
    let state = sqlx::query_scalar!(
        "SELECT state FROM runs WHERE id = $1 AND team_id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE",
        run.0,
        actor.team.0,
    )
    .fetch_optional(connection)
    .await?
    .ok_or(LabError::NoSuchRun(run))?;
    RunState::from_word(&state)
        .ok_or_else(|| LabError::internal("reading a run's state", format!("`{state}`")))
}

async fn end_queued(connection: &mut PgConnection, run: RunId) -> Result<(), LabError> {
    sqlx::query!(
        "UPDATE runs SET state = 'cancelled', finished_at = now(), cancel_requested_at = now()
         WHERE id = $1",
        run.0
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("DELETE FROM secrets WHERE run_id = $1", run.0)
        .execute(connection)
        .await?;
    Ok(())
}
