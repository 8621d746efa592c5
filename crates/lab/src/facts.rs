//! What the store knows of runs, loaded with few questions.

use std::collections::{BTreeMap, HashMap};

use sqlx::{PgPool, types::Json};
use time::OffsetDateTime;
use tokdyno_domain::{
    access::Actor,
    analysis::{RunFacts, summarise},
    effective::{EffectiveConfiguration, Stamp, Subject},
    engine::EngineKind,
    ids::{ContentHash, HostId, LaunchId, ProfileId, RunId},
    meter::{ClientInfo, Progress},
    run::RunState,
    source::Source,
    timestamp::Timestamp,
    views::{
        run::{AcceptanceView, RunFilter, RunSummary, StageView},
        run_host::{ClientPlace, RunLaunch},
    },
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
    stamp: Option<Json<Stamp>>,
    launch_id: Option<i64>,
    host_id: Option<i64>,
    host_name: Option<String>,
    profile_id: Option<i64>,
    profile_name: Option<String>,
    revision: Option<i32>,
}

/// What a run's page needs beyond its facts.
pub(crate) struct Details {
    pub(crate) facts: RunFacts,
    pub(crate) progress: Option<Progress>,
    pub(crate) recorded_requests: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) place: ClientPlace,
    pub(crate) round_trip_ms: Option<f64>,
    pub(crate) effective: Option<EffectiveConfiguration>,
}

impl SummaryRow {
    fn launch(&mut self) -> Option<RunLaunch> {
        Some(RunLaunch {
            launch: LaunchId(self.launch_id?),
            host: (HostId(self.host_id?), self.host_name.take()?),
            profile: (
                ProfileId(self.profile_id?),
                self.profile_name.take()?,
                stages::small(self.revision?.into()),
            ),
            stamp: self.stamp.take().map(|stamp| stamp.0),
        })
    }

    fn summary(mut self) -> RunSummary {
        RunSummary {
            launch: self.launch(),
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
            peak_rate: None,
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
        r#"SELECT runs.id, configuration, runs.state, reason,
               cancel_requested_at IS NOT NULL AS "cancel_requested!",
               CASE WHEN runs.state = 'queued' THEN (
                   SELECT count(*) FROM runs earlier
                   WHERE earlier.state = 'running'
                      OR (earlier.state = 'queued' AND earlier.id < runs.id)
               ) END AS queue_place,
               source, runs.engine, runs.engine_version, model, hardware, endpoint_url,
               workload_name, workload_hash, workload_text,
               runs.created_at, runs.started_at, finished_at, metric_version,
               runs.effective -> 'stamp' AS "stamp: Json<Stamp>", runs.launch_id,
               h.id AS "host_id?", h.name AS "host_name?", p.id AS "profile_id?",
               p.name AS "profile_name?", r.number AS "revision?"
           FROM runs
           LEFT JOIN launches l ON l.id = runs.launch_id
           LEFT JOIN hosts h ON h.id = l.host_id
           LEFT JOIN profile_revisions r ON r.id = l.revision_id
           LEFT JOIN profiles p ON p.id = r.profile_id
           WHERE runs.team_id = $1 AND runs.deleted_at IS NULL
             AND ($2::bigint[] IS NULL OR runs.id = ANY($2))
             AND (NOT $3 OR runs.state NOT IN ('queued', 'running'))
             AND ($4 = '' OR strpos(lower(concat_ws(' ', configuration, model, endpoint_url,
                 hardware, h.name, p.name)), lower($4)) > 0)
             AND ($5::text IS NULL OR runs.state = $5)
             AND ($6::text IS NULL OR source = $6)
           ORDER BY runs.id DESC LIMIT $7 OFFSET $8"#,
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
           LEFT JOIN launches l ON l.id = runs.launch_id
           LEFT JOIN hosts h ON h.id = l.host_id
           LEFT JOIN profile_revisions r ON r.id = l.revision_id
           LEFT JOIN profiles p ON p.id = r.profile_id
           WHERE runs.team_id = $1 AND runs.deleted_at IS NULL
             AND ($2 = '' OR strpos(lower(concat_ws(' ', configuration, model, endpoint_url,
                 hardware, h.name, p.name)), lower($2)) > 0)
             AND ($3::text IS NULL OR runs.state = $3)
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

/// Runs under these workloads on launches of these hosts that are over, newest first, of
/// each host and workload at most so many, with as much as the variation from launch to
/// launch needs.
pub(crate) async fn on_hosts(
    pool: &PgPool,
    actor: &Actor,
    hosts: &[i64],
    workloads: &[String],
    most: u32,
) -> Result<Vec<RunFacts>, LabError> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    let ids = sqlx::query_scalar!(
        "SELECT id FROM (
             SELECT runs.id, row_number() OVER (
                 PARTITION BY l.host_id, runs.workload_hash ORDER BY runs.id DESC) AS place
             FROM runs JOIN launches l ON l.id = runs.launch_id
             WHERE runs.team_id = $1 AND runs.deleted_at IS NULL AND l.host_id = ANY($2)
               AND runs.workload_hash = ANY($3) AND runs.state NOT IN ('queued', 'running')
         ) newest
         WHERE place <= $4",
        actor.team.0,
        hosts,
        workloads,
        i64::from(most),
    )
    .fetch_all(pool)
    .await?;
    let which = Which {
        actor,
        ids: Some(&ids),
        over_only: true,
        filter: &RunFilter::default(),
        limit: None,
    };
    with_headlines(pool, rows(pool, which).await?).await
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
               acceptance_text, acceptance_definition, client_place, round_trip_ms,
               effective AS "effective: Json<EffectiveConfiguration>"
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
            let effective = more.effective.map(|effective| effective.0);
            facts.settings = settings(more.settings.0, effective.as_ref());
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
                // The words are checked by the database.
                place: ClientPlace::from_word(&more.client_place).unwrap_or_default(),
                round_trip_ms: more.round_trip_ms,
                effective,
            })
        })
        .collect()
}

