//! How fast the store is: for `cargo xtask bench` and the example of this crate.
//! Needs a database of its own, which it fills.

use std::time::{Duration, Instant};

use tokdyno_domain::{
    access::Actor,
    conditions::StageConditions,
    engine::EngineKind,
    meter::{ClientInfo, MeterEvent, MeterEventKind, MeterOutcome, RequestEvent},
    metrics::{Distribution, METRIC_VERSION, StageFigures},
    record::{ChunkTrace, RequestRecord, TokenCount},
    result_file::{RESULT_SCHEMA, ResultEndpoint, ResultFile, ResultStage, TOOL},
    run::RunState,
    timestamp::Timestamp,
    views::{
        board::BoardFilter,
        measure::{EndpointForm, NewRun, WorkloadForm},
    },
    workload::{StageKind, Workload},
};
use uuid::Uuid;

use crate::{
    Lab, LabError,
    worker::{ingest, lease, spool},
};

/// What storing requests took.
#[derive(Debug, Clone, Copy)]
pub struct IngestTimes {
    /// Requests stored.
    pub requests: u32,
    /// Size of the spool file, in bytes.
    pub spool_bytes: u64,
    /// Reading the lines, without storing them.
    pub reading: Duration,
    /// Storing them, batch after batch, each committed.
    pub storing: Duration,
}

/// What the Board took.
#[derive(Debug, Clone, Copy)]
pub struct BoardTimes {
    /// Runs stored.
    pub runs: u32,
    /// Stages stored.
    pub stages: u32,
    /// Median time of a Board.
    pub median: Duration,
    /// Longest time of a Board.
    pub longest: Duration,
}

/// Stores one stage of so many requests with so many chunks each, through a spool
/// file, as a worker does.
///
/// # Errors
/// [`LabError`], also if another run waits in this database.
pub async fn ingest(lab: &Lab, requests: u32, chunks: u32) -> Result<IngestTimes, LabError> {
    let fault = |error: &dyn std::fmt::Display| LabError::internal("measuring the store", error);
    let new = NewRun {
        endpoint: EndpointForm {
            url: "http://127.0.0.1:9".to_owned(),
            ..EndpointForm::default()
        },
        model: None,
        configuration: "speed of the store".to_owned(),
        hardware: String::new(),
        workload: WorkloadForm {
            preset: None,
            single_stream: None,
            concurrencies: "128".to_owned(),
            requests: Some(requests.max(128)),
            output_tokens: chunks,
            repeats: 1,
            ..WorkloadForm::default()
        },
    };
    let run = lab.queue_run(&Actor::LOCAL, &new).await?;
    let pool = &lab.0.pool;
    let claimed = lease::claim(pool, Uuid::new_v4()).await?;
    let Some(claimed) = claimed.filter(|claimed| claimed.lease.run == run) else {
        return Err(LabError::Conflict(
            "Another run waits in this database. Give the benchmark one of its own.".to_owned(),
        ));
    };
    let folder =
        spool::SpoolFolder::open(&lab.0.config.data_dir, lab.0.id).map_err(|e| fault(&e))?;
    let (path, _log) = folder
        .create(run, claimed.lease.epoch)
        .map_err(|e| fault(&e))?;
    std::fs::write(&path, lines(requests, chunks)).map_err(|e| fault(&e))?;
    let spool_bytes = std::fs::metadata(&path).map_err(|e| fault(&e))?.len();

    let mut tail = spool::Tail::open(&path).map_err(|e| fault(&e))?;
    let plan = claimed.workload.plan();
    let (mut reading, mut storing) = (Duration::ZERO, Duration::ZERO);
    loop {
        let begun = Instant::now();
        let batch = tail.next_batch(0).map_err(|e| fault(&e))?;
        reading += begun.elapsed();
        if batch.is_empty() {
            break;
        }
        let begun = Instant::now();
        ingest::apply(pool, &claimed.lease, &plan, &batch).await?;
        storing += begun.elapsed();
    }
    ingest::conclude(
        pool,
        &claimed.lease,
        &claimed.workload,
        RunState::Finished,
        None,
        None,
    )
    .await?;
    spool::SpoolFolder::remove(&path);
    Ok(IngestTimes {
        requests,
        spool_bytes,
        reading,
        storing,
    })
}

