//! The store, against a real PostgreSQL.

use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    founding,
    ids::{ComparisonSlug, RunId, TeamId},
    live::LiveKind,
    meter::MeterOutcome,
    record::{Failure, FailureKind},
    result_file::ResultFile,
    run::RunState,
    source::Source,
    views::{
        board::BoardFilter,
        compare::{CompareQuery, OverrideForm},
        run::RunFilter,
    },
    workload::StageKind,
};

use crate::{
    Artefacts, Lab, LabError,
    requests::Columns,
    testing::{bytes, folder, lab, new_run, result_file, summary, wait_until, with_key},
};

const ME: &Actor = &Actor::LOCAL;

async fn audited(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar("SELECT action || ' ' || subject FROM audit_log ORDER BY id")
        .fetch_all(pool)
        .await
        .expect("read")
}

fn drawn() -> Artefacts {
    Artefacts {
        csv: "a,b\n".to_owned(),
        svg: "<svg/>".to_owned(),
    }
}

async fn two_runs(lab: &Lab) -> Vec<RunId> {
    let mut runs = Vec::new();
    for name in ["baseline", "candidate"] {
        let mut file = result_file();
        file.configuration = Some(name.to_owned());
        runs.push(lab.import(ME, &bytes(&file)).await.expect("imported").run);
    }
    runs
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_queued_run_waits_and_its_key_is_nowhere_in_the_clear(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let first = lab
        .queue_run(ME, &with_key(new_run("http://gpu1:8000/v1")))
        .await
        .expect("queued");
    let second = lab
        .queue_run(ME, &new_run("gpu2:8000"))
        .await
        .expect("queued");

    let waiting = summary(&lab, second).await;
    assert_eq!(waiting.state, RunState::Queued);
    assert_eq!(waiting.queue_place, Some(1));
    assert_eq!(summary(&lab, first).await.queue_place, Some(0));
    assert_eq!(
        summary(&lab, first).await.endpoint.as_deref(),
        Some("http://gpu1:8000")
    );

    let everything: Vec<String> = sqlx::query_scalar(
        "SELECT row_to_json(runs)::text FROM runs
         UNION ALL SELECT row_to_json(run_events)::text FROM run_events
         UNION ALL SELECT row_to_json(audit_log)::text FROM audit_log
         UNION ALL SELECT encode(ciphertext, 'escape') FROM secrets",
    )
    .fetch_all(&pool)
    .await
    .expect("read");
    assert!(everything.len() >= 7);
    assert!(!everything.iter().any(|row| row.contains("never-shown")));
    assert_eq!(
        audited(&pool).await,
        [format!("queue run {first}"), format!("queue run {second}")]
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_cannot_be_queued_says_why(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut nameless = new_run("gpu1");
    nameless.configuration = "a\0b".to_owned();
    let mut prompts = new_run("gpu1");
    prompts.workload.prompt_file = Some(("p.txt".to_owned(), "one\0two\n".to_owned()));
    for (new, word) in [
        (new_run("ftp://gpu1"), "scheme"),
        (nameless, "NUL"),
        (prompts, "NUL"),
    ] {
        let error = lab.queue_run(ME, &new).await.expect_err("a refusal");
        assert_eq!(error.status(), 422);
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(matches!(
        lab.queue_run(&Actor::GUEST, &new_run("gpu1")).await,
        Err(LabError::Forbidden(_))
    ));
    assert_eq!(
        lab.runs(ME, &RunFilter::default())
            .await
            .expect("read")
            .total,
        0
    );
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_waiting_run_is_cancelled_at_once(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab
        .queue_run(ME, &with_key(new_run("gpu1")))
        .await
        .expect("queued");
    lab.cancel_run(ME, run).await.expect("cancelled");
    assert_eq!(summary(&lab, run).await.state, RunState::Cancelled);
    let keys: i64 = sqlx::query_scalar("SELECT count(*) FROM secrets")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(keys, 0, "a key is kept no longer than it is needed");
    let again = lab.cancel_run(ME, run).await.expect_err("a refusal");
    assert_eq!(again.status(), 409, "{again}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn unknown_runs_and_comparisons_are_not_found(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let nobody = RunId(404);
    let errors = [
        lab.run(ME, nobody).await.expect_err("none"),
        lab.records(ME, nobody, 0, &[]).await.expect_err("none"),
        lab.result_file(ME, nobody).await.expect_err("none"),
        lab.cancel_run(ME, nobody).await.expect_err("none"),
        lab.rename_run(ME, nobody, "n", "").await.expect_err("none"),
        lab.delete_run(ME, nobody).await.expect_err("none"),
        lab.compare(
            ME,
            &CompareQuery {
                runs: vec![nobody, RunId(405)],
            },
        )
        .await
        .expect_err("none"),
        lab.frozen(ME, ComparisonSlug([1; 16]))
            .await
            .expect_err("none"),
    ];
    for error in errors {
        assert_eq!(error.status(), 404, "{error}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_file_is_imported_once_and_exported_as_it_came(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let file = ResultFile::parse(&bytes(&result_file())).expect("a file");
    let first = lab.import(ME, &bytes(&file)).await.expect("imported");
    assert!(!first.already_there);
    let again = lab.import(ME, &bytes(&file)).await.expect("known");
    assert_eq!((again.run, again.already_there), (first.run, true));

    let exported = lab.result_file(ME, first.run).await.expect("exported");
    assert_eq!(exported, file);
    let back = lab.import(ME, &bytes(&exported)).await.expect("known");
    assert_eq!((back.run, back.already_there), (first.run, true));

    let view = lab.run(ME, first.run).await.expect("a run");
    assert_eq!(view.summary.source, Source::Imported);
    assert_eq!(view.records, 6);
    assert_eq!(view.stages.len(), 2);
    let stage = &view.stages[1];
    assert_eq!((stage.completed, stage.failed), (3, 1));
    assert_eq!(stage.output_tps, file.stages[1].figures.output_tps);
    assert_eq!(stage.ttft_ms, file.stages[1].figures.ttft_ms);
    let page = lab.records(ME, first.run, 0, &[]).await.expect("records");
    assert_eq!(page.total, 6);
    assert_eq!(page.records[5], file.stages[1].records[3].record);
    let of_stage = lab.records(ME, first.run, 0, &[1]).await.expect("records");
    assert_eq!(
        (of_stage.total, &of_stage.records[..]),
        (4, &page.records[2..])
    );
    // Read on from any request: the rest in the same order, and nothing after the last.
    for (read, record) in page.records.iter().enumerate() {
        let last = Some((record.stage, record.seq));
        let rest = lab.records_after(ME, first.run, last).await.expect("rest");
        assert_eq!(rest, page.records[read + 1..], "after {last:?}");
    }
    let all = lab.records_after(ME, first.run, None).await.expect("all");
    assert_eq!(all, page.records);
    assert!(
        lab.records(ME, first.run, 1, &[])
            .await
            .expect("a page")
            .records
            .is_empty()
    );

    // Deleted, it may come again.
    lab.delete_run(ME, first.run).await.expect("deleted");
    let anew = lab.import(ME, &bytes(&file)).await.expect("imported");
    assert!(!anew.already_there);
    assert_ne!(anew.run, first.run);
    assert_eq!(lab.result_file(ME, anew.run).await.expect("exported"), file);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn outcomes_and_the_stand_in_are_kept_by_an_import(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut file = result_file();
    file.outcome = MeterOutcome::Failed {
        reason: "The server went away.".to_owned(),
    };
    file.stages[0].records[0].record.simulated = true;
    let run = lab.import(ME, &bytes(&file)).await.expect("imported").run;
    let seen = summary(&lab, run).await;
    assert_eq!(seen.state, RunState::Failed);
    assert_eq!(seen.reason.as_deref(), Some("The server went away."));
    assert_eq!(seen.source, Source::Simulated);

    for (bytes, word) in [
        (b"no file".to_vec(), "not JSON"),
        (
            {
                let mut file = result_file();
                file.stages[0].records[0].record.sent_ns = u64::MAX;
                bytes(&file)
            },
            "no measurement reaches",
        ),
    ] {
        let error = lab.import(ME, &bytes).await.expect_err("a refusal");
        assert_eq!(error.status(), 422);
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn founding_figures_are_loaded_once_as_what_they_are(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let board = lab.board(ME, &BoardFilter::default()).await.expect("read");
    assert!(board.empty && board.founding_missing);
    let all = u32::try_from(founding::CONFIGURATIONS.len()).expect("few");
    assert_eq!(lab.load_founding(ME).await.expect("loaded"), all);
    assert_eq!(lab.load_founding(ME).await.expect("loaded"), 0);

    let board = lab.board(ME, &BoardFilter::default()).await.expect("read");
    assert!(!board.empty && !board.founding_missing);
    assert!(
        board
            .rows
            .iter()
            .any(|row| row.configuration == "vLLM baseline")
    );

    let page = lab.runs(ME, &RunFilter::default()).await.expect("read");
    assert_eq!(page.total, all);
    let of = |name: &str| {
        page.runs
            .iter()
            .find(|run| run.configuration.contains(name))
            .expect("a run")
            .id
    };
    let tuned = lab.run(ME, of("NCCL")).await.expect("a run");
    assert_eq!(tuned.summary.source, Source::Recorded);
    let [single, many] = &tuned.stages[..] else {
        panic!("two stages, not {}", tuned.stages.len());
    };
    assert_eq!((single.source, single.disputed), (Source::Recorded, false));
    assert_eq!(single.e2e_tps.p50, Some(90.0));
    assert_eq!((many.source, many.disputed), (Source::Estimated, true));
    assert_eq!(many.kind, StageKind::ClosedLoop { concurrency: 128 });
    assert_eq!(many.output_tps, Some(2320.0));
    assert!(
        many.remark
            .as_deref()
            .is_some_and(|said| said.contains("estimate"))
    );
    assert_eq!(tuned.recorded_requests.len(), 3);
    assert!(
        tuned.recorded_requests[0].contains("2.84 s"),
        "{:?}",
        tuned.recorded_requests
    );
    let drafted = lab.run(ME, of("own K2.5")).await.expect("a run");
    assert!(
        drafted
            .acceptance
            .is_some_and(|acceptance| acceptance.text.contains("25 %"))
    );
    let refused = lab.result_file(ME, of("NCCL")).await.expect_err("refused");
    assert_eq!(refused.status(), 422, "a record is no measurement");

    // Deleted ones come back, and only those.
    lab.delete_run(ME, of("NCCL")).await.expect("deleted");
    assert_eq!(lab.load_founding(ME).await.expect("loaded"), 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_frozen_comparison_outlives_its_runs(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let runs = two_runs(&lab).await;
    let query = CompareQuery { runs: runs.clone() };
    let live = lab.compare(ME, &query).await.expect("compared");
    assert_eq!(live.runs.len(), 2);
    let slug = lab
        .freeze(ME, &query, "  ", &OverrideForm::default(), |_| Ok(drawn()))
        .await
        .expect("frozen");
    let before = lab.frozen(&Actor::GUEST, slug).await.expect("there");
    assert_eq!(before.comparison.title, "baseline · candidate");
    assert_eq!(before.comparison.view, live);
    assert_eq!(
        (before.csv.as_str(), before.svg.as_str()),
        ("a,b\n", "<svg/>")
    );

    for run in &runs {
        lab.rename_run(ME, *run, "another name", "")
            .await
            .expect("renamed");
        lab.delete_run(ME, *run).await.expect("deleted");
    }
    let after = lab.frozen(&Actor::GUEST, slug).await.expect("there");
    assert_eq!(after, before);
    let pinned: i64 = sqlx::query_scalar("SELECT count(*) FROM requests")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(pinned, 12, "its records are kept");
    assert!(matches!(
        lab.compare(ME, &query).await,
        Err(LabError::NoSuchRun(_))
    ));
    let last = audited(&pool).await.pop().expect("audited");
    assert!(last.starts_with("delete run"), "{last}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_cannot_be_compared_or_frozen_says_why(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let runs = two_runs(&lab).await;
    let waiting = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let ask = async |runs: Vec<RunId>, title: &str| {
        lab.freeze(
            ME,
            &CompareQuery { runs },
            title,
            &OverrideForm::default(),
            |_| Ok(drawn()),
        )
        .await
        .expect_err("a refusal")
        .status()
    };
    assert_eq!(ask(vec![runs[0]], "").await, 422, "too few");
    assert_eq!(ask(vec![runs[0], runs[0]], "").await, 422, "twice");
    assert_eq!(ask(runs.clone(), &"x".repeat(201)).await, 422, "overlong");
    assert_eq!(ask(vec![runs[0], waiting], "").await, 409, "not over");
    let failing = lab
        .freeze(
            ME,
            &CompareQuery { runs },
            "",
            &OverrideForm::default(),
            |_| Err("There is nothing to draw.".to_owned()),
        )
        .await
        .expect_err("a refusal");
    assert_eq!(failing.status(), 422);
    assert_eq!(failing.to_string(), "There is nothing to draw.");
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM comparisons")
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(stored, 0);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_list_is_filtered_and_paged(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    for number in 0..53 {
        let mut new = new_run(&format!("gpu{number}"));
        new.configuration = format!("100%_{number}");
        lab.queue_run(ME, &new).await.expect("queued");
    }
    two_runs(&lab).await;
    let read = async |filter: RunFilter| lab.runs(ME, &filter).await.expect("read");
    let first = read(RunFilter::default()).await;
    assert_eq!((first.total, first.runs.len()), (55, 50));
    let second = read(RunFilter {
        page: 1,
        ..RunFilter::default()
    })
    .await;
    assert_eq!(second.runs.len(), 5);
    assert!(first.runs[0].id > second.runs[0].id, "newest first");
    assert!(first.runs[0].single_stream.is_some(), "with its figures");
    let imported = read(RunFilter {
        source: Some(Source::Imported),
        ..RunFilter::default()
    })
    .await;
    assert_eq!(imported.total, 2);
    for (text, total) in [("%_7", 1), ("BASELINE", 1), ("gpu1", 11), ("nowhere", 0)] {
        let found = read(RunFilter {
            text: text.to_owned(),
            state: (text != "BASELINE").then_some(RunState::Queued),
            ..RunFilter::default()
        })
        .await;
        assert_eq!(found.total, total, "{text}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn changes_are_heard_and_can_be_read_again(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut live = lab.live(ME).expect("allowed");
    // The listener connects by itself; until it has, nothing is heard.
    wait_until("the listener listens", async || {
        let probe = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
        tokio::time::timeout(std::time::Duration::from_millis(500), async {
            loop {
                if live.recv().await.expect("an event").run == probe {
                    break;
                }
            }
        })
        .await
        .is_ok()
    })
    .await;
    let run = lab.queue_run(ME, &new_run("gpu2")).await.expect("queued");
    lab.cancel_run(ME, run).await.expect("cancelled");
    let mut heard = Vec::new();
    while heard.len() < 2 {
        let event = live.recv().await.expect("an event");
        if event.run == run {
            heard.push(event);
        }
    }
    let states: Vec<_> = heard
        .iter()
        .map(|event| (event.seq, event.kind.clone()))
        .collect();
    let state = |state| LiveKind::State { state };
    assert_eq!(
        states,
        [
            (1, state(RunState::Queued)),
            (2, state(RunState::Cancelled))
        ]
    );
    let after = async |seq| lab.events_after(ME, run, seq).await.expect("read");
    assert_eq!(after(Some(0)).await, heard);
    assert_eq!(after(Some(1)).await, heard[1..]);
    assert!(after(Some(2)).await.is_empty());
    assert!(after(None).await.is_empty(), "nothing was missed");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn events_are_told_only_of_runs_that_are_there_for_the_reader(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    lab.cancel_run(ME, run).await.expect("cancelled");
    let stranger = Actor {
        team: TeamId(2),
        ..*ME
    };
    for seq in [None, Some(0)] {
        let refused = lab.events_after(&stranger, run, seq).await;
        assert!(matches!(refused, Err(LabError::NoSuchRun(_))), "{seq:?}");
        assert!(lab.events_after(ME, run, seq).await.is_ok());
    }
    lab.delete_run(ME, run).await.expect("deleted");
    for seq in [None, Some(0)] {
        let refused = lab.events_after(ME, run, seq).await;
        assert!(matches!(refused, Err(LabError::NoSuchRun(_))), "{seq:?}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn alike_failures_are_one_group_and_the_commonest_comes_first(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let mut columns = Columns::default();
    let mut seq = 0;
    let mut add = |stage, failure: Option<(FailureKind, String)>| {
        let mut record = crate::testing::request(stage, seq).record;
        record.failure = failure.map(|(kind, message)| Failure {
            kind,
            message,
            http_status: None,
        });
        columns.push(&record, None);
        seq += 1;
    };
    add(0, Some((FailureKind::Connect, "refused".to_owned())));
    for stage in [3, 1, 1] {
        add(stage, Some((FailureKind::Status, "HTTP 500".to_owned())));
    }
    add(0, None);
    let mut connection = pool.acquire().await.expect("connected");
    columns.store(&mut connection, run).await.expect("stored");
    let groups = lab.failures(ME, run).await.expect("read");
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert_eq!(groups[0].kind, FailureKind::Status);
    assert_eq!((groups[0].count, &groups[0].stages[..]), (3, &[1, 3][..]));
    assert_eq!(
        (groups[1].count, groups[1].message.as_str()),
        (1, "refused")
    );
    let stranger = Actor {
        team: TeamId(2),
        ..*ME
    };
    let refused = lab.failures(&stranger, run).await;
    assert!(matches!(refused, Err(LabError::NoSuchRun(_))));

    // Messages that hold numbers do not fill the page.
    let mut columns = Columns::default();
    for seq in 0..200 {
        let mut record = crate::testing::request(2, seq).record;
        record.failure = Some(Failure {
            kind: FailureKind::Broken,
            message: format!("at byte {seq}"),
            http_status: None,
        });
        columns.push(&record, None);
    }
    columns.store(&mut connection, run).await.expect("stored");
    assert_eq!(lab.failures(ME, run).await.expect("read").len(), 50);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_guest_reads_and_writes_nothing(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let runs = two_runs(&lab).await;
    let guest = &Actor::GUEST;
    let query = CompareQuery { runs: runs.clone() };
    let refusals = [
        lab.board(guest, &BoardFilter::default()).await.map(drop),
        lab.runs(guest, &RunFilter::default()).await.map(drop),
        lab.run(guest, runs[0]).await.map(drop),
        lab.records(guest, runs[0], 0, &[]).await.map(drop),
        lab.result_file(guest, runs[0]).await.map(drop),
        lab.compare(guest, &query).await.map(drop),
        lab.import(guest, &bytes(&result_file())).await.map(drop),
        lab.load_founding(guest).await.map(drop),
        lab.cancel_run(guest, runs[0]).await,
        lab.rename_run(guest, runs[0], "n", "").await,
        lab.delete_run(guest, runs[0]).await,
        lab.freeze(guest, &query, "", &OverrideForm::default(), |_| Ok(drawn()))
            .await
            .map(drop),
    ];
    for refusal in refusals {
        assert_eq!(refusal.expect_err("a refusal").status(), 403);
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn another_team_sees_nothing(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let runs = two_runs(&lab).await;
    sqlx::query("INSERT INTO teams (id, name) VALUES (2, 'others')")
        .execute(&pool)
        .await
        .expect("stored");
    let other = Actor {
        team: tokdyno_domain::ids::TeamId(2),
        ..Actor::LOCAL
    };
    assert_eq!(
        lab.runs(&other, &RunFilter::default())
            .await
            .expect("read")
            .total,
        0
    );
    assert!(
        lab.board(&other, &BoardFilter::default())
            .await
            .expect("read")
            .empty
    );
    for refusal in [
        lab.run(&other, runs[0]).await.map(drop),
        lab.records(&other, runs[0], 0, &[]).await.map(drop),
        lab.result_file(&other, runs[0]).await.map(drop),
        lab.delete_run(&other, runs[0]).await,
    ] {
        assert_eq!(refusal.expect_err("none").status(), 404);
    }
}

#[tokio::test]
async fn a_database_that_is_away_is_said_to_be_and_its_password_is_not() {
    let folder = folder();
    let mut config = crate::testing::config(folder.path());
    // Nothing listens in a folder without a socket.
    config.database_url = format!(
        "postgres://me:hidden@localhost/none?host={}",
        folder.path().display()
    );
    assert!(!format!("{config:?}").contains("hidden"));
    let error = Lab::open(config.clone()).await.err().expect("a refusal");
    assert_eq!(error.status(), 503, "{error}");
    config.database_url = "hidden".to_owned();
    let error = Lab::open(config).await.err().expect("a refusal");
    assert_eq!(error.status(), 422, "{error}");
    assert!(!error.to_string().contains("hidden"));
}
