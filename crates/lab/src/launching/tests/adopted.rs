//! Engines that somebody else started.

use std::{os::unix::fs::symlink, process::Stdio};

use sqlx::PgPool;
use tokdyno_domain::{
    effective::Stamp,
    host::Keeper,
    ids::LaunchId,
    launch::{FailureKind, LaunchOrigin, LaunchState},
    views::servers::AdoptForm,
};
use tokio::{net::TcpStream, process::Child};

use super::support::{Bench, ME, built, free_port, sglang};
use crate::testing::wait_until;

/// A server that was started by hand, in a group of its own.
pub(crate) struct Production {
    pub(crate) port: u16,
    child: Child,
}

impl Production {
    pub(crate) async fn start(bench: &Bench) -> Self {
        Self::start_with(bench, &[]).await
    }

    pub(crate) async fn start_with(bench: &Bench, more: &[&str]) -> Self {
        let port = free_port();
        // As `python3 vllm serve …` is found; what is behind the name is the stand-in.
        let python = bench.folder.path().join("python3");
        if !python.exists() {
            symlink(built("stand-in"), &python).expect("linked");
        }
        let child = tokio::process::Command::new(python)
            .args(["vllm", "serve", "production-model", "--port"])
            .arg(port.to_string())
            .args(more)
            .env("NCCL_PROTO", "LL")
            .env("MY_API_TOKEN", "never to leave the host")
            .current_dir(bench.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("started");
        let production = Self { port, child };
        wait_until("production answers", async || production.answers().await).await;
        production
    }

    pub(crate) async fn answers(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).await.is_ok()
    }

    pub(crate) async fn adopt(&self, bench: &Bench) -> LaunchId {
        let form = self.form(bench).await;
        bench.lab.adopt(ME, &form).await.expect("adopted")
    }

