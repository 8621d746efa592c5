//! The founding figures, stored as what they are: recorded by hand.

use sqlx::types::Json;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    conditions::StageConditions,
    founding::{self, RecordedConfiguration, RecordedRequest},
    ids::RunId,
    metrics::{Distribution, METRIC_VERSION, StageFigures},
    run::RunState,
    source::Source,
    statistics::ANALYSIS_VERSION,
    text,
    workload::StageKind,
};

use crate::{
    Lab, LabError,
    audit::{self, Action},
    commands::{emit_state, version, workload_json},
    stages::{self, NewStage},
};

impl Lab {
    /// Stores the founding figures that are not stored yet, and says how many.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn load_founding(&self, actor: &Actor) -> Result<u32, LabError> {
        authorise(actor, Capability::Import)?;
        let mut tx = self.0.pool.begin().await?;
        let mut loaded = 0;
        for configuration in &founding::CONFIGURATIONS {
            if let Some(run) = store(&mut tx, actor, configuration).await? {
                emit_state(&mut tx, run, RunState::Finished).await?;
                audit::note(&mut tx, actor, Action::Founding, format!("run {run}")).await?;
                loaded += 1;
            }
        }
        tx.commit().await?;
        Ok(loaded)
    }
}

async fn store(
    connection: &mut sqlx::PgConnection,
    actor: &Actor,
    configuration: &RecordedConfiguration,
) -> Result<Option<RunId>, LabError> {
    let workload = founding::workload();
    let remarks: Vec<String> = configuration
        .remarks
        .iter()
        .map(|remark| (*remark).to_owned())
        .collect();
    let requests: Vec<String> = configuration.requests.iter().map(line).collect();
    let inserted = sqlx::query_scalar!(
        "INSERT INTO runs (team_id, actor_id, metric_version, analysis_version, state, source,
             configuration, hardware, model, engine, workload, workload_hash, workload_name,
             workload_text, remarks, acceptance_text, acceptance_definition, recorded_requests,
             original, founding_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
             $18, $19, $20)
         ON CONFLICT (team_id, founding_id) WHERE deleted_at IS NULL DO NOTHING
         RETURNING id",
        actor.team.0,
        actor.id.0,
        version(METRIC_VERSION),
        version(ANALYSIS_VERSION),
        RunState::Finished.word(),
        Source::Recorded.word(),
        configuration.name,
        founding::HARDWARE,
        founding::MODEL,
        configuration.engine.word(),
        workload_json(&workload)?,
        workload.hash().0,
        workload.name,
        workload.describe(),
        &remarks,
        configuration.acceptance.map(|acceptance| acceptance.text),
        configuration
            .acceptance
            .map(|acceptance| acceptance.definition),
        &requests,
        Json(configuration.requests) as _,
        configuration.id,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(run) = inserted.map(RunId) else {
        return Ok(None);
    };
    for (index, (kind, figure)) in (0_u32..).zip(configuration.stages()) {
        // No requests stand behind it: counts stay 0, and only the figure that the
        // notes state is filled in.
        let mut figures = StageFigures::default();
        match kind {
            StageKind::SingleStream => {
                figures.e2e_tps = Distribution {
                    p50: Some(figure.value),
                    ..Distribution::default()
                };
            }
            _ => figures.output_tps = Some(figure.value),
        }
        stages::store(
            connection,
            run,
            &NewStage {
                index,
                kind,
                repeat: 0,
                complete: true,
                source: figure.source,
                disputed: figure.disputed,
                remark: figure.remark,
                figures: &figures,
                conditions: &StageConditions::default(),
                histograms: None,
            },
        )
        .await?;
    }
    Ok(Some(run))
}

fn line(request: &RecordedRequest) -> String {
    format!(
        "{} prompt tokens, {} completion tokens in {} s: {} ms per token, {} tok/s",
        request.prompt_tokens,
        request.completion_tokens,
        text::figure(request.seconds),
        request.ms_per_token,
        text::figure(request.tps),
    )
}
