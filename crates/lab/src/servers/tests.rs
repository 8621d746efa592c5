use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    ids::LaunchId,
    launch::{Afterwards, FailureKind, LaunchFailure, LaunchState, LoadStage},
    views::servers::{LaunchView, StepState},
};

use crate::{
    Lab,
    testing::{
        folder, lab,
        launches::{
            a_host, a_profile, adopted, bring_to, effective, launch_form, measure_form, prove,
            queued,
        },
        new_run,
    },
};

const ME: &Actor = &Actor::LOCAL;

fn steps(view: &LaunchView) -> Vec<(&str, StepState)> {
    view.steps
        .iter()
        .map(|step| (step.name.as_str(), step.state))
        .collect()
}

async fn view(lab: &Lab, launch: LaunchId) -> LaunchView {
    lab.launch(ME, launch).await.expect("read")
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_page_of_servers_parts_what_lives_from_what_is_over(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile, first) = queued(&lab).await;
    let mut others = Vec::new();
    for _ in 0..52 {
        let launch = lab.queue_launch(ME, &launch_form(profile, host)).await;
        let launch = launch.expect("queued");
        lab.stop_launch(ME, launch).await.expect("stopped");
        others.push(launch);
    }
    let page = lab.servers(ME).await.expect("read");
    assert_eq!(page.alive.len(), 1);
    assert_eq!(page.alive[0].id, first);
    assert_eq!(page.over.len(), 50);
    assert_eq!(page.over[0].id, others[51]);
    assert!(page.may_operate);
    assert!(
        !lab.servers(&Actor::NETWORK)
            .await
            .expect("read")
            .may_operate
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_tells_how_far_it_is_and_what_was_proved(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile, earlier) = queued(&lab).await;
    bring_to(&pool, earlier, LaunchState::Stopped).await;
    let launch = lab.queue_launch(ME, &launch_form(profile, host)).await;
    let launch = launch.expect("queued");
    sqlx::query(
        "UPDATE launches SET stage = $2, stage_text = 'shard 3 of 9', waits_for = 'launch 1',
             identity = $3, unreachable_since = now(), failure = $4 WHERE id = $1",
    )
    .bind(launch)
    .bind(LoadStage::Weights.word())
    .bind(serde_json::json!({"boot_id": "b", "pid": 77, "start_ticks": 5, "pgid": 77}))
    .bind(serde_json::to_value(LaunchFailure::new(FailureKind::Nccl, "x")).expect("json"))
    .execute(&pool)
    .await
    .expect("written");
    let waiting = view(&lab, launch).await;
    assert_eq!(waiting.summary.waits_for.as_deref(), Some("launch 1"));
    assert!(
        steps(&waiting)
            .iter()
            .all(|(_, state)| *state == StepState::ToCome)
    );

    bring_to(&pool, launch, LaunchState::Loading).await;
    let loading = view(&lab, launch).await;
    assert_eq!(loading.summary.waits_for, None, "it waits no longer");
    assert_eq!(loading.summary.stage, Some(LoadStage::Weights));
    assert_eq!(
        (loading.stage_text.as_str(), loading.pid),
        ("shard 3 of 9", Some(77))
    );
    assert!(loading.summary.unreachable_since.is_some());
    let failure = loading.summary.failure.expect("kept");
    assert_eq!(failure.kind, FailureKind::Nccl);
    let usual = loading.usual_load_s.expect("an earlier one");
    assert!((usual - 90.0).abs() < 5.0, "{usual}");
    assert_eq!(view(&lab, earlier).await.usual_load_s, None);

    bring_to(&pool, launch, LaunchState::Ready).await;
    prove(&pool, launch).await;
    let ready = view(&lab, launch).await;
    assert_eq!(ready.summary.stamp, Some(effective().stamp));
    assert_eq!(ready.effective, Some(effective()));
    let run = lab.measure_launch(ME, &measure_form(launch)).await;
    let run = run.expect("queued");
    let with_run = view(&lab, launch).await;
    assert_eq!(with_run.runs.len(), 1);
    assert_eq!(with_run.runs[0].id, run);
    assert_eq!(with_run.runs[0].configuration, "sglang-nccl");
    assert!(
        !steps(&with_run).iter().any(|(name, _)| *name == "measure"),
        "the launch itself was not for measuring"
    );
    lab.delete_run(ME, run).await.expect("deleted");
    assert!(view(&lab, launch).await.runs.is_empty());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn launch_and_measure_is_one_way_to_the_end(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let production = adopted(&pool, &lab, host, profile).await;
    let mut form = launch_form(profile, host);
    form.measure = Some(new_run("").workload);
    form.afterwards = Afterwards::Stop;
    form.restore = Some(production);
    let launch = lab.queue_launch(ME, &form).await.expect("queued");
    bring_to(&pool, launch, LaunchState::Ready).await;
    let run = lab.measure_launch(ME, &measure_form(launch)).await;
    let run = run.expect("queued");
    let seen = view(&lab, launch).await;
    use StepState::{Done, Now, ToCome};
    assert_eq!(
        steps(&seen),
        [
            ("stop sglang-nccl", Done),
            ("check host", Done),
            ("start", Done),
            ("load", Done),
            ("verify", Done),
            ("measure", Now),
            ("stop", ToCome),
            ("restore sglang-nccl", ToCome),
        ]
    );
    assert_eq!(seen.steps[5].link, Some(format!("/runs/{run}")));

    sqlx::query("UPDATE runs SET state = 'finished'")
        .execute(&pool)
        .await
        .expect("written");
    bring_to(&pool, launch, LaunchState::Stopped).await;
    bring_to(&pool, production, LaunchState::Stopped).await;
    sqlx::query("UPDATE launches SET restore_due = (id = $1)")
        .bind(launch)
        .execute(&pool)
        .await
        .expect("written");
    let seen = view(&lab, launch).await;
    assert_eq!(
        steps(&seen)[5..],
        [
            ("measure", Done),
            ("stop", Done),
            ("restore sglang-nccl", Now)
        ]
    );

    let back = lab.queue_launch(ME, &launch_form(profile, host)).await;
    let back = back.expect("queued");
    sqlx::query("UPDATE launches SET restores_id = $2, origin = 'restored' WHERE id = $1")
        .bind(back)
        .bind(production)
        .execute(&pool)
        .await
        .expect("written");
    sqlx::query("UPDATE launches SET restore_due = false")
        .execute(&pool)
        .await
        .expect("written");
    bring_to(&pool, back, LaunchState::Ready).await;
    let seen = view(&lab, launch).await;
    let last = seen.steps.last().expect("a step");
    assert_eq!(
        (last.state, last.link.clone()),
        (Done, Some(format!("/servers/{back}")))
    );
    assert_eq!(view(&lab, production).await.restored_by, Some(back));
    assert_eq!(view(&lab, back).await.restores, Some(production));

    // Stopped and brought back once more, by a launch that stopped what came back.
    form.restore = Some(back);
    let second = lab.queue_launch(ME, &form).await.expect("queued");
    bring_to(&pool, second, LaunchState::Stopped).await;
    bring_to(&pool, back, LaunchState::Stopped).await;
    let again = lab.queue_launch(ME, &launch_form(profile, host)).await;
    let again = again.expect("queued");
    // Every one of them brings the adopted server back, whichever was stopped last.
    sqlx::query("UPDATE launches SET restores_id = $2, origin = 'restored' WHERE id = $1")
        .bind(again)
        .bind(production)
        .execute(&pool)
        .await
        .expect("written");
    bring_to(&pool, again, LaunchState::Ready).await;
    let seen = view(&lab, second).await;
    let last = seen.steps.last().expect("a step");
    assert_eq!(
        (last.state, last.link.clone()),
        (Done, Some(format!("/servers/{again}")))
    );
    assert_eq!(view(&lab, back).await.restored_by, Some(again));
    assert_eq!(view(&lab, again).await.restored_by, None);
}
