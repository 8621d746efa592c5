//! The same over a real `sshd`, with what a GPU host has standing on its PATH.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use sqlx::PgPool;
use tokdyno_domain::{
    effective::Stamp,
    host::Keeper,
    ids::{LaunchId, RunId},
    launch::{FailureKind, LaunchState},
    profile::Activation,
    run::RunState,
    views::{
        hosts::HostCheck,
        measure::WorkloadForm,
        run_host::ClientPlace,
        servers::{AdoptForm, MeasureForm},
    },
};
use tokdyno_remote::testing::TestSshd;
use tokio::process::Child;

use super::{
    adopted::Production,
    support::{Bench, ME, built, fixture, script, sglang, vllm},
};
use crate::testing::{wait_for, wait_until};

/// Puts a program on the host's PATH.
fn install(sshd: &TestSshd, name: &str, text: &str) {
    let path = sshd.home().join("bin").join(name);
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changed");
}

fn workload(requests: u32) -> WorkloadForm {
    WorkloadForm {
        preset: None,
        single_stream: Some(requests),
        concurrencies: String::new(),
        requests: None,
        output_tokens: 16,
        repeats: 1,
        ..WorkloadForm::default()
    }
}

async fn measure(bench: &Bench, form: &MeasureForm) -> RunId {
    let run = bench.lab.measure_launch(ME, form).await.expect("queued");
    wait_for(&bench.lab, run, RunState::Finished).await;
    run
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_outlives_cut_connections_and_is_measured_from_both_places(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let bench = Bench::over(&pool, &sshd, |config| {
        config.meter = built("tokdyno-meter");
    })
    .await;
    let launch = bench.launch(&sglang(&["--sim-startup-ms", "3000"])).await;
    let worker = bench.work();
    bench.reach(launch, LaunchState::Loading).await;
    wait_until("some of the log is stored", async || {
        bench.view(launch).await.log_size > 0
    })
    .await;
    let identity = bench.identity(launch).await;
    sshd.cut();
    let ready = bench.reach(launch, LaunchState::Ready).await;
    assert_eq!(ready.summary.stamp, Some(Stamp::Verified), "{ready:#?}");
    assert_eq!(bench.identity(launch).await, identity);
    sshd.cut();
    for (through_forward, place) in [(false, ClientPlace::Host), (true, ClientPlace::Forward)] {
        let form = MeasureForm {
            launch,
            workload: workload(3),
            configuration: String::new(),
            through_forward,
        };
        let run = measure(&bench, &form).await;
        let view = bench.lab.run(ME, run).await.expect("a run");
        assert_eq!(view.records, 3);
        let host = view.host.expect("what the host was");
        assert_eq!(host.place, place, "{:?}", view.remarks);
    }
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    let log = bench.log(launch).await;
    let lines: Vec<&str> = log.lines().collect();
    let ready_lines = lines.iter().filter(|line| line.contains("fired up"));
    assert_eq!(ready_lines.count(), 1, "no byte twice: {log}");
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_meter_that_does_not_run_there_is_replaced_by_a_forward_and_that_is_said(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let bench = Bench::over(&pool, &sshd, |config| {
        config.meter = built("tokdyno-meter");
        // Stands for a build that does not run there.
        config.host_meter = Some(fixture("broken-meter.sh").into());
    })
    .await;
    let launch = bench.launch(&vllm(&[])).await;
    let worker = bench.work();
    bench.reach(launch, LaunchState::Ready).await;
    let form = MeasureForm {
        launch,
        workload: workload(2),
        configuration: String::new(),
        through_forward: false,
    };
    let run = measure(&bench, &form).await;
    let view = bench.lab.run(ME, run).await.expect("a run");
    let host = view.host.expect("what the host was");
    assert_eq!(host.place, ClientPlace::Forward);
    assert!(
        view.remarks
            .iter()
            .any(|text| text.contains("port forward")),
        "{:?}",
        view.remarks
    );
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    bench.reach(launch, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_host_whose_key_is_unknown_or_that_refuses_ours_is_named_so(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let bench = Bench::over(&pool, &sshd, |_| {}).await;
    let worker = bench.work();
    type Trouble = fn(&TestSshd) -> std::io::Result<()>;
    let troubles: [(Trouble, FailureKind); 3] = [
        (TestSshd::refuse_key, FailureKind::AccessRefused),
        (TestSshd::mistake_host_key, FailureKind::HostKeyChanged),
        (TestSshd::forget_host_key, FailureKind::HostKeyUnknown),
    ];
    for (trouble, kind) in troubles {
        trouble(&sshd).expect("done");
        let launch = bench.launch(&sglang(&[])).await;
        let failed = bench.reach(launch, LaunchState::Failed).await;
        let failure = failed.summary.failure.expect("a reason");
        assert_eq!(failure.kind, kind, "{failure}");
    }
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_container_is_watched_and_stopped_by_its_name(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let docker = fs::read_to_string(fixture("docker.sh")).expect("there");
    install(&sshd, "docker", &docker);
    let bench = Bench::over(&pool, &sshd, |_| {}).await;
    let mut spec = sglang(&[]);
    spec.environment = vec![("NCCL_PROTO".to_owned(), "LL".to_owned())];
    spec.activation = Activation::Container {
        runtime: "docker".to_owned(),
        image: "lmsysorg/sglang".to_owned(),
        arguments: vec!["--gpus".to_owned(), "all".to_owned()],
    };
    let launch = bench.launch(&spec).await;
    let worker = bench.work();
    let ready = bench.reach(launch, LaunchState::Ready).await;
    let name = format!("tokdyno-{}", ready.folder);
    assert!(
        matches!(&ready.keeper, Keeper::Container { id, .. } if *id == format!("id-{name}")),
        "{:?}",
        ready.keeper
    );
    assert_eq!(ready.summary.stamp, Some(Stamp::Verified), "{ready:#?}");
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    let said = fs::read_to_string(sshd.home().join("docker.log")).expect("used");
    assert!(said.contains(&format!("stop -t 30 id-{name}")), "{said}");
    assert!(!said.contains("LL"), "no value stands in a command: {said}");
    worker.shutdown().await;
}

/// Gives the host a simulated GPU, and says where its state lies.
fn with_gpus(sshd: &TestSshd) -> PathBuf {
    let gpus = sshd.home().join("gpus");
    fs::create_dir(&gpus).expect("made");
    let described = r#"{"driver":"580.95","cuda":"13.0","gpus":[{"uuid":"GPU-0","name":"RTX PRO 6000 (simulated)","memory_mib":97887}]}"#;
    fs::write(gpus.join("gpus.json"), described).expect("written");
    let smi = format!(
        "#!/bin/sh\nTOKDYNO_SIM_GPUS='{}' exec '{}' nvidia-smi \"$@\"\n",
        gpus.display(),
        built("stand-in").display()
    );
    install(sshd, "nvidia-smi", &smi);
    gpus
}

/// A process that holds memory of such a GPU.
async fn hold_memory(gpus: &Path) -> Child {
    let port = super::support::free_port().to_string();
    let holder = tokio::process::Command::new(built("stand-in"))
        .args(["sglang", "--model-path", "m", "--port", &port])
        .env("TOKDYNO_SIM_GPUS", gpus)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .expect("started");
    let pid = holder.id().expect("it lives");
    wait_until("it holds memory", async || {
        gpus.join(format!("{pid}.json")).exists()
    })
    .await;
    holder
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn who_holds_gpu_memory_is_named_and_nothing_is_started(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let gpus = with_gpus(&sshd);
    let bench = Bench::over(&pool, &sshd, |_| {}).await;
    let mut holder = hold_memory(&gpus).await;
    let pid = holder.id().expect("it lives");
    let worker = bench.work();
    let launch = bench.launch(&sglang(&[])).await;
    let failed = bench.fails(launch, FailureKind::GpuBusy).await;
    let failure = failed.summary.failure.expect("a reason");
    assert!(
        failure.detail.contains(&format!("Process {pid} ")),
        "{failure}"
    );
    assert_eq!(failed.summary.started_at, None);
    holder.kill().await.expect("killed");
    // Once the memory is free, others may have it.
    let free = bench.launch(&script("silent.sh", &["hello"])).await;
    bench.reach(free, LaunchState::Loading).await;
    bench.lab.stop_launch(ME, free).await.expect("asked");
    bench.reach(free, LaunchState::Stopped).await;
    worker.shutdown().await;
}

/// Asks the stand-in for systemctl, as its unit's administrator does.
async fn systemctl(sshd: &TestSshd, order: &str) {
    let status = tokio::process::Command::new(sshd.home().join("bin/systemctl"))
        .args(["--no-ask-password", order, "--", "vllm.service"])
        .env("HOME", sshd.home())
        .status()
        .await
        .expect("run");
    assert!(status.success());
}

async fn answers(port: u16) -> bool {
    tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .is_ok()
}

/// Puts the stand-in for systemctl onto the host, and gives the port of its unit.
fn with_unit(sshd: &TestSshd) -> u16 {
    let script = fs::read_to_string(fixture("systemctl.sh")).expect("there");
    install(sshd, "systemctl", &script);
    let port = super::support::free_port();
    fs::write(sshd.home().join("port"), port.to_string()).expect("written");
    std::os::unix::fs::symlink(built("stand-in"), sshd.home().join("python3")).expect("linked");
    port
}

/// Adopts the unit, once it answers.
async fn adopt_unit(bench: &Bench, port: u16) -> LaunchId {
    wait_until("the unit answers", async || answers(port).await).await;
    let found = bench.lab.running_on(ME, bench.host).await.expect("looked");
    let mut engine = found
        .found
        .into_iter()
        .find(|found| found.port == Some(port))
        .expect("it is found");
    engine.process.keeper = Keeper::Process;
    let form = AdoptForm {
        host: bench.host,
        engine,
        profile_name: "production".to_owned(),
    };
    let adopted = bench.lab.adopt(ME, &form).await.expect("adopted");
    // No systemd rules over this test's processes, so that is told by hand.
    let unit = Keeper::Unit {
        name: "vllm.service".to_owned(),
        user: false,
    };
    sqlx::query("UPDATE launches SET keeper = $2 WHERE id = $1")
        .bind(adopted)
        .bind(sqlx::types::Json(&unit))
        .execute(&bench.pool)
        .await
        .expect("stored");
    adopted
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_unit_is_followed_stopped_and_started_by_systemd(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let port = with_unit(&sshd);
    let bench = Bench::over(&pool, &sshd, |_| {}).await;
    systemctl(&sshd, "start").await;
    let adopted = adopt_unit(&bench, port).await;
    let answers = async || answers(port).await;
    let worker = bench.work();
    bench.reach(adopted, LaunchState::Ready).await;
    let before = bench.identity(adopted).await;

    // systemd starts it again by itself: the launch goes on with the new process.
    systemctl(&sshd, "stop").await;
    systemctl(&sshd, "start").await;
    wait_until("it is found again", async || {
        bench.identity(adopted).await != before
    })
    .await;
    assert_eq!(bench.view(adopted).await.summary.state, LaunchState::Ready);

    wait_until("the unit answers again", async || answers().await).await;
    bench.lab.stop_launch(ME, adopted).await.expect("asked");
    let stopped = bench.reach(adopted, LaunchState::Stopped).await;
    assert!(!answers().await);
    assert!(
        stopped
            .remarks
            .iter()
            .all(|text| text.contains("by itself")),
        "{:?}",
        stopped.remarks
    );
    let restored = bench.lab.restore_launch(ME, adopted).await.expect("queued");
    bench.reach(restored, LaunchState::Ready).await;
    assert!(answers().await);
    bench.lab.stop_launch(ME, restored).await.expect("asked");
    bench.reach(restored, LaunchState::Stopped).await;
    assert!(!answers().await);
    let said = fs::read_to_string(sshd.home().join("systemctl.log")).expect("used");
    assert!(
        said.contains("--no-ask-password start -- vllm.service"),
        "{said}"
    );
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_unit_that_its_keeper_does_not_stop_is_never_called_stopped(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let port = with_unit(&sshd);
    let bench = Bench::over(&pool, &sshd, |_| {}).await;
    systemctl(&sshd, "start").await;
    let adopted = adopt_unit(&bench, port).await;
    let worker = bench.work();
    bench.reach(adopted, LaunchState::Ready).await;
    let refuses = sshd.home().join("unit.refuses");
    fs::write(&refuses, "").expect("written");

    // Asked for by a launch that needs its place: that says why it does not go on.
    let trial = bench
        .launch_with(&sglang(&[]), |form| form.restore = Some(adopted))
        .await;
    let failed = bench.fails(trial, FailureKind::NotStopped).await;
    let said = failed.summary.failure.expect("a reason").detail;
    assert!(
        said.contains(&format!("Launch {adopted} was to give way"))
            && said.contains("Access denied"),
        "{said}"
    );
    assert_eq!(failed.summary.started_at, None, "nothing was started");
    assert!(answers(port).await, "it was never stopped");
    let view = bench.reach(adopted, LaunchState::Failed).await;
    let failure = view.summary.failure.clone().expect("a reason");
    assert_eq!(failure.kind, FailureKind::NotStopped, "{failure}");
    assert!(failure.detail.contains("still lives"), "{failure}");

    // It is watched again, as a launch of its own. Asked for by hand it is the same.
    let mut back = None;
    wait_until("it is watched again", async || {
        back = bench.view(adopted).await.restored_by;
        back.is_some()
    })
    .await;
    let back = back.expect("restored");
    bench.reach(back, LaunchState::Ready).await;
    bench.lab.stop_launch(ME, back).await.expect("asked");
    let failed = bench.reach(back, LaunchState::Failed).await;
    let failure = failed.summary.failure.expect("a reason");
    assert_eq!(failure.kind, FailureKind::NotStopped, "{failure}");
    assert!(answers(port).await);
    worker.shutdown().await;
    fs::remove_file(refuses).expect("removed");
    systemctl(&sshd, "stop").await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_is_brought_back_waits_longer_for_gpu_memory(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let gpus = with_gpus(&sshd);
    let bench = Bench::over(&pool, &sshd, |_| {}).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    bench.lab.stop_launch(ME, adopted).await.expect("asked");
    bench.reach(adopted, LaunchState::Stopped).await;
    let mut holder = hold_memory(&gpus).await;
    let restored = bench.lab.restore_launch(ME, adopted).await.expect("queued");
    bench.reach(restored, LaunchState::Starting).await;
    // Longer than a launch would wait, and shorter than somebody's production.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    holder.kill().await.expect("killed");
    bench.reach(restored, LaunchState::Ready).await;
    bench.lab.stop_launch(ME, restored).await.expect("asked");
    bench.reach(restored, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn connections_that_are_cut_while_it_starts_do_not_fail_a_launch(pool: PgPool) {
    let sshd = TestSshd::start().expect("an sshd");
    let bench = Bench::over(&pool, &sshd, |_| {}).await;
    let known = bench.lab.check_host(ME, bench.host).await.expect("stored");
    assert!(matches!(known, HostCheck::Reachable { .. }), "{known:?}");
    let worker = bench.work();
    let launch = bench.launch(&sglang(&[])).await;
    bench.reach(launch, LaunchState::Starting).await;
    for _ in 0..12 {
        sshd.cut();
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
    let ready = bench.reach(launch, LaunchState::Ready).await;
    assert!(ready.summary.failure.is_none());
    let log = bench.log(launch).await;
    let started = log.lines().filter(|line| line.contains("fired up"));
    assert_eq!(started.count(), 1, "started once: {log}");
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    worker.shutdown().await;
}
