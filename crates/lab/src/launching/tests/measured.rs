//! Runs on launches, with the real meter.

use sqlx::PgPool;
use tokdyno_domain::{
    effective::Stamp,
    host::RunSample,
    ids::RunId,
    launch::{Afterwards, LaunchState},
    run::RunState,
    source::Source,
    views::{measure::WorkloadForm, run_host::ClientPlace},
};

use super::support::{Bench, ME, built, sglang};
use crate::testing::{summary, wait_for, wait_until};

fn workload(requests: u32, output_tokens: u32) -> WorkloadForm {
    WorkloadForm {
        preset: None,
        single_stream: Some(requests),
        concurrencies: String::new(),
        requests: None,
        output_tokens,
        repeats: 1,
        ..WorkloadForm::default()
    }
}

async fn bench(pool: &PgPool) -> Bench {
    Bench::with(pool, |config| config.meter = built("tokdyno-meter")).await
}

async fn first_run(bench: &Bench) -> RunId {
    let mut found = None;
    wait_until("a run is queued", async || {
        found = sqlx::query_scalar::<_, Option<RunId>>("SELECT min(id) FROM runs")
            .fetch_one(&bench.pool)
            .await
            .expect("read");
        found.is_some()
    })
    .await;
    found.expect("found")
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn launch_and_measure_in_one_press_then_stop(pool: PgPool) {
    let bench = bench(&pool).await;
    let spec = sglang(&["--sim-step-ms", "20", "--sim-ttft-ms", "20"]);
    let launch = bench
        .launch_with(&spec, |form| {
            form.measure = Some(workload(4, 32));
            form.configuration = "one press".to_owned();
            form.verify_nccl = true;
            form.afterwards = Afterwards::Stop;
        })
        .await;
    let worker = bench.work();
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    let run = first_run(&bench).await;
    let view = bench.lab.run(ME, run).await.expect("a run");
    assert_eq!(view.summary.state, RunState::Finished, "{:?}", view.summary);
    assert_eq!(view.summary.source, Source::Simulated);
    assert_eq!(view.summary.configuration, "one press");
    assert!(view.remarks.iter().any(|text| text.contains("NCCL")));
    let host = view.host.expect("what the host was");
    assert_eq!(host.place, ClientPlace::Host);
    assert!(host.round_trip_ms.is_some_and(|ms| ms > 0.0));
    assert_eq!(host.launch.stamp, Some(Stamp::Verified));
    let samples: Vec<sqlx::types::Json<RunSample>> =
        sqlx::query_scalar("SELECT sample FROM host_samples WHERE run_id = $1 ORDER BY seq")
            .bind(run)
            .fetch_all(&pool)
            .await
            .expect("read");
    assert!(!samples.is_empty(), "the host was sampled");
    assert!(
        samples
            .iter()
            .any(|sample| sample.engine_requests.is_some()),
        "{samples:?}"
    );
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_kept_server_is_not_said_to_be_measured_when_its_run_is_over(pool: PgPool) {
    let bench = bench(&pool).await;
    let spec = sglang(&["--sim-step-ms", "5", "--sim-ttft-ms", "5"]);
    let launch = bench
        .launch_with(&spec, |form| form.measure = Some(workload(2, 8)))
        .await;
    let worker = bench.work();
    let run = first_run(&bench).await;
    wait_for(&bench.lab, run, RunState::Finished).await;
    wait_until("nothing is under way", async || {
        let view = bench.lab.launch(ME, launch).await.expect("a launch");
        view.summary.state == LaunchState::Ready && view.summary.step.is_empty()
    })
    .await;
    bench.lab.stop_launch(ME, launch).await.expect("told");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_run_ends_with_a_sentence_when_the_launch_under_it_dies_or_is_stopped(pool: PgPool) {
    let bench = bench(&pool).await;
    let worker = bench.work();
    for (fault, state, said) in [
        (Some("die-after:3000"), RunState::Failed, "failed"),
        (None, RunState::Cancelled, "stopped"),
    ] {
        let mut arguments = vec!["--sim-step-ms", "20"];
        arguments.extend(
            fault
                .into_iter()
                .flat_map(|fault| ["--sim-start-fault", fault]),
        );
        let launch = bench
            .launch_with(&sglang(&arguments), |form| {
                form.measure = Some(workload(200, 64));
            })
            .await;
        let mut on_it = None;
        wait_until("a run runs", async || {
            on_it = sqlx::query_scalar::<_, RunId>(
                "SELECT id FROM runs WHERE launch_id = $1 AND state = 'running'",
            )
            .bind(launch)
            .fetch_optional(&pool)
            .await
            .expect("read");
            on_it.is_some()
        })
        .await;
        let run = on_it.expect("a run");
        if fault.is_none() {
            bench.lab.stop_launch(ME, launch).await.expect("asked");
        }
        let ended = wait_for(&bench.lab, run, state).await;
        let reason = ended.reason.expect("a sentence");
        assert!(
            reason.contains(&format!("Launch {launch}")) && reason.contains(said),
            "{reason}"
        );
        wait_until("the launch is over", async || {
            bench.view(launch).await.summary.state.is_over()
        })
        .await;
    }
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_waiting_run_ends_with_its_launch(pool: PgPool) {
    let bench = bench(&pool).await;
    let launch = bench.launch(&sglang(&[])).await;
    let worker = bench.work();
    bench.reach(launch, LaunchState::Ready).await;
    let form = |requests| tokdyno_domain::views::servers::MeasureForm {
        launch,
        workload: workload(requests, 64),
        configuration: String::new(),
        through_forward: true,
    };
    let first = bench
        .lab
        .measure_launch(ME, &form(500))
        .await
        .expect("queued");
    let second = bench
        .lab
        .measure_launch(ME, &form(1))
        .await
        .expect("queued");
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    bench.reach(launch, LaunchState::Stopped).await;
    for run in [first, second] {
        wait_until("it is over", async || {
            summary(&bench.lab, run).await.state.is_over()
        })
        .await;
        assert_eq!(summary(&bench.lab, run).await.state, RunState::Cancelled);
    }
    worker.shutdown().await;
}
