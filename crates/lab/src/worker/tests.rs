//! The worker, with a stand-in meter, against a real PostgreSQL.

mod validity;

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio, sync::Arc};

use sqlx::PgPool;
use tempfile::TempDir;
use tokdyno_domain::{
    access::Actor,
    ids::RunId,
    live::LiveKind,
    meter::{MeterEventKind, MeterOutcome},
    metrics::StageFlag,
    run::RunState,
    source::Source,
    views::run::RunView,
};
use tokdyno_pgcluster::{Cluster, Config};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use super::{
    Worker,
    ingest::{self, Batch},
    instance::Instance,
    lease::{self, Claimed},
    recover::{self, Why},
    spool::SpoolFolder,
};
use crate::{
    Lab, LabError,
    testing::{
        METER_PID, events, folder, lab, meter, new_run, numbered, progress, request, script,
        server, summary, text, wait_for, wait_until, with_key,
    },
};

const ME: &Actor = &Actor::LOCAL;

async fn view(lab: &Lab, run: RunId) -> RunView<tokdyno_domain::chart::ChartSpec> {
    lab.run(ME, run).await.expect("a run")
}

async fn claim(pool: &PgPool) -> Claimed {
    lease::claim(pool, Uuid::new_v4())
        .await
        .expect("asked")
        .expect("a run")
}

async fn keys(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM secrets")
        .fetch_one(pool)
        .await
        .expect("read")
}

async fn let_lapse(pool: &PgPool, run: RunId) {
    sqlx::query("UPDATE runs SET lease_expires_at = now() - interval '1 second' WHERE id = $1")
        .bind(run)
        .execute(pool)
        .await
        .expect("stored");
}

fn batch(events: &[tokdyno_domain::meter::MeterEvent]) -> Batch {
    let mut batch = Batch::default();
    for event in events {
        batch.push(event.clone(), 0);
    }
    batch
}

fn worker(lab: &Lab, folder: &TempDir) -> Arc<Worker> {
    Arc::new(Worker {
        lab: lab.clone(),
        instance: Instance::open(folder.path()),
        driven: std::sync::Mutex::default(),
    })
}

