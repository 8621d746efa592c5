//! Stages as stored.

use std::collections::{BTreeMap, HashMap};

use sqlx::{PgConnection, PgExecutor, PgPool, types::Json};
use tokdyno_domain::{
    conditions::StageConditions,
    goodput::Goodput,
    histogram::StageHistograms,
    ids::RunId,
    metrics::{Distribution, StageFigures, StageFlag},
    record::FailureKind,
    result_file::ResultStage,
    source::Source,
    views::run::StageView,
    workload::StageKind,
};

use crate::{
    LabError, clean,
    shapes::{Shape, ShapeRow},
};

/// The composite type `distribution` of the database.
#[derive(Debug, Clone, Copy, PartialEq, sqlx::Type)]
#[sqlx(type_name = "distribution")]
pub(crate) struct DistributionRow {
    count: Option<i64>,
    mean: Option<f64>,
    min: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

/// A stage about to be stored.
pub(crate) struct NewStage<'a> {
    pub(crate) index: u32,
    pub(crate) kind: StageKind,
    pub(crate) repeat: u32,
    pub(crate) complete: bool,
    pub(crate) source: Source,
    pub(crate) disputed: bool,
    pub(crate) remark: Option<&'a str>,
    pub(crate) figures: &'a StageFigures,
    pub(crate) conditions: &'a StageConditions,
    /// Of a stage that comes without its requests.
    pub(crate) histograms: Option<&'a StageHistograms>,
}

/// A stage as it stands in the database.
pub(crate) struct StageRow {
    pub(crate) run_id: i64,
    stage: i64,
    kind: String,
    concurrency: Option<i64>,
    rate: Option<i64>,
    rate_to: Option<i64>,
    arrivals: Option<String>,
    burstiness: Option<i64>,
    speed: Option<i64>,
    repeat: i64,
    complete: bool,
    source: String,
    disputed: bool,
    remark: Option<String>,
    requests: i64,
    completed: i64,
    failed: i64,
    cancelled: i64,
    failures: Json<BTreeMap<FailureKind, u64>>,
    duration_s: Option<f64>,
    prompt_tokens: Option<i64>,
    output_tokens: i64,
    cached_tokens: Option<i64>,
    output_tps: Option<f64>,
    steady_output_tps: Option<f64>,
    peak_output_tps: Option<f64>,
    request_throughput: Option<f64>,
    achieved_concurrency: Option<f64>,
    peak_in_flight: Option<i64>,
    chunks: i64,
    coalesced_share: Option<f64>,
    ttft_ms: DistributionRow,
    ttft_intended_ms: DistributionRow,
    first_answer_ms: DistributionRow,
    tpot_ms: DistributionRow,
    itl_ms: DistributionRow,
    icl_ms: DistributionRow,
    e2el_ms: DistributionRow,
    e2e_tps: DistributionRow,
    decode_tps: DistributionRow,
    goodput: Option<Json<Goodput>>,
    flags: Json<Vec<StageFlag>>,
    conditions: Json<StageConditions>,
}

impl From<&Distribution> for DistributionRow {
    fn from(of: &Distribution) -> Self {
        Self {
            count: Some(clean::big(of.count)),
            mean: of.mean,
            min: of.min,
            p50: of.p50,
            p90: of.p90,
            p95: of.p95,
            p99: of.p99,
            max: of.max,
        }
    }
}

impl From<DistributionRow> for Distribution {
    fn from(row: DistributionRow) -> Self {
        Self {
            count: unsigned(row.count.unwrap_or(0)),
            mean: row.mean,
            min: row.min,
            p50: row.p50,
            p90: row.p90,
            p95: row.p95,
            p99: row.p99,
            max: row.max,
        }
    }
}

