//! Experiments that pause, are resumed, cancelled, or go on without a configuration.

use sqlx::PgPool;
use tokdyno_domain::{
    experiment::{ExperimentState, TrialState},
    launch::LaunchState,
};

use super::{
    bench, count, form, measuring, profile, queue, quick, reach, restorings, trials, wait, with,
};
use crate::{
    launching::tests::{
        adopted::Production,
        support::{ME, sglang},
    },
    testing::wait_until,
};

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_pause_and_a_cancellation_bring_production_back(pool: PgPool) {
    let bench = bench(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.workload.single_stream = Some(60);
    asked.restore = Some(adopted);
    let experiment = queue(&bench, &asked).await;
    let refused = bench.lab.queue_experiment(ME, &asked).await;
    let refused = refused.expect_err("it is promised already");
    assert_eq!(refused.status(), 409, "{refused}");

    for (round, becomes) in [ExperimentState::Paused, ExperimentState::Cancelled]
        .into_iter()
        .enumerate()
    {
        wait_until("a run is under way", async || measuring(&bench).await).await;
        assert!(!production.answers().await, "it is put aside");
        if becomes == ExperimentState::Paused {
            bench
                .lab
                .pause_experiment(ME, experiment)
                .await
                .expect("asked");
        } else {
            bench
                .lab
                .cancel_experiment(ME, experiment)
                .await
                .expect("asked");
        }
        let view = wait(&bench, experiment, "it has ended", |view| {
            view.summary.state == becomes
        });
        let view = view.await;
        assert_eq!(count(&view, TrialState::Running), 0);
        assert!(trials(&view).iter().all(|trial| trial.failures == 0));
        let restored = i64::try_from(round).expect("a number") + 1;
        assert_eq!(restorings(&bench).await, restored, "owed until that moment");
        wait_until("production is back", async || production.answers().await).await;
        if becomes == ExperimentState::Paused {
            assert_eq!(count(&view, TrialState::Planned), 4);
            bench
                .lab
                .resume_experiment(ME, experiment)
                .await
                .expect("asked");
        } else {
            assert_eq!(count(&view, TrialState::Cancelled), 4);
        }
    }
    for over in [
        bench.lab.cancel_experiment(ME, experiment).await,
        bench.lab.pause_experiment(ME, experiment).await,
        bench.lab.resume_experiment(ME, experiment).await,
    ] {
        assert_eq!(over.expect_err("it is over").status(), 409);
    }
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_configuration_that_always_fails_is_given_up_and_the_others_go_on(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.design = with("--sim-start-fault", "oom");
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    let view = reach(&bench, experiment, ExperimentState::Finished).await;
    let states = |cell: usize| -> Vec<(TrialState, u32)> {
        let trials = &view.cells[cell].trials;
        trials
            .iter()
            .map(|trial| (trial.state, trial.failures))
            .collect()
    };
    assert_eq!(states(0), [(TrialState::Done, 0), (TrialState::Done, 0)]);
    assert_eq!(
        states(1),
        [(TrialState::Failed, 2), (TrialState::Skipped, 0)]
    );
    let why = &view.cells[1].trials[0].reason;
    assert!(why.contains("memory"), "{why}");
    assert!(view.cells[1].trials[1].reason.contains("given up"));
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_of_which_nothing_can_be_measured_fails(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &sglang(&["--sim-start-fault", "oom"])).await;
    let mut asked = form(&bench, base);
    asked.launches_per_cell = 1;
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    let view = reach(&bench, experiment, ExperimentState::Failed).await;
    let why = &view.summary.reason;
    assert!(why.contains("nothing was measured"), "{why}");
    assert_eq!(view.results, None);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_budget_that_fits_nothing_pauses_before_anything_is_touched(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.gpu_minutes = Some(1000.0);
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    let view = reach(&bench, experiment, ExperimentState::Paused).await;
    assert!(
        view.summary.reason.contains("not known yet"),
        "{}",
        view.summary.reason
    );
    assert_eq!(count(&view, TrialState::Planned), 4);
    let launches: i64 = sqlx::query_scalar("SELECT count(*) FROM launches")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(launches, 0);

    // Without a limit what it takes is learnt; then a budget of nothing is told as such.
    asked.gpu_minutes = None;
    asked.launches_per_cell = 1;
    let unlimited = queue(&bench, &asked).await;
    reach(&bench, unlimited, ExperimentState::Finished).await;
    asked.gpu_minutes = Some(0.000_001);
    let poor = queue(&bench, &asked).await;
    let view = reach(&bench, poor, ExperimentState::Paused).await;
    assert!(
        view.summary.reason.contains("are used up"),
        "{}",
        view.summary.reason
    );
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_that_somebody_stops_pauses_the_experiment(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    asked.workload.single_stream = Some(60);
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    wait_until("a run is under way", async || measuring(&bench).await).await;
    let view = super::view(&bench, experiment).await;
    let running = trials(&view)
        .into_iter()
        .find(|trial| trial.state == TrialState::Running);
    let launch = running.and_then(|trial| trial.launch).expect("a launch");
    bench.lab.stop_launch(ME, launch).await.expect("asked");
    let view = reach(&bench, experiment, ExperimentState::Paused).await;
    assert!(
        view.summary.reason.contains("stopped by hand"),
        "{}",
        view.summary.reason
    );
    assert_eq!(count(&view, TrialState::Planned), 4);
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_declared_look_settles_is_not_run_any_more(pool: PgPool) {
    let bench = bench(&pool).await;
    let base = profile(&bench, &quick()).await;
    let mut asked = form(&bench, base);
    // Ten times as slow: no spread of launches hides that. One request at a time, since
    // a busy machine keeps too few of several in flight, which is a doubt.
    asked.design = with("--sim-step-ms", "50");
    asked.workload.output_tokens = 8;
    asked.workload.concurrencies = String::new();
    asked.workload.requests = None;
    asked.launches_per_cell = 4;
    asked.looks = vec![3];
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    let view = reach(&bench, experiment, ExperimentState::Finished).await;
    assert_eq!(count(&view, TrialState::Done), 6);
    for trial in trials(&view).iter().filter(|trial| trial.block == 3) {
        assert_eq!(trial.state, TrialState::Settled);
        assert!(
            trial.reason.contains("settled at a look"),
            "{}",
            trial.reason
        );
        assert_eq!(trial.launch, None);
    }
    worker.shutdown().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn production_that_comes_back_before_a_waiting_launch_is_put_aside_again(pool: PgPool) {
    let bench = bench(&pool).await;
    let production = Production::start(&bench).await;
    let worker = bench.work();
    let adopted = production.adopt(&bench).await;
    bench.reach(adopted, LaunchState::Ready).await;
    let base = profile(&bench, &quick()).await;
    worker.shutdown().await;
    // Another launch is before the experiment's in the queue.
    let other = bench.launch(&quick()).await;
    let mut asked = form(&bench, base);
    asked.launches_per_cell = 1;
    asked.restore = Some(adopted);
    let experiment = queue(&bench, &asked).await;
    let worker = bench.work();
    bench.reach(other, LaunchState::Ready).await;
    wait(&bench, experiment, "its launch waits", |view| {
        view.summary.reason.contains(&format!("launch {other}"))
    })
    .await;
    bench.lab.restore_launch(ME, adopted).await.expect("queued");
    bench.lab.stop_launch(ME, other).await.expect("asked");
    let view = reach(&bench, experiment, ExperimentState::Finished).await;
    assert_eq!(count(&view, TrialState::Done), 2);
    assert_eq!(restorings(&bench).await, 2, "by hand, and at the end");
    wait_until("production is back", async || production.answers().await).await;
    worker.shutdown().await;
}
