//! Result files: what comes in is what goes out.

use std::{collections::BTreeMap, sync::Arc};

use sqlx::types::Json;
use time::OffsetDateTime;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    engine::EngineKind,
    histogram::StageHistograms,
    ids::RunId,
    meter::{ClientInfo, MeterOutcome, RequestEvent},
    metrics::METRIC_VERSION,
    result_file::{RESULT_SCHEMA, ResultEndpoint, ResultFile, TOOL},
    run::RunState,
    source::Source,
    statistics::ANALYSIS_VERSION,
    timestamp::Timestamp,
    workload::Workload,
};

use crate::{
    Lab, LabError,
    audit::{self, Action},
    clean,
    commands::{emit_state, version, workload_json},
    requests::{self, Columns, ROWS},
    skipped,
    stages::{self, NewStage},
};

/// What came of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Imported {
    /// The run that holds the file's figures.
    pub run: RunId,
    /// The same file had been imported before.
    pub already_there: bool,
}

impl Lab {
    /// Stores a result file as a run. The same result twice is stored once.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with cause and remedy, [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn import(&self, actor: &Actor, bytes: &[u8]) -> Result<Imported, LabError> {
        authorise(actor, Capability::Import)?;
        let turn = Arc::clone(&self.0.importing)
            .acquire_owned()
            .await
            .map_err(|error| LabError::internal("waiting for an import", error))?;
        // A large file takes seconds to check; pages must not wait for it. Whoever gives
        // up meanwhile does not stop the check, so the turn goes with it and comes back.
        let bytes = bytes.to_vec();
        let (file, hash, _turn) = tokio::task::spawn_blocking(move || {
            ResultFile::parse(&bytes).map(|file| {
                let hash = file.hash();
                (file, hash, turn)
            })
        })
        .await
        .map_err(|error| LabError::internal("reading a result file", error))?
        .map_err(|error| LabError::Invalid(error.to_string()))?;
        let source = if file.endpoint.simulated {
            Source::Simulated
        } else {
            Source::Imported
        };
        let (state, reason) = match &file.outcome {
            MeterOutcome::Complete => (RunState::Finished, None),
            MeterOutcome::Cancelled => (RunState::Cancelled, None),
            MeterOutcome::Failed { reason } => (RunState::Failed, Some(clean::owned(reason))),
        };
        let workload = workload_json(&file.workload)?;
        let endpoint = &file.endpoint;
        let configuration = match file.configuration.as_deref().map(str::trim) {
            Some(name) if !name.is_empty() => clean::owned(name),
            _ => format!(
                "{} {}",
                endpoint.engine.unwrap_or(EngineKind::Other),
                clean::text(&endpoint.model)
            ),
        };
        let mut tx = self.0.pool.begin().await?;
        let inserted = sqlx::query_scalar!(
            "INSERT INTO runs (team_id, actor_id, metric_version, analysis_version, state, reason,
                 source, configuration, hardware, endpoint_url, model, engine, engine_version,
                 simulated, settings, workload, workload_hash, workload_name, workload_text,
                 client, tool_version, original, import_hash, started_at, finished_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                 $18, $19, $20, $21, $22, $23, $24, $25)
             ON CONFLICT (team_id, import_hash) WHERE deleted_at IS NULL DO NOTHING
             RETURNING id",
            actor.team.0,
            actor.id.0,
            version(METRIC_VERSION),
            version(ANALYSIS_VERSION),
            state.word(),
            reason,
            source.word(),
            configuration,
            clean::owned(file.hardware.as_deref().unwrap_or("")),
            clean::owned(&endpoint.url),
            clean::owned(&endpoint.model),
            endpoint.engine.unwrap_or(EngineKind::Other).word(),
            endpoint.engine_version.as_deref().map(clean::owned),
            endpoint.simulated,
            Json(clean::map(&endpoint.settings)) as _,
            workload,
            file.workload.hash().0,
            file.workload.name,
            file.workload.describe(),
            clean::json(serde_json::to_value(&file.client).unwrap_or_default()),
            clean::owned(&file.tool_version),
            // What typed columns have no room for: whether a name was given at all.
            serde_json::json!({
                "configuration_given": file.configuration.is_some(),
                "hardware_given": file.hardware.is_some(),
                "engine_given": endpoint.engine.is_some(),
            }),
            hash.0,
            file.started_at.to_datetime(),
            file.finished_at.to_datetime(),
        )
        .fetch_optional(&mut *tx)
        .await?;
        let Some(id) = inserted else {
            let id = sqlx::query_scalar!(
                "SELECT id FROM runs
                 WHERE team_id = $1 AND import_hash = $2 AND deleted_at IS NULL",
                actor.team.0,
                hash.0,
            )
            .fetch_one(&mut *tx)
            .await?;
            return Ok(Imported {
                run: RunId(id),
                already_there: true,
            });
        };
        let run = RunId(id);
        let mut columns = Columns::default();
        for stage in &file.stages {
            stages::store(
                &mut tx,
                run,
                &NewStage {
                    index: stage.index,
                    kind: stage.kind,
                    repeat: stage.repeat,
                    complete: stage.complete,
                    source,
                    disputed: false,
                    remark: None,
                    figures: &stage.figures,
                    conditions: &stage.conditions,
                    histograms: stage
                        .histograms
                        .as_ref()
                        .filter(|_| stage.records.is_empty()),
                },
            )
            .await?;
            for request in &stage.records {
                columns.push(&request.record, request.trace.as_ref());
                if columns.len() == ROWS {
                    std::mem::take(&mut columns).store(&mut tx, run).await?;
                }
            }
        }
        columns.store(&mut tx, run).await?;
        for stage in &file.skipped {
            skipped::store(&mut tx, run, *stage, None).await?;
        }
        audit::note(&mut tx, actor, Action::Import, format!("run {run}")).await?;
        emit_state(&mut tx, run, state).await?;
        tx.commit().await?;
        Ok(Imported {
            run,
            already_there: false,
        })
    }

    /// A run as a result file, which [`Self::import`] reads. An interrupted run is
    /// written as failed, with its reason: the file knows no other word.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Conflict`] while it waits or runs,
    /// [`LabError::Invalid`] for recorded figures, which no file may pass off as a
    /// measurement, [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn result_file(&self, actor: &Actor, run: RunId) -> Result<ResultFile, LabError> {
        authorise(actor, Capability::Read)?;
        let row = sqlx::query!(
            r#"SELECT state, reason, source, configuration, hardware, endpoint_url, model, engine,
                   engine_version, simulated,
                   settings AS "settings: Json<BTreeMap<String, String>>",
                   workload AS "workload: Json<Workload>", client AS "client: Json<ClientInfo>",
                   tool_version, original, metric_version, created_at, started_at, finished_at
               FROM runs WHERE id = $1 AND team_id = $2 AND deleted_at IS NULL"#,
            run.0,
            actor.team.0,
        )
        .fetch_optional(&self.0.pool)
        .await?
        .ok_or(LabError::NoSuchRun(run))?;
        let outcome = match RunState::from_word(&row.state) {
            Some(RunState::Finished) => MeterOutcome::Complete,
            Some(RunState::Cancelled) => MeterOutcome::Cancelled,
            Some(RunState::Queued | RunState::Running) => {
                return Err(LabError::Conflict(format!(
                    "Run {run} is not over yet ({}), so there is no result file. Wait for its end, or stop it.",
                    row.state
                )));
            }
            _ => MeterOutcome::Failed {
                reason: row.reason.unwrap_or_default(),
            },
        };
        if matches!(
            Source::from_word(&row.source),
            Some(Source::Recorded | Source::Estimated)
        ) {
            return Err(LabError::Invalid(format!(
                "The figures of run {run} were typed in from notes; no measurement stands behind them, so there is no result file. Take the table as CSV instead."
            )));
        }
        let given = |key: &str| {
            row.original
                .as_ref()
                .and_then(|original| original.get(key))
                .and_then(serde_json::Value::as_bool)
                .unwrap_or(true)
        };
        let mut stages: Vec<_> = stages::of_runs(&self.0.pool, &[run.0])
            .await?
            .into_iter()
            .map(stages::StageRow::result)
            .collect();
        let mut connection = self.0.pool.acquire().await?;
        for (record, trace) in requests::traced(&mut connection, run, None).await? {
            // Both are in the order of the index.
            if let Ok(place) = stages.binary_search_by_key(&record.stage, |stage| stage.index)
                && let Some(stage) = stages.get_mut(place)
            {
                stage.records.push(RequestEvent { record, trace });
            }
        }
        let mut stored = stages::histograms(&mut connection, run).await?;
        drop(connection);
        // Pages must not wait for a large run's.
        let stages = tokio::task::spawn_blocking(move || {
            for stage in &mut stages {
                stage.histograms = stored
                    .remove(&stage.index)
                    .or_else(|| StageHistograms::of_events(&stage.records));
            }
            stages
        })
        .await
        .map_err(|error| LabError::internal("working out histograms", error))?;
        let moment =
            |at: Option<OffsetDateTime>| Timestamp::from_datetime(at.unwrap_or(row.created_at));
        Ok(ResultFile {
            schema_version: RESULT_SCHEMA,
            tool: TOOL.to_owned(),
            tool_version: row.tool_version.unwrap_or_default(),
            metric_version: u32::try_from(row.metric_version).unwrap_or(0),
            started_at: moment(row.started_at),
            finished_at: moment(row.finished_at),
            configuration: given("configuration_given").then_some(row.configuration),
            hardware: (given("hardware_given")).then_some(row.hardware),
            endpoint: ResultEndpoint {
                url: row.endpoint_url.unwrap_or_default(),
                model: row.model,
                engine: if given("engine_given") {
                    EngineKind::from_word(&row.engine)
                } else {
                    None
                },
                engine_version: row.engine_version,
                settings: row.settings.0,
                simulated: row.simulated,
            },
            client: row.client.map(|client| client.0).unwrap_or_default(),
            workload: row.workload.0,
            outcome,
            stages,
            skipped: skipped::of_run(&self.0.pool, run)
                .await?
                .into_iter()
                .map(|(stage, _)| stage)
                .collect(),
        })
    }
}