    async fn form(&self, bench: &Bench) -> AdoptForm {
        let running = bench.lab.running_on(ME, bench.host).await.expect("looked");
        let engine = running
            .found
            .into_iter()
            .find(|found| Some(found.process.identity.pid) == self.child.id())
            .expect("it is found");
        AdoptForm {
            host: bench.host,
            engine,
            profile_name: String::new(),
        }
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_found_engine_is_adopted_watched_stopped_and_started_again(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let mut production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    let view = bench.reach(adopted, LaunchState::Ready).await;
    assert_eq!(view.summary.origin, LaunchOrigin::Adopted);
    assert_eq!(view.summary.port, production.port);
    assert_eq!(view.keeper, Keeper::Process);
    assert_eq!(view.summary.stamp, Some(Stamp::Verified), "{view:#?}");
    assert!(view.command.contains("NCCL_PROTO=LL"), "{}", view.command);
    assert!(!view.command.contains("never to leave"), "{}", view.command);
    let question = bench
        .lab
        .stop_question(ME, adopted)
        .await
        .expect("answered");
    assert_eq!(question.in_flight, Some(0), "{question:?}");
    assert!(question.how.contains("SIGTERM"), "{}", question.how);
    let twice = bench.lab.running_on(ME, bench.host).await.expect("looked");
    assert!(
        !twice
            .found
            .iter()
            .any(|found| Some(found.process.identity.pid) == production.child.id()),
        "it is not offered again"
    );

    bench.lab.stop_launch(ME, adopted).await.expect("asked");
    bench.reach(adopted, LaunchState::Stopped).await;
    let ended = production.child.wait().await.expect("waited");
    assert!(!production.answers().await, "{ended}");

    let restored = bench.lab.restore_launch(ME, adopted).await.expect("queued");
    let view = bench.reach(restored, LaunchState::Ready).await;
    assert_eq!(view.summary.origin, LaunchOrigin::Restored);
    let identity = bench.identity(restored).await;
    let read = |file: &str| {
        let bytes = std::fs::read(format!("/proc/{}/{file}", identity.pid)).expect("readable");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert!(read("environ").contains("MY_API_TOKEN=never to leave the host"));
    assert!(read("cmdline").contains("production-model"));
    let again = bench
        .lab
        .restore_launch(ME, adopted)
        .await
        .expect_err("it runs");
    assert_eq!(again.status(), 409, "{again}");
    bench.lab.stop_launch(ME, restored).await.expect("asked");
    let stopped = bench.reach(restored, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_engine_that_is_gone_or_another_by_now_is_not_adopted(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let mut production = Production::start(&bench).await;
    let running = bench.lab.running_on(ME, bench.host).await.expect("looked");
    let engine = running
        .found
        .into_iter()
        .find(|found| Some(found.process.identity.pid) == production.child.id())
        .expect("it is found");
    let mut form = AdoptForm {
        host: bench.host,
        engine,
        profile_name: String::new(),
    };
    form.engine.process.identity.start_ticks += 1;
    let other = bench.lab.adopt(ME, &form).await.expect_err("another");
    assert_eq!(other.status(), 409, "{other}");
    form.engine.process.identity.start_ticks -= 1;
    production.child.kill().await.expect("killed");
    let gone = bench.lab.adopt(ME, &form).await.expect_err("gone");
    assert_eq!(gone.status(), 409, "{gone}");
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM launches")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(count, 0);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_adopted_engine_that_vanishes_is_lost(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let mut production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    production.child.kill().await.expect("killed");
    let lost = bench.reach(adopted, LaunchState::Lost).await;
    assert_eq!(lost.remarks.len(), 1, "{:?}", lost.remarks);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_process_is_adopted_once_however_many_ask(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start(&bench).await;
    let form = production.form(&bench).await;
    let adopt = || bench.lab.adopt(ME, &form);
    let (a, b, c, d) = tokio::join!(adopt(), adopt(), adopt(), adopt());
    let mut adopted = 0;
    for answer in [a, b, c, d] {
        match answer {
            Ok(_) => adopted += 1,
            Err(refused) => assert_eq!(refused.status(), 409, "{refused}"),
        }
    }
    assert_eq!(adopted, 1);
    for table in ["launches", "profiles"] {
        let count: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
                .fetch_one(&pool)
                .await
                .expect("read");
        assert_eq!(count, 1, "{table}");
    }
    let folders = std::fs::read_dir(bench.state()).expect("there").count();
    assert_eq!(folders, 1, "those that came second leave nothing behind");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_server_that_wants_a_key_is_watched_stopped_and_restored_but_not_measured(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let production = Production::start_with(&bench, &["--api-key", "never-to-be-sent"]).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    let trial = sglang(&["--sim-start-fault", "oom"]);
    for round in 0..2 {
        let running = if round == 0 {
            adopted
        } else {
            let trial = bench
                .launch_with(&trial, |form| form.restore = Some(adopted))
                .await;
            bench.fails(trial, FailureKind::OutOfMemory).await;
            let mut back = None;
            wait_until("it is restored", async || {
                back = bench.view(adopted).await.restored_by;
                back.is_some()
            })
            .await;
            back.expect("restored")
        };
        let view = bench.reach(running, LaunchState::Ready).await;
        match &view.summary.stamp {
            Some(Stamp::Unverifiable { why }) => assert!(why.contains("wants a key"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert!(
            view.remarks
                .iter()
                .any(|text| text.contains("not measured")),
            "{:?}",
            view.remarks
        );
        assert!(!view.command.contains("never-to-be-sent"));
        let form = crate::testing::launches::measure_form(running);
        let refused = bench
            .lab
            .measure_launch(ME, &form)
            .await
            .expect_err("a refusal");
        assert_eq!(refused.status(), 409, "{refused}");
        assert!(refused.to_string().contains("wants a key"), "{refused}");
        if round == 1 {
            bench.lab.stop_launch(ME, running).await.expect("asked");
            bench.reach(running, LaunchState::Stopped).await;
        }
    }
    worker.shutdown().await;
}
