//! Request records and chunk times as stored: written in columns, thousands at
//! a time, and read back as they were.

use std::collections::HashMap;

use sqlx::{PgConnection, PgPool};
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::RunId,
    metrics::Traced,
    record::{ChunkTrace, Failure, FailureKind, RequestRecord, TokenCount},
};

use crate::{
    Lab, LabError,
    clean::{self, big},
    stages::{small, unsigned},
    traces,
};

/// Rows of one statement. Larger ones gain little and hold more memory.
pub(crate) const ROWS: usize = 2_000;

/// Requests about to be stored, a vector a column.
#[derive(Default)]
pub(crate) struct Columns {
    stage: Vec<i64>,
    seq: Vec<i64>,
    prompt: Vec<i64>,
    sent_ns: Vec<i64>,
    intended_ns: Vec<Option<i64>>,
    turn: Vec<Option<i64>>,
    asked_tokens: Vec<Option<i64>>,
    connect_ns: Vec<Option<i64>>,
    headers_ns: Vec<Option<i64>>,
    ttft_ns: Vec<Option<i64>>,
    first_answer_ns: Vec<Option<i64>>,
    e2el_ns: Vec<Option<i64>>,
    end_ns: Vec<i64>,
    prompt_tokens: Vec<Option<i64>>,
    completion_tokens: Vec<Option<i64>>,
    first_chunk_tokens: Vec<Option<i64>>,
    cached_tokens: Vec<Option<i64>>,
    reasoning_tokens: Vec<Option<i64>>,
    chunks: Vec<i64>,
    coalesced_chunks: Vec<i64>,
    counted_by_chunk: Vec<bool>,
    done_seen: Vec<bool>,
    simulated: Vec<bool>,
    finish_reason: Vec<Option<String>>,
    failure_kind: Vec<Option<&'static str>>,
    failure_message: Vec<Option<String>>,
    failure_http_status: Vec<Option<i32>>,
    trace_stage: Vec<i64>,
    trace_seq: Vec<i64>,
    trace_gaps: Vec<Vec<u8>>,
    trace_tokens: Vec<Vec<u8>>,
}

struct Row {
    stage: i64,
    seq: i64,
    prompt: i64,
    sent_ns: i64,
    intended_ns: Option<i64>,
    turn: Option<i64>,
    asked_tokens: Option<i64>,
    connect_ns: Option<i64>,
    headers_ns: Option<i64>,
    ttft_ns: Option<i64>,
    first_answer_ns: Option<i64>,
    e2el_ns: Option<i64>,
    end_ns: i64,
    prompt_tokens: Option<i64>,
    completion_tokens: Option<i64>,
    first_chunk_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    reasoning_tokens: Option<i64>,
    chunks: i64,
    coalesced_chunks: i64,
    counted_by_chunk: bool,
    done_seen: bool,
    simulated: bool,
    finish_reason: Option<String>,
    failure_kind: Option<String>,
    failure_message: Option<String>,
    failure_http_status: Option<i32>,
}

impl Columns {
    /// Number of requests.
    pub(crate) fn len(&self) -> usize {
        self.stage.len()
    }

    /// Adds a request with its chunk times.
    pub(crate) fn push(&mut self, record: &RequestRecord, trace: Option<&ChunkTrace>) {
        self.stage.push(record.stage.into());
        self.seq.push(record.seq.into());
        self.prompt.push(big(record.prompt));
        self.sent_ns.push(big(record.sent_ns));
        self.intended_ns.push(record.intended_ns.map(big));
        self.turn.push(record.turn.map(i64::from));
        self.asked_tokens.push(record.asked_tokens.map(i64::from));
        self.connect_ns.push(record.connect_ns.map(big));
        self.headers_ns.push(record.headers_ns.map(big));
        self.ttft_ns.push(record.ttft_ns.map(big));
        self.first_answer_ns.push(record.first_answer_ns.map(big));
        self.e2el_ns.push(record.e2el_ns.map(big));
        self.end_ns.push(big(record.end_ns));
        self.prompt_tokens.push(record.prompt_tokens.map(i64::from));
        self.completion_tokens
            .push(record.completion_tokens.map(i64::from));
        self.first_chunk_tokens
            .push(record.first_chunk_tokens.map(i64::from));
        self.cached_tokens.push(record.cached_tokens.map(i64::from));
        self.reasoning_tokens
            .push(record.reasoning_tokens.map(i64::from));
        self.chunks.push(record.chunks.into());
        self.coalesced_chunks.push(record.coalesced_chunks.into());
        self.counted_by_chunk
            .push(record.counted_by == TokenCount::Chunks);
        self.done_seen.push(record.done_seen);
        self.simulated.push(record.simulated);
        self.finish_reason
            .push(record.finish_reason.as_deref().map(clean::owned));
        let failure = record.failure.as_ref();
        self.failure_kind
            .push(failure.map(|failure| failure.kind.word()));
        self.failure_message
            .push(failure.map(|failure| clean::owned(&failure.message)));
        self.failure_http_status
            .push(failure.and_then(|failure| failure.http_status.map(i32::from)));
        if let Some(trace) = trace {
            self.trace_stage.push(record.stage.into());
            self.trace_seq.push(record.seq.into());
            self.trace_gaps.push(traces::pack(&trace.gaps_us));
            self.trace_tokens.push(traces::pack(&trace.tokens));
        }
    }

