use sqlx::PgPool;
use tokdyno_domain::{
    access::Actor,
    host::{GpuSample, HostSample, RunSample},
    launch::LaunchState,
    timestamp::Timestamp,
};

use crate::testing::{
    folder, lab,
    launches::{bring_to, measure_form, queued},
};

const ME: &Actor = &Actor::LOCAL;

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_run_shows_what_its_gpus_did_meanwhile(pool: PgPool) {
    let folder = folder();
    let lab = lab(&pool, &folder).await;
    let (_, _, launch) = queued(&lab).await;
    bring_to(&pool, launch, LaunchState::Ready).await;
    sqlx::query("UPDATE launches SET gpus = '{1}' WHERE id = $1")
        .bind(launch)
        .execute(&pool)
        .await
        .expect("written");
    let run = lab.measure_launch(ME, &measure_form(launch)).await;
    let run = run.expect("queued");
    let quiet = lab.run(ME, run).await.expect("read").host.expect("a host");
    assert!(quiet.charts.is_empty() && quiet.flags.is_empty());

    for second in 0..10_u32 {
        let gpu = |index, sm_mhz| GpuSample {
            index,
            sm_mhz: Some(sm_mhz),
            temperature_c: Some(60),
            ..GpuSample::default()
        };
        let sample = RunSample {
            sample: HostSample {
                at: Timestamp(i64::from(second) * 1_000_000),
                gpus: vec![gpu(0, 300 * (second + 1)), gpu(1, 2000)],
                ..HostSample::default()
            },
            engine_requests: Some(6),
            own_in_flight: Some(4),
            ..RunSample::default()
        };
        sqlx::query("INSERT INTO host_samples (run_id, seq, sample) VALUES ($1, $2, $3)")
            .bind(run)
            .bind(i64::from(second))
            .bind(serde_json::to_value(&sample).expect("serialises"))
            .execute(&pool)
            .await
            .expect("kept");
    }
    sqlx::query("UPDATE runs SET client_place = 'host', round_trip_ms = 0.25")
        .execute(&pool)
        .await
        .expect("written");
    let seen = lab.run(ME, run).await.expect("read").host.expect("a host");
    let ids: Vec<&str> = seen.charts.iter().map(|chart| chart.id.as_str()).collect();
    assert_eq!(ids, ["host-clocks", "host-temperature"]);
    assert_eq!(seen.charts[0].series.len(), 1, "GPU 0 is not the launch's");
    assert_eq!(seen.charts[0].series[0].points.len(), 10);
    assert_eq!(
        seen.flags,
        [
            "The engine worked on other people's requests too: up to 2 at once, in 100 % of the samples. Ours were slower for it; measure again when it is free."
        ]
    );
    assert_eq!(seen.round_trip_ms, Some(0.25));
}
