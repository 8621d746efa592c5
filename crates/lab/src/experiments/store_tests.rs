//! Experiments in the store: planned, shown, moved while nobody drives them.

use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    experiment::{Change, ExperimentState, Factor, Fit, Level, Step, TrialState, nccl_factors},
    ids::{ExperimentId, HostId, LaunchId, ProfileId, RunId},
    timestamp::Timestamp,
    views::experiments::{DesignForm, ExperimentForm},
};

use crate::{
    Lab,
    testing::{
        bytes, folder, lab,
        launches::{a_host, a_profile, adopted, launch_form, spec},
        new_run, result_file, wait_until,
    },
};

const ME: &Actor = &Actor::LOCAL;

fn grid() -> DesignForm {
    DesignForm::FullGrid {
        factors: nccl_factors()[..2].to_vec(),
    }
}

fn form(host: HostId, base: ProfileId) -> ExperimentForm {
    ExperimentForm {
        name: "which protocol".to_owned(),
        host,
        base,
        design: grid(),
        workload: new_run("").workload,
        launches_per_cell: 3,
        looks: vec![2],
        gpu_minutes: None,
        give_back_at: None,
        restore: None,
        through_forward: false,
        relevant_effect_percent: 2.0,
        seed: Some(7),
        skip_measured: false,
    }
}

/// Makes a form one that cannot be planned.
type Spoil = fn(&mut ExperimentForm);

async fn state(lab: &Lab, experiment: ExperimentId) -> ExperimentState {
    let view = lab.experiment(ME, experiment).await.expect("a view");
    view.summary.state
}

