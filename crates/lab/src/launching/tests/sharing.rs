//! One owner per set of GPUs; what is put aside is brought back; hosts are given
//! back in time.

use sqlx::PgPool;
use tokdyno_domain::{
    ids::LaunchId,
    launch::{Afterwards, FailureKind, LaunchOrigin, LaunchState},
    views::{hosts::HostForm, servers::LaunchView},
};
use tokdyno_remote::{RawCommand, Spawn};

use super::{
    adopted::Production,
    support::{Bench, ME, script, sglang},
};
use crate::{launching::row::now, testing::wait_until};

/// The launch that brought a server back.
async fn restored(bench: &Bench, production: LaunchId) -> LaunchView {
    let mut found = None;
    wait_until("it is restored", async || {
        found = bench.view(production).await.restored_by;
        found.is_some()
    })
    .await;
    bench.reach(found.expect("found"), LaunchState::Ready).await
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_second_on_the_same_gpus_waits_is_told_for_whom_and_then_starts(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let worker = bench.work();
    let first = bench.launch(&sglang(&[])).await;
    bench.reach(first, LaunchState::Ready).await;
    let second = bench.launch(&sglang(&[])).await;
    wait_until("it is told what it waits for", async || {
        let waits_for = bench.view(second).await.summary.waits_for;
        waits_for.is_some_and(|text| text.starts_with(&format!("launch {first} (")))
    })
    .await;
    bench.lab.stop_launch(ME, first).await.expect("asked");
    let ready = bench.reach(second, LaunchState::Ready).await;
    assert_eq!(ready.summary.waits_for, None);
    let first = bench.view(first).await.summary;
    assert!(first.ended_at.expect("over") <= ready.summary.started_at.expect("started"));
    bench.lab.stop_launch(ME, second).await.expect("asked");
    bench.reach(second, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn production_is_put_aside_and_brought_back_after_success(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let trial = bench
        .launch_with(&sglang(&[]), |form| {
            form.restore = Some(adopted);
            form.afterwards = Afterwards::Stop;
        })
        .await;
    bench.reach(trial, LaunchState::Stopped).await;
    let back = restored(&bench, adopted).await;
    assert_eq!(back.summary.origin, LaunchOrigin::Restored);
    assert!(production.answers().await);
    assert!(back.log_size > 0, "what is started again is logged");
    wait_until("nothing is owed any more", async || {
        let due: bool = sqlx::query_scalar("SELECT bool_or(restore_due) FROM launches")
            .fetch_one(&bench.pool)
            .await
            .expect("read");
        !due
    })
    .await;
    let aside = bench.view(adopted).await;
    assert_eq!(aside.summary.state, LaunchState::Stopped);
    bench
        .lab
        .stop_launch(ME, back.summary.id)
        .await
        .expect("asked");
    bench.reach(back.summary.id, LaunchState::Stopped).await;
    assert!(!production.answers().await);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn production_is_brought_back_after_a_failure_and_after_a_cancel(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let failing = bench
        .launch_with(&sglang(&["--sim-start-fault", "oom"]), |form| {
            form.restore = Some(adopted);
        })
        .await;
    bench.fails(failing, FailureKind::OutOfMemory).await;
    let back = restored(&bench, adopted).await.summary.id;

    // Named is now the launch that brought it back.
    let cancelled = bench
        .launch_with(&sglang(&["--sim-startup-ms", "60000"]), |form| {
            form.restore = Some(back);
        })
        .await;
    bench.reach(cancelled, LaunchState::Loading).await;
    bench.lab.stop_launch(ME, cancelled).await.expect("asked");
    bench.reach(cancelled, LaunchState::Stopped).await;
    let again: LaunchId = loop {
        let id: Option<LaunchId> = sqlx::query_scalar(
            "SELECT max(id) FROM launches WHERE origin = 'restored' AND id > $1",
        )
        .bind(cancelled)
        .fetch_one(&pool)
        .await
        .expect("read");
        match id {
            Some(id) => break id,
            None => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    };
    bench.reach(again, LaunchState::Ready).await;
    assert!(production.answers().await);
    bench.lab.stop_launch(ME, again).await.expect("asked");
    bench.reach(again, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn production_is_brought_back_also_if_the_launch_ends_while_it_is_put_aside(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    // It takes its grace to end.
    let production = Production::start_with(&bench, &["--sim-ignore-term"]).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let trial = bench
        .launch_with(&sglang(&[]), |form| form.restore = Some(adopted))
        .await;
    wait_until("production is being stopped", async || {
        bench.view(adopted).await.summary.state == LaunchState::Stopping
    })
    .await;
    bench.lab.stop_launch(ME, trial).await.expect("asked");
    let stopped = bench.reach(trial, LaunchState::Stopped).await;
    assert_eq!(stopped.summary.started_at, None);
    let back = restored(&bench, adopted).await.summary.id;
    bench.lab.stop_launch(ME, back).await.expect("asked");
    bench.reach(back, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_host_is_given_back_in_time_also_after_a_restart_that_slept(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let at = tokdyno_domain::timestamp::Timestamp(now().0 + 3_600_000_000);
    let trial = bench
        .launch_with(&sglang(&["--sim-startup-ms", "60000"]), |form| {
            form.restore = Some(adopted);
            form.give_back_at = Some(at);
            form.give_back_lead_s = Some(1);
        })
        .await;
    bench.reach(trial, LaunchState::Loading).await;
    let waiting = bench
        .launch_with(&sglang(&[]), |form| {
            form.give_back_at = Some(at);
            form.give_back_lead_s = Some(1);
        })
        .await;
    worker.shutdown().await;
    // Asleep beyond the agreed time.
    sqlx::query(
        "UPDATE launches SET plan = jsonb_set(plan, '{give_back_at}', to_jsonb($2::bigint))
         WHERE id = ANY($1)",
    )
    .bind([trial.0, waiting.0])
    .bind(now().0 - 90_000_000)
    .execute(&pool)
    .await
    .expect("stored");
    let worker = bench.work();
    let ended = bench.reach(trial, LaunchState::Stopped).await;
    assert!(
        ended
            .remarks
            .iter()
            .any(|remark| remark.contains("given back") && remark.contains(" s after that")),
        "{:?}",
        ended.remarks
    );
    let audit = bench.lab.audit(ME, None).await.expect("read");
    assert!(
        audit.entries.iter().any(|entry| {
            entry.subject == format!("launch {trial}")
                && entry.detail.contains("after the agreed time")
        }),
        "{audit:#?}"
    );
    let never = bench.reach(waiting, LaunchState::Stopped).await;
    assert_eq!(never.summary.started_at, None);
    assert_eq!(never.remarks.len(), 1);
    assert!(never.remarks[0].contains("noticed"), "{:?}", never.remarks);
    let back = restored(&bench, adopted).await.summary.id;
    assert!(production.answers().await);
    bench.lab.stop_launch(ME, back).await.expect("asked");
    bench.reach(back, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_launch_left_behind_is_cleaned_up_and_nothing_else_is(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let spec = sglang(&["--sim-start-fault", "oom"]);
    let launch = bench.launch(&spec).await;
    let worker = bench.work();
    let failed = bench.fails(launch, FailureKind::OutOfMemory).await;
    worker.shutdown().await;
    // As if something of it had stayed.
    let remote = bench.remote();
    for folder in [failed.folder.as_str(), "00000000-launch-1"] {
        let spawn = Spawn {
            folder: folder.to_owned(),
            command: RawCommand::new(["sleep", "300"]),
        };
        remote.spawn(&spawn).await.expect("started");
    }
    let running = bench.lab.running_on(ME, bench.host).await.expect("looked");
    assert_eq!(running.leftovers.len(), 1);
    let leftover = &running.leftovers[0];
    assert_eq!(leftover.launch, Some(launch));
    // Neither from another host nor for another team.
    let elsewhere = HostForm {
        name: "elsewhere".to_owned(),
        destination: "elsewhere".to_owned(),
        notes: String::new(),
    };
    let elsewhere = bench.lab.add_host(ME, &elsewhere).await.expect("added");
    let refused = bench.lab.clean_up(ME, elsewhere, leftover).await;
    let refused = refused.expect_err("another host");
    assert_eq!(refused.status(), 409, "{refused}");
    assert!(refused.to_string().contains("is one of host"), "{refused}");
    let own_team = |team: &'static str| sqlx::query(team).bind(launch).execute(&pool);
    sqlx::query("INSERT INTO teams (id, name) VALUES (77, 'others')")
        .execute(&pool)
        .await
        .expect("stored");
    own_team("UPDATE launches SET team_id = 77 WHERE id = $1")
        .await
        .expect("stored");
    let refused = bench.lab.clean_up(ME, bench.host, leftover).await;
    let refused = refused.expect_err("another team's");
    assert_eq!(refused.status(), 404, "{refused}");
    own_team("UPDATE launches SET team_id = 1 WHERE id = $1")
        .await
        .expect("stored");
    let cleaned = async || {
        let audit = bench.lab.audit(ME, None).await.expect("read");
        let entries = audit.entries.into_iter();
        entries
            .filter(|entry| entry.action == "clean_up")
            .map(|entry| entry.detail)
            .collect::<Vec<_>>()
    };
    assert_eq!(cleaned().await, Vec::<String>::new(), "nothing was tried");
    bench
        .lab
        .clean_up(ME, bench.host, leftover)
        .await
        .expect("cleaned");
    bench.nothing_runs(&failed).await;
    assert!(!bench.state().join(&failed.folder).exists());
    let host = bench.host;
    assert_eq!(
        cleaned().await,
        [
            format!("done, on host {host}"),
            format!("asked, on host {host}")
        ]
    );
    let mut foreign = leftover.clone();
    foreign.folder = "00000000-launch-1".to_owned();
    let refused = bench
        .lab
        .clean_up(ME, bench.host, &foreign)
        .await
        .expect_err("a refusal");
    assert_eq!(refused.status(), 422, "{refused}");
    let left = remote.leftovers("00000000-launch-1").await.expect("looked");
    assert_eq!(left.len(), 1, "untouched");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_lost_launch_leaves_running_is_ended_before_production_comes_back(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let trial = bench
        .launch_with(&script("family.sh", &[]), |form| {
            form.restore = Some(adopted);
        })
        .await;
    let loading = bench.reach(trial, LaunchState::Loading).await;
    bench.kill_keeper_and_leader(&loading.folder);
    let lost = bench.reach(trial, LaunchState::Lost).await;
    bench.nothing_runs(&lost).await;
    let back = restored(&bench, adopted).await.summary.id;
    assert!(production.answers().await);
    bench.lab.stop_launch(ME, back).await.expect("asked");
    bench.reach(back, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_restoring_ends_what_still_runs_of_launches_before_it(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let spec = sglang(&["--sim-start-fault", "oom"]);
    let trial = bench
        .launch_with(&spec, |form| form.restore = Some(adopted))
        .await;
    let failed = bench.fails(trial, FailureKind::OutOfMemory).await;
    let back = restored(&bench, adopted).await.summary.id;
    bench.lab.stop_launch(ME, back).await.expect("asked");
    bench.reach(back, LaunchState::Stopped).await;
    // As if something of the trial had stayed, and something of a stranger.
    let remote = bench.remote();
    for folder in [failed.folder.as_str(), "00000000-launch-1"] {
        let spawn = Spawn {
            folder: folder.to_owned(),
            command: RawCommand::new(["sleep", "300"]),
        };
        remote.spawn(&spawn).await.expect("started");
    }
    let again = bench.lab.restore_launch(ME, adopted).await.expect("queued");
    bench.reach(again, LaunchState::Ready).await;
    bench.nothing_runs(&failed).await;
    let left = remote.leftovers("00000000-launch-1").await.expect("looked");
    assert_eq!(left.len(), 1, "untouched");
    bench.lab.stop_launch(ME, again).await.expect("asked");
    bench.reach(again, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_says_that_what_it_put_aside_is_not_back(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let trial = bench
        .launch_with(&sglang(&["--sim-startup-ms", "60000"]), |form| {
            form.restore = Some(adopted);
        })
        .await;
    bench.reach(trial, LaunchState::Loading).await;
    let squatter = std::net::TcpListener::bind(("127.0.0.1", production.port)).expect("free");
    bench.lab.stop_launch(ME, trial).await.expect("asked");
    wait_until("it is told", async || {
        let remarks = bench.view(trial).await.remarks;
        remarks.iter().any(|remark| remark.contains("is not back"))
    })
    .await;
    let due: bool = sqlx::query_scalar("SELECT restore_due FROM launches WHERE id = $1")
        .bind(trial)
        .fetch_one(&pool)
        .await
        .expect("read");
    assert!(!due, "from here on it is for people");
    drop(squatter);
    let back = bench.lab.restore_launch(ME, adopted).await.expect("queued");
    bench.reach(back, LaunchState::Ready).await;
    bench.lab.stop_launch(ME, back).await.expect("asked");
    bench.reach(back, LaunchState::Stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_folder_that_somebody_is_restored_from_is_not_cleaned_up(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    let root = bench.reach(adopted, LaunchState::Ready).await;
    bench.lab.stop_launch(ME, adopted).await.expect("asked");
    bench.reach(adopted, LaunchState::Stopped).await;
    let leftover = |folder: String| tokdyno_domain::views::hosts::Leftover {
        launch: None,
        folder,
        identity: tokdyno_domain::host::ProcessIdentity {
            boot_id: "b".to_owned(),
            pid: 1,
            start_ticks: 1,
            pgid: 1,
        },
        command: String::new(),
        gpu_mib: 0,
    };
    let unknown = root
        .folder
        .replace(&format!("-launch-{adopted}"), "-launch-987654");
    std::fs::create_dir(bench.state().join(&unknown)).expect("made");
    let refused = async |folder: &str, said: &str| {
        let error = bench
            .lab
            .clean_up(ME, bench.host, &leftover(folder.to_owned()))
            .await
            .expect_err("a refusal");
        assert_eq!(error.status(), 409, "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(bench.state().join(folder).exists());
    };
    refused(&root.folder, "nothing to clean up").await;
    refused(&unknown, "nothing to clean up").await;
    let back = bench.lab.restore_launch(ME, adopted).await.expect("queued");
    bench.reach(back, LaunchState::Ready).await;
    refused(&root.folder, "was restored from").await;
    bench.lab.stop_launch(ME, back).await.expect("asked");
    bench.reach(back, LaunchState::Stopped).await;
    sqlx::query("UPDATE launches SET restore_due = true, plan = plan || $2 WHERE id = $1")
        .bind(back)
        .bind(serde_json::json!({ "restore": adopted }))
        .execute(&pool)
        .await
        .expect("stored");
    refused(&root.folder, "so that folder is kept").await;
    worker.shutdown().await;
}
