//! What the tests share: a small workload, what a meter writes of it, and a
//! server that answers who it is.

pub(crate) mod launches;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::PgPool;
use tempfile::TempDir;
use tokdyno_domain::{
    access::Actor,
    conditions::{CacheReset, Certificate, ClientLoad, EngineReport, Speculation, StageConditions},
    histogram::StageHistograms,
    ids::RunId,
    meter::{
        ApiKey, Certify, ClientInfo, MeterEvent, MeterEventKind, MeterOutcome, Phase, Progress,
        RequestEvent,
    },
    metrics::{METRIC_VERSION, StageFigures, Traced, whole_stage},
    record::{ChunkTrace, Failure, FailureKind, RequestRecord, TokenCount},
    result_file::{RESULT_SCHEMA, ResultEndpoint, ResultFile, ResultStage, TOOL},
    run::RunState,
    timestamp::Timestamp,
    views::{
        measure::{EndpointForm, NewRun, WorkloadForm},
        run::RunSummary,
    },
    workload::{LoadLevel, StageKind, StagePlan, StageSize, Workload},
};
use tokdyno_remote::RemoteConfig;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

use crate::{Lab, LabConfig};

/// Longest that a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Stands for the process id of the stand-in meter.
pub(crate) const METER_PID: u32 = 4_242_424;

/// A laboratory over a test's database, with a data directory of its own.
pub(crate) async fn lab(pool: &PgPool, folder: &TempDir) -> Lab {
    Lab::with_pool(pool.clone(), config(folder.path()))
        .await
        .expect("a laboratory")
}

pub(crate) fn config(data_dir: &Path) -> LabConfig {
    LabConfig {
        database_url: String::new(),
        data_dir: data_dir.to_owned(),
        key_file: None,
        meter: meter(),
        host_meter: None,
        remote: RemoteConfig::new("tokdyno-agent".into()),
        parallel: 1,
        certify: Certify::Off,
    }
}

pub(crate) fn meter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/meter.sh")
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// What the form of [`workload`] says.
pub(crate) fn new_run(url: &str) -> NewRun {
    NewRun {
        endpoint: EndpointForm {
            url: url.to_owned(),
            ..EndpointForm::default()
        },
        model: None,
        configuration: "a configuration".to_owned(),
        hardware: "a machine".to_owned(),
        workload: WorkloadForm {
            preset: None,
            single_stream: Some(2),
            concurrencies: "2".to_owned(),
            requests: Some(4),
            output_tokens: 8,
            repeats: 1,
            ..WorkloadForm::default()
        },
    }
}

pub(crate) fn with_key(mut new: NewRun) -> NewRun {
    new.endpoint.api_key = ApiKey::new("sk-never-shown");
    new
}

/// Single stream of two requests, then C = 2 with four.
pub(crate) fn workload() -> Workload {
    let requests = |kind, requests| LoadLevel {
        kind,
        size: StageSize::Requests { requests },
    };
    Workload {
        output_tokens: 8,
        ..Workload::with_levels(
            "custom",
            vec![
                requests(StageKind::SingleStream, 2),
                requests(StageKind::ClosedLoop { concurrency: 2 }, 4),
            ],
        )
    }
}

