use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    goodput::Bounds,
    ids::RunId,
    meter::{MeterEventKind, MeterOutcome, RequestEvent},
    metrics::StageFlag,
    prompts::PromptSet,
    result_file::{ResultFile, ResultStage},
    run::RunState,
    workload::{
        Arrivals, LoadLevel, Saturation, StageKind, StagePlan, StageSize, Thousandths, Workload,
    },
};

use crate::testing::{
    bytes, conditions, events, folder, lab, new_run, numbered, request, result_file, script,
    server, wait_for,
};

const ME: &Actor = &Actor::LOCAL;

fn number(value: f64) -> Thousandths {
    Thousandths::new(value).expect("a number")
}

/// Every kind but the replay, with bounds, and a ladder of which one rung is left out.
fn workload() -> Workload {
    let level = |kind| LoadLevel {
        kind,
        size: StageSize::Requests { requests: 4 },
    };
    Workload {
        output_tokens: 8,
        goodput: Some(Bounds {
            ttft_ms: Some(19.0),
            ..Bounds::default()
        }),
        saturation: Some(Saturation {
            min_gain_percent: 5,
        }),
        ..Workload::with_levels(
            "shapes",
            vec![
                level(StageKind::ClosedLoop { concurrency: 1 }),
                level(StageKind::ClosedLoop { concurrency: 2 }),
                level(StageKind::OpenLoop {
                    rate: number(2.5),
                    arrivals: Arrivals::Gamma {
                        burstiness: number(0.5),
                    },
                }),
                level(StageKind::Ramp {
                    from: number(1.0),
                    to: number(4.0),
                    arrivals: Arrivals::Constant,
                }),
            ],
        )
    }
}

fn sent(planned: &StagePlan, seq: u32) -> RequestEvent {
    let mut event = request(planned.index, seq);
    event.record.failure = None;
    if event.record.completion_tokens.is_none() {
        event = request(0, 0);
        (event.record.stage, event.record.seq) = (planned.index, seq);
    }
    if planned.level.kind.is_open() {
        event.record.intended_ns = Some(event.record.sent_ns.saturating_sub(1_500_000));
    }
    event.record.asked_tokens = (seq == 1).then_some(8);
    event.record.turn = (seq == 2).then_some(1);
    event
}

