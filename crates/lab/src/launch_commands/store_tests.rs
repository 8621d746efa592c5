use sqlx::PgPool;
use time::OffsetDateTime;
use tokdyno_domain::{
    access::Actor,
    ids::{HostId, LaunchId, ProfileId},
    launch::{Afterwards, LaunchOrigin, LaunchState},
    run::RunState,
    source::Source,
    timestamp::Timestamp,
    views::{run::RunFilter, run_host::ClientPlace, servers::LaunchForm},
};

use crate::{
    LabError,
    testing::{
        folder, lab,
        launches::{
            a_host, a_profile, adopted, bring_to, effective, host_form, launch_form, measure_form,
            prove, queued, spec,
        },
        new_run, summary,
    },
};

const ME: &Actor = &Actor::LOCAL;

fn in_an_hour() -> Timestamp {
    Timestamp(Timestamp::from_datetime(OffsetDateTime::now_utc()).0 + 3_600_000_000)
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_waits_with_all_that_was_asked(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let production = adopted(&pool, &lab, host, profile).await;
    let mut on_two = spec();
    on_two
        .environment
        .push(("CUDA_VISIBLE_DEVICES".to_owned(), "2,3".to_owned()));
    on_two.parameters.port = 8100;
    lab.save_profile(ME, profile, &on_two).await.expect("saved");
    let mut form = launch_form(profile, host);
    form.measure = Some(new_run("").workload);
    form.afterwards = Afterwards::Stop;
    form.verify_nccl = true;
    form.restore = Some(production);
    form.give_back_at = Some(in_an_hour());
    let launch = lab.queue_launch(ME, &form).await.expect("queued");

    let view = lab.launch(ME, launch).await.expect("read");
    let seen = &view.summary;
    assert_eq!(
        (seen.state, seen.origin, seen.port, seen.gpus.clone()),
        (
            LaunchState::Queued,
            LaunchOrigin::Launched,
            8100,
            Some(vec![2, 3])
        )
    );
    assert_eq!((seen.profile.2, seen.give_back_at), (2, form.give_back_at));
    let measure = view.plan.measure.as_ref().expect("a measurement");
    assert_eq!(measure.configuration, "sglang-nccl");
    assert_eq!(view.plan.give_back_lead_s, 60);
    assert_eq!(view.restores, Some(production));
    assert!(view.plan.verify_nccl && view.command.contains("sglang.launch_server"));
    assert!(
        view.folder.ends_with(&format!("-launch-{launch}")) && view.folder.len() > 16,
        "{}",
        view.folder
    );
    let entry = &lab.audit(ME, None).await.expect("read").entries[0];
    assert_eq!(
        (entry.action.as_str(), entry.subject.clone()),
        ("launch", format!("launch {launch}"))
    );
    assert!(
        entry.detail.starts_with(&format!(
            "sglang-nccl on host {host}, then measured, launch {production} restored afterwards, given back by"
        )),
        "{}",
        entry.detail
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_cannot_be_launched_says_why(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let good = || launch_form(profile, host);
    let mut workload = new_run("").workload;
    workload.concurrencies = "0".to_owned();
    let mut prompts = new_run("").workload;
    prompts.prompt_file = Some(("p".to_owned(), "a\0b\n".to_owned()));
    let mut cases = Vec::new();
    let mut case = |status: u16, word: &'static str, change: &dyn Fn(&mut LaunchForm)| {
        let mut form = good();
        change(&mut form);
        cases.push((form, status, word));
    };
    case(404, "profile", &|form| form.profile = ProfileId(404));
    case(404, "host 404", &|form| form.host = HostId(404));
    case(404, "launch 404", &|form| {
        form.restore = Some(LaunchId(404));
    });
    case(422, "oncurrenc", &|form| {
        form.measure = Some(workload.clone());
    });
    case(422, "NUL", &|form| form.measure = Some(prompts.clone()));
    case(422, "NUL", &|form| form.configuration = "\0".to_owned());
    case(422, "200", &|form| form.configuration = "x".repeat(201));
    case(422, "later", &|form| form.give_back_at = Some(Timestamp(0)));
    case(422, "24 hours", &|form| {
        form.give_back_at = Some(in_an_hour());
        form.give_back_lead_s = Some(0);
    });
    for (form, status, word) in cases {
        let error = lab.queue_launch(ME, &form).await.expect_err("a refusal");
        assert_eq!(error.status(), status, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    // A revision from before today's rules.
    sqlx::query("UPDATE profile_revisions SET spec = jsonb_set(spec, '{program}', '\" \"')")
        .execute(&pool)
        .await
        .expect("written");
    let old = lab.queue_launch(ME, &good()).await.expect_err("a refusal");
    assert_eq!(old.status(), 422, "{old}");
    assert!(lab.servers(ME).await.expect("read").alive.is_empty());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn only_an_adopted_server_that_runs_here_is_restored(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile, ours) = queued(&lab).await;
    bring_to(&pool, ours, LaunchState::Ready).await;
    let production = adopted(&pool, &lab, host, profile).await;
    let ended = adopted(&pool, &lab, host, profile).await;
    bring_to(&pool, ended, LaunchState::Stopped).await;
    let ending = adopted(&pool, &lab, host, profile).await;
    lab.stop_launch(ME, ending).await.expect("asked");
    let elsewhere = lab
        .add_host(ME, &host_form("other", "gpu2"))
        .await
        .expect("added");
    for (on, restore, word) in [
        (host, ours, "adopted"),
        (host, ended, "does not run"),
        (host, ending, "about to end"),
        (elsewhere, production, "another host"),
    ] {
        let mut form = launch_form(profile, on);
        form.restore = Some(restore);
        let error = lab.queue_launch(ME, &form).await.expect_err("a refusal");
        assert_eq!(error.status(), 409, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let mut form = launch_form(profile, host);
    form.restore = Some(production);
    let first = lab.queue_launch(ME, &form).await.expect("queued");
    let second = lab.queue_launch(ME, &form).await.expect_err("a refusal");
    assert!(
        second
            .to_string()
            .contains(&format!("after launch {first}")),
        "{second}"
    );
    lab.stop_launch(ME, first).await.expect("stopped");
    lab.queue_launch(ME, &form).await.expect("queued");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_waiting_launch_is_stopped_at_once_and_a_living_one_is_asked(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile, waiting) = queued(&lab).await;
    lab.stop_launch(ME, waiting).await.expect("stopped");
    let seen = lab.launch(ME, waiting).await.expect("read").summary;
    assert_eq!(seen.state, LaunchState::Stopped);
    assert!(seen.ended_at.is_some() && seen.started_at.is_none());
    let again = lab.stop_launch(ME, waiting).await.expect_err("a refusal");
    assert_eq!(again.status(), 409, "{again}");

    let living = lab
        .queue_launch(ME, &launch_form(profile, host))
        .await
        .expect("queued");
    bring_to(&pool, living, LaunchState::Ready).await;
    prove(&pool, living).await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = lab.measure_launch(ME, &measure_form(living)).await;
        runs.push(run.expect("queued"));
    }
    sqlx::query(
        "UPDATE runs SET state = 'running', lease_owner = gen_random_uuid(),
             lease_expires_at = now() + interval '1 hour' WHERE id = $1",
    )
    .bind(runs[0])
    .execute(&pool)
    .await
    .expect("written");
    let elsewhere = lab
        .queue_run(ME, &new_run("http://gpu9:8000"))
        .await
        .expect("queued");

    lab.stop_launch(ME, living).await.expect("asked");
    lab.stop_launch(ME, living).await.expect("asked again");
    let seen = lab.launch(ME, living).await.expect("read").summary;
    assert_eq!(
        (seen.state, seen.stop_requested, seen.ended_at),
        (LaunchState::Ready, true, None)
    );
    let running = summary(&lab, runs[0]).await;
    assert_eq!(
        (running.state, running.cancel_requested),
        (RunState::Running, true)
    );
    assert_eq!(summary(&lab, runs[1]).await.state, RunState::Cancelled);
    assert_eq!(summary(&lab, elsewhere).await.state, RunState::Queued);
    let refused = lab.measure_launch(ME, &measure_form(living)).await;
    assert_eq!(refused.expect_err("it ends").status(), 409);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_run_on_a_launch_carries_what_was_proved(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    sqlx::query("UPDATE hosts SET inventory = $1")
        .bind(serde_json::json!({"gpus": [{"index": 0, "name": "RTX (simulated)"}]}))
        .execute(&pool)
        .await
        .expect("written");
    let mut form = launch_form(profile, host);
    form.verify_nccl = true;
    let launch = lab.queue_launch(ME, &form).await.expect("queued");
    let early = lab.measure_launch(ME, &measure_form(launch)).await;
    let early = early.expect_err("not ready");
    assert!(early.to_string().contains("queued"), "{early}");
    bring_to(&pool, launch, LaunchState::Ready).await;
    prove(&pool, launch).await;

    let mut form = measure_form(launch);
    let on_host = lab.measure_launch(ME, &form).await.expect("queued");
    form.through_forward = true;
    form.configuration = " by forward ".to_owned();
    let forwarded = lab.measure_launch(ME, &form).await.expect("queued");
    // What is read later changes nothing that a run carries.
    sqlx::query("UPDATE launches SET effective = NULL, stamp = NULL")
        .execute(&pool)
        .await
        .expect("written");

    let view = lab.run(ME, on_host).await.expect("read");
    let seen = &view.summary;
    assert_eq!(
        (
            seen.configuration.as_str(),
            seen.model.as_str(),
            seen.source
        ),
        ("sglang-nccl", "the-model", Source::Measured)
    );
    assert_eq!(seen.hardware, "1 × RTX (simulated)");
    assert_eq!(seen.endpoint.as_deref(), Some("http://127.0.0.1:8000"));
    let of = seen.launch.as_ref().expect("a launch");
    assert_eq!(
        (of.launch, of.host.0, of.profile.0),
        (launch, host, profile)
    );
    assert_eq!(of.stamp, Some(effective().stamp));
    let told = view.host.as_ref().expect("a host");
    assert_eq!(told.place, ClientPlace::Host);
    assert_eq!(told.effective, Some(effective()));
    assert!(view.remarks[0].contains("NCCL"), "{:?}", view.remarks);
    // Variables are told by no engine, so comparisons have them from here.
    assert!(
        view.settings
            .contains(&("NCCL_PROTO".to_owned(), "Simple".to_owned()))
            && view
                .settings
                .contains(&("--tp-size".to_owned(), "2".to_owned()))
            && !view.settings.iter().any(|(name, _)| name == "driver"),
        "{:?}",
        view.settings
    );
    let other = lab.run(ME, forwarded).await.expect("read");
    assert_eq!(other.summary.configuration, "by forward");
    assert_eq!(other.host.expect("a host").place, ClientPlace::Forward);
    let keys: Vec<String> = sqlx::query_scalar("SELECT DISTINCT endpoint_key FROM runs")
        .fetch_all(&pool)
        .await
        .expect("read");
    assert_eq!(keys, [format!("host:{host}:8000")]);

    // The list shows it, and finds it by host and profile.
    for (text, total) in [
        ("BOX", 2),
        ("sglang-NCCL", 2),
        ("forward", 1),
        ("nobody", 0),
    ] {
        let filter = RunFilter {
            text: text.to_owned(),
            ..RunFilter::default()
        };
        let page = lab.runs(ME, &filter).await.expect("read");
        assert_eq!(page.total, total, "{text}");
        assert_eq!(page.runs.len(), usize::try_from(total).expect("small"));
        assert!(page.runs.iter().all(|run| run.launch.is_some()));
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_simulated_launch_makes_simulated_runs_from_the_first_moment(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (_, _, launch) = queued(&lab).await;
    bring_to(&pool, launch, LaunchState::Ready).await;
    sqlx::query("UPDATE launches SET simulated = true")
        .execute(&pool)
        .await
        .expect("written");
    let run = lab.measure_launch(ME, &measure_form(launch)).await;
    let seen = summary(&lab, run.expect("queued")).await;
    assert_eq!(seen.source, Source::Simulated);
    assert_eq!(seen.hardware, "", "nobody looked at the host yet");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn without_the_password_nothing_is_launched_measured_or_stopped(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile, launch) = queued(&lab).await;
    let who = &Actor::NETWORK;
    for refused in [
        lab.queue_launch(who, &launch_form(profile, host))
            .await
            .map(drop),
        lab.measure_launch(who, &measure_form(launch))
            .await
            .map(drop),
        lab.stop_launch(who, launch).await,
        lab.servers(&Actor::GUEST).await.map(drop),
        lab.launch(&Actor::GUEST, launch).await.map(drop),
    ] {
        assert!(
            matches!(refused, Err(LabError::Forbidden(_))),
            "{refused:?}"
        );
    }
    assert!(!lab.launch(who, launch).await.expect("read").may_operate);
    for unknown in [
        lab.stop_launch(ME, LaunchId(404)).await,
        lab.launch(ME, LaunchId(404)).await.map(drop),
        lab.measure_launch(ME, &measure_form(LaunchId(404)))
            .await
            .map(drop),
    ] {
        assert_eq!(unknown.expect_err("none").status(), 404);
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_masked_secret_is_not_launched(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let mut masked = spec();
    masked
        .environment
        .push(("HF_TOKEN".to_owned(), "•••".to_owned()));
    lab.save_profile(ME, profile, &masked).await.expect("saved");
    let refused = lab
        .queue_launch(ME, &launch_form(profile, host))
        .await
        .expect_err("a refusal");
    assert_eq!(refused.status(), 422, "{refused}");
    let said = refused.to_string();
    assert!(
        said.contains("HF_TOKEN") && said.contains("masked on the host"),
        "{said}"
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn why_a_server_cannot_be_restored_is_what_is_the_case(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let production = adopted(&pool, &lab, host, profile).await;
    let mut form = launch_form(profile, host);
    form.restore = Some(production);
    for (state, said) in [
        (LaunchState::Starting, "not ready yet"),
        (LaunchState::Loading, "not ready yet"),
        (LaunchState::Stopping, "about to end"),
        (LaunchState::Stopped, "does not run any more"),
        (LaunchState::Lost, "does not run any more"),
    ] {
        bring_to(&pool, production, state).await;
        let refused = lab.queue_launch(ME, &form).await.expect_err("a refusal");
        assert_eq!(refused.status(), 409, "{refused}");
        assert!(refused.to_string().contains(said), "{state}: {refused}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn one_server_is_restored_once_however_many_ask_and_by_whatever_name(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let root = adopted(&pool, &lab, host, profile).await;
    bring_to(&pool, root, LaunchState::Stopped).await;
    let before = lab.restore_launch(ME, root).await.expect("queued");
    bring_to(&pool, before, LaunchState::Stopped).await;
    let (a, b, c, d) = tokio::join!(
        lab.restore_launch(ME, root),
        lab.restore_launch(ME, before),
        lab.restore_launch(ME, root),
        lab.restore_launch(ME, before),
    );
    let mut restored = 0;
    for answer in [a, b, c, d] {
        match answer {
            Ok(_) => restored += 1,
            Err(refused) => {
                assert_eq!(refused.status(), 409, "{refused}");
                assert!(
                    refused.to_string().contains("restored already"),
                    "{refused}"
                );
            }
        }
    }
    assert_eq!(restored, 1);
    // The database itself refuses a second one.
    let twice = sqlx::query(
        "INSERT INTO launches (team_id, actor_id, host_id, revision_id, origin, restores_id,
             state, port, plan, engine)
         SELECT team_id, actor_id, host_id, revision_id, origin, restores_id, 'queued', port,
             plan, engine
         FROM launches WHERE restores_id = $1 LIMIT 1",
    )
    .bind(root)
    .execute(&pool)
    .await
    .expect_err("a refusal");
    assert!(
        twice.to_string().contains("launches_restored_once"),
        "{twice}"
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_server_on_a_removed_host_is_not_restored(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let root = adopted(&pool, &lab, host, profile).await;
    bring_to(&pool, root, LaunchState::Stopped).await;
    lab.remove_host(ME, host).await.expect("removed");
    let refused = lab.restore_launch(ME, root).await;
    assert!(matches!(refused, Err(LabError::NoSuchHost(gone)) if gone == host));
}