async fn refusal(lab: &Lab, form: &ExperimentForm) -> (u16, String) {
    let refused = lab.preview_experiment(ME, form).await;
    let refused = refused.expect_err("a refusal");
    let queued = lab.queue_experiment(ME, form).await;
    let said = queued.expect_err("a refusal").to_string();
    assert_eq!(said, refused.to_string());
    (refused.status(), said)
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_plan_is_told_before_it_is_queued_and_queued_as_told(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let form = form(host, base);
    let preview = lab.preview_experiment(ME, &form).await.expect("a preview");
    assert_eq!((preview.cells.len(), preview.launches), (12, 36));
    assert_eq!((preview.measured, preview.estimate.loads), (0, 36));
    assert_eq!(preview.estimate.seconds, None, "nothing is known");
    assert_eq!(preview.estimate.fit, Fit::All);
    let ll = &preview.cells[3];
    assert_eq!(ll.title, "NCCL_PROTO LL, NCCL_ALGO as NCCL chooses");
    assert!(ll.command.contains("NCCL_PROTO=LL"), "{}", ll.command);
    assert!(
        preview
            .cautions
            .iter()
            .any(|caution| caution.contains("LL128"))
    );
    assert_eq!(lab.experiments(ME).await.expect("a list").experiments, []);

    let experiment = lab.queue_experiment(ME, &form).await.expect("queued");
    let list = lab.experiments(ME).await.expect("a list");
    let [summary] = list.experiments.as_slice() else {
        panic!("{list:#?}");
    };
    assert_eq!(
        (summary.id, summary.state),
        (experiment, ExperimentState::Queued)
    );
    assert_eq!(summary.design, "full grid of NCCL_PROTO × NCCL_ALGO");
    assert_eq!((summary.cells, summary.over, summary.launches), (12, 0, 36));
    assert_eq!(summary.base, (base, "sglang-nccl".to_owned()));
    let view = lab.experiment(ME, experiment).await.expect("a view");
    assert_eq!((view.seed, view.looks.as_slice()), (7, &[2][..]));
    assert_eq!(view.cells.len(), 12);
    for (cell, told) in view.cells.iter().zip(&preview.cells) {
        assert_eq!(cell.title, told.title);
        let blocks: Vec<u32> = cell.trials.iter().map(|trial| trial.block).collect();
        assert_eq!(blocks, [0, 1, 2]);
        assert!(
            cell.trials
                .iter()
                .all(|trial| trial.state == TrialState::Planned)
        );
    }
    assert_eq!(view.results, None);
    assert_eq!(view.estimate.map(|estimate| estimate.loads), Some(36));

    let profiles = lab.profiles(ME).await.expect("profiles").profiles;
    assert_eq!(profiles.len(), 1, "its revisions stand in no list");
    let hidden = lab.profile(ME, &format!("experiment-{experiment}")).await;
    assert_eq!(hidden.expect("a launch links to it").revisions.len(), 12);
    let entry = &lab.audit(ME, None).await.expect("a log").entries[0];
    assert_eq!(entry.action, "experiment_plan");
    assert_eq!(entry.link, Some(format!("/experiments/{experiment}")));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_ablation_takes_two_profiles_apart(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let mut tuned = spec();
    tuned.environment = vec![
        ("NCCL_PROTO".to_owned(), "Simple".to_owned()),
        ("NCCL_MIN_NCHANNELS".to_owned(), "8".to_owned()),
    ];
    tuned
        .arguments
        .extend(["--num-continuous-decode-steps", "4"].map(str::to_owned));
    let to = lab
        .add_profile(ME, "tuned", &tuned, None)
        .await
        .expect("a profile");
    let ablation = |steps| ExperimentForm {
        design: DesignForm::Ablation { to, steps },
        ..form(host, base)
    };
    let preview = lab.preview_experiment(ME, &ablation(Vec::new())).await;
    let preview = preview.expect("a preview");
    let labels: Vec<&str> = preview
        .steps
        .iter()
        .map(|step| step.label.as_str())
        .collect();
    assert_eq!(
        labels,
        ["--num-continuous-decode-steps 4", "NCCL variables"]
    );
    assert_eq!(preview.cells.len(), 4);
    assert!(
        preview
            .cautions
            .iter()
            .any(|caution| caution.contains("changes no speed")),
        "{:?}",
        preview.cautions
    );
    // Grouped otherwise, but with all of them.
    let mut together = preview.steps.clone();
    let flag = together.remove(0);
    together[0].changes.extend(flag.changes.clone());
    let preview = lab.preview_experiment(ME, &ablation(together)).await;
    assert_eq!(preview.expect("a preview").cells.len(), 2);
    let (status, said) = refusal(&lab, &ablation(vec![flag])).await;
    assert!(status == 422 && said.contains("do not lead"), "{said}");
    let mut same = ablation(Vec::<Step>::new());
    same.design = DesignForm::Ablation {
        to: base,
        steps: Vec::new(),
    };
    let (status, said) = refusal(&lab, &same).await;
    assert!(
        status == 422 && said.contains("nothing to take apart"),
        "{said}"
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_cannot_be_planned_is_refused_with_a_reason(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let good = form(host, base);
    let bad: [(u16, Spoil); 9] = [
        (422, |form| form.name = " ".to_owned()),
        (422, |form| form.name = "a\0b".to_owned()),
        (422, |form| form.launches_per_cell = 0),
        (422, |form| form.looks = vec![3]),
        (422, |form| form.relevant_effect_percent = 0.0),
        (422, |form| form.gpu_minutes = Some(-1.0)),
        (422, |form| form.give_back_at = Some(Timestamp(1))),
        (404, |form| form.host = HostId(999)),
        (404, |form| form.base = ProfileId(999)),
    ];
    for (expected, spoil) in bad {
        let mut form = good.clone();
        spoil(&mut form);
        let queued = lab.queue_experiment(ME, &form).await;
        let refused = queued.expect_err("a refusal");
        assert_eq!(refused.status(), expected, "{refused}");
    }
    let mut one_level = good.clone();
    one_level.design = DesignForm::FullGrid {
        factors: vec![Factor {
            name: "alone".to_owned(),
            levels: vec![Level {
                label: "as it is".to_owned(),
                changes: Vec::new(),
            }],
        }],
    };
    assert!(refusal(&lab, &one_level).await.1.contains("one level"));
    let mut switch = good.clone();
    switch.design = DesignForm::OneAtATime {
        factors: vec![Factor {
            name: "radix".to_owned(),
            levels: vec![
                Level {
                    label: "as it is".to_owned(),
                    changes: Vec::new(),
                },
                Level {
                    label: "off".to_owned(),
                    changes: vec![Change::SetArgument {
                        flag: "--disable-radix-cache".to_owned(),
                        value: Some("yes".to_owned()),
                    }],
                },
            ],
        }],
    };
    let (_, said) = refusal(&lab, &switch).await;
    assert!(said.contains("does not take that many values"), "{said}");
    lab.archive_profile(ME, base, true).await.expect("archived");
    assert_eq!(refusal(&lab, &good).await.0, 409);
    for reader in [&Actor::NETWORK, &Actor::GUEST] {
        let refused = lab.queue_experiment(reader, &good).await;
        assert_eq!(refused.expect_err("a refusal").status(), 403);
    }
    assert_eq!(lab.experiments(ME).await.expect("a list").experiments, []);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_that_waits_is_paused_resumed_and_cancelled_at_once(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let experiment = lab
        .queue_experiment(ME, &form(host, base))
        .await
        .expect("queued");
    let kept = lab.remove_host(ME, host).await.expect_err("it is needed");
    assert!(kept.to_string().contains("experiment"), "{kept}");
    lab.pause_experiment(ME, experiment).await.expect("paused");
    assert_eq!(state(&lab, experiment).await, ExperimentState::Paused);
    let twice = lab.pause_experiment(ME, experiment).await;
    assert_eq!(twice.expect_err("it is paused").status(), 409);
    lab.resume_experiment(ME, experiment)
        .await
        .expect("resumed");
    assert_eq!(state(&lab, experiment).await, ExperimentState::Queued);
    let early = lab.resume_experiment(ME, experiment).await;
    assert_eq!(early.expect_err("it waits").status(), 409);
    lab.cancel_experiment(ME, experiment)
        .await
        .expect("cancelled");
    let view = lab.experiment(ME, experiment).await.expect("a view");
    assert_eq!(view.summary.state, ExperimentState::Cancelled);
    assert_eq!(view.summary.over, 36);
    assert!(view.summary.ended_at.is_some() && view.estimate.is_none());
    lab.remove_host(ME, host).await.expect("free");
    let unknown = ExperimentId(999);
    for refused in [
        lab.pause_experiment(ME, unknown).await,
        lab.resume_experiment(ME, unknown).await,
        lab.cancel_experiment(ME, unknown).await,
        lab.experiment(ME, unknown).await.map(drop),
    ] {
        assert_eq!(refused.expect_err("unknown").status(), 404);
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_time_that_has_passed_does_not_hold_one_that_is_resumed(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let mut form = form(host, base);
    form.give_back_at = Some(Timestamp(super::now().0 + 3_600_000_000));
    form.gpu_minutes = Some(100.0);
    let experiment = lab.queue_experiment(ME, &form).await.expect("queued");
    for (passed, holds) in [(false, true), (true, false)] {
        lab.pause_experiment(ME, experiment).await.expect("paused");
        if passed {
            sqlx::query(
                "UPDATE experiments SET spec = jsonb_set(spec, '{budget,give_back_at}', '1')",
            )
            .execute(&pool)
            .await
            .expect("stored");
        }
        lab.resume_experiment(ME, experiment)
            .await
            .expect("resumed");
        let view = lab.experiment(ME, experiment).await.expect("a view");
        assert_eq!(view.give_back_at.is_some(), holds);
        assert_eq!(view.gpu_minutes, Some(100.0), "the budget stays");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_server_is_put_aside_for_one_at_a_time(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let production = adopted(&pool, &lab, host, base).await;
    let mut with_restore = form(host, base);
    with_restore.restore = Some(LaunchId(999));
    assert_eq!(refusal(&lab, &with_restore).await.0, 404);
    with_restore.restore = Some(production);
    let experiment = lab
        .queue_experiment(ME, &with_restore)
        .await
        .expect("queued");
    let (status, said) = refusal(&lab, &with_restore).await;
    assert!(
        status == 409 && said.contains(&format!("experiment {experiment}")),
        "{said}"
    );
    let mut launch = launch_form(base, host);
    launch.restore = Some(production);
    let refused = lab.queue_launch(ME, &launch).await.expect_err("promised");
    assert_eq!(refused.status(), 409, "{refused}");
    // A paused one has nothing put aside, so the server is free to be promised.
    lab.pause_experiment(ME, experiment).await.expect("paused");
    lab.queue_launch(ME, &launch).await.expect("queued");
    let refused = lab.resume_experiment(ME, experiment).await;
    assert_eq!(refused.expect_err("it is promised").status(), 409);
}

/// A run that is over, of the form's workload.
async fn measured(lab: &Lab, form: &ExperimentForm) -> RunId {
    let imported = lab.import(ME, &bytes(&result_file())).await;
    let run = imported.expect("imported").run;
    let workload = form.workload.workload().expect("a workload");
    sqlx::query(
        "UPDATE runs SET workload_hash = $2, started_at = now(),
             finished_at = now() + interval '1 minute' WHERE id = $1",
    )
    .bind(run)
    .bind(workload.hash().0)
    .execute(&lab.0.pool)
    .await
    .expect("stored");
    run
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn how_long_a_launch_takes_is_learnt_from_those_that_were_started(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let form = form(host, base);
    let production = adopted(&pool, &lab, host, base).await;
    let run = measured(&lab, &form).await;
    sqlx::query("UPDATE runs SET launch_id = $2 WHERE id = $1")
        .bind(run)
        .bind(production)
        .execute(&pool)
        .await
        .expect("stored");
    for (origin, known) in [("adopted", false), ("launched", true)] {
        sqlx::query("UPDATE launches SET origin = $1")
            .bind(origin)
            .execute(&pool)
            .await
            .expect("stored");
        let preview = lab.preview_experiment(ME, &form).await.expect("a preview");
        assert_eq!(preview.estimate.seconds.is_some(), known, "{origin}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_was_measured_otherwise_is_not_taken_over(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let mut form = form(host, base);
    let experiment = lab.queue_experiment(ME, &form).await.expect("queued");
    let run = measured(&lab, &form).await;
    sqlx::query(
        "UPDATE experiment_trials SET state = 'done', run_id = $2
         WHERE experiment_id = $1 AND number = 0",
    )
    .bind(experiment)
    .bind(run)
    .execute(&pool)
    .await
    .expect("stored");
    form.skip_measured = true;
    let taken_over = async |form: &ExperimentForm| {
        let preview = lab.preview_experiment(ME, form).await;
        preview.expect("a preview").measured
    };
    assert_eq!(taken_over(&form).await, 1);
    form.through_forward = true;
    assert_eq!(taken_over(&form).await, 0, "from elsewhere");
    form.through_forward = false;
    sqlx::query("UPDATE runs SET metric_version = metric_version - 1")
        .execute(&pool)
        .await
        .expect("stored");
    assert_eq!(taken_over(&form).await, 0, "by other definitions");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_that_is_cancelled_while_it_stops_says_nothing_of_resuming(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let experiment = lab
        .queue_experiment(ME, &form(host, base))
        .await
        .expect("queued");
    sqlx::query(
        "UPDATE experiments SET state = 'stopping', becomes = 'paused', lease_expires_at = now(),
             lease_owner = gen_random_uuid(), reason = 'Full. Resume the experiment when it is not.'",
    )
    .execute(&pool)
    .await
    .expect("stored");
    lab.cancel_experiment(ME, experiment).await.expect("asked");
    let (becomes, reason): (String, String) =
        sqlx::query_as("SELECT becomes, reason FROM experiments")
            .fetch_one(&pool)
            .await
            .expect("read");
    assert_eq!((becomes.as_str(), reason.as_str()), ("cancelled", ""));
}

/// Somebody in this database waits for a lock.
async fn somebody_waits(pool: &PgPool) -> bool {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock')",
    )
    .fetch_one(pool)
    .await
    .expect("read")
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn profiles_are_held_by_rising_numbers_and_by_no_preview(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, first) = (a_host(&lab).await, a_profile(&lab).await);
    let mut tuned = spec();
    tuned.environment = vec![("NCCL_PROTO".to_owned(), "Simple".to_owned())];
    let second = lab.add_profile(ME, "tuned", &tuned, None).await;
    let second = second.expect("a profile");
    let backwards = ExperimentForm {
        design: DesignForm::Profiles {
            profiles: vec![first],
        },
        ..form(host, second)
    };
    let mut held = pool.begin().await.expect("begun");
    sqlx::query("SELECT id FROM profiles WHERE id = $1 FOR UPDATE")
        .bind(first)
        .execute(&mut *held)
        .await
        .expect("held");
    lab.preview_experiment(ME, &backwards)
        .await
        .expect("a preview waits for nobody");
    let queued = tokio::spawn({
        let lab = lab.clone();
        async move { lab.queue_experiment(ME, &backwards).await }
    });
    wait_until("it waits", async || somebody_waits(&pool).await).await;
    sqlx::query("SELECT id FROM profiles WHERE id = $1 FOR UPDATE NOWAIT")
        .bind(second)
        .execute(&mut *held)
        .await
        .expect("it waits for the first, and does not hold the second");
    held.commit().await.expect("released");
    queued.await.expect("no panic").expect("queued");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn whoever_resumes_holds_the_host_before_the_experiment(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, base) = (a_host(&lab).await, a_profile(&lab).await);
    let experiment = lab
        .queue_experiment(ME, &form(host, base))
        .await
        .expect("queued");
    lab.pause_experiment(ME, experiment).await.expect("paused");
    let mut held = pool.begin().await.expect("begun");
    sqlx::query("SELECT id FROM hosts WHERE id = $1 FOR UPDATE")
        .bind(host)
        .execute(&mut *held)
        .await
        .expect("held");
    let resumed = tokio::spawn({
        let lab = lab.clone();
        async move { lab.resume_experiment(ME, experiment).await }
    });
    wait_until("it waits", async || somebody_waits(&pool).await).await;
    sqlx::query("SELECT id FROM experiments WHERE id = $1 FOR UPDATE NOWAIT")
        .bind(experiment)
        .execute(&mut *held)
        .await
        .expect("it waits for the host, and does not hold the experiment");
    held.commit().await.expect("released");
    resumed.await.expect("no panic").expect("resumed");
}
