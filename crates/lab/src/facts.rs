//! What the store knows of runs, loaded with few questions.

use std::collections::{BTreeMap, HashMap};

use sqlx::{PgPool, types::Json};
use time::OffsetDateTime;
use tokdyno_domain::{
    access::Actor,
    analysis::{RunFacts, summarise},
    engine::EngineKind,
    ids::{ContentHash, RunId},
    meter::{ClientInfo, Progress},
    run::RunState,
    source::Source,
    timestamp::Timestamp,
    views::run::{AcceptanceView, RunFilter, RunSummary, StageView},
};

use crate::{LabError, stages};

/// Runs a page of the list.
pub(crate) const PAGE: u32 = 50;

struct SummaryRow {
    id: i64,
    configuration: String,
    state: String,
    reason: Option<String>,
    cancel_requested: bool,
    queue_place: Option<i64>,
    source: String,
    engine: String,
    engine_version: Option<String>,
    model: String,
    hardware: String,
    endpoint_url: Option<String>,
    workload_name: String,
    workload_hash: String,
    workload_text: String,
    created_at: OffsetDateTime,
    started_at: Option<OffsetDateTime>,
    finished_at: Option<OffsetDateTime>,
    metric_version: i32,
}

/// What a run's page needs beyond its facts.
pub(crate) struct Details {
    pub(crate) facts: RunFacts,
    pub(crate) progress: Option<Progress>,
    pub(crate) recorded_requests: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

impl SummaryRow {
    fn summary(self) -> RunSummary {
        RunSummary {
            id: RunId(self.id),
            configuration: self.configuration,
            // The words are checked by the database.
            state: RunState::from_word(&self.state).unwrap_or(RunState::Failed),
            reason: self.reason,
            cancel_requested: self.cancel_requested,
            queue_place: self.queue_place.map(stages::small),
            source: Source::from_word(&self.source).unwrap_or(Source::Imported),
            engine: EngineKind::from_word(&self.engine).unwrap_or(EngineKind::Other),
            engine_version: self.engine_version,
            model: self.model,
            hardware: self.hardware,
            endpoint: self.endpoint_url,
            workload_name: self.workload_name,
            workload_hash: ContentHash(self.workload_hash),
            workload_text: self.workload_text,
            created_at: Timestamp::from_datetime(self.created_at),
            started_at: self.started_at.map(Timestamp::from_datetime),
            finished_at: self.finished_at.map(Timestamp::from_datetime),
            single_stream: None,
            peak_output: None,
            flagged: false,
        }
    }

    fn facts(self, stages: Vec<StageView>) -> RunFacts {
        let metric_version = u32::try_from(self.metric_version).unwrap_or(0);
        RunFacts {
            summary: self.summary(),
            stages,
            settings: BTreeMap::new(),
            metric_version,
            client: String::new(),
            remarks: Vec::new(),
            acceptance: None,
        }
    }
}

/// Which rows.
struct Which<'a> {
    actor: &'a Actor,
    ids: Option<&'a [i64]>,
    over_only: bool,
    filter: &'a RunFilter,
    limit: Option<i64>,
}

async fn rows(pool: &PgPool, which: Which<'_>) -> Result<Vec<SummaryRow>, LabError> {
    let filter = which.filter;
    Ok(sqlx::query_as!(
        SummaryRow,
        r#"SELECT id, configuration, state, reason,
               cancel_requested_at IS NOT NULL AS "cancel_requested!",
               CASE WHEN state = 'queued' THEN (
                   SELECT count(*) FROM runs earlier
                   WHERE earlier.state = 'running'
                      OR (earlier.state = 'queued' AND earlier.id < runs.id)
               ) END AS queue_place,
               source, engine, engine_version, model, hardware, endpoint_url,
               workload_name, workload_hash, workload_text,
               created_at, started_at, finished_at, metric_version
           FROM runs
           WHERE team_id = $1 AND deleted_at IS NULL
             AND ($2::bigint[] IS NULL OR id = ANY($2))
             AND (NOT $3 OR state NOT IN ('queued', 'running'))
             AND ($4 = '' OR strpos(lower(concat_ws(' ', configuration, model, endpoint_url,
                 hardware)), lower($4)) > 0)
             AND ($5::text IS NULL OR state = $5)
             AND ($6::text IS NULL OR source = $6)
           ORDER BY id DESC LIMIT $7 OFFSET $8"#,
        which.actor.team.0,
        which.ids,
        which.over_only,
        filter.text.trim().replace('\0', ""),
        filter.state.map(RunState::word),
        filter.source.map(Source::word),
        which.limit,
        i64::from(filter.page) * i64::from(PAGE),
    )
    .fetch_all(pool)
    .await?)
}

/// A page of the list, and how many match in all.
pub(crate) async fn page(
    pool: &PgPool,
    actor: &Actor,
    filter: &RunFilter,
) -> Result<(Vec<RunSummary>, u32), LabError> {
    let total = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM runs
           WHERE team_id = $1 AND deleted_at IS NULL
             AND ($2 = '' OR strpos(lower(concat_ws(' ', configuration, model, endpoint_url,
                 hardware)), lower($2)) > 0)
             AND ($3::text IS NULL OR state = $3)
             AND ($4::text IS NULL OR source = $4)"#,
        actor.team.0,
        filter.text.trim().replace('\0', ""),
        filter.state.map(RunState::word),
        filter.source.map(Source::word),
    )
    .fetch_one(pool)
    .await?;
    let which = Which {
        actor,
        ids: None,
        over_only: false,
        filter,
        limit: Some(i64::from(PAGE)),
    };
    let facts = with_headlines(pool, rows(pool, which).await?).await?;
    let runs = facts.iter().map(summarise).collect();
    Ok((runs, stages::small(total)))
}