/// Imports so many runs of fifteen stages without records, and asks for the Board.
///
/// # Errors
/// [`LabError`].
pub async fn board(lab: &Lab, runs: u32) -> Result<BoardTimes, LabError> {
    let mut stages = 0;
    for number in 0..runs {
        let file = file(number);
        stages += u32::try_from(file.stages.len()).unwrap_or(0);
        let bytes = serde_json::to_vec(&file)
            .map_err(|error| LabError::internal("measuring the store", error))?;
        lab.import(&Actor::LOCAL, &bytes).await?;
    }
    let mut times = Vec::new();
    for _ in 0..21 {
        let begun = Instant::now();
        lab.board(&Actor::LOCAL, &BoardFilter::default()).await?;
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(BoardTimes {
        runs,
        stages,
        median: times.get(10).copied().unwrap_or_default(),
        longest: times.last().copied().unwrap_or_default(),
    })
}

fn lines(requests: u32, chunks: u32) -> Vec<u8> {
    let mut text = Vec::new();
    for seq in 0..requests {
        let request = RequestEvent {
            record: record(seq, chunks),
            trace: Some(ChunkTrace {
                gaps_us: (0..chunks)
                    .map(|chunk| 9_000 + (seq * 31 + chunk * 17) % 2_500)
                    .collect(),
                tokens: vec![1; chunks as usize],
            }),
        };
        let event = MeterEvent {
            seq: u64::from(seq) + 1,
            at: Timestamp(1_795_968_039_000_000),
            kind: MeterEventKind::Request(Box::new(request)),
        };
        // A record always serialises.
        let _ = serde_json::to_writer(&mut text, &event);
        text.push(b'\n');
    }
    text
}

fn record(seq: u32, chunks: u32) -> RequestRecord {
    let e2el_ns = u64::from(chunks) * 10_000_000;
    RequestRecord {
        stage: 0,
        seq,
        prompt: seq.into(),
        sent_ns: u64::from(seq) * 1_000_000,
        intended_ns: None,
        turn: None,
        asked_tokens: None,
        connect_ns: None,
        headers_ns: Some(1_000_000),
        ttft_ns: Some(10_000_000),
        first_answer_ns: None,
        e2el_ns: Some(e2el_ns),
        end_ns: e2el_ns + 10_000,
        prompt_tokens: Some(18),
        completion_tokens: Some(chunks),
        first_chunk_tokens: Some(1),
        cached_tokens: Some(0),
        reasoning_tokens: None,
        chunks,
        coalesced_chunks: 0,
        counted_by: TokenCount::Usage,
        done_seen: true,
        finish_reason: Some("length".to_owned()),
        simulated: false,
        failure: None,
    }
}

fn file(number: u32) -> ResultFile {
    let workload = Workload {
        repeats: 3,
        ..Workload::with_levels(
            "speed of the Board",
            Workload::levels(Some(5), &[1, 8, 32, 128], None),
        )
    };
    let speed = 60.0 + f64::from(number % 40);
    let median = |p50: f64| Distribution {
        count: 512,
        mean: Some(p50),
        min: Some(p50 * 0.9),
        p50: Some(p50),
        p90: Some(p50 * 1.1),
        p95: Some(p50 * 1.2),
        p99: Some(p50 * 1.3),
        max: Some(p50 * 1.5),
    };
    let stages = workload
        .plan()
        .iter()
        .map(|planned| {
            let concurrency = planned.level.kind.slots();
            ResultStage {
                index: planned.index,
                kind: planned.level.kind,
                repeat: planned.repeat,
                complete: true,
                figures: StageFigures {
                    requests: 512,
                    completed: 512,
                    duration_s: Some(100.0),
                    output_tokens: 131_072,
                    output_tps: Some(speed * f64::from(concurrency).sqrt()),
                    achieved_concurrency: Some(concurrency.into()),
                    ttft_ms: median(45.0),
                    tpot_ms: median(1000.0 / speed),
                    e2el_ms: median(2800.0),
                    e2e_tps: median(match planned.level.kind {
                        StageKind::SingleStream => speed,
                        _ => speed / f64::from(concurrency).sqrt(),
                    }),
                    decode_tps: median(speed),
                    ..StageFigures::default()
                },
                conditions: StageConditions::default(),
                histograms: None,
                records: Vec::new(),
            }
        })
        .collect();
    ResultFile {
        schema_version: RESULT_SCHEMA,
        tool: TOOL.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        metric_version: METRIC_VERSION,
        started_at: Timestamp(1_795_968_039_000_000 + i64::from(number)),
        finished_at: Timestamp(1_795_968_139_000_000 + i64::from(number)),
        configuration: Some(format!("configuration {}", number % 40)),
        hardware: Some("8 GPUs".to_owned()),
        endpoint: ResultEndpoint {
            url: "http://127.0.0.1:8000".to_owned(),
            model: "a-model".to_owned(),
            engine: Some(EngineKind::Vllm),
            engine_version: None,
            settings: std::collections::BTreeMap::new(),
            simulated: false,
        },
        client: ClientInfo::default(),
        workload,
        outcome: MeterOutcome::Complete,
        stages,
        skipped: Vec::new(),
    }
}
