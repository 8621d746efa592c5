//! Workers that die while a launch is under way, and those that go on with it.

use std::sync::Arc;

use sqlx::PgPool;
use tokdyno_domain::{
    effective::Stamp,
    launch::{FailureKind, LaunchState},
};
use tokio::{sync::watch, task::JoinHandle};
use uuid::Uuid;

use super::support::{Bench, ME, alive, hasty, script, sglang};
use crate::{
    LabError,
    launching::{Launcher, lease, row::Change},
    testing::wait_until,
};

/// A worker of launches that can be killed.
struct Mortal {
    task: JoinHandle<()>,
    _stop: watch::Sender<bool>,
}

impl Mortal {
    fn of(bench: &Bench, owner: Uuid) -> Self {
        let (stop, stopped) = watch::channel(false);
        let launcher: Arc<Launcher> = Launcher::new(&bench.lab, owner, hasty());
        Self {
            task: tokio::spawn(launcher.work(stopped)),
            _stop: stop,
        }
    }

    /// Ends it without a word, in the middle of whatever it does.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn epoch(bench: &Bench) -> i64 {
    sqlx::query_scalar("SELECT max(lease_epoch) FROM launches")
        .fetch_one(&bench.pool)
        .await
        .expect("read")
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_worker_that_dies_while_it_loads_loses_nothing(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&sglang(&["--sim-startup-ms", "4000"])).await;
    let owner = Uuid::from_u128(1);
    let first = Mortal::of(&bench, owner);
    bench.reach(launch, LaunchState::Loading).await;
    wait_until("some of the log is stored", async || {
        bench.view(launch).await.log_size > 0
    })
    .await;
    let identity = bench.identity(launch).await;
    first.kill().await;
    assert!(alive(&identity), "the engine loads on");
    let second = Mortal::of(&bench, owner);
    let ready = bench.reach(launch, LaunchState::Ready).await;
    assert_eq!(bench.identity(launch).await, identity, "the same process");
    assert_eq!(ready.summary.stamp, Some(Stamp::Verified));
    assert_eq!(epoch(&bench).await, 2);
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    bench.nothing_runs(&stopped).await;
    let file = bench.state().join(&stopped.folder).join("log");
    let written = std::fs::read(file).expect("a log");
    let mut stored = Vec::new();
    let mut log = bench.lab.launch_log_file(ME, launch).await.expect("there");
    while let Some(bytes) = log.next().await.expect("read") {
        stored.extend(bytes);
    }
    assert_eq!(stored, written, "no byte lost and none twice");
    second.kill().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_worker_that_dies_when_it_is_ready_finds_it_again_by_identity(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&sglang(&[])).await;
    let owner = Uuid::from_u128(1);
    let first = Mortal::of(&bench, owner);
    let before = bench.reach(launch, LaunchState::Ready).await;
    first.kill().await;
    let second = Mortal::of(&bench, owner);
    wait_until("it is taken over", async || epoch(&bench).await == 2).await;
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let stopped = bench.reach(launch, LaunchState::Stopped).await;
    assert_eq!(stopped.summary.ready_at, before.summary.ready_at);
    bench.nothing_runs(&stopped).await;
    second.kill().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_that_ended_while_nobody_watched_is_told_by_its_record(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench
        .launch(&sglang(&["--sim-start-fault", "die-after:2500"]))
        .await;
    let owner = Uuid::from_u128(1);
    let first = Mortal::of(&bench, owner);
    bench.reach(launch, LaunchState::Ready).await;
    let identity = bench.identity(launch).await;
    first.kill().await;
    wait_until("it is dead", async || !alive(&identity)).await;
    let second = Mortal::of(&bench, owner);
    let failed = bench.reach(launch, LaunchState::Failed).await;
    assert!(failed.summary.failure.is_some());
    second.kill().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_process_whose_start_was_not_stored_is_found_in_its_folder(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&script("silent.sh", &["hello"])).await;
    let owner = Uuid::from_u128(1);
    let first = Mortal::of(&bench, owner);
    bench.reach(launch, LaunchState::Loading).await;
    let identity = bench.identity(launch).await;
    first.kill().await;
    // As if the worker had died between the start and its transaction.
    sqlx::query("UPDATE launches SET state = 'starting', identity = NULL WHERE id = $1")
        .bind(launch)
        .execute(&pool)
        .await
        .expect("stored");
    let second = Mortal::of(&bench, owner);
    bench.fails(launch, FailureKind::Stalled).await;
    assert_eq!(bench.identity(launch).await, identity, "no second process");
    second.kill().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn whoever_lost_the_lease_writes_nothing_and_over_is_for_ever(pool: PgPool) {
    let bench = Bench::new(&pool).await;
    let launch = bench.launch(&sglang(&[])).await;
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mut claimed = Vec::new();
    crate::launching::queue::claim(&pool, one, &mut claimed)
        .await
        .expect("asked");
    let lease = claimed[0];
    let none = lease::take_over(&pool, two, launch, lease.epoch)
        .await
        .expect("asked");
    assert_eq!(none, None, "it is held");
    sqlx::query("UPDATE launches SET lease_expires_at = now() - interval '1 second'")
        .execute(&pool)
        .await
        .expect("stored");
    let abandoned = lease::abandoned(&pool, two, false, true, &[])
        .await
        .expect("asked");
    assert_eq!(abandoned, [(launch, lease.epoch)]);
    let taken = lease::take_over(&pool, two, launch, lease.epoch)
        .await
        .expect("asked")
        .expect("taken");
    let mut connection = pool.acquire().await.expect("a connection");
    let refused =
        crate::launching::row::change(&mut connection, &lease, &Change::to(LaunchState::Loading))
            .await;
    assert!(matches!(refused, Err(LabError::LeaseLost)));
    for (state, allowed) in [(LaunchState::Failed, true), (LaunchState::Loading, false)] {
        let changed =
            crate::launching::row::change(&mut connection, &taken, &Change::to(state)).await;
        assert_eq!(changed.is_ok(), allowed, "{state}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_host_of_which_the_queue_is_stuck_keeps_no_other_from_its_turn(pool: PgPool) {
    use crate::testing::launches::{a_profile, host_form, launch_form};
    let folder = crate::testing::folder();
    let lab = crate::testing::lab(&pool, &folder).await;
    let profile = a_profile(&lab).await;
    let mut launches = Vec::new();
    for name in ["first", "stuck", "last"] {
        let host = lab
            .add_host(ME, &host_form(name, name))
            .await
            .expect("added");
        let form = launch_form(profile, host);
        launches.push((host, lab.queue_launch(ME, &form).await.expect("queued")));
    }
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON launches FOR EACH ROW
             WHEN (NEW.host_id = {}) EXECUTE FUNCTION refuse();",
        launches[1].0
    )))
    .execute(&pool)
    .await
    .expect("made");
    let mut claimed = Vec::new();
    crate::launching::queue::claim(&pool, Uuid::from_u128(1), &mut claimed)
        .await
        .expect("no outage");
    let claimed: Vec<_> = claimed.iter().map(|lease| lease.launch).collect();
    assert_eq!(claimed, [launches[0].1, launches[2].1]);
}