fn file() -> ResultFile {
    let workload = workload();
    let stages = workload
        .plan()
        .iter()
        .filter(|planned| planned.index != 1)
        .map(|planned| {
            let records: Vec<RequestEvent> = (0..4).map(|seq| sent(planned, seq)).collect();
            let mut stage: ResultStage = result_file().stages.remove(0);
            stage.index = planned.index;
            stage.kind = planned.level.kind;
            stage.figures.requests = 4;
            stage.figures.completed = 4;
            stage.records = records;
            stage
        })
        .collect();
    ResultFile {
        workload,
        stages,
        skipped: vec![1],
        ..result_file()
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn every_shape_goes_out_as_it_came_in(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let file = ResultFile::parse(&bytes(&file())).expect("a file");
    let run = lab.import(ME, &bytes(&file)).await.expect("imported").run;
    let exported = lab.result_file(ME, run).await.expect("exported");
    // Whole files would fill the screen with the bins of their histograms.
    assert!(exported == file, "what goes out differs from what came in");
    let again = lab.import(ME, &bytes(&exported)).await.expect("known");
    assert_eq!((again.run, again.already_there), (run, true));

    let view = lab.run(ME, run).await.expect("a run");
    let [_, open, ramp] = &view.stages[..] else {
        panic!("three stages, not {}", view.stages.len());
    };
    assert_eq!(open.kind, file.workload.levels[2].kind);
    assert_eq!(ramp.kind, file.workload.levels[3].kind);
    let stated = &file.stages[1].figures;
    assert_eq!(open.ttft_intended_ms, stated.ttft_intended_ms);
    assert_eq!(open.ttft_intended_ms.count, 4);
    assert_eq!(open.request_throughput, stated.request_throughput);
    assert_eq!(open.peak_in_flight, stated.peak_in_flight);
    assert_eq!(open.chunks, Some(stated.chunks));
    let goodput = open.goodput.expect("goodput");
    assert_eq!(Some(goodput), stated.goodput);
    assert_eq!(goodput.good, 0, "20 ms are more than 19");
    assert_eq!(open.conditions, conditions());
    let [skipped] = &view.skipped[..] else {
        panic!("one stage, not {}", view.skipped.len());
    };
    assert_eq!(skipped.kind, StageKind::ClosedLoop { concurrency: 2 });
    assert_eq!((skipped.index, skipped.reason.as_deref()), (1, None));
    assert_eq!(view.again, None, "no form says a ramp beside a ladder");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn histograms_without_requests_are_kept(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let mut file = ResultFile::parse(&bytes(&file())).expect("a file");
    for stage in &mut file.stages {
        stage.records.clear();
    }
    let file = ResultFile::parse(&bytes(&file)).expect("a file");
    assert!(file.stages.iter().all(|stage| stage.histograms.is_some()));
    let run = lab.import(ME, &bytes(&file)).await.expect("imported").run;
    let exported = lab.result_file(ME, run).await.expect("exported");
    assert!(exported == file, "what goes out differs from what came in");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_database_refuses_half_a_shape_and_keeps_old_stages(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let file = result_file();
    let run = lab.import(ME, &bytes(&file)).await.expect("imported").run;
    let set = async |assignments: &str| {
        let statement = format!("UPDATE stages SET {assignments} WHERE run_id = $1 AND stage = 1");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(run)
            .execute(&pool)
            .await
    };
    for half in [
        "kind = 'open_loop'",
        "kind = 'open_loop', concurrency = NULL, rate = 1000",
        "kind = 'open_loop', rate = 1000, arrivals = 'poisson'",
        "kind = 'ramp', concurrency = NULL, rate = 1000, arrivals = 'poisson'",
        "kind = 'replay', concurrency = NULL",
        "concurrency = NULL",
        "rate = 1000",
        "kind = 'open_loop', concurrency = NULL, rate = 1000, arrivals = 'gamma'",
        "kind = 'open_loop', concurrency = NULL, rate = 0, arrivals = 'poisson'",
    ] {
        assert!(set(half).await.is_err(), "{half}");
    }
    set("kind = 'replay', concurrency = NULL, speed = 1000")
        .await
        .expect("a whole shape");
    // As they stood there before any of this was measured.
    set(
        "peak_output_tps = DEFAULT, request_throughput = DEFAULT, peak_in_flight = DEFAULT, \
         chunks = DEFAULT, ttft_intended_ms = DEFAULT, first_answer_ms = DEFAULT, \
         goodput = DEFAULT, conditions = DEFAULT, histograms = DEFAULT",
    )
    .await
    .expect("defaults");
    let stage = lab.run(ME, run).await.expect("a run").stages.remove(1);
    assert_eq!(
        stage.kind,
        StageKind::Replay {
            speed: Thousandths::ONE
        }
    );
    assert_eq!((stage.chunks, stage.goodput), (None, None));
    assert_eq!(stage.ttft_intended_ms.count, 0);
    assert_eq!(stage.conditions.engine, None);
}

/// A run that the stand-in meter measured as these events say.
async fn measured(
    pool: &PgPool,
    kinds: Vec<MeterEventKind>,
    state: RunState,
) -> (crate::Lab, RunId) {
    let folder = folder();
    let lab = lab(pool, &folder).await;
    let server = server().await;
    script(&folder, "complete", &numbered(1, kinds), &[]);
    let run = lab
        .queue_run(ME, &new_run(&server.url))
        .await
        .expect("queued");
    let worker = lab.start_worker();
    wait_for(&lab, run, state).await;
    worker.shutdown().await;
    (lab, run)
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_stage_that_was_left_out_says_why(pool: PgPool) {
    let mut kinds: Vec<MeterEventKind> = events().into_iter().map(|event| event.kind).collect();
    kinds.retain(|kind| match kind {
        MeterEventKind::StageStarted { stage } => stage.index == 0,
        MeterEventKind::StageFinished { stage, .. } => *stage == 0,
        MeterEventKind::Request(request) => request.record.stage == 0,
        _ => true,
    });
    let end = kinds.pop().expect("the end");
    let reason = "C = 1 gained less than 5 %.".to_owned();
    kinds.extend([MeterEventKind::StageSkipped { stage: 1, reason }, end]);
    let (lab, run) = measured(&pool, kinds, RunState::Finished).await;
    let view = lab.run(ME, run).await.expect("a run");
    assert_eq!((view.stages.len(), view.skipped.len()), (1, 1));
    let reason = view.skipped[0].reason.as_deref();
    assert_eq!(reason, Some("C = 1 gained less than 5 %."));
    let again = view.again.expect("a form");
    assert_eq!(
        again.workload().expect("a workload").prompts,
        PromptSet::Varied
    );
    let exported = lab.result_file(ME, run).await.expect("exported");
    assert_eq!(exported.skipped, [1]);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_meter_said_around_a_stage_outlasts_its_being_worked_out_again(pool: PgPool) {
    let kinds: Vec<MeterEventKind> = events()
        .into_iter()
        .map(|event| match event.kind {
            MeterEventKind::StageFinished {
                stage: 1,
                mut figures,
                mut conditions,
            } => {
                figures.flags.push(StageFlag::Partial);
                conditions.unsent = 3;
                MeterEventKind::StageFinished {
                    stage: 1,
                    figures,
                    conditions,
                }
            }
            MeterEventKind::Finished { .. } => MeterEventKind::Finished {
                outcome: MeterOutcome::Failed {
                    reason: "The server went away.".to_owned(),
                },
            },
            other => other,
        })
        .collect();
    let (lab, run) = measured(&pool, kinds, RunState::Failed).await;
    let stage = lab.run(ME, run).await.expect("a run").stages.remove(1);
    assert!(!stage.complete);
    assert_eq!(stage.conditions.unsent, 3);
    assert_eq!(stage.conditions.engine, conditions().engine);
    let unsent = StageFlag::Unsent { requests: 3 };
    assert!(stage.flags.contains(&unsent), "{:?}", stage.flags);
}
