use std::path::{Path, PathBuf};

use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    host::{Gpu, Inventory, Reach},
    ids::HostId,
    launch::LaunchState,
    timestamp::Timestamp,
    views::hosts::{HostCheck, HostForm},
};
use tokdyno_remote::RemoteConfig;

use crate::{
    Lab, LabError,
    testing::{
        config, folder, lab,
        launches::{a_host, a_profile, bring_to, host_form, launch_form, queued},
    },
};

const ME: &Actor = &Actor::LOCAL;

async fn told(pool: &PgPool, host: HostId, gpus: u32) {
    let inventory = Inventory {
        hostname: "gpu1".to_owned(),
        gpus: (0..gpus)
            .map(|index| Gpu {
                index,
                name: "RTX PRO 6000".to_owned(),
                ..Gpu::default()
            })
            .collect(),
        ..Inventory::default()
    };
    sqlx::query("UPDATE hosts SET inventory = $2, checked_at = now() WHERE id = $1")
        .bind(host)
        .bind(serde_json::to_value(inventory).expect("serialises"))
        .execute(pool)
        .await
        .expect("kept");
}

async fn names(lab: &Lab) -> Vec<String> {
    let hosts = lab.hosts(ME).await.expect("read");
    hosts.into_iter().map(|host| host.name).collect()
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_host_is_added_changed_and_removed_and_all_of_it_is_audited(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let here = lab.add_host(ME, &host_form(" ", " ")).await.expect("added");
    let there = lab
        .add_host(ME, &host_form(" Box ", " root@gpu1 "))
        .await
        .expect("added");
    assert_eq!(names(&lab).await, ["Box", "this machine"]);
    told(&pool, there, 8).await;

    let view = lab.host(ME, there).await.expect("read");
    assert_eq!(view.summary.hardware, "8 × RTX PRO 6000");
    assert_eq!(
        view.summary.reach,
        Reach::Ssh {
            destination: "root@gpu1".to_owned()
        }
    );
    assert!(view.may_operate && view.inventory.is_some());
    let seen = lab.host(&Actor::NETWORK, there).await.expect("read");
    assert!(!seen.may_operate);

    // Another destination is another machine: what this one told is forgotten.
    let mut form = host_form("box", "root@gpu1");
    form.notes = "\n in the cellar ".to_owned();
    lab.edit_host(ME, there, &form).await.expect("changed");
    let view = lab.host(ME, there).await.expect("read");
    assert_eq!(view.summary.notes, "in the cellar");
    assert!(view.inventory.is_some());
    lab.edit_host(ME, there, &host_form("box", "gpu2"))
        .await
        .expect("changed");
    let view = lab.host(ME, there).await.expect("read");
    assert_eq!((view.inventory, view.summary.checked_at), (None, None));

    lab.remove_host(ME, here).await.expect("removed");
    assert_eq!(names(&lab).await, ["box"]);
    assert_eq!(lab.host(ME, here).await.expect_err("gone").status(), 404);
    // Its name and its destination may be used again.
    lab.add_host(ME, &host_form("", "")).await.expect("added");

    let log: Vec<String> = lab
        .audit(ME, None)
        .await
        .expect("read")
        .entries
        .into_iter()
        .rev()
        .map(|entry| format!("{} {}: {}", entry.action, entry.subject, entry.detail))
        .collect();
    assert_eq!(
        log[1],
        format!("host_add host {there}: Box, over SSH as root@gpu1")
    );
    assert_eq!(log[4], format!("host_remove host {here}: this machine"));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_host_that_cannot_be_kept_says_why(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    a_host(&lab).await;
    let noted = HostForm {
        notes: "a\0b".to_owned(),
        ..host_form("x", "x")
    };
    for (form, status, word) in [
        (host_form("box\0", "gpu2"), 422, "NUL"),
        (noted, 422, "NUL"),
        (host_form("x", "-oProxyCommand=touch"), 422, "dash"),
        (host_form("x", "gpu 2"), 422, "blank"),
        (host_form(&"x".repeat(81), "gpu2"), 422, "80"),
        (host_form("BOX", "gpu2"), 409, "already"),
        (host_form("other", "gpu1"), 409, "already"),
    ] {
        let error = lab.add_host(ME, &form).await.expect_err("a refusal");
        assert_eq!(error.status(), status, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(names(&lab).await, ["box"]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn without_the_password_hosts_are_read_and_not_touched(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let host = a_host(&lab).await;
    let form = host_form("x", "y");
    let who = &Actor::NETWORK;
    let refusals = [
        lab.add_host(who, &form).await.map(drop),
        lab.edit_host(who, host, &form).await,
        lab.remove_host(who, host).await,
        lab.check_host(who, host).await.map(drop),
        lab.running_on(who, host).await.map(drop),
        lab.hosts(&Actor::GUEST).await.map(drop),
    ];
    for refused in refusals {
        assert!(
            matches!(refused, Err(LabError::Forbidden(_))),
            "{refused:?}"
        );
    }
    assert_eq!(lab.hosts(who).await.expect("read").len(), 1);
    let nobody = HostId(404);
    for unknown in [
        lab.host(ME, nobody).await.map(drop),
        lab.edit_host(ME, nobody, &form).await,
        lab.remove_host(ME, nobody).await,
        lab.check_host(ME, nobody).await.map(drop),
        lab.running_on(ME, nobody).await.map(drop),
    ] {
        assert_eq!(unknown.expect_err("none").status(), 404);
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_host_in_use_is_not_removed_and_shows_its_owners(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile, launch) = queued(&lab).await;
    sqlx::query("UPDATE launches SET gpus = '{0,3}' WHERE id = $1")
        .bind(launch)
        .execute(&pool)
        .await
        .expect("written");
    bring_to(&pool, launch, LaunchState::Loading).await;
    let mut form = launch_form(profile, host);
    let now = Timestamp::from_datetime(time::OffsetDateTime::now_utc());
    form.give_back_at = Some(Timestamp(now.0 + 3_600_000_000));
    lab.queue_launch(ME, &form).await.expect("queued");

    let seen = lab.host(ME, host).await.expect("read");
    assert_eq!(seen.summary.waiting, 1);
    assert_eq!(seen.launches.len(), 2);
    let [owner] = &seen.summary.owners[..] else {
        panic!("one owner: {:?}", seen.summary.owners)
    };
    assert_eq!(owner.launch, launch);
    assert_eq!(owner.gpus, Some(vec![0, 3]));
    assert_eq!(
        (owner.profile.as_str(), owner.by.as_str(), owner.until),
        ("sglang-nccl", "local operator", None)
    );

    for refused in [
        lab.remove_host(ME, host).await,
        lab.edit_host(ME, host, &host_form("box", "gpu2")).await,
    ] {
        let error = refused.expect_err("a refusal");
        assert_eq!(error.status(), 409);
        assert!(
            error.to_string().contains(&format!("launch {launch}")),
            "{error}"
        );
    }
    // Its name may change while it is used.
    lab.edit_host(ME, host, &host_form("cellar", "gpu1"))
        .await
        .expect("renamed");

    // What is owed to a host keeps it as well.
    sqlx::query("UPDATE launches SET state = 'failed', restore_due = (id = $1)")
        .bind(launch)
        .execute(&pool)
        .await
        .expect("written");
    let owed = lab.remove_host(ME, host).await.expect_err("a refusal");
    assert_eq!(owed.status(), 409);
    sqlx::query("UPDATE launches SET restore_due = false")
        .execute(&pool)
        .await
        .expect("written");
    lab.remove_host(ME, host).await.expect("removed");
    let after = lab.launch(ME, launch).await.expect("still readable");
    assert_eq!(after.summary.host.1, "cellar");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_host_that_is_not_reached_is_an_answer_and_kept(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let host = a_host(&lab).await;
    told(&pool, host, 2).await;
    let answer = lab.check_host(ME, host).await.expect("an answer");
    let HostCheck::Unreachable { word, reason } = answer else {
        panic!("the agent's program does not exist in tests of the store: {answer:?}")
    };
    assert!(
        !word.is_empty() && reason.ends_with('.'),
        "{word}: {reason}"
    );
    let seen = lab.host(ME, host).await.expect("read").summary;
    assert_eq!(seen.check_error.as_deref(), Some(reason.as_str()));
    assert_eq!(seen.hardware, "2 × RTX PRO 6000", "what was known stays");
    let looked = lab.running_on(ME, host).await.expect_err("no answer");
    assert_eq!(looked.status(), 502);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn this_machine_answers_and_what_it_told_is_kept(pool: PgPool) {
    let folder = folder();
    let mut config = config(folder.path());
    config.remote = RemoteConfig::new(agent());
    config.remote.local_environment = vec![(
        "XDG_STATE_HOME".into(),
        folder.path().join("state").into_os_string(),
    )];
    let lab = Lab::with_pool(pool, config).await.expect("a laboratory");
    let host = lab.add_host(ME, &host_form("", "")).await.expect("added");
    let answer = lab.check_host(ME, host).await.expect("an answer");
    let HostCheck::Reachable {
        round_trip_ms,
        inventory,
    } = answer
    else {
        panic!("is tokdyno-agent built beside the tests? {answer:?}")
    };
    assert!(round_trip_ms > 0.0 && inventory.cpus > 0);
    let seen = lab.host(ME, host).await.expect("read");
    assert_eq!(seen.inventory.as_ref(), Some(&*inventory));
    assert!(seen.summary.checked_at.is_some() && seen.summary.check_error.is_none());
    assert_eq!(seen.summary.hardware, inventory.hardware(None));
    let now = lab.running_on(ME, host).await.expect("looked");
    assert_eq!(now.leftovers, []);
}

/// The agent's program: cargo puts it beside the folder of the tests.
fn agent() -> PathBuf {
    let tests = std::env::current_exe().expect("a path");
    let built = tests.parent().and_then(Path::parent).expect("a folder");
    built.join("tokdyno-agent")
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_launch_needs_its_host_and_its_profile(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    lab.remove_host(ME, host).await.expect("removed");
    let refused = lab.queue_launch(ME, &launch_form(profile, host)).await;
    assert!(
        matches!(refused, Err(LabError::NoSuchHost(_))),
        "{refused:?}"
    );
}