/// A request of a stage; the last of stage 1 failed, with a NUL in its message.
pub(crate) fn request(stage: u32, seq: u32) -> RequestEvent {
    let failed = stage == 1 && seq == 3;
    let trace = ChunkTrace {
        gaps_us: vec![20_000, 10_000, 10_000, 0, 10_100, 9_900, 10_000, 300_000],
        tokens: vec![1; 8],
    };
    let total: u64 = trace.gaps_us.iter().map(|gap| u64::from(*gap)).sum();
    let e2el_ns = total * 1000 + u64::from(seq) * 1_000_003;
    RequestEvent {
        record: RequestRecord {
            stage,
            seq,
            prompt: u64::from(stage) * 2 + u64::from(seq),
            sent_ns: u64::from(stage) * 10_000_000_000 + u64::from(seq) * 400_000_000,
            intended_ns: None,
            turn: None,
            asked_tokens: None,
            connect_ns: (seq == 0).then_some(120_000),
            headers_ns: Some(1_000_000),
            ttft_ns: (!failed).then_some(20_000_000),
            first_answer_ns: None,
            e2el_ns: (!failed).then_some(e2el_ns),
            end_ns: e2el_ns + 5_000,
            prompt_tokens: (!failed).then_some(18),
            completion_tokens: (!failed).then_some(8),
            first_chunk_tokens: (!failed).then_some(1),
            cached_tokens: (!failed).then_some(0),
            reasoning_tokens: None,
            chunks: if failed { 0 } else { 8 },
            coalesced_chunks: u32::from(!failed),
            counted_by: TokenCount::Usage,
            done_seen: !failed,
            finish_reason: (!failed).then(|| "length".to_owned()),
            simulated: false,
            failure: failed.then(|| Failure {
                kind: FailureKind::Status,
                message: "HTTP 500: out of m\0emory".to_owned(),
                http_status: Some(500),
            }),
        },
        trace: (!failed).then_some(trace),
    }
}

fn requests_of(planned: &StagePlan) -> Vec<RequestEvent> {
    let StageSize::Requests { requests } = planned.level.size else {
        return Vec::new();
    };
    (0..requests)
        .map(|seq| request(planned.index, seq))
        .collect()
}

/// What went on around each stage, a NUL in it.
pub(crate) fn conditions() -> StageConditions {
    StageConditions {
        engine: Some(EngineReport {
            samples: 3,
            running_max: Some(2.0),
            speculation: Some(Speculation {
                steps: 10,
                drafted: Some(30),
                accepted: 7,
                accepted_at: vec![5, 2, 0],
            }),
            ..EngineReport::default()
        }),
        client: Some(ClientLoad {
            thread_busy: Some(0.125),
            governor: Some("performance".to_owned()),
            ..ClientLoad::default()
        }),
        certificate: Some(Certificate {
            at: Timestamp(1_795_968_000_000_000),
            concurrency: 2,
            chunks_per_s: 18_000.0,
            is_limit: true,
            ttft_error_p50_ms: 0.01,
            ttft_error_p99_ms: 0.2,
            tpot_error: 0.0001,
            remembered: false,
        }),
        cache_reset: Some(CacheReset::Refused {
            reason: "It has no such route.".to_owned(),
        }),
        unsent: 0,
        ended_early: None,
        replies: None,
    }
}

pub(crate) fn figures(planned: &StagePlan, requests: &[RequestEvent]) -> StageFigures {
    let traced: Vec<Traced> = requests
        .iter()
        .map(|request| (request.record.clone(), request.trace.clone()))
        .collect();
    whole_stage(
        &workload(),
        planned.level.kind,
        true,
        &traced,
        &conditions(),
    )
}

/// All that a meter writes of [`workload`], its end included.
pub(crate) fn events() -> Vec<MeterEvent> {
    let plan = workload().plan();
    let mut kinds = vec![MeterEventKind::Started {
        meter_version: "0.1.0".to_owned(),
        client: ClientInfo {
            host: "bench1".to_owned(),
            pid: METER_PID,
            cpus: 4,
            governor: Some("performance".to_owned()),
        },
        model: "the-model".to_owned(),
        stages: 2,
        dropped_fields: vec!["stream_options.continuous_usage_stats".to_owned()],
    }];
    for planned in &plan {
        kinds.push(MeterEventKind::StageStarted { stage: *planned });
        let requests = requests_of(planned);
        let figures = figures(planned, &requests);
        kinds.extend(
            requests
                .into_iter()
                .map(|request| MeterEventKind::Request(Box::new(request))),
        );
        kinds.push(MeterEventKind::Progress(progress(planned.index)));
        kinds.push(MeterEventKind::StageFinished {
            stage: planned.index,
            figures: Box::new(figures),
            conditions: Box::new(conditions()),
        });
    }
    kinds.push(MeterEventKind::Finished {
        outcome: MeterOutcome::Complete,
    });
    numbered(1, kinds)
}

