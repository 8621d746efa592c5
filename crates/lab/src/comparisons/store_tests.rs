//! Frozen comparisons, and what earlier launches tell a live one, against a real
//! PostgreSQL.

use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    comparison::FrozenComparison,
    ids::{ComparisonSlug, ContentHash, HostId, LaunchId, ProfileId, RunId},
    launch::LaunchState,
    statistics::ANALYSIS_VERSION,
    verdict::Basis,
    views::{
        board::BoardFilter,
        compare::{CompareQuery, OverrideForm},
    },
};

use crate::{
    Artefacts, Lab, facts,
    testing::{
        bytes, folder, lab,
        launches::{a_host, a_profile, bring_to, host_form, launch_form},
        result_file,
    },
};

const ME: &Actor = &Actor::LOCAL;

fn drawn() -> Artefacts {
    Artefacts {
        csv: String::new(),
        svg: String::new(),
    }
}

async fn imported(lab: &Lab, name: &str, speed: f64) -> RunId {
    let mut file = result_file();
    file.configuration = Some(name.to_owned());
    // Makes the file another one.
    file.started_at.0 += (speed * 1000.0) as i64;
    let run = lab.import(ME, &bytes(&file)).await.expect("imported").run;
    sqlx::query("UPDATE stages SET e2e_tps.p50 = $2 WHERE run_id = $1 AND stage = 0")
        .bind(run.0)
        .bind(speed)
        .execute(&lab.0.pool)
        .await
        .expect("set");
    run
}

