//! Launches that fail, each with its own name and nothing left running.

use sqlx::PgPool;
use tokdyno_domain::{
    ids::LaunchId,
    launch::{FailureKind, LaunchState},
    profile::Activation,
    views::hosts::HostForm,
};

use super::support::{Bench, ME, hasty, script, sglang, vllm};
use crate::launching::Patience;

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn each_failing_start_has_its_own_name(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let worker = bench.work();
    for (fault, kind) in [
        ("oom", FailureKind::OutOfMemory),
        ("sglang-memory", FailureKind::TooLittleMemory),
        ("nccl-error", FailureKind::Nccl),
        ("nccl-hang", FailureKind::NcclHang),
        ("arch", FailureKind::Architecture),
        ("crash", FailureKind::Killed),
        ("worker-died", FailureKind::EngineDied),
        ("wrong-model", FailureKind::WrongModel),
    ] {
        let launch = bench.launch(&sglang(&["--sim-start-fault", fault])).await;
        let failed = bench.fails(launch, kind).await;
        assert!(failed.log_size > 0, "{fault}: its log is kept");
    }
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_flag_that_the_engine_does_not_know_is_named(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&vllm(&["--no-such-flag"])).await;
    let worker = bench.work();
    let failed = bench.fails(launch, FailureKind::BadFlag).await;
    let failure = failed.summary.failure.expect("a reason");
    assert!(failure.detail.contains("--no-such-flag"), "{failure}");
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_is_missing_on_the_host_is_named(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let worker = bench.work();
    let mut program = sglang(&[]);
    program.program = "/nowhere/vllm".to_owned();
    let mut directory = sglang(&[]);
    directory.directory = Some("/nowhere".to_owned());
    let mut environment = sglang(&[]);
    environment.program = "python3".to_owned();
    environment.activation = Activation::VirtualEnvironment {
        path: "/nowhere".to_owned(),
    };
    for (spec, kind) in [
        (program, FailureKind::NoProgram),
        (directory, FailureKind::NoDirectory),
        (environment, FailureKind::Activation),
    ] {
        let launch = bench.launch(&spec).await;
        let failed = bench.fails(launch, kind).await;
        assert_eq!(failed.summary.started_at, None);
    }
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn who_holds_the_port_is_named_and_nothing_is_started(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let spec = sglang(&[]);
    let holder = std::net::TcpListener::bind(("127.0.0.1", spec.parameters.port)).expect("bound");
    let launch = bench.launch(&spec).await;
    let worker = bench.work();
    let failed = bench.fails(launch, FailureKind::PortTaken).await;
    let failure = failed.summary.failure.expect("a reason");
    let own = format!("Process {}", std::process::id());
    assert!(failure.detail.contains(&own), "{failure}");
    assert_eq!(failed.summary.started_at, None);
    drop(holder);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_engine_that_only_talks_is_stopped_when_its_time_is_up(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let mut spec = sglang(&["--sim-start-fault", "no-ready"]);
    spec.ready_timeout_s = 5;
    let launch = bench.launch(&spec).await;
    let worker = bench.work();
    bench.fails(launch, FailureKind::TimedOut).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_engine_that_says_nothing_at_all_has_stalled(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&script("silent.sh", &[])).await;
    let worker = bench.work();
    bench.fails(launch, FailureKind::Stalled).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_that_told_why_and_hangs_is_ended_with_that_reason(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
    let launch = bench.launch(&script("silent.sh", &[line])).await;
    let worker = bench.work();
    bench.fails(launch, FailureKind::OutOfMemory).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_engine_that_dies_when_it_is_ready_has_failed(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench
        .launch(&vllm(&["--sim-start-fault", "die-after:1500"]))
        .await;
    let worker = bench.work();
    bench.reach(launch, LaunchState::Ready).await;
    let failed = bench.reach(launch, LaunchState::Failed).await;
    assert!(failed.summary.ready_at.is_some());
    bench.nothing_runs(&failed).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_host_that_nobody_reaches_fails_the_launch_by_name(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let form = HostForm {
        name: "away".to_owned(),
        destination: "tokdyno.invalid".to_owned(),
        notes: String::new(),
    };
    let away = bench.lab.add_host(ME, &form).await.expect("added");
    let launch = bench
        .launch_with(&sglang(&[]), |form| form.host = away)
        .await;
    let worker = bench.work();
    let failed = bench.reach(launch, LaunchState::Failed).await;
    let failure = failed.summary.failure.expect("a reason");
    assert_eq!(failure.kind, FailureKind::Unreachable, "{failure}");
    worker.shutdown().await;
}

/// A log as it lies on the host, and as it is stored.
async fn logs(bench: &Bench, launch: LaunchId, folder: &str) -> (Vec<u8>, Vec<u8>) {
    let written = std::fs::read(bench.state().join(folder).join("log")).expect("a log");
    let mut stored = Vec::new();
    let mut log = bench.lab.launch_log_file(ME, launch).await.expect("there");
    while let Some(bytes) = log.next().await.expect("read") {
        stored.extend(bytes);
    }
    (written, stored)
}

const WHY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_long_log_is_read_to_its_end_however_long_that_takes(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&script("loud.sh", &["1500000", WHY])).await;
    let worker = bench.lab.start_worker_with(Patience {
        // For a pause, not for all of it.
        log_rest: std::time::Duration::from_millis(500),
        ..hasty()
    });
    let failed = bench.fails(launch, FailureKind::OutOfMemory).await;
    let (written, stored) = logs(&bench, launch, &failed.folder).await;
    assert!(
        written.len() > 10_000_000 && stored == written,
        "{} bytes",
        stored.len()
    );
    assert!(failed.remarks.is_empty(), "{:?}", failed.remarks);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn of_a_log_beyond_all_bounds_beginning_and_end_are_kept(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&script("loud.sh", &["300000", WHY])).await;
    let mut live = bench.lab.hear_launches_inside();
    let (told, mut said) = tokio::sync::watch::channel(0_u64);
    let listening = tokio::spawn(async move {
        loop {
            match live.recv().await {
                Ok(event) => {
                    told.send_modify(|most| *most = (*most).max(event.log_size.unwrap_or(0)));
                }
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
            }
        }
    });
    let worker = bench.lab.start_worker_with(Patience {
        log_most: 100_000,
        ..hasty()
    });
    let failed = bench.fails(launch, FailureKind::OutOfMemory).await;
    let (written, stored) = logs(&bench, launch, &failed.folder).await;
    assert_eq!(stored[..100_000], written[..100_000]);
    let end = &stored[stored.len() - 200_000..];
    assert!(written.ends_with(end), "the end is there");
    let text = String::from_utf8_lossy(&stored);
    assert!(text.contains("bytes are not stored.]"));
    assert!(stored.len() < written.len() / 2);
    assert_eq!(failed.log_size, stored.len() as u64);
    let told = failed.remarks.iter().filter(|text| text.contains("middle"));
    assert_eq!(told.count(), 1, "{:?}", failed.remarks);
    // All of it was announced, also what came when nobody followed any more.
    let all = said.wait_for(|said| *said == failed.log_size);
    tokio::time::timeout(std::time::Duration::from_secs(10), all)
        .await
        .expect("announced")
        .expect("somebody listens");
    listening.abort();
    worker.shutdown().await;
}
