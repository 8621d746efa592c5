//! What pages read.

use std::collections::BTreeMap;

use sqlx::types::Json;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    analysis::{self, History, MOST_PAST, RequestPoint, RunFacts, levels, run_charts, summarise},
    chart::ChartSpec,
    ids::{HostId, RunId},
    record::FailureKind,
    views::{
        board::{BoardFilter, BoardView},
        compare::{CompareQuery, CompareView},
        measure::WorkloadForm,
        run::{RecordPage, RunFilter, RunPage, RunView},
        run_host::RunHost,
    },
    workload::Workload,
};

use crate::{
    Lab, LabError,
    facts::{self, Details},
    history, requests, skipped, stages,
};

/// Records a page.
const RECORDS: u32 = 100;
/// Most requests of a run that its charts are made from; of more, every k-th.
const MOST_POINTS: i64 = 4_000;

/// Requests of a run that failed alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureGroup {
    /// Which kind.
    pub kind: FailureKind,
    /// What was said; alike in all of them.
    pub message: String,
    /// How many.
    pub count: u64,
    /// Stages in which it came up, in order.
    pub stages: Vec<u32>,
}

impl Lab {
    /// The Board.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn board(
        &self,
        actor: &Actor,
        filter: &BoardFilter,
    ) -> Result<BoardView<ChartSpec>, LabError> {
        authorise(actor, Capability::Read)?;
        let founding = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM runs WHERE team_id = $1 AND founding_id IS NOT NULL
                   AND deleted_at IS NULL) AS "there!""#,
            actor.team.0,
        )
        .fetch_one(&self.0.pool)
        .await?;
        let facts = facts::over(&self.0.pool, actor).await?;
        let hosts = history::hosts(facts.iter().map(|run| &run.summary));
        let minutes = history::minutes(&self.0.pool, actor, &hosts).await?;
        Ok(analysis::board(filter, &facts, minutes, !founding))
    }

    /// A page of the list of runs, newest first.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn runs(&self, actor: &Actor, filter: &RunFilter) -> Result<RunPage, LabError> {
        authorise(actor, Capability::Read)?;
        let (runs, total) = facts::page(&self.0.pool, actor, filter).await?;
        Ok(RunPage {
            runs,
            total,
            page: filter.page,
            page_size: facts::PAGE,
        })
    }

    /// A run with its stages and charts.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn run(&self, actor: &Actor, run: RunId) -> Result<RunView<ChartSpec>, LabError> {
        authorise(actor, Capability::Read)?;
        let Some(details) = facts::details(&self.0.pool, actor, &[run]).await?.pop() else {
            return Err(LabError::NoSuchRun(run));
        };
        let Details {
            facts,
            progress,
            recorded_requests,
            environment,
            place,
            round_trip_ms,
            effective,
        } = details;
        let records = requests::count(&self.0.pool, run, None).await?;
        let points = self.points(run, records).await?;
        let workload = self.workload(run).await?;
        let host = match facts.summary.launch.clone() {
            Some(launch) => {
                let (charts, flags) = self.host_meanwhile(&facts.summary).await?;
                Some(RunHost {
                    launch,
                    place,
                    round_trip_ms,
                    effective,
                    charts,
                    flags,
                })
            }
            None => None,
        };
        Ok(RunView {
            summary: summarise(&facts),
            progress,
            levels: levels(&facts.stages),
            charts: run_charts(&facts, &points),
            stages: facts.stages,
            skipped: skipped::views(&self.0.pool, run, &workload).await?,
            again: WorkloadForm::of(&workload),
            remarks: facts.remarks,
            recorded_requests,
            acceptance: facts.acceptance,
            settings: facts.settings.into_iter().collect(),
            environment,
            records,
            host,
        })
    }

    /// A page of a run's request records, in the order of stage and number; of these
    /// stages only, if any are named.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn records(
        &self,
        actor: &Actor,
        run: RunId,
        page: u32,
        stages: &[u32],
    ) -> Result<RecordPage, LabError> {
        authorise(actor, Capability::Read)?;
        self.must_exist(actor, run).await?;
        let stages: Vec<i64> = stages.iter().map(|stage| i64::from(*stage)).collect();
        let stages = (!stages.is_empty()).then_some(stages.as_slice());
        let mut connection = self.0.pool.acquire().await?;
        let records = requests::read(
            &mut connection,
            run,
            stages,
            Some(RECORDS.into()),
            i64::from(page) * i64::from(RECORDS),
        )
        .await?;
        drop(connection);
        Ok(RecordPage {
            records,
            total: requests::count(&self.0.pool, run, stages).await?,
            page,
            page_size: RECORDS,
        })
    }

    /// The failures of a run by kind and message, commonest first, at most fifty
    /// groups: messages that hold numbers would else fill a page.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn failures(&self, actor: &Actor, run: RunId) -> Result<Vec<FailureGroup>, LabError> {
        authorise(actor, Capability::Read)?;
        self.must_exist(actor, run).await?;
        let rows = sqlx::query!(
            r#"SELECT failure_kind AS "kind!", failure_message AS "message!",
                   count(*) AS "count!", array_agg(DISTINCT stage ORDER BY stage) AS "stages!"
               FROM requests WHERE run_id = $1 AND failure_kind IS NOT NULL
               GROUP BY failure_kind, failure_message
               ORDER BY count(*) DESC, failure_kind, failure_message LIMIT 50"#,
            run.0,
        )
        .fetch_all(&self.0.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| FailureGroup {
                kind: FailureKind::from_word(&row.kind).unwrap_or(FailureKind::BadReply),
                message: row.message,
                count: u64::try_from(row.count).unwrap_or(0),
                stages: row.stages.into_iter().map(stages::small).collect(),
            })
            .collect())
    }

    /// Runs side by side, the first being the baseline.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Invalid`] for too few or too many,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn compare(
        &self,
        actor: &Actor,
        query: &CompareQuery,
    ) -> Result<CompareView<ChartSpec>, LabError> {
        authorise(actor, Capability::Read)?;
        self.comparison(actor, query).await
    }

    /// The comparison, once it is clear that the actor may see it.
    pub(crate) async fn comparison(
        &self,
        actor: &Actor,
        query: &CompareQuery,
    ) -> Result<CompareView<ChartSpec>, LabError> {
        let facts = self.facts_of(actor, &query.runs).await?;
        let (past, minutes) = self.past(actor, &facts).await?;
        analysis::compare_with(&facts, &History::of(&past, minutes)).map_err(LabError::Invalid)
    }

    /// What the hosts of these runs knew before: the newest runs on their launches under
    /// the same workloads, and the minutes that a launch takes on each.
    pub(crate) async fn past(
        &self,
        actor: &Actor,
        runs: &[RunFacts],
    ) -> Result<(Vec<RunFacts>, BTreeMap<HostId, f64>), LabError> {
        let hosts = history::hosts(runs.iter().map(|run| &run.summary));
        let workloads: Vec<String> = runs
            .iter()
            .map(|run| run.summary.workload_hash.0.clone())
            .collect();
        let past = facts::on_hosts(&self.0.pool, actor, &hosts, &workloads, MOST_PAST).await?;
        let minutes = history::minutes(&self.0.pool, actor, &hosts).await?;
        Ok((past, minutes))
    }

    /// What is known of runs that are looked at together.
    ///
    /// # Errors
    /// [`LabError::Invalid`] if one is named twice, [`LabError::NoSuchRun`],
    /// [`LabError::DatabaseUnavailable`].
    pub(crate) async fn facts_of(
        &self,
        actor: &Actor,
        runs: &[RunId],
    ) -> Result<Vec<RunFacts>, LabError> {
        for (place, run) in runs.iter().enumerate() {
            if runs.iter().take(place).any(|earlier| earlier == run) {
                return Err(LabError::Invalid(format!(
                    "Run {run} stands in the comparison twice. Name each run once."
                )));
            }
        }
        // More are refused by whoever asks; they need not be loaded for it.
        let asked: Vec<RunId> = runs
            .iter()
            .copied()
            .take(tokdyno_domain::comparison::RUNS.end() + 1)
            .collect();
        Ok(facts::details(&self.0.pool, actor, &asked)
            .await?
            .into_iter()
            .map(|details| details.facts)
            .collect())
    }

    /// Is there such a run for this actor?
    pub(crate) async fn must_exist(&self, actor: &Actor, run: RunId) -> Result<(), LabError> {
        let there = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM runs
                   WHERE id = $1 AND team_id = $2 AND deleted_at IS NULL) AS "there!""#,
            run.0,
            actor.team.0,
        )
        .fetch_one(&self.0.pool)
        .await?;
        if there {
            Ok(())
        } else {
            Err(LabError::NoSuchRun(run))
        }
    }

    /// The workload of a run. What a file brought is left in the database: it may be
    /// long, and neither plan nor form needs it.
    pub(crate) async fn workload(&self, run: RunId) -> Result<Workload, LabError> {
        let workload = sqlx::query_scalar!(
            r#"SELECT CASE
                   WHEN workload -> 'prompts' ->> 'set'
                       IN ('founding', 'varied', 'random', 'shared_prefix') THEN workload
                   ELSE jsonb_set(workload, '{prompts}', '{"set": "varied"}')
               END AS "workload!: Json<Workload>"
               FROM runs WHERE id = $1"#,
            run.0
        )
        .fetch_one(&self.0.pool)
        .await?;
        Ok(workload.0)
    }

    async fn points(&self, run: RunId, records: u64) -> Result<Vec<RequestPoint>, LabError> {
        let every = i64::try_from(records).unwrap_or(i64::MAX) / MOST_POINTS + 1;
        let rows = sqlx::query!(
            r#"SELECT stage, sent_ns, ttft_ns, e2el_ns, completion_tokens,
                   failure_kind IS NOT NULL AS "failed!"
               FROM requests WHERE run_id = $1 AND seq % $2 = 0 ORDER BY stage, seq LIMIT $3"#,
            run.0,
            every,
            MOST_POINTS * 2,
        )
        .fetch_all(&self.0.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let ms = |ns: Option<i64>| ns.filter(|_| !row.failed).map(|ns| ns as f64 / 1e6);
                let e2el_ms = ms(row.e2el_ns);
                RequestPoint {
                    stage: stages::small(row.stage),
                    sent_s: row.sent_ns as f64 / 1e9,
                    ttft_ms: ms(row.ttft_ns),
                    e2el_ms,
                    e2e_tps: match (row.completion_tokens, e2el_ms) {
                        (Some(tokens), Some(e2el)) if e2el > 0.0 => {
                            Some(tokens as f64 * 1000.0 / e2el)
                        }
                        _ => None,
                    },
                    failed: row.failed,
                }
            })
            .collect())
    }
}
