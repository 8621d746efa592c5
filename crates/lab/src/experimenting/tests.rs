//! Experiments that really run: the stand-in, the agent and the meter on this machine.

mod endings;
mod lives;

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokdyno_domain::{
    experiment::{Change, ExperimentState, Factor, Level, TrialState},
    ids::{ExperimentId, ProfileId},
    profile::ProfileSpec,
    views::{
        experiments::{DesignForm, ExperimentForm, ExperimentView, TrialView},
        measure::WorkloadForm,
    },
};

use crate::launching::tests::support::{Bench, ME, built, sglang};

/// Longest that a test waits for an experiment.
const LONGEST: Duration = Duration::from_secs(120);

async fn bench(pool: &PgPool) -> Bench {
    Bench::with(pool, |config| config.meter = built("tokdyno-meter")).await
}

/// A quick engine.
fn quick() -> ProfileSpec {
    sglang(&["--sim-step-ms", "5", "--sim-ttft-ms", "5"])
}

async fn profile(bench: &Bench, spec: &ProfileSpec) -> ProfileId {
    let added = bench.lab.add_profile(ME, "base", spec, None).await;
    added.expect("a profile")
}

/// The profile as it is, and with this flag.
fn with(flag: &str, value: &str) -> DesignForm {
    let level = |label: &str, changes: Vec<Change>| Level {
        label: label.to_owned(),
        changes,
    };
    let set = Change::SetArgument {
        flag: flag.to_owned(),
        value: Some(value.to_owned()),
    };
    DesignForm::OneAtATime {
        factors: vec![Factor {
            name: flag.to_owned(),
            levels: vec![level("as it is", Vec::new()), level(value, vec![set])],
        }],
    }
}

/// Two configurations, one twice as slow, two launches of each.
fn form(bench: &Bench, base: ProfileId) -> ExperimentForm {
    ExperimentForm {
        name: "steps".to_owned(),
        host: bench.host,
        base,
        design: with("--sim-step-ms", "10"),
        workload: WorkloadForm {
            preset: None,
            single_stream: Some(2),
            concurrencies: "2".to_owned(),
            requests: Some(4),
            output_tokens: 16,
            repeats: 1,
            ..WorkloadForm::default()
        },
        launches_per_cell: 2,
        looks: Vec::new(),
        gpu_minutes: None,
        give_back_at: None,
        restore: None,
        through_forward: false,
        relevant_effect_percent: 2.0,
        seed: Some(7),
        skip_measured: false,
    }
}

async fn queue(bench: &Bench, form: &ExperimentForm) -> ExperimentId {
    let queued = bench.lab.queue_experiment(ME, form).await;
    queued.expect("queued")
}

async fn view(bench: &Bench, experiment: ExperimentId) -> ExperimentView {
    let view = bench.lab.experiment(ME, experiment).await;
    view.expect("an experiment")
}

/// Waits until an experiment stands so.
async fn reach(bench: &Bench, experiment: ExperimentId, state: ExperimentState) -> ExperimentView {
    let holds = |view: &ExperimentView| view.summary.state == state;
    wait(bench, experiment, &format!("{state}"), holds).await
}

async fn wait(
    bench: &Bench,
    experiment: ExperimentId,
    what: &str,
    holds: impl Fn(&ExperimentView) -> bool,
) -> ExperimentView {
    let begun = Instant::now();
    loop {
        let view = view(bench, experiment).await;
        if holds(&view) {
            return view;
        }
        assert!(
            begun.elapsed() < LONGEST && !view.summary.state.is_over(),
            "in vain: {what}; {:?} {}: {:#?}",
            view.summary.state,
            view.summary.reason,
            view.cells
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Its trials in order.
fn trials(view: &ExperimentView) -> Vec<TrialView> {
    let mut trials: Vec<TrialView> = view
        .cells
        .iter()
        .flat_map(|cell| cell.trials.clone())
        .collect();
    trials.sort_by_key(|trial| trial.number);
    trials
}

fn count(view: &ExperimentView, state: TrialState) -> usize {
    let trials = trials(view);
    trials.iter().filter(|trial| trial.state == state).count()
}

/// A trial's run is under way.
async fn measuring(bench: &Bench) -> bool {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM runs WHERE state = 'running')")
        .fetch_one(&bench.pool)
        .await
        .expect("read")
}

/// How often the production server was brought back.
async fn restorings(bench: &Bench) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM launches WHERE origin = 'restored'")
        .fetch_one(&bench.pool)
        .await
        .expect("read")
}