/// The engine's own settings, and what a launch proved beside them: variables, which
/// no engine tells, and arguments where the engine told none. So a comparison names
/// every difference that is known.
pub(crate) fn settings(
    mut settings: BTreeMap<String, String>,
    effective: Option<&EffectiveConfiguration>,
) -> BTreeMap<String, String> {
    let told = !settings.is_empty();
    for item in effective.iter().flat_map(|effective| &effective.items) {
        let wanted = match item.subject {
            // Where a log is written is another place in each launch.
            Subject::Variable => item.name != "NCCL_DEBUG_FILE",
            Subject::Argument => !told,
            _ => false,
        };
        if let Some(found) = item.found.as_ref().filter(|_| wanted) {
            settings
                .entry(item.name.clone())
                .or_insert_with(|| found.clone());
        }
    }
    settings
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokdyno_domain::effective::{Finding, Item};

    #[test]
    fn what_a_launch_proved_stands_beside_what_the_engine_tells() {
        let item = |subject, name: &str, found: Option<&str>| Item {
            subject,
            name: name.to_owned(),
            asked: None,
            found: found.map(str::to_owned),
            finding: Finding::Passed,
            read_from: String::new(),
            remark: None,
        };
        let effective = EffectiveConfiguration::conclude(
            Timestamp(0),
            vec![
                item(Subject::Variable, "NCCL_PROTO", Some("LL")),
                item(Subject::Variable, "NCCL_ALGO", None),
                item(Subject::Variable, "NCCL_DEBUG_FILE", Some("/launch-7/log")),
                item(Subject::Argument, "--tp-size", Some("8")),
                item(Subject::Hardware, "driver", Some("570")),
            ],
            None,
            Vec::new(),
        );
        let names = |told: &[(&str, &str)]| -> Vec<String> {
            let told = told
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            settings(told, Some(&effective)).into_keys().collect()
        };
        assert_eq!(names(&[]), ["--tp-size", "NCCL_PROTO"]);
        assert_eq!(names(&[("tp_size", "8")]), ["NCCL_PROTO", "tp_size"]);
        let kept = settings(
            BTreeMap::from([("NCCL_PROTO".to_owned(), "told".to_owned())]),
            Some(&effective),
        );
        assert_eq!(kept["NCCL_PROTO"], "told");
        assert!(settings(BTreeMap::new(), None).is_empty());
    }
}
