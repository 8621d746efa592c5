//! Flags that follow from a run as a whole.

use tokdyno_domain::{
    host::{GpuProcess, HostSample, RunSample},
    timestamp::Timestamp,
    views::board::BoardFilter,
    workload::StageKind,
};

use super::*;
use crate::{testing::bytes, worker::validity};

/// Keeps so many samples of a stage; from the second on somebody else is there.
async fn keep_samples(pool: &PgPool, run: RunId, stage: u32) {
    for second in 0..4_u32 {
        let processes = (1..=second.min(1))
            .map(|pid| GpuProcess {
                gpu_uuid: "GPU-a".to_owned(),
                pid,
                name: "python3".to_owned(),
                user: None,
                used_mib: 900,
            })
            .collect();
        let sample = RunSample {
            sample: HostSample {
                at: Timestamp(i64::from(second) * 1_000_000),
                processes,
                ..HostSample::default()
            },
            stage: Some(stage),
            ..RunSample::default()
        };
        sqlx::query("INSERT INTO host_samples (run_id, seq, sample) VALUES ($1, $2, $3)")
            .bind(run)
            .bind(i64::from(second))
            .bind(serde_json::to_value(&sample).expect("serialises"))
            .execute(pool)
            .await
            .expect("kept");
    }
}

async fn conclude(pool: &PgPool, claimed: &Claimed) {
    let plan = claimed.workload.plan();
    ingest::apply(pool, &claimed.lease, &plan, &batch(&events()))
        .await
        .expect("stored");
    ingest::conclude(
        pool,
        &claimed.lease,
        &claimed.workload,
        RunState::Finished,
        None,
        None,
    )
    .await
    .expect("ended");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn whoever_came_to_the_gpus_makes_that_stage_doubtful_everywhere(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let claimed = claim(&pool).await;
    keep_samples(&pool, run, 0).await;
    conclude(&pool, &claimed).await;
    let others = StageFlag::OtherProcesses {
        processes: vec!["Process 1 (python3)".to_owned()],
        mib: 900,
        share: 0.75,
    };
    let seen = view(&lab, run).await;
    assert_eq!(seen.stages[0].kind, StageKind::SingleStream);
    assert!(seen.stages[0].flags.contains(&others), "{seen:?}");
    assert!(!seen.stages[1].flags.contains(&others));
    let level = &seen.levels[0];
    assert!(level.is_doubtful() && level.flags.contains(&others.sentence()));
    let board = lab.board(ME, &BoardFilter::default()).await.expect("read");
    assert!(board.rows[0].single_doubtful);

    let mut connection = pool.acquire().await.expect("a connection");
    validity::store(&mut connection, run, &claimed.workload)
        .await
        .expect("checked again");
    assert_eq!(view(&lab, run).await.stages, seen.stages, "as good as once");

    // The samples stay here; what they told goes along.
    let file = lab.result_file(ME, run).await.expect("written");
    let imported = lab.import(ME, &bytes(&file)).await.expect("read");
    let brought = view(&lab, imported.run).await;
    assert!(brought.stages[0].flags.contains(&others));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_limit_in_the_settings_is_held_against_the_load(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    for (limit, capped) in [("2", false), ("1", true)] {
        let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
        sqlx::query("UPDATE runs SET settings = jsonb_build_object('--max-num-seqs', $2::text) WHERE id = $1")
            .bind(run)
            .bind(limit)
            .execute(&pool)
            .await
            .expect("stored");
        let claimed = claim(&pool).await;
        conclude(&pool, &claimed).await;
        let seen = view(&lab, run).await;
        let cap = StageFlag::EngineCap {
            cap: 1,
            in_flight: 2,
        };
        assert_eq!(seen.stages[1].flags.contains(&cap), capped, "{limit}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_sample_that_cannot_be_read_does_not_keep_a_run_from_its_end(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let run = lab.queue_run(ME, &new_run("gpu1")).await.expect("queued");
    let claimed = claim(&pool).await;
    sqlx::query("INSERT INTO host_samples (run_id, seq, sample) VALUES ($1, 0, '[]')")
        .bind(run)
        .execute(&pool)
        .await
        .expect("kept");
    conclude(&pool, &claimed).await;
    let (state, remarks): (String, Vec<String>) =
        sqlx::query_as("SELECT state, remarks FROM runs WHERE id = $1")
            .bind(run)
            .fetch_one(&pool)
            .await
            .expect("read");
    assert_eq!(state, "finished");
    let told = remarks
        .iter()
        .filter(|remark| remark.contains("not checked as a whole"));
    assert_eq!(told.count(), 1, "{remarks:?}");
    let stages: i64 = sqlx::query_scalar("SELECT count(*) FROM stages WHERE run_id = $1")
        .bind(run)
        .fetch_one(&pool)
        .await
        .expect("read");
    assert_eq!(stages, 2, "its figures stay");
}