    /// Stores them; those that stand there already are left as they are, so that
    /// reading a spool file twice stores once.
    pub(crate) async fn store(
        &self,
        connection: &mut PgConnection,
        run: RunId,
    ) -> Result<(), LabError> {
        if self.stage.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "INSERT INTO requests (run_id, stage, seq, prompt, sent_ns, connect_ns, headers_ns,
                 ttft_ns, first_answer_ns, e2el_ns, end_ns, prompt_tokens, completion_tokens,
                 first_chunk_tokens, cached_tokens, reasoning_tokens, chunks, coalesced_chunks,
                 counted_by_chunk, done_seen, simulated, finish_reason, failure_kind,
                 failure_message, failure_http_status, intended_ns, turn, asked_tokens)
             SELECT $1, * FROM UNNEST($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                 $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
                 $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
                 $16::bigint[], $17::bigint[], $18::bigint[], $19::boolean[], $20::boolean[],
                 $21::boolean[], $22::text[], $23::text[], $24::text[], $25::integer[],
                 $26::bigint[], $27::bigint[], $28::bigint[])
             ON CONFLICT DO NOTHING",
            run.0,
            &self.stage,
            &self.seq,
            &self.prompt,
            &self.sent_ns,
            &self.connect_ns as &[Option<i64>],
            &self.headers_ns as &[Option<i64>],
            &self.ttft_ns as &[Option<i64>],
            &self.first_answer_ns as &[Option<i64>],
            &self.e2el_ns as &[Option<i64>],
            &self.end_ns,
            &self.prompt_tokens as &[Option<i64>],
            &self.completion_tokens as &[Option<i64>],
            &self.first_chunk_tokens as &[Option<i64>],
            &self.cached_tokens as &[Option<i64>],
            &self.reasoning_tokens as &[Option<i64>],
            &self.chunks,
            &self.coalesced_chunks,
            &self.counted_by_chunk,
            &self.done_seen,
            &self.simulated,
            &self.finish_reason as &[Option<String>],
            &self.failure_kind as &[Option<&str>],
            &self.failure_message as &[Option<String>],
            &self.failure_http_status as &[Option<i32>],
            &self.intended_ns as &[Option<i64>],
            &self.turn as &[Option<i64>],
            &self.asked_tokens as &[Option<i64>],
        )
        .execute(&mut *connection)
        .await?;
        sqlx::query!(
            "INSERT INTO chunk_traces (run_id, stage, seq, gaps, tokens)
             SELECT $1, * FROM UNNEST($2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])
             ON CONFLICT DO NOTHING",
            run.0,
            &self.trace_stage,
            &self.trace_seq,
            &self.trace_gaps,
            &self.trace_tokens,
        )
        .execute(connection)
        .await?;
        Ok(())
    }
}

impl Row {
    fn record(self) -> RequestRecord {
        RequestRecord {
            stage: small(self.stage),
            seq: small(self.seq),
            prompt: unsigned(self.prompt),
            sent_ns: unsigned(self.sent_ns),
            intended_ns: self.intended_ns.map(unsigned),
            turn: self.turn.map(small),
            asked_tokens: self.asked_tokens.map(small),
            connect_ns: self.connect_ns.map(unsigned),
            headers_ns: self.headers_ns.map(unsigned),
            ttft_ns: self.ttft_ns.map(unsigned),
            first_answer_ns: self.first_answer_ns.map(unsigned),
            e2el_ns: self.e2el_ns.map(unsigned),
            end_ns: unsigned(self.end_ns),
            prompt_tokens: self.prompt_tokens.map(small),
            completion_tokens: self.completion_tokens.map(small),
            first_chunk_tokens: self.first_chunk_tokens.map(small),
            cached_tokens: self.cached_tokens.map(small),
            reasoning_tokens: self.reasoning_tokens.map(small),
            chunks: small(self.chunks),
            coalesced_chunks: small(self.coalesced_chunks),
            counted_by: if self.counted_by_chunk {
                TokenCount::Chunks
            } else {
                TokenCount::Usage
            },
            done_seen: self.done_seen,
            finish_reason: self.finish_reason,
            simulated: self.simulated,
            failure: self.failure_kind.map(|kind| Failure {
                kind: FailureKind::from_word(&kind).unwrap_or(FailureKind::BadReply),
                message: self.failure_message.unwrap_or_default(),
                http_status: self
                    .failure_http_status
                    .and_then(|status| u16::try_from(status).ok()),
            }),
        }
    }
}