pub(crate) fn numbered(first: u64, kinds: Vec<MeterEventKind>) -> Vec<MeterEvent> {
    (first..)
        .zip(kinds)
        .map(|(seq, kind)| MeterEvent {
            seq,
            at: Timestamp(1_795_968_039_000_000 + i64::try_from(seq).unwrap_or(0)),
            kind,
        })
        .collect()
}

pub(crate) fn progress(stage: u32) -> Progress {
    Progress {
        stage,
        stages: 2,
        phase: Phase::Measuring,
        done: 2,
        failed: 0,
        planned: Some(4),
        in_flight: 2,
        current_tps: Some(40.5),
        elapsed_s: 3.0,
        left_s: Some(1.0),
    }
}

pub(crate) fn text(events: &[MeterEvent]) -> String {
    events
        .iter()
        .map(|event| serde_json::to_string(event).expect("serialises") + "\n")
        .collect()
}

/// Tells the stand-in meter what to do.
pub(crate) fn script(folder: &TempDir, mode: &str, lines: &[MeterEvent], end: &[MeterEvent]) {
    for (name, content) in [
        ("mode", mode.to_owned()),
        ("lines", text(lines)),
        ("end", text(end)),
    ] {
        fs::write(folder.path().join(name), content).expect("written");
    }
}

/// A result file of [`workload`].
pub(crate) fn result_file() -> ResultFile {
    let stages = workload()
        .plan()
        .iter()
        .map(|planned| {
            let mut records = requests_of(planned);
            for request in &mut records {
                // A file is given back as it came; a NUL cannot be.
                if let Some(failure) = &mut request.record.failure {
                    failure.message = failure.message.replace('\0', "");
                }
            }
            ResultStage {
                index: planned.index,
                kind: planned.level.kind,
                repeat: planned.repeat,
                complete: true,
                figures: figures(planned, &records),
                conditions: conditions(),
                histograms: StageHistograms::of_events(&records),
                records,
            }
        })
        .collect();
    ResultFile {
        schema_version: RESULT_SCHEMA,
        tool: TOOL.to_owned(),
        tool_version: "0.1.0".to_owned(),
        metric_version: METRIC_VERSION,
        started_at: Timestamp(1_795_968_039_000_123),
        finished_at: Timestamp(1_795_968_099_000_456),
        configuration: Some("imported configuration".to_owned()),
        hardware: None,
        endpoint: ResultEndpoint {
            url: "http://127.0.0.1:8000".to_owned(),
            model: "the-model".to_owned(),
            engine: None,
            engine_version: Some("9.9".to_owned()),
            settings: std::iter::once(("tp_size".to_owned(), "8".to_owned())).collect(),
            simulated: false,
        },
        client: ClientInfo {
            host: "bench1".to_owned(),
            pid: 7,
            cpus: 4,
            governor: None,
        },
        workload: workload(),
        outcome: MeterOutcome::Complete,
        stages,
        skipped: vec![],
    }
}

pub(crate) fn bytes(file: &ResultFile) -> Vec<u8> {
    serde_json::to_vec(file).expect("serialises")
}

/// A server that lists its models, says that it is vLLM, and knows nothing else.
pub(crate) struct Server {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn server() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            let mut piece = [0; 1024];
            while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => break,
                    Ok(length) => head.extend_from_slice(&piece[..length]),
                }
            }
            let (status, body) = if head.starts_with(b"GET /v1/models ") {
                (
                    "200 OK",
                    r#"{"object":"list","data":[{"id":"the-model","object":"model","owned_by":"vllm"}]}"#,
                )
            } else {
                ("404 Not Found", "{}")
            };
            let reply = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(reply.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    Server { url, task }
}

pub(crate) async fn summary(lab: &Lab, run: RunId) -> RunSummary {
    lab.run(&Actor::LOCAL, run).await.expect("a run").summary
}

/// Waits until a run is as it must be.
pub(crate) async fn wait_for(lab: &Lab, run: RunId, state: RunState) -> RunSummary {
    let begun = std::time::Instant::now();
    loop {
        let now = summary(lab, run).await;
        if now.state == state {
            return now;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "the run is {} and not {state}: {:?}",
            now.state,
            now.reason
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until something holds.
pub(crate) async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
