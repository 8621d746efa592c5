use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    ids::{ProfileId, RevisionId},
    launch::LaunchState,
};

use crate::{
    LabError,
    testing::{
        folder, lab,
        launches::{a_host, a_profile, bring_to, launch_form, spec},
    },
};

const ME: &Actor = &Actor::LOCAL;

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn every_change_is_a_revision_and_no_change_is_none(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let profile = a_profile(&lab).await;
    let first = lab.profile(ME, "SGLANG-nccl").await.expect("read").card;
    assert_eq!((first.id, first.number), (profile, 1));
    assert_eq!(first.hash, spec().hash());
    assert_eq!(
        lab.save_profile(ME, profile, &spec()).await.expect("saved"),
        first.revision
    );

    let mut noted = spec();
    noted.notes = "tried on Monday".to_owned();
    let second = lab.save_profile(ME, profile, &noted).await.expect("saved");
    assert_ne!(second, first.revision, "notes are kept with a revision");
    let mut tuned = noted.clone();
    tuned.environment[0].1 = "LL128".to_owned();
    lab.save_profile(ME, profile, &tuned).await.expect("saved");
    // Going back is a change, too.
    lab.save_profile(ME, profile, &spec()).await.expect("saved");

    let view = lab.profile(ME, "sglang-nccl").await.expect("read");
    let numbers: Vec<u32> = view.revisions.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [4, 3, 2, 1]);
    assert_eq!(view.revisions[2].notes, "tried on Monday");
    assert_eq!(view.revisions[0].hash, view.revisions[3].hash);
    assert_eq!(view.card.spec, spec());
    assert_eq!(
        lab.revision_spec(ME, second).await.expect("read"),
        noted,
        "a revision never changes"
    );
    let audited: Vec<String> = lab
        .audit(ME, None)
        .await
        .expect("read")
        .entries
        .into_iter()
        .map(|entry| format!("{} {} {}", entry.action, entry.subject, entry.detail))
        .collect();
    assert_eq!(audited[0], "profile_edit profile sglang-nccl revision 4");
    assert_eq!(audited.len(), 4, "what changed nothing is no act");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn names_are_unique_among_profiles_in_use(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let profile = a_profile(&lab).await;
    let taken = lab.add_profile(ME, " SGLang-NCCL ", &spec(), None).await;
    assert_eq!(taken.expect_err("a refusal").status(), 409);
    let copy = lab
        .duplicate_profile(ME, profile, "copy")
        .await
        .expect("copied");
    let taken = lab.rename_profile(ME, copy, "sglang-nccl").await;
    assert_eq!(taken.expect_err("a refusal").status(), 409);
    assert_eq!(
        lab.profile(ME, "copy").await.expect("read").card.spec,
        spec()
    );

    lab.archive_profile(ME, profile, true)
        .await
        .expect("archived");
    lab.rename_profile(ME, copy, "sglang-nccl")
        .await
        .expect("the name is free");
    let found = lab.profile(ME, "sglang-nccl").await.expect("read").card;
    assert_eq!((found.id, found.archived), (copy, false));
    let back = lab.archive_profile(ME, profile, false).await;
    assert_eq!(back.expect_err("a refusal").status(), 409);

    let list = lab.profiles(ME).await.expect("read");
    let shown: Vec<(ProfileId, bool)> = list
        .profiles
        .iter()
        .map(|card| (card.id, card.archived))
        .collect();
    assert_eq!(shown, [(copy, false), (profile, true)]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_archived_profile_is_neither_changed_nor_launched(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    lab.archive_profile(ME, profile, true)
        .await
        .expect("archived");
    let mut changed = spec();
    changed.parameters.port = 9000;
    for refused in [
        lab.save_profile(ME, profile, &changed).await.map(drop),
        lab.queue_launch(ME, &launch_form(profile, host))
            .await
            .map(drop),
    ] {
        let error = refused.expect_err("a refusal");
        assert_eq!(error.status(), 409);
        assert!(error.to_string().contains("archived"), "{error}");
    }
    lab.archive_profile(ME, profile, false).await.expect("back");
    lab.save_profile(ME, profile, &changed)
        .await
        .expect("saved");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_card_counts_the_launches_that_live(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let first = lab
        .queue_launch(ME, &launch_form(profile, host))
        .await
        .expect("queued");
    // A launch of an older revision is one of the profile.
    let mut changed = spec();
    changed.parameters.port = 9000;
    lab.save_profile(ME, profile, &changed)
        .await
        .expect("saved");
    let second = lab
        .queue_launch(ME, &launch_form(profile, host))
        .await
        .expect("queued");
    bring_to(&pool, second, LaunchState::Stopped).await;
    let view = lab.profile(ME, "sglang-nccl").await.expect("read");
    assert_eq!(view.card.alive, 1);
    let launches: Vec<_> = view.launches.iter().map(|one| (one.id, one.port)).collect();
    assert_eq!(launches, [(second, 9000), (first, 8000)]);
    assert_eq!(view.hosts.len(), 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_cannot_be_a_profile_says_why(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut nul = spec();
    nul.arguments.push("a\0b".to_owned());
    let mut nothing = spec();
    nothing.program.clear();
    for (name, spec, builtin, word) in [
        ("a b", spec(), None, "letters"),
        ("", spec(), None, "name"),
        ("x\0", spec(), None, "letters"),
        ("x", nul, None, "NUL"),
        ("x", nothing, None, "program"),
        ("x", spec(), Some("no-such"), "built-in"),
    ] {
        let error = lab
            .add_profile(ME, name, &spec, builtin)
            .await
            .expect_err("a refusal");
        assert_eq!(error.status(), 422, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let long = lab.paste(ME, &"x".repeat(2 << 20)).expect_err("a refusal");
    assert!(long.to_string().contains("1 MiB"), "{long}");
    let unknown = [
        lab.profile(ME, "no such\0name").await.map(drop),
        lab.profile(ME, "nobody").await.map(drop),
        lab.save_profile(ME, ProfileId(404), &spec())
            .await
            .map(drop),
        lab.rename_profile(ME, ProfileId(404), "x").await,
        lab.duplicate_profile(ME, ProfileId(404), "x")
            .await
            .map(drop),
        lab.archive_profile(ME, ProfileId(404), true).await,
        lab.revision_spec(ME, RevisionId(404)).await.map(drop),
        lab.profile_diff(ME, RevisionId(404), RevisionId(405))
            .await
            .map(drop),
    ];
    for error in unknown {
        assert_eq!(error.expect_err("none").status(), 404);
    }
    assert!(lab.profiles(ME).await.expect("read").profiles.is_empty());
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn without_the_password_profiles_are_read_and_not_touched(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let profile = a_profile(&lab).await;
    let who = &Actor::NETWORK;
    for refused in [
        lab.add_profile(who, "x", &spec(), None).await.map(drop),
        lab.save_profile(who, profile, &spec()).await.map(drop),
        lab.rename_profile(who, profile, "x").await,
        lab.duplicate_profile(who, profile, "x").await.map(drop),
        lab.archive_profile(who, profile, true).await,
        lab.draft(&Actor::GUEST, &spec()).map(drop),
    ] {
        assert!(
            matches!(refused, Err(LabError::Forbidden(_))),
            "{refused:?}"
        );
    }
    let list = lab.profiles(who).await.expect("read");
    assert!(!list.may_operate && list.profiles.len() == 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_pasted_command_becomes_a_profile_that_shows_it_again(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let text =
        "NCCL_PROTO=LL python3 -m sglang.launch_server --model-path /m \\\n --port 8123 > log";
    let draft = lab.paste(ME, text).expect("read");
    assert_eq!(draft.error, None);
    assert_eq!(draft.spec.parameters.port, 8123);
    assert!(!draft.left_out.is_empty(), "the redirection is named");
    lab.add_profile(ME, "pasted", &draft.spec, None)
        .await
        .expect("added");
    let shown = lab.profile(ME, "pasted").await.expect("read").card.command;
    let again = lab.paste(ME, &shown).expect("read");
    assert_eq!(again.spec.hash(), draft.spec.hash(), "{shown}");
    let refused = lab.paste(ME, "echo $(rm -rf /)").expect_err("a refusal");
    assert_eq!(refused.status(), 422, "{refused}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn built_in_profiles_are_added_and_told_apart(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let builtins = lab.profiles(ME).await.expect("read").builtins;
    let mut revisions = Vec::new();
    for builtin in &builtins {
        lab.add_profile(ME, &builtin.id, &builtin.spec, Some(&builtin.id))
            .await
            .expect("added");
        let card = lab.profile(ME, &builtin.id).await.expect("read").card;
        assert_eq!(card.builtin.as_deref(), Some(builtin.id.as_str()));
        assert_eq!(card.spec, builtin.spec);
        revisions.push(card.revision);
    }
    let of = |id: &str| {
        let place = builtins.iter().position(|builtin| builtin.id == id);
        revisions[place.expect("there")]
    };
    let (base, tuned) = (of("sglang-base"), of("sglang-nccl-cd4"));
    let lines = lab.profile_diff(ME, base, tuned).await.expect("compared");
    assert!(
        lines
            .iter()
            .any(|line| line.name == "NCCL_PROTO" && line.first.is_none()),
        "{lines:?}"
    );
    let tuned = lab.profile(ME, "sglang-nccl-cd4").await.expect("read");
    assert!(
        tuned
            .card
            .cautions
            .iter()
            .any(|caution| caution.badge == "no effect"),
        "{:?}",
        tuned.card.cautions
    );
    assert!(!tuned.known.is_empty());
}