async fn freeze(lab: &Lab, runs: &[RunId], signed: &OverrideForm) -> Result<ComparisonSlug, u16> {
    let query = CompareQuery {
        runs: runs.to_vec(),
    };
    lab.freeze(ME, &query, "", signed, |_| Ok(drawn()))
        .await
        .map_err(|error| error.status())
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_override_is_signed_and_frozen(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let runs = [
        imported(&lab, "a", 60.0).await,
        imported(&lab, "b", 90.0).await,
    ];
    let form = OverrideForm {
        reason: " The second prompt set is a part of the first. ".to_owned(),
        name: "Ada".to_owned(),
    };
    let slug = freeze(&lab, &runs, &form).await.expect("frozen");
    let frozen = lab.frozen(&Actor::GUEST, slug).await.expect("there");
    let overridden = frozen.comparison.overridden.clone().expect("an override");
    assert_eq!(
        overridden.sentence(),
        format!(
            "Compared in spite of what else differs or may differ, by Ada (local operator) on {}: The second prompt set is a part of the first.",
            frozen.comparison.frozen_at.exact()
        )
    );
    let text = String::from_utf8(frozen.document).expect("text");
    assert!(text.contains(r#""overridden":{"at":"#), "{text}");

    let unsigned = freeze(&lab, &runs, &OverrideForm::default()).await;
    let unsigned = lab
        .frozen(ME, unsigned.expect("frozen"))
        .await
        .expect("there");
    assert_eq!(unsigned.comparison.overridden, None);

    let overlong = OverrideForm {
        reason: "x".repeat(501),
        ..OverrideForm::default()
    };
    assert_eq!(freeze(&lab, &runs, &overlong).await, Err(422));
    let again = [runs[0], imported(&lab, "a", 60.5).await];
    sqlx::query("UPDATE runs SET settings = '{\"tp_size\": \"8\"}'")
        .execute(&pool)
        .await
        .expect("set");
    assert_eq!(
        freeze(&lab, &again, &form).await,
        Err(422),
        "nothing to override"
    );
}

/// Puts an older analysis version into what is stored.
async fn age(pool: &PgPool, slug: ComparisonSlug, of: FrozenComparison) -> Vec<u8> {
    let older = FrozenComparison {
        analysis_version: ANALYSIS_VERSION - 1,
        ..of
    };
    let document = super::canonical(&older).expect("bytes");
    sqlx::query("UPDATE comparisons SET document = $2, hash = $3 WHERE slug = $1")
        .bind(slug.0.as_slice())
        .bind(&document)
        .bind(ContentHash::of(&document).0)
        .execute(pool)
        .await
        .expect("stored");
    document
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_older_comparison_stays_and_is_read_by_today_s_rules_beside(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let runs = [
        imported(&lab, "a", 60.0).await,
        imported(&lab, "b", 90.0).await,
    ];
    let slug = freeze(&lab, &runs, &OverrideForm::default())
        .await
        .expect("frozen");
    let fresh = lab.frozen(ME, slug).await.expect("there").comparison;
    let none = lab.frozen_today(ME, &fresh).await.expect("read");
    assert_eq!(none, None, "frozen under today's rules");

    let document = age(&pool, slug, fresh.clone()).await;
    let older = lab.frozen(ME, slug).await.expect("there");
    assert_eq!(older.document, document, "byte for byte");
    let today = async |actor: &Actor| {
        lab.frozen_today(actor, &older.comparison)
            .await
            .expect("read")
            .expect("a reading")
    };
    let live = today(ME).await;
    assert_eq!(live.analysis_version, ANALYSIS_VERSION);
    assert!(live.read_from.contains("stored now"), "{}", live.read_from);
    assert_eq!(
        live.changes,
        ["By today's rules every verdict is the same."]
    );
    let guest = today(&Actor::GUEST).await;
    assert!(
        guest.read_from.contains("frozen document"),
        "{}",
        guest.read_from
    );
    // Of four requests at C = 2 one failed, which the document no longer tells.
    assert!(
        guest
            .read_from
            .ends_with("Why a figure was doubtful is not in it."),
        "{}",
        guest.read_from
    );
    assert!(!guest.read_from.contains("earlier launches"));
    assert_eq!(guest.changes, live.changes);
    assert_eq!(
        guest.view.verdicts[0].sentence,
        live.view.verdicts[0].sentence
    );
    lab.delete_run(ME, runs[0]).await.expect("deleted");
    assert_eq!(today(ME).await, guest);
}

/// A launch that was ready after a minute and a half, and a run on it of ten minutes.
async fn on_launch(lab: &Lab, host: HostId, profile: ProfileId, speed: f64) -> RunId {
    let pool = &lab.0.pool;
    let launch: LaunchId = lab
        .queue_launch(ME, &launch_form(profile, host))
        .await
        .expect("queued");
    bring_to(pool, launch, LaunchState::Stopped).await;
    let run = imported(lab, "on gpu1", speed).await;
    sqlx::query(
        "UPDATE runs SET launch_id = $2, started_at = now(),
             finished_at = now() + interval '10 minutes' WHERE id = $1",
    )
    .bind(run.0)
    .bind(launch)
    .execute(pool)
    .await
    .expect("set");
    run
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn earlier_launches_on_the_host_are_known(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (host, before) = (a_host(&lab).await, a_profile(&lab).await);
    let mut spec = crate::testing::launches::spec();
    spec.notes = "another".to_owned();
    let profile = async |name: &str| {
        lab.add_profile(ME, name, &spec, None)
            .await
            .expect("a profile")
    };
    let pair = [
        on_launch(&lab, host, profile("slow").await, 60.0).await,
        on_launch(&lab, host, profile("fast").await, 90.0).await,
    ];
    for (run, name) in pair.iter().zip(["slow", "fast"]) {
        lab.rename_run(ME, *run, name, "").await.expect("renamed");
    }
    let query = CompareQuery {
        runs: pair.to_vec(),
    };
    let alone = lab.compare(ME, &query).await.expect("compared");
    let sentence = &alone.verdicts[0].sentence;
    assert!(
        sentence.contains("launch-to-launch variation unknown")
            && sentence.ends_with("23 minutes on this host."),
        "{sentence}"
    );
    for speed in [70.0, 70.4, 69.8, 70.1] {
        on_launch(&lab, host, before, speed).await;
    }
    let known = lab.compare(ME, &query).await.expect("compared");
    assert_eq!(
        known.verdicts[0].basis,
        Some(Basis::History {
            label: "4 launches of 1 configuration on box".to_owned()
        }),
        "{}",
        known.verdicts[0].sentence
    );
    let slug = freeze(&lab, &pair, &OverrideForm::default())
        .await
        .expect("frozen");
    let fresh = lab.frozen(ME, slug).await.expect("there").comparison;
    age(&pool, slug, fresh).await;
    let older = lab.frozen(ME, slug).await.expect("there").comparison;
    let today = lab.frozen_today(&Actor::GUEST, &older).await;
    let today = today.expect("read").expect("a reading");
    assert!(
        today.read_from.contains("earlier launches on the host"),
        "{}",
        today.read_from
    );
    let board = lab.board(ME, &BoardFilter::default()).await.expect("read");
    assert!(
        board.best_single.because.contains("corrected for"),
        "{}",
        board.best_single.because
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_document_that_cannot_be_read_by_today_s_rules_is_shown_without(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let runs = [
        imported(&lab, "a", 60.0).await,
        imported(&lab, "b", 90.0).await,
    ];
    let slug = freeze(&lab, &runs, &OverrideForm::default())
        .await
        .expect("frozen");
    let mut broken = lab.frozen(ME, slug).await.expect("there").comparison;
    broken.view.runs.truncate(1);
    age(&pool, slug, broken).await;
    let older = lab.frozen(ME, slug).await.expect("there").comparison;
    for actor in [ME, &Actor::GUEST] {
        let today = lab.frozen_today(actor, &older).await;
        assert_eq!(today.expect("no fault of whoever reads it"), None);
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_newest_runs_of_each_host_and_workload_are_its_past(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (one, profile) = (a_host(&lab).await, a_profile(&lab).await);
    let other = lab
        .add_host(ME, &host_form("other", "gpu2"))
        .await
        .expect("a host");
    let mut runs = Vec::new();
    for (host, speed) in [
        (other, 60.0),
        (other, 61.0),
        (one, 62.0),
        (one, 63.0),
        (one, 64.0),
    ] {
        runs.push(on_launch(&lab, host, profile, speed).await);
    }
    sqlx::query("UPDATE runs SET workload_hash = 'another' WHERE id = $1")
        .bind(runs[4])
        .execute(&pool)
        .await
        .expect("set");
    let asked = lab.facts_of(ME, &runs[..1]).await.expect("read");
    let workloads = [asked[0].summary.workload_hash.0.clone()];
    let past = facts::on_hosts(&pool, ME, &[one.0, other.0], &workloads, 1)
        .await
        .expect("read");
    let ids: Vec<RunId> = past.iter().map(|run| run.summary.id).collect();
    assert_eq!(ids, [runs[3], runs[1]]);
}
