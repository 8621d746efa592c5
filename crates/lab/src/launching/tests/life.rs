//! A launch from the queue to its end.

use std::time::Duration;

use sqlx::PgPool;
use tokdyno_domain::{
    effective::{Finding, Stamp},
    launch::{Afterwards, LaunchState, LoadStage},
    live::LaunchEvent,
};

use super::support::{Bench, ME, alive, sglang, vllm};

/// Far longer than anything takes to be announced.
const HEARD_WITHIN: Duration = Duration::from_secs(20);

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_becomes_ready_verified_and_is_stopped(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let mut events = bench.lab.hear_launches(ME).expect("allowed");
    let mut spec = sglang(&["--max-running-requests", "64"]);
    spec.environment = vec![("NCCL_PROTO".to_owned(), "LL".to_owned())];
    let launch = bench.launch(&spec).await;
    let worker = bench.work();
    let ready = bench.reach(launch, LaunchState::Ready).await;
    assert_eq!(ready.summary.stamp, Some(Stamp::Verified), "{ready:#?}");
    assert!(ready.summary.simulated);
    assert!(ready.summary.engine_version.is_some());
    assert_eq!(ready.summary.stage, Some(LoadStage::Ready));
    let effective = ready.effective.as_ref().expect("read");
    let finding = |name: &str| {
        effective
            .items
            .iter()
            .find(|item| item.name == name)
            .map(|item| item.finding)
    };
    assert_eq!(finding("--max-running-requests"), Some(Finding::AsAsked));
    assert_eq!(finding("NCCL_PROTO"), Some(Finding::Passed));
    let identity = bench.identity(launch).await;
    assert!(alive(&identity));
    let mut seen = Vec::new();
    // Growth is announced now and then, which a launch that is stopped at once may not
    // live to see.
    loop {
        let heard = tokio::time::timeout(HEARD_WITHIN, events.recv()).await;
        let event = heard
            .expect("the log's growth is announced")
            .expect("an event");
        seen.push(event.state);
        if event.log_size.is_some() {
            break;
        }
    }

    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    assert!(!alive(&identity));
    bench.nothing_runs(&stopped).await;
    assert!(stopped.remarks.is_empty(), "{:?}", stopped.remarks);
    let log = bench.log(launch).await;
    assert!(log.contains("fired up and ready to roll"), "{log}");
    assert_eq!(log.len() as u64, stopped.log_size, "byte for byte");
    worker.shutdown().await;

    while let Ok(LaunchEvent { state, .. }) = events.try_recv() {
        seen.push(state);
    }
    seen.dedup();
    // Whether the first is heard depends on when listening began.
    seen.retain(|state| *state != LaunchState::Queued);
    assert_eq!(
        seen,
        [
            LaunchState::Starting,
            LaunchState::Loading,
            LaunchState::Ready,
            LaunchState::Stopping,
            LaunchState::Stopped
        ]
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_engine_that_resolves_a_value_otherwise_is_mismatched_by_name(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let spec = sglang(&[
        "--max-running-requests",
        "64",
        "--sim-resolve",
        "max_running_requests=48",
    ]);
    let launch = bench
        .launch_with(&spec, |form| form.afterwards = Afterwards::Stop)
        .await;
    let worker = bench.work();
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    let Some(Stamp::Mismatched { items }) = stopped.summary.stamp else {
        panic!("{stopped:#?}");
    };
    assert!(
        items.iter().any(|item| item.contains("max-running")),
        "{items:?}"
    );
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_stands_in_arguments_and_variables_arrives_letter_by_letter(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let odd = "a 'b' \"c\" $HOME `id` \\ ä\nnew line; exit 3";
    let mut spec = vllm(&["--served-model-name", "{NAME}"]);
    spec.parameters.served_name = odd.to_owned();
    spec.environment = vec![("NCCL_TEST_WORDS".to_owned(), odd.to_owned())];
    let launch = bench.launch(&spec).await;
    let worker = bench.work();
    bench.reach(launch, LaunchState::Ready).await;
    let identity = bench.identity(launch).await;
    let read = |file: &str| {
        let bytes = std::fs::read(format!("/proc/{}/{file}", identity.pid)).expect("readable");
        bytes
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect::<Vec<_>>()
    };
    assert!(read("cmdline").contains(&odd.to_owned()));
    assert!(read("environ").contains(&format!("NCCL_TEST_WORDS={odd}")));
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    bench.reach(launch, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_stubborn_engine_and_its_children_are_killed_and_that_is_said(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench
        .launch(&sglang(&["--sim-ignore-term", "--sim-children", "2"]))
        .await;
    let worker = bench.work();
    bench.reach(launch, LaunchState::Ready).await;
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    assert!(
        stopped.remarks.iter().any(|text| text.contains("killed")),
        "{:?}",
        stopped.remarks
    );
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_verifying_launch_reads_what_nccl_itself_says(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let mut spec = sglang(&["--tp-size", "2"]);
    spec.parameters.tensor_parallel = 2;
    spec.environment = vec![("NCCL_PROTO".to_owned(), "LL".to_owned())];
    let launch = bench
        .launch_with(&spec, |form| form.verify_nccl = true)
        .await;
    let worker = bench.work();
    let ready = bench.reach(launch, LaunchState::Ready).await;
    let effective = ready.effective.as_ref().expect("read");
    let item = effective
        .items
        .iter()
        .find(|item| item.name == "NCCL_PROTO")
        .expect("an item");
    assert_eq!(item.finding, Finding::Confirmed, "{item:?}");
    assert_eq!(ready.summary.stamp, Some(Stamp::Verified), "{effective:#?}");
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    bench.reach(launch, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_that_is_stopped_while_it_loads_leaves_nothing(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&sglang(&["--sim-startup-ms", "60000"])).await;
    let worker = bench.work();
    bench.reach(launch, LaunchState::Loading).await;
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    assert_eq!(stopped.summary.ready_at, None);
    worker.shutdown().await;
}
