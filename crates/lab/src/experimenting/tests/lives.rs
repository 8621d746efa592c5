//! From the queue to the end, also when nobody looks after them for a while.

use std::collections::BTreeSet;

use sqlx::PgPool;
use tokdyno_domain::{
    experiment::{ExperimentState, TrialState},
    ids::LaunchId,
    launch::LaunchState,
    source::Source,
};
use uuid::Uuid;

use super::{bench, count, form, measuring, profile, queue, quick, reach, restorings, trials};
use crate::{
    LabError,
    experimenting::lease,
    launching::tests::{adopted::Production, support::ME},
    testing::wait_until,
};

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_experiment_runs_to_its_end_and_production_is_back_afterwards(pool: PgPool) {
    let bench = bench(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.restore = Some(adopted);
    let experiment = queue(&bench, &asked).await;
    let view = reach(&bench, experiment, ExperimentState::Finished).await;

    let trials = trials(&view);
    assert_eq!((view.summary.over, view.summary.launches), (4, 4));
    let runs: BTreeSet<_> = trials.iter().filter_map(|trial| trial.run).collect();
    assert_eq!(runs.len(), 4, "each measured by itself");
    let launches: Vec<_> = trials.iter().filter_map(|trial| trial.launch).collect();
    assert_eq!(launches.len(), 4);
    assert!(
        launches.is_sorted_by(|one, next| one < next),
        "each launched anew, in their order: {trials:#?}"
    );
    let blocks: Vec<u32> = trials.iter().map(|trial| trial.block).collect();
    assert_eq!(blocks, [0, 0, 1, 1]);

    assert_eq!(view.source, Source::Simulated);
    let results = view.results.expect("figures");
    assert!(results.standing.is_judged());
    assert!(!results.best.is_empty() && !results.headline.is_empty());
    let single = &results.heat_maps[0];
    assert_eq!(single.key.metric, "e2e_tps");
    let speeds: Vec<f64> = single
        .entries
        .iter()
        .map(|entry| entry.figure.as_ref().expect("a figure").mean)
        .collect();
    assert!(speeds[0] > speeds[1] * 1.3, "{speeds:?}");
    assert!(view.spent_gpu_minutes > 0.0);
    assert_eq!(view.estimate, None);

    // One restoring: it stayed away between the launches.
    wait_until("production is back", async || {
        let back = bench.view(adopted).await.restored_by;
        match back {
            Some(back) => bench.view(back).await.summary.state == LaunchState::Ready,
            None => false,
        }
    })
    .await;
    assert_eq!(restorings(&bench).await, 1);
    assert!(production.answers().await);

    // What it took is what the next one is thought to take.
    asked.restore = None;
    asked.skip_measured = true;
    let preview = bench.lab.preview_experiment(ME, &asked).await;
    let preview = preview.expect("a preview");
    assert_eq!((preview.launches, preview.measured), (4, 4));
    asked.skip_measured = false;
    let preview = bench.lab.preview_experiment(ME, &asked).await;
    let seconds = preview.expect("a preview").estimate.seconds;
    assert!(seconds.is_some_and(|seconds| seconds > 0.0), "{seconds:?}");
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_dies_in_the_middle_is_taken_up_and_its_trial_is_run_again(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.workload.single_stream = Some(30);
    asked.launches_per_cell = 1;
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    wait_until("a run is under way", async || measuring(&bench).await).await;
    let before = reach(&bench, experiment, ExperimentState::Running).await;
    let first = trials(&before)[0].launch.expect("a launch");
    worker.kill().await;

    let worker = bench.work();
    let view = reach(&bench, experiment, ExperimentState::Finished).await;
    assert_eq!(count(&view, TrialState::Done), 2);
    for trial in trials(&view) {
        assert_eq!(trial.failures, 0, "an interruption is no failure");
    }
    let again = trials(&view)[0].launch.expect("a launch");
    assert!(again > first, "launched anew: {first} and {again}");
    let view = bench.view(first).await;
    assert!(view.summary.state.is_over());
    bench.nothing_runs(&view).await;
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_server_that_is_stopped_properly_goes_on_with_it_when_it_starts_again(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.launches_per_cell = 1;
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    wait_until("a run is under way", async || measuring(&bench).await).await;
    worker.shutdown().await;
    let state = super::view(&bench, experiment).await.summary.state;
    assert_eq!(state, ExperimentState::Running);
    let worker = bench.work();
    let view = reach(&bench, experiment, ExperimentState::Finished).await;
    assert_eq!(count(&view, TrialState::Done), 2);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn whoever_lost_the_lease_writes_nothing_and_one_runs_at_a_time(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let first = queue(&bench, &form(&bench, base)).await;
    let second = queue(&bench, &form(&bench, base)).await;
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let claimed = lease::claim(&pool, one).await.expect("asked");
    let [lease] = claimed.as_slice() else {
        panic!("{claimed:?}");
    };
    assert_eq!(lease.experiment, first, "the other one waits for the host");
    let waits = super::view(&bench, second).await.summary.reason;
    assert!(waits.contains(&format!("experiment {first}")), "{waits}");
    for lapsed in [false, true] {
        let taken = lease::take_over(&pool, two, false, lapsed, &[]).await;
        assert_eq!(taken.expect("asked"), [], "it is held");
    }
    sqlx::query(
        "UPDATE experiments SET lease_expires_at = now() - interval '1 second' WHERE id = $1",
    )
    .bind(first)
    .execute(&pool)
    .await
    .expect("stored");
    let taken = lease::take_over(&pool, two, false, true, &[]).await;
    let taken = taken.expect("asked");
    assert_eq!(taken.len(), 1);
    let mut connection = pool.acquire().await.expect("a connection");
    let refused = lease::hold(&mut connection, lease).await;
    assert!(matches!(refused, Err(LabError::LeaseLost)));
    let held = lease::hold(&mut connection, &taken[0]).await;
    assert_eq!(held.expect("held"), ExperimentState::Running);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_that_cannot_be_read_leaves_the_host_to_the_next(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.launches_per_cell = 1;
    let broken = queue(&bench, &asked).await;
    let next = queue(&bench, &asked).await;
    sqlx::query("UPDATE experiments SET spec = '{}' WHERE id = $1")
        .bind(broken)
        .execute(&pool)
        .await
        .expect("stored");
    let worker = bench.work();
    reach(&bench, next, ExperimentState::Finished).await;
    let list = bench.lab.experiments(ME).await.expect("a list");
    let told = list.experiments.iter().find(|one| one.id == broken);
    let told = told.expect("it is listed");
    assert_eq!(told.state, ExperimentState::Failed);
    assert!(told.reason.contains("cannot be read"), "{}", told.reason);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_that_cannot_be_read_any_more_ends_what_it_has_begun(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.workload.single_stream = Some(60);
    let broken = queue(&bench, &asked).await;
    let worker = bench.work();
    wait_until("a run is under way", async || measuring(&bench).await).await;
    worker.kill().await;
    sqlx::query("UPDATE experiments SET spec = '{}' WHERE id = $1")
        .bind(broken)
        .execute(&pool)
        .await
        .expect("stored");
    let launch: i64 = sqlx::query_scalar(
        "SELECT launch_id FROM experiment_trials WHERE experiment_id = $1 AND state = 'running'",
    )
    .bind(broken)
    .fetch_one(&pool)
    .await
    .expect("a launch");
    let launch = LaunchId(launch);

    let worker = bench.work();
    bench.reach(launch, LaunchState::Stopped).await;
    let list = bench.lab.experiments(ME).await.expect("a list");
    let told = &list.experiments[0];
    assert_eq!(told.state, ExperimentState::Failed);
    assert!(
        told.reason.contains("nothing more of it"),
        "{}",
        told.reason
    );
    let states: Vec<String> =
        sqlx::query_scalar("SELECT state FROM experiment_trials WHERE experiment_id = $1")
            .bind(broken)
            .fetch_all(&pool)
            .await
            .expect("read");
    assert_eq!(states, ["cancelled"; 4]);
    bench.nothing_runs(&bench.view(launch).await).await;
    worker.shutdown().await;
}