/// All runs that are over and have figures, newest first, with as much as the
/// Board needs.
pub(crate) async fn over(pool: &PgPool, actor: &Actor) -> Result<Vec<RunFacts>, LabError> {
    let which = Which {
        actor,
        ids: None,
        over_only: true,
        filter: &RunFilter::default(),
        limit: None,
    };
    let rows = rows(pool, which).await?;
    let mut facts = with_headlines(pool, rows).await?;
    let said = sqlx::query!(
        "SELECT id, remarks, acceptance_text, acceptance_definition FROM runs
         WHERE team_id = $1 AND deleted_at IS NULL
           AND (remarks <> '{}' OR acceptance_text IS NOT NULL)",
        actor.team.0,
    )
    .fetch_all(pool)
    .await?;
    let mut said: HashMap<i64, _> = said.into_iter().map(|row| (row.id, row)).collect();
    for run in &mut facts {
        if let Some(row) = said.remove(&run.summary.id.0) {
            run.remarks = row.remarks;
            run.acceptance = acceptance(row.acceptance_text, row.acceptance_definition);
        }
    }
    facts.retain(|run| !run.stages.is_empty() || run.acceptance.is_some());
    Ok(facts)
}

async fn with_headlines(pool: &PgPool, rows: Vec<SummaryRow>) -> Result<Vec<RunFacts>, LabError> {
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let mut of_run = stages::headlines(pool, &ids).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let stages = of_run.remove(&row.id).unwrap_or_default();
            row.facts(stages)
        })
        .collect())
}

/// Everything known of these runs, in the order asked for.
pub(crate) async fn details(
    pool: &PgPool,
    actor: &Actor,
    runs: &[RunId],
) -> Result<Vec<Details>, LabError> {
    let ids: Vec<i64> = runs.iter().map(|run| run.0).collect();
    let which = Which {
        actor,
        ids: Some(&ids),
        over_only: false,
        filter: &RunFilter::default(),
        limit: None,
    };
    let mut rows: HashMap<i64, SummaryRow> = rows(pool, which)
        .await?
        .into_iter()
        .map(|row| (row.id, row))
        .collect();
    if let Some(missing) = runs.iter().find(|run| !rows.contains_key(&run.0)) {
        return Err(LabError::NoSuchRun(*missing));
    }
    let mut of_run: HashMap<i64, Vec<StageView>> = HashMap::new();
    for stage in stages::of_runs(pool, &ids).await? {
        of_run.entry(stage.run_id).or_default().push(stage.view());
    }
    let more = sqlx::query!(
        r#"SELECT id, settings AS "settings: Json<BTreeMap<String, String>>",
               client AS "client: Json<ClientInfo>", tool_version,
               progress AS "progress: Json<Progress>", remarks, recorded_requests,
               acceptance_text, acceptance_definition
           FROM runs WHERE id = ANY($1)"#,
        &ids
    )
    .fetch_all(pool)
    .await?;
    let mut more: HashMap<i64, _> = more.into_iter().map(|row| (row.id, row)).collect();
    runs.iter()
        .map(|run| {
            let (Some(row), Some(more)) = (rows.remove(&run.0), more.remove(&run.0)) else {
                return Err(LabError::NoSuchRun(*run));
            };
            let client = more.client.map(|client| client.0);
            let mut facts = row.facts(of_run.remove(&run.0).unwrap_or_default());
            facts.settings = more.settings.0;
            facts.client = client
                .as_ref()
                .map(|client| client.host.clone())
                .unwrap_or_default();
            facts.remarks = more.remarks;
            facts.acceptance = acceptance(more.acceptance_text, more.acceptance_definition);
            let environment = environment(client.as_ref(), more.tool_version, facts.metric_version);
            let running = facts.summary.state == RunState::Running;
            Ok(Details {
                facts,
                progress: more.progress.filter(|_| running).map(|progress| progress.0),
                recorded_requests: more.recorded_requests,
                environment,
            })
        })
        .collect()
}

fn acceptance(text: Option<String>, definition: Option<String>) -> Option<AcceptanceView> {
    text.map(|text| AcceptanceView {
        text,
        definition: definition.unwrap_or_default(),
    })
}

fn environment(
    client: Option<&ClientInfo>,
    tool_version: Option<String>,
    metric_version: u32,
) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |label: &str, value: String| {
        if !value.is_empty() {
            lines.push((label.to_owned(), value));
        }
    };
    if let Some(client) = client {
        line("Measured from", client.host.clone());
        if client.cpus > 0 {
            line("Its processors", client.cpus.to_string());
        }
        line(
            "Its frequency governor",
            client.governor.clone().unwrap_or_default(),
        );
    }
    line(
        "Measured by",
        tool_version
            .map(|version| format!("Tokdyno {version}"))
            .unwrap_or_default(),
    );
    line("Metric definitions", format!("version {metric_version}"));
    lines
}