fn never() -> tokio::sync::watch::Receiver<bool> {
    // A receiver keeps its last value after its sender is gone.
    tokio::sync::watch::channel(false).1
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_measurement_from_queue_to_figures(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let server = server().await;
    script(&folder, "complete", &events(), &[]);
    let mut new = with_key(new_run(&server.url));
    new.configuration = String::new();
    let run = lab.queue_run(ME, &new).await.expect("queued");
    let worker = lab.start_worker();
    let ended = wait_for(&lab, run, RunState::Finished).await;
    assert_eq!(ended.source, Source::Measured);
    assert_eq!(ended.model, "the-model");
    assert_eq!(ended.engine.word(), "vllm");
    assert!(
        ended.configuration.contains("vLLM"),
        "{}",
        ended.configuration
    );
    assert!(ended.single_stream.is_some() && ended.peak_output.is_some());

    let seen = view(&lab, run).await;
    assert_eq!((seen.records, seen.stages.len()), (6, 2));
    assert_eq!(seen.progress, None, "it is over");
    assert!(
        seen.remarks
            .iter()
            .any(|remark| remark.contains("continuous_usage_stats")),
        "{:?}",
        seen.remarks
    );
    assert!(seen.environment.iter().any(|(_, value)| value == "bench1"));
    let failed = &lab.records(ME, run, 0, &[]).await.expect("records").records[5];
    let message = &failed.failure.as_ref().expect("a failure").message;
    assert_eq!(message, "HTTP 500: out of m\u{fffd}emory");

    // The key reached the meter and is nowhere else any more.
    let specification = fs::read_to_string(folder.path().join("specification")).expect("written");
    assert!(specification.contains("sk-never-shown"));
    assert_eq!(keys(&pool).await, 0);
    let exported = lab.result_file(ME, run).await.expect("exported");
    let exported = serde_json::to_string(&exported).expect("serialises");
    assert!(!exported.contains("never-shown"));

    let spool = SpoolFolder::open(folder.path(), lab.0.id).expect("there");
    wait_until("the spool file is gone", async || spool.find(run).is_none()).await;
    let kinds: Vec<LiveKind> = lab
        .events_after(ME, run, Some(0))
        .await
        .expect("read")
        .into_iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(
        kinds.last(),
        Some(&LiveKind::State {
            state: RunState::Finished
        })
    );
    assert!(kinds.contains(&LiveKind::Stage { index: 1 }));

    // What it measured can be given away and read elsewhere.
    let file = lab.result_file(ME, run).await.expect("exported");
    let imported = lab
        .import(ME, &serde_json::to_vec(&file).expect("serialises"))
        .await
        .expect("imported")
        .run;
    assert_eq!(lab.result_file(ME, imported).await.expect("exported"), file);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_simulated_reply_makes_the_run_simulated(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let server = server().await;
    let mut lines = events();
    for line in &mut lines {
        if let MeterEventKind::Request(request) = &mut line.kind
            && request.record.stage == 1
        {
            request.record.simulated = true;
        }
    }
    script(&folder, "complete", &lines, &[]);
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    let ended = wait_for(&lab, run, RunState::Finished).await;
    assert_eq!(ended.source, Source::Simulated);
    let stages = view(&lab, run).await.stages;
    assert!(stages.iter().all(|stage| stage.source == Source::Simulated));
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_running_measurement_is_cancelled_and_keeps_what_it_has(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let server = server().await;
    // The first stage, and two requests of the second.
    let lines = events();
    let (head, _) = lines.split_at(9);
    let end = numbered(
        10,
        vec![MeterEventKind::Finished {
            outcome: MeterOutcome::Cancelled,
        }],
    );
    script(&folder, "wait", head, &end);
    let run = lab
        .queue_run(ME, &with_key(new_run(&server.url)))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    wait_until("two requests of the second stage are stored", async || {
        view(&lab, run).await.records == 4
    })
    .await;
    let running = view(&lab, run).await;
    assert_eq!(running.summary.state, RunState::Running);
    assert_eq!(running.progress, Some(progress(0)));
    let refused = lab.delete_run(ME, run).await.expect_err("a refusal");
    assert_eq!(refused.status(), 409, "{refused}");

    lab.cancel_run(ME, run).await.expect("asked");
    let ended = wait_for(&lab, run, RunState::Cancelled).await;
    assert_eq!(ended.reason, None);
    let stages = view(&lab, run).await.stages;
    assert_eq!(stages.len(), 2);
    assert!(stages[0].complete && !stages[1].complete);
    assert_eq!(stages[1].completed, 2);
    assert!(stages[1].flags.contains(&StageFlag::Partial));
    assert_eq!(keys(&pool).await, 0);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_meter_that_does_not_listen_is_killed(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let server = server().await;
    let lines = events();
    script(&folder, "deaf", &lines[..4], &[]);
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    wait_until("two requests are stored", async || {
        view(&lab, run).await.records == 2
    })
    .await;
    lab.cancel_run(ME, run).await.expect("asked");
    wait_for(&lab, run, RunState::Cancelled).await;
    assert_eq!(view(&lab, run).await.stages.len(), 1);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_meter_that_dies_leaves_an_interrupted_run_with_its_figures(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let server = server().await;
    let lines = events();
    script(&folder, "die", &lines[..10], &[]);
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    let ended = wait_for(&lab, run, RunState::Interrupted).await;
    let reason = ended.reason.expect("a reason");
    assert!(reason.contains("signal 9: out of memory"), "{reason}");
    let seen = view(&lab, run).await;
    assert_eq!(seen.records, 5);
    assert_eq!(
        (seen.stages[1].completed, seen.stages[1].complete),
        (3, false)
    );
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_server_that_cannot_be_measured_fails_the_run_with_the_reason(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    // A port that was free a moment ago and that nobody listens on.
    let gone = server().await.url.clone();
    let run = lab.queue_run(ME, &new_run(&gone)).await.expect("queued");
    let worker = lab.start_worker();
    let ended = wait_for(&lab, run, RunState::Failed).await;
    let reason = ended.reason.expect("a reason");
    assert!(reason.contains("refused"), "{reason}");
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_missing_meter_fails_the_run_with_the_reason(pool: PgPool) {
    let folder = folder();
    let mut config = crate::testing::config(folder.path());
    config.meter = folder.path().join("no-meter");
    let lab = Lab::with_pool(pool.clone(), config)
        .await
        .expect("a laboratory");
    let server = server().await;
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    let ended = wait_for(&lab, run, RunState::Failed).await;
    assert!(
        ended
            .reason
            .is_some_and(|reason| reason.contains("no-meter"))
    );
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn another_key_file_fails_the_run_with_the_reason(pool: PgPool) {
    let (one, other) = (folder(), folder());
    let run = lab(&pool, &one)
        .await
        .queue_run(ME, &with_key(new_run("127.0.0.1:9")))
        .await
        .expect("queued");
    let lab = lab(&pool, &other).await;
    let worker = lab.start_worker();
    let ended = wait_for(&lab, run, RunState::Failed).await;
    let reason = ended.reason.expect("a reason");
    assert!(reason.contains("cannot be decrypted"), "{reason}");
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_stopping_worker_stops_its_meter_and_keeps_what_it_has(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let server = server().await;
    let lines = events();
    let end = numbered(
        7,
        vec![
            MeterEventKind::Request(Box::new(request(1, 0))),
            MeterEventKind::Finished {
                outcome: MeterOutcome::Cancelled,
            },
        ],
    );
    script(&folder, "wait", &lines[..6], &end);
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    wait_until("two requests are stored", async || {
        view(&lab, run).await.records == 2
    })
    .await;
    worker.shutdown().await;
    let ended = summary(&lab, run).await;
    assert_eq!(ended.state, RunState::Interrupted);
    assert!(
        ended
            .reason
            .is_some_and(|reason| reason.contains("was stopped"))
    );
    assert_eq!(view(&lab, run).await.records, 3, "the last one too");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn two_workers_never_claim_the_same_run_nor_the_same_server(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut queued = Vec::new();
    for number in 0..6 {
        for url in [format!("gpu{number}"), format!("http://GPU{number}/v1")] {
            queued.push(lab.queue_run(ME, &new_run(&url)).await.expect("queued"));
        }
    }
    let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
    let claims = async |owner| {
        let mut claimed = Vec::new();
        while let Some(run) = lease::claim(&pool, owner).await.expect("asked") {
            claimed.push(run.lease.run);
        }
        claimed
    };
    let (ones, others) = tokio::join!(claims(one), claims(other));
    let mut all: Vec<RunId> = ones.iter().chain(&others).copied().collect();
    all.sort();
    let first_of_each: Vec<RunId> = queued.iter().copied().step_by(2).collect();
    assert_eq!(all, first_of_each, "one per server, the older first");

    // When the first is over, the second of its server may go.
    let lease = lease::Lease {
        run: queued[0],
        owner: if ones.contains(&queued[0]) {
            one
        } else {
            other
        },
        epoch: 1,
    };
    let workload = crate::testing::workload();
    ingest::conclude(&pool, &lease, &workload, RunState::Finished, None, None)
        .await
        .expect("ended");
    let next = claim(&pool).await;
    assert_eq!(next.lease.run, queued[1]);
    // Every run draws a seed of its own.
    assert_ne!(next.workload.seed, 0);
    assert_eq!(
        tokdyno_domain::workload::Workload {
            seed: workload.seed,
            ..next.workload
        },
        workload
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_lapsed_lease_ends_the_run_and_refuses_the_old_worker(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab
        .queue_run(ME, &with_key(new_run("gpu1")))
        .await
        .expect("queued");
    let old = claim(&pool).await;
    let plan = old.workload.plan();
    let lines = events();
    ingest::apply(&pool, &old.lease, &plan, &batch(&lines[..4]))
        .await
        .expect("stored");

    let worker = worker(&lab, &folder);
    worker.recover(false, &never()).await.expect("looked");
    assert_eq!(
        summary(&lab, run).await.state,
        RunState::Running,
        "its lease has not lapsed"
    );
    let_lapse(&pool, run).await;
    worker.recover(false, &never()).await.expect("recovered");
    let ended = summary(&lab, run).await;
    assert_eq!(ended.state, RunState::Interrupted);
    assert!(
        ended
            .reason
            .is_some_and(|reason| reason.contains("20 seconds"))
    );
    let seen = view(&lab, run).await;
    assert_eq!((seen.records, seen.stages.len()), (2, 1));
    assert_eq!(keys(&pool).await, 0);

    let late = ingest::apply(&pool, &old.lease, &plan, &batch(&lines)).await;
    assert!(matches!(late, Err(LabError::LeaseLost)));
    let workload = &old.workload;
    let late = ingest::conclude(&pool, &old.lease, workload, RunState::Finished, None, None).await;
    assert!(matches!(late, Err(LabError::LeaseLost)));
    let seen = view(&lab, run).await;
    assert_eq!(seen.records, 2, "nothing of the late writes is stored");
    assert_eq!(seen.summary.state, RunState::Interrupted);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn lines_are_stored_once_however_often_they_are_read(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let claimed = claim(&pool).await;
    let plan = claimed.workload.plan();
    let lines = events();
    let store = async |part: &[tokdyno_domain::meter::MeterEvent]| {
        ingest::apply(&pool, &claimed.lease, &plan, &batch(part))
            .await
            .expect("stored");
    };
    // In pieces, overlapping, out of step, and all of it again.
    for (from, to) in [(0, 3), (2, 7), (0, 9), (8, lines.len()), (0, lines.len())] {
        store(&lines[from..to]).await;
    }
    let seen = view(&lab, run).await;
    assert_eq!((seen.records, seen.stages.len()), (6, 2));
    let traces: i64 = sqlx::query_scalar("SELECT count(*) FROM chunk_traces")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(traces, 5, "the failed one has none");
    let ingested: i64 = sqlx::query_scalar("SELECT ingested_seq FROM runs")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(ingested, i64::try_from(lines.len()).expect("few"));

    // A reader that knows how far it is takes nothing twice.
    let mut rest = Batch::default();
    for event in &lines {
        rest.push(event.clone(), ingested);
    }
    assert!(!rest.has_news());
    assert_eq!(rest.meter_pid, Some(METER_PID));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn after_a_crash_the_same_instance_recovers_at_once(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let lines = events();
    // A former life claimed the run, started a meter, stored a little, and died.
    let owner = Instance::open(folder.path()).id;
    let old = lease::claim(&pool, owner)
        .await
        .expect("asked")
        .expect("a run");
    let spool = SpoolFolder::open(folder.path(), lab.0.id).expect("made");
    let (path, _) = spool.create(run, old.lease.epoch).expect("made");
    ingest::apply(&pool, &old.lease, &old.workload.plan(), &batch(&lines[..3]))
        .await
        .expect("stored");
    let end = numbered(
        6,
        vec![
            MeterEventKind::Request(Box::new(request(1, 0))),
            MeterEventKind::Finished {
                outcome: MeterOutcome::Cancelled,
            },
        ],
    );
    script(&folder, "wait", &lines[..5], &end);
    let mut orphan = tokio::process::Command::new(meter())
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = orphan.stdin.take().expect("piped");
    let specification = format!("{{\"spool\":\"{}\"}}\n", path.display());
    stdin
        .write_all(specification.as_bytes())
        .await
        .expect("written");
    wait_until("the orphan has written", async || {
        fs::read_to_string(&path).is_ok_and(|written| written.lines().count() == 5)
    })
    .await;

    let worker = lab.start_worker();
    wait_until("the new life has begun to read", async || {
        view(&lab, run).await.records == 2
    })
    .await;
    assert_eq!(
        summary(&lab, run).await.state,
        RunState::Running,
        "the orphan is still alive"
    );
    // The orphan notices that its parent is gone.
    drop(stdin);
    orphan.wait().await.expect("ended");
    let ended = wait_for(&lab, run, RunState::Interrupted).await;
    assert!(
        ended
            .reason
            .is_some_and(|reason| reason.contains("unexpectedly"))
    );
    let seen = view(&lab, run).await;
    assert_eq!(seen.records, 3, "its last request is stored too");
    assert_eq!(seen.stages.len(), 2);
    wait_until("the spool file is gone", async || spool.find(run).is_none()).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_measurement_that_was_complete_when_the_server_died_is_finished(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let worker = worker(&lab, &folder);
    let old = lease::claim(&pool, worker.instance.id)
        .await
        .expect("asked")
        .expect("a run");
    let spool = SpoolFolder::open(folder.path(), lab.0.id).expect("made");
    let (path, _) = spool.create(run, old.lease.epoch).expect("made");
    // Half a line at the end, as a power cut leaves it.
    fs::write(&path, text(&events()) + "{\"seq\":").expect("written");
    worker.recover(true, &never()).await.expect("recovered");
    assert_eq!(summary(&lab, run).await.state, RunState::Finished);
    assert_eq!(view(&lab, run).await.records, 6);
    assert_eq!(spool.find(run), None);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_cut_off_machine_had_measured_is_brought_in_later(pool: PgPool) {
    let (here, elsewhere) = (folder(), folder());
    let lab = lab(&pool, &here).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let cut_off = worker(&lab, &here);
    let old = lease::claim(&pool, cut_off.instance.id)
        .await
        .expect("asked")
        .expect("a run");
    let lines = events();
    let spool = SpoolFolder::open(here.path(), lab.0.id).expect("made");
    let (path, _) = spool.create(run, old.lease.epoch).expect("made");
    fs::write(&path, text(&lines[..10])).expect("written");

    // Another machine, which has no spool file of it, ends the run.
    let_lapse(&pool, run).await;
    let other_lab = crate::testing::lab(&pool, &elsewhere).await;
    let other = worker(&other_lab, &elsewhere);
    let (_, epoch) = lease::abandoned(&pool, other.instance.id, false, &[])
        .await
        .expect("asked")[0];
    let taken = lease::take_over(&pool, other.instance.id, run, epoch)
        .await
        .expect("asked")
        .expect("taken over");
    recover::settle(&other, &taken, Why::Silent, &never())
        .await
        .expect("ended");
    assert_eq!(view(&lab, run).await.records, 0);

    recover::collect(&cut_off, &never())
        .await
        .expect("collected");
    let seen = view(&lab, run).await;
    assert_eq!(
        seen.summary.state,
        RunState::Interrupted,
        "over is for ever"
    );
    assert_eq!((seen.records, seen.stages.len()), (5, 2));
    assert_eq!(spool.find(run), None);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_line_that_is_no_event_fails_the_run_and_keeps_the_file(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let server = server().await;
    script(&folder, "complete", &events()[..4], &[]);
    let lines = fs::read_to_string(folder.path().join("lines")).expect("there");
    fs::write(folder.path().join("lines"), lines + "nonsense\n").expect("written");
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    let ended = wait_for(&lab, run, RunState::Failed).await;
    assert!(
        ended
            .reason
            .is_some_and(|reason| reason.contains("spool file"))
    );
    assert_eq!(view(&lab, run).await.records, 2, "what stood before it");
    assert!(kept(&folder));
    worker.shutdown().await;
}

fn kept(folder: &TempDir) -> bool {
    fs::read_dir(folder.path().join("spool"))
        .expect("there")
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|kind| kind == "kept"))
}

async fn state_of(pool: &PgPool, run: RunId) -> String {
    sqlx::query_scalar("SELECT state FROM runs WHERE id = $1")
        .bind(run)
        .fetch_one(pool)
        .await
        .expect("read")
}

/// A run that a former life of this worker had begun, with its spool file.
async fn left_behind(lab: &Lab, worker: &Worker, folder: &TempDir, spool: &str) -> RunId {
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let old = lease::claim(&lab.0.pool, worker.instance.id)
        .await
        .expect("asked")
        .expect("a run");
    let files = SpoolFolder::open(folder.path(), lab.0.id).expect("made");
    let (path, _) = files.create(run, old.lease.epoch).expect("made");
    fs::write(&path, spool).expect("written");
    run
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_broken_spool_file_is_recovered_up_to_its_fault_and_kept(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let worker = worker(&lab, &folder);
    let lines = events();
    let broken = text(&lines[..10]) + "nonsense\n" + &text(&lines[10..]);
    let run = left_behind(&lab, &worker, &folder, &broken).await;
    worker.recover(true, &never()).await.expect("recovered");
    assert_eq!(summary(&lab, run).await.state, RunState::Interrupted);
    assert_eq!(view(&lab, run).await.records, 5, "what stood before it");
    assert!(kept(&folder));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_run_that_cannot_be_recovered_does_not_stop_the_queue(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let former = worker(&lab, &folder);
    // A stage that is not planned, and a workload that cannot be read.
    let mut lines = events();
    for line in &mut lines {
        if let MeterEventKind::StageFinished { stage, .. } = &mut line.kind {
            *stage = 99;
        }
    }
    let unplanned = left_behind(&lab, &former, &folder, &text(&lines)).await;
    let server = server().await;
    let unreadable = lab.queue_run(ME, &new_run("gpu2")).await.expect("queued");
    lease::claim(&pool, former.instance.id)
        .await
        .expect("asked")
        .expect("a run");
    sqlx::query("UPDATE runs SET workload = '{}' WHERE id = $1")
        .bind(unreadable)
        .execute(&pool)
        .await
        .expect("stored");
    drop(former);

    script(&folder, "complete", &events(), &[]);
    let next = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    wait_until("the next run is measured", async || {
        state_of(&pool, next).await == "finished"
    })
    .await;
    for run in [unplanned, unreadable] {
        assert_eq!(state_of(&pool, run).await, "interrupted", "{run}");
    }
    assert!(kept(&folder));
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_waiting_run_that_cannot_be_read_fails_and_lets_the_next_go(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut bad = Vec::new();
    for change in [
        "UPDATE runs SET endpoint_url = 'ftp://?' WHERE id = $1",
        "UPDATE runs SET endpoint_url = NULL WHERE id = $1",
        "UPDATE runs SET workload = '{}' WHERE id = $1",
    ] {
        let run = lab
            .queue_run(ME, &with_key(new_run("gpu1")))
            .await
            .expect("queued");
        sqlx::query(change)
            .bind(run)
            .execute(&pool)
            .await
            .expect("stored");
        bad.push(run);
    }
    let good = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    assert_eq!(claim(&pool).await.lease.run, good);
    for run in bad {
        assert_eq!(state_of(&pool, run).await, "failed", "{run}");
    }
    assert_eq!(keys(&pool).await, 0);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_run_that_others_ended_gets_what_lies_here_and_stays_what_it_is(pool: PgPool) {
    for state in ["cancelled", "failed"] {
        let folder = folder();
        let lab = lab(&pool, &folder).await;
        let worker = worker(&lab, &folder);
        let run = left_behind(&lab, &worker, &folder, &text(&events()[..10])).await;
        sqlx::query(
            "UPDATE runs SET state = $2, lease_epoch = lease_epoch + 1, finished_at = now(),
                 lease_expires_at = NULL WHERE id = $1",
        )
        .bind(run)
        .bind(state)
        .execute(&pool)
        .await
        .expect("stored");
        recover::collect(&worker, &never())
            .await
            .expect("collected");
        let seen = view(&lab, run).await;
        assert_eq!(seen.summary.state.word(), state);
        assert_eq!((seen.records, seen.stages.len()), (5, 2), "{state}");
        let spool = SpoolFolder::open(folder.path(), lab.0.id).expect("there");
        assert!(spool.files().is_empty());
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn files_of_deleted_runs_are_removed_and_those_of_other_databases_are_not(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let worker = worker(&lab, &folder);
    let run = left_behind(&lab, &worker, &folder, &text(&events()[..10])).await;
    sqlx::query(
        "UPDATE runs SET state = 'interrupted', lease_expires_at = NULL, deleted_at = now()",
    )
    .execute(&pool)
    .await
    .expect("stored");
    let elsewhere = SpoolFolder::open(folder.path(), Uuid::from_u128(7)).expect("there");
    let (foreign, _) = elsewhere.create(run, 1).expect("made");
    recover::collect(&worker, &never())
        .await
        .expect("collected");
    let spool = SpoolFolder::open(folder.path(), lab.0.id).expect("there");
    assert!(spool.files().is_empty());
    assert!(foreign.exists() && !kept(&folder));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_database_loses_no_request() {
    let (cluster_folder, folder) = (
        tempfile::Builder::new()
            // PostgreSQL runs as another user where we are root.
            .permissions(fs::Permissions::from_mode(0o711))
            .tempdir()
            .expect("a folder"),
        folder(),
    );
    // Durable: what it says is committed must be there after its death.
    let cluster_config = Config::new(cluster_folder.path());
    let mut cluster = tokio::task::spawn_blocking(move || Cluster::ensure(&cluster_config))
        .await
        .expect("run")
        .expect("a database");
    let mut config = crate::testing::config(folder.path());
    config.database_url = cluster.url().as_str().to_owned();
    let lab = Lab::open(config).await.expect("a laboratory");
    let server = server().await;
    let lines = events();
    let (head, rest) = lines.split_at(4);
    script(&folder, "slow", head, rest);
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    wait_until("two requests are stored", async || {
        view(&lab, run).await.records == 2
    })
    .await;
    let mut live = lab.live(ME).expect("allowed");

    let pid = i32::try_from(cluster.pid())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a process"), rustix::process::Signal::KILL)
        .expect("killed");
    wait_until("the database is away", async || {
        matches!(lab.ready().await, Err(LabError::DatabaseUnavailable))
    })
    .await;
    // The measurement goes on and comes to its end meanwhile.
    fs::write(folder.path().join("go"), "").expect("written");
    let spool = SpoolFolder::open(folder.path(), lab.0.id).expect("there");
    let path = spool.find(run).expect("a spool file");
    wait_until("the meter has written everything", async || {
        fs::read_to_string(&path).is_ok_and(|text| text.lines().count() == lines.len())
    })
    .await;
    let error = lab.run(ME, run).await.expect_err("no database");
    assert_eq!(error.status(), 503, "{error}");

    let cluster = tokio::task::spawn_blocking(move || {
        cluster
            .restart_if_dead()
            .map(|restarted| (cluster, restarted))
    })
    .await
    .expect("run");
    let (cluster, restarted) = cluster.expect("restarted");
    assert!(restarted);
    wait_until("the database is back", async || lab.ready().await.is_ok()).await;
    wait_for(&lab, run, RunState::Finished).await;
    assert_eq!(view(&lab, run).await.records, 6);
    // Whoever listened hears of the end, though the connection was lost.
    wait_until("the end is heard", async || {
        let end = LiveKind::State {
            state: RunState::Finished,
        };
        live.try_recv().is_ok_and(|event| event.kind == end)
    })
    .await;
    worker.shutdown().await;
    drop(lab);
    tokio::task::spawn_blocking(move || cluster.stop())
        .await
        .expect("run")
        .expect("stopped");
}