/// How many requests of a run are stored; of some stages alone, if they are named.
pub(crate) async fn count(
    pool: &PgPool,
    run: RunId,
    stages: Option<&[i64]>,
) -> Result<u64, LabError> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM requests
           WHERE run_id = $1 AND ($2::bigint[] IS NULL OR stage = ANY($2))"#,
        run.0,
        stages,
    )
    .fetch_one(pool)
    .await?;
    Ok(unsigned(count))
}

/// Some requests of a run in the order of stage and number; of some stages alone, if
/// they are named.
pub(crate) async fn read(
    connection: &mut PgConnection,
    run: RunId,
    stages: Option<&[i64]>,
    limit: Option<i64>,
    offset: i64,
) -> Result<Vec<RequestRecord>, LabError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT stage, seq, prompt, sent_ns, connect_ns, headers_ns, ttft_ns, first_answer_ns,
             e2el_ns, end_ns, prompt_tokens, completion_tokens, first_chunk_tokens,
             cached_tokens, reasoning_tokens, chunks, coalesced_chunks, counted_by_chunk,
             done_seen, simulated, finish_reason, failure_kind, failure_message,
             failure_http_status, intended_ns, turn, asked_tokens
         FROM requests WHERE run_id = $1 AND ($2::bigint[] IS NULL OR stage = ANY($2))
         ORDER BY stage, seq LIMIT $3 OFFSET $4",
        run.0,
        stages,
        limit,
        offset,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Row::record).collect())
}

/// The requests after one (stage, seq), in their order, at most [`ROWS`]. Reading on
/// from the last one costs the same however many come before, unlike an offset.
async fn after(
    connection: &mut PgConnection,
    run: RunId,
    (stage, seq): (i64, i64),
) -> Result<Vec<RequestRecord>, LabError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT stage, seq, prompt, sent_ns, connect_ns, headers_ns, ttft_ns, first_answer_ns,
             e2el_ns, end_ns, prompt_tokens, completion_tokens, first_chunk_tokens,
             cached_tokens, reasoning_tokens, chunks, coalesced_chunks, counted_by_chunk,
             done_seen, simulated, finish_reason, failure_kind, failure_message,
             failure_http_status, intended_ns, turn, asked_tokens
         FROM requests WHERE run_id = $1 AND (stage, seq) > ($2, $3)
         ORDER BY stage, seq LIMIT $4",
        run.0,
        stage,
        seq,
        big(ROWS as u64),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Row::record).collect())
}

impl Lab {
    /// The requests of a run after one (stage, seq), or from the first, some thousand
    /// at a time; empty after the last. For whoever reads all of them.
    ///
    /// # Errors
    /// [`LabError::NoSuchRun`], [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn records_after(
        &self,
        actor: &Actor,
        run: RunId,
        last: Option<(u32, u32)>,
    ) -> Result<Vec<RequestRecord>, LabError> {
        authorise(actor, Capability::Read)?;
        self.must_exist(actor, run).await?;
        let last = last.map_or((-1, -1), |(stage, seq)| (stage.into(), seq.into()));
        let mut connection = self.0.pool.acquire().await?;
        after(&mut connection, run, last).await
    }
}

/// All requests of a run (or of one of its stages) with their chunk times.
pub(crate) async fn traced(
    connection: &mut PgConnection,
    run: RunId,
    stage: Option<i64>,
) -> Result<Vec<Traced>, LabError> {
    let stages = stage.as_ref().map(std::slice::from_ref);
    let records = read(&mut *connection, run, stages, None, 0).await?;
    let rows = sqlx::query!(
        "SELECT stage, seq, gaps, tokens FROM chunk_traces
         WHERE run_id = $1 AND ($2::bigint IS NULL OR stage = $2)",
        run.0,
        stage,
    )
    .fetch_all(connection)
    .await?;
    let mut of_request = HashMap::with_capacity(rows.len());
    for row in rows {
        let (Some(gaps_us), Some(tokens)) =
            (traces::unpack(&row.gaps), traces::unpack(&row.tokens))
        else {
            return Err(LabError::internal(
                "reading chunk times",
                format!("run {run}, stage {}, request {}", row.stage, row.seq),
            ));
        };
        of_request.insert(
            (small(row.stage), small(row.seq)),
            ChunkTrace { gaps_us, tokens },
        );
    }
    Ok(records
        .into_iter()
        .map(|record| {
            let trace = of_request.remove(&(record.stage, record.seq));
            (record, trace)
        })
        .collect())
}