/// What was stored as a `u64`.
pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// What was stored as a `u32`.
pub(crate) fn small(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl StageRow {
    fn kind(&self) -> StageKind {
        ShapeRow {
            kind: &self.kind,
            concurrency: self.concurrency,
            rate: self.rate,
            rate_to: self.rate_to,
            arrivals: self.arrivals.as_deref(),
            burstiness: self.burstiness,
            speed: self.speed,
        }
        .kind()
    }

    /// As pages show it.
    pub(crate) fn view(self) -> StageView {
        StageView {
            index: small(self.stage),
            kind: self.kind(),
            repeat: small(self.repeat),
            complete: self.complete,
            source: Source::from_word(&self.source).unwrap_or(Source::Imported),
            disputed: self.disputed,
            completed: unsigned(self.completed),
            failed: unsigned(self.failed),
            cancelled: unsigned(self.cancelled),
            duration_s: self.duration_s,
            prompt_tokens: self.prompt_tokens.map(unsigned),
            output_tokens: unsigned(self.output_tokens),
            cached_tokens: self.cached_tokens.map(unsigned),
            output_tps: self.output_tps,
            steady_output_tps: self.steady_output_tps,
            peak_output_tps: self.peak_output_tps,
            request_throughput: self.request_throughput,
            achieved_concurrency: self.achieved_concurrency,
            peak_in_flight: self.peak_in_flight.map(small),
            chunks: Some(unsigned(self.chunks)).filter(|chunks| *chunks > 0),
            ttft_ms: self.ttft_ms.into(),
            ttft_intended_ms: self.ttft_intended_ms.into(),
            first_answer_ms: self.first_answer_ms.into(),
            tpot_ms: self.tpot_ms.into(),
            itl_ms: self.itl_ms.into(),
            icl_ms: self.icl_ms.into(),
            e2el_ms: self.e2el_ms.into(),
            e2e_tps: self.e2e_tps.into(),
            decode_tps: self.decode_tps.into(),
            goodput: self.goodput.map(|goodput| goodput.0),
            conditions: self.conditions.0,
            flags: self.flags.0,
            remark: self.remark,
        }
    }

    /// As files carry it, without its records.
    pub(crate) fn result(self) -> ResultStage {
        ResultStage {
            index: small(self.stage),
            kind: self.kind(),
            repeat: small(self.repeat),
            complete: self.complete,
            figures: StageFigures {
                requests: unsigned(self.requests),
                completed: unsigned(self.completed),
                failed: unsigned(self.failed),
                cancelled: unsigned(self.cancelled),
                failures: self.failures.0,
                duration_s: self.duration_s,
                prompt_tokens: self.prompt_tokens.map(unsigned),
                output_tokens: unsigned(self.output_tokens),
                cached_tokens: self.cached_tokens.map(unsigned),
                output_tps: self.output_tps,
                steady_output_tps: self.steady_output_tps,
                peak_output_tps: self.peak_output_tps,
                request_throughput: self.request_throughput,
                achieved_concurrency: self.achieved_concurrency,
                peak_in_flight: self.peak_in_flight.map(small),
                chunks: unsigned(self.chunks),
                coalesced_share: self.coalesced_share,
                ttft_ms: self.ttft_ms.into(),
                ttft_intended_ms: self.ttft_intended_ms.into(),
                first_answer_ms: self.first_answer_ms.into(),
                tpot_ms: self.tpot_ms.into(),
                itl_ms: self.itl_ms.into(),
                icl_ms: self.icl_ms.into(),
                e2el_ms: self.e2el_ms.into(),
                e2e_tps: self.e2e_tps.into(),
                decode_tps: self.decode_tps.into(),
                goodput: self.goodput.map(|goodput| goodput.0),
                flags: self.flags.0,
            },
            conditions: self.conditions.0,
            histograms: None,
            records: Vec::new(),
        }
    }
}

/// Stores a stage of a run. A stage that stands there already is kept if it ran
/// to its end, and replaced if it did not: later there may be more requests.
pub(crate) async fn store(
    connection: &mut PgConnection,
    run: RunId,
    stage: &NewStage<'_>,
) -> Result<(), LabError> {
    let figures = stage.figures;
    let shape = Shape::from(stage.kind);
    // Engines and files wrote some of it.
    let conditions = clean::json(serde_json::to_value(stage.conditions).unwrap_or_default());
    let histograms = stage
        .histograms
        .and_then(|histograms| serde_json::to_value(histograms).ok());
    let flags = clean::json(serde_json::to_value(&figures.flags).unwrap_or_default());
    sqlx::query!(
        r#"INSERT INTO stages (run_id, stage, team_id, actor_id, kind, concurrency, repeat,
               complete, source, disputed, remark, requests, completed, failed, cancelled,
               failures, duration_s, prompt_tokens, output_tokens, cached_tokens, output_tps,
               steady_output_tps, achieved_concurrency, coalesced_share,
               ttft_ms, tpot_ms, itl_ms, icl_ms, e2el_ms, e2e_tps, decode_tps, flags,
               rate, rate_to, arrivals, burstiness, speed, peak_output_tps, request_throughput,
               peak_in_flight, ttft_intended_ms, first_answer_ms, goodput, conditions, chunks,
               histograms)
           SELECT id, $2, team_id, actor_id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
               $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30,
               $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44
           FROM runs WHERE id = $1
           ON CONFLICT (run_id, stage) DO UPDATE SET
               complete = EXCLUDED.complete, source = EXCLUDED.source,
               requests = EXCLUDED.requests, completed = EXCLUDED.completed,
               failed = EXCLUDED.failed, cancelled = EXCLUDED.cancelled,
               failures = EXCLUDED.failures, duration_s = EXCLUDED.duration_s,
               prompt_tokens = EXCLUDED.prompt_tokens, output_tokens = EXCLUDED.output_tokens,
               cached_tokens = EXCLUDED.cached_tokens, output_tps = EXCLUDED.output_tps,
               steady_output_tps = EXCLUDED.steady_output_tps,
               achieved_concurrency = EXCLUDED.achieved_concurrency,
               coalesced_share = EXCLUDED.coalesced_share, ttft_ms = EXCLUDED.ttft_ms,
               tpot_ms = EXCLUDED.tpot_ms, itl_ms = EXCLUDED.itl_ms, icl_ms = EXCLUDED.icl_ms,
               e2el_ms = EXCLUDED.e2el_ms, e2e_tps = EXCLUDED.e2e_tps,
               decode_tps = EXCLUDED.decode_tps, flags = EXCLUDED.flags,
               peak_output_tps = EXCLUDED.peak_output_tps,
               request_throughput = EXCLUDED.request_throughput,
               peak_in_flight = EXCLUDED.peak_in_flight,
               ttft_intended_ms = EXCLUDED.ttft_intended_ms,
               first_answer_ms = EXCLUDED.first_answer_ms, goodput = EXCLUDED.goodput,
               conditions = EXCLUDED.conditions, chunks = EXCLUDED.chunks
           WHERE NOT stages.complete"#,
        run.0,
        i64::from(stage.index),
        stage.kind.word(),
        shape.concurrency,
        i64::from(stage.repeat),
        stage.complete,
        stage.source.word(),
        stage.disputed,
        stage.remark,
        clean::big(figures.requests),
        clean::big(figures.completed),
        clean::big(figures.failed),
        clean::big(figures.cancelled),
        Json(&figures.failures) as _,
        figures.duration_s,
        figures.prompt_tokens.map(clean::big),
        clean::big(figures.output_tokens),
        figures.cached_tokens.map(clean::big),
        figures.output_tps,
        figures.steady_output_tps,
        figures.achieved_concurrency,
        figures.coalesced_share,
        DistributionRow::from(&figures.ttft_ms) as _,
        DistributionRow::from(&figures.tpot_ms) as _,
        DistributionRow::from(&figures.itl_ms) as _,
        DistributionRow::from(&figures.icl_ms) as _,
        DistributionRow::from(&figures.e2el_ms) as _,
        DistributionRow::from(&figures.e2e_tps) as _,
        DistributionRow::from(&figures.decode_tps) as _,
        flags,
        shape.rate,
        shape.rate_to,
        shape.arrivals,
        shape.burstiness,
        shape.speed,
        figures.peak_output_tps,
        figures.request_throughput,
        figures.peak_in_flight.map(i64::from),
        DistributionRow::from(&figures.ttft_intended_ms) as _,
        DistributionRow::from(&figures.first_answer_ms) as _,
        figures.goodput.map(Json) as _,
        conditions,
        clean::big(figures.chunks),
        histograms,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Puts other flags in the place of a stage's.
pub(crate) async fn store_flags(
    connection: &mut PgConnection,
    run: RunId,
    stage: u32,
    flags: &[StageFlag],
) -> Result<(), LabError> {
    sqlx::query!(
        "UPDATE stages SET flags = $3 WHERE run_id = $1 AND stage = $2",
        run.0,
        i64::from(stage),
        // Hosts name processes as they like.
        clean::json(serde_json::to_value(flags).unwrap_or_default()),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The histograms of a run's stages that came without their requests.
pub(crate) async fn histograms(
    connection: &mut PgConnection,
    run: RunId,
) -> Result<HashMap<u32, StageHistograms>, LabError> {
    let rows = sqlx::query!(
        r#"SELECT stage, histograms AS "histograms!: Json<StageHistograms>"
           FROM stages WHERE run_id = $1 AND histograms IS NOT NULL"#,
        run.0,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (small(row.stage), row.histograms.0))
        .collect())
}

/// What is stored of what went on around a stage; nothing where there is no such
/// stage yet.
pub(crate) async fn conditions(
    connection: &mut PgConnection,
    run: RunId,
    stage: u32,
) -> Result<StageConditions, LabError> {
    let stored = sqlx::query_scalar!(
        r#"SELECT conditions AS "conditions: Json<StageConditions>"
           FROM stages WHERE run_id = $1 AND stage = $2"#,
        run.0,
        i64::from(stage),
    )
    .fetch_optional(connection)
    .await?;
    Ok(stored.map(|stored| stored.0).unwrap_or_default())
}

/// The stages of some runs, in their order.
pub(crate) async fn of_runs(
    executor: impl PgExecutor<'_>,
    runs: &[i64],
) -> Result<Vec<StageRow>, LabError> {
    Ok(sqlx::query_as!(
        StageRow,
        r#"SELECT run_id, stage, kind, concurrency, rate, rate_to, arrivals, burstiness, speed,
               repeat, complete, source, disputed, remark, requests, completed, failed, cancelled,
               failures AS "failures: Json<BTreeMap<FailureKind, u64>>",
               duration_s, prompt_tokens, output_tokens, cached_tokens, output_tps,
               steady_output_tps, peak_output_tps, request_throughput, achieved_concurrency,
               peak_in_flight, chunks, coalesced_share, ttft_ms AS "ttft_ms: DistributionRow",
               ttft_intended_ms AS "ttft_intended_ms: DistributionRow",
               first_answer_ms AS "first_answer_ms: DistributionRow",
               tpot_ms AS "tpot_ms: DistributionRow",
               itl_ms AS "itl_ms: DistributionRow", icl_ms AS "icl_ms: DistributionRow",
               e2el_ms AS "e2el_ms: DistributionRow", e2e_tps AS "e2e_tps: DistributionRow",
               decode_tps AS "decode_tps: DistributionRow", goodput AS "goodput: Json<Goodput>",
               flags AS "flags: Json<Vec<StageFlag>>",
               conditions AS "conditions: Json<StageConditions>"
           FROM stages WHERE run_id = ANY($1) ORDER BY run_id, stage"#,
        runs
    )
    .fetch_all(executor)
    .await?)
}

/// The stages of some runs with as much as list and Board show: throughputs, the
/// median speed of the single stream, and what casts doubt on them. The rest stays
/// at its default, so that a Board over thousands of stages is quick.
pub(crate) async fn headlines(
    pool: &PgPool,
    runs: &[i64],
) -> Result<HashMap<i64, Vec<StageView>>, LabError> {
    let rows = sqlx::query!(
        r#"SELECT run_id, stage, kind, concurrency, rate, rate_to, arrivals, burstiness, speed,
               repeat, complete, source, disputed, remark, completed, failed, output_tps,
               steady_output_tps, request_throughput,
               CASE WHEN kind = 'single_stream' THEN (e2e_tps).p50 END AS e2e_tps,
               CASE WHEN flags <> '[]' THEN flags END AS "flags: Json<Vec<StageFlag>>"
           FROM stages WHERE run_id = ANY($1) ORDER BY run_id, stage"#,
        runs
    )
    .fetch_all(pool)
    .await?;
    let mut of_run: HashMap<i64, Vec<StageView>> = HashMap::with_capacity(runs.len());
    for row in rows {
        let kind = ShapeRow {
            kind: &row.kind,
            concurrency: row.concurrency,
            rate: row.rate,
            rate_to: row.rate_to,
            arrivals: row.arrivals.as_deref(),
            burstiness: row.burstiness,
            speed: row.speed,
        }
        .kind();
        let source = Source::from_word(&row.source).unwrap_or(Source::Imported);
        of_run.entry(row.run_id).or_default().push(StageView {
            index: small(row.stage),
            complete: row.complete,
            disputed: row.disputed,
            completed: unsigned(row.completed),
            failed: unsigned(row.failed),
            output_tps: row.output_tps,
            steady_output_tps: row.steady_output_tps,
            request_throughput: row.request_throughput,
            e2e_tps: Distribution {
                p50: row.e2e_tps,
                ..Distribution::default()
            },
            flags: row.flags.map(|flags| flags.0).unwrap_or_default(),
            remark: row.remark,
            ..StageView::blank(kind, small(row.repeat), source)
        });
    }
    Ok(of_run)
}
