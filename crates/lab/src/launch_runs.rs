//! Runs that measure a launch: put into the queue with all that the launch is known
//! to be at that moment, and stopped with it.

use sqlx::{PgConnection, types::Json};
use tokdyno_domain::{
    access::Actor,
    effective::EffectiveConfiguration,
    host::{Inventory, Reach},
    ids::{LaunchId, RunId},
    metrics::METRIC_VERSION,
    profile::ProfileSpec,
    run::RunState,
    source::Source,
    statistics::ANALYSIS_VERSION,
    views::run_host::ClientPlace,
    workload::Workload,
};

use crate::{
    LabError,
    audit::{self, Action},
    commands::{cancel, emit_state, version, workload_json},
    launch_rows,
};

/// What a run on a launch carries when NCCL's own log was written meanwhile.
const NCCL_LOG_ON: &str = "NCCL wrote its own start-up log in this launch, to prove what it uses. That slows communication a little.";

/// A measurement of a launch about to be queued.
pub(crate) struct LaunchRunPlan<'a> {
    pub(crate) launch: LaunchId,
    /// Blank for the profile's name.
    pub(crate) configuration: &'a str,
    pub(crate) workload: &'a Workload,
    pub(crate) through_forward: bool,
}

/// Queues it. The launch's stamp and effective configuration are copied, so that
/// later readings do not change what the run carries. Whether the launch is ready is
/// the caller's to know.
pub(crate) async fn insert_launch_run(
    connection: &mut PgConnection,
    actor: &Actor,
    plan: &LaunchRunPlan<'_>,
) -> Result<RunId, LabError> {
    let launch = sqlx::query!(
        r#"SELECT l.host_id, l.port, l.gpus, l.engine, l.engine_version, l.simulated, l.stamp,
               l.effective AS "effective: Json<EffectiveConfiguration>",
               coalesce((l.plan ->> 'verify_nccl')::boolean, false) AS "verify_nccl!",
               h.inventory AS "inventory: Json<Inventory>", h.reach AS "reach: Json<Reach>",
               r.spec AS "spec: Json<ProfileSpec>", p.name AS profile
           FROM launches l
           JOIN hosts h ON h.id = l.host_id
           JOIN profile_revisions r ON r.id = l.revision_id
           JOIN profiles p ON p.id = r.profile_id
           WHERE l.id = $1 AND l.team_id = $2"#,
        plan.launch.0,
        actor.team.0,
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or(LabError::NoSuchLaunch(plan.launch))?;
    let configuration = match plan.configuration.trim() {
        "" => &launch.profile,
        name => name,
    };
    let gpus = launch.gpus.map(launch_rows::read_gpus);
    let hardware = launch
        .inventory
        .map(|inventory| inventory.hardware(gpus.as_deref()))
        .unwrap_or_default();
    // On this very machine there is nothing to forward.
    let place = match launch.reach.0 {
        Reach::Ssh { .. } if plan.through_forward => ClientPlace::Forward,
        Reach::Ssh { .. } | Reach::Local => ClientPlace::Host,
    };
    let model = launch.spec.served_name().trim();
    let remarks: Vec<String> = launch
        .verify_nccl
        .then(|| NCCL_LOG_ON.to_owned())
        .into_iter()
        .collect();
    let run = RunId(
        sqlx::query_scalar!(
            "INSERT INTO runs (team_id, actor_id, metric_version, analysis_version, state,
                 source, configuration, hardware, endpoint_url, endpoint_key,
                 requested_model, model, engine, engine_version, workload, workload_hash,
                 workload_name, workload_text, queued_at, launch_id, client_place, stamp,
                 effective, remarks, simulated)
             VALUES ($1, $2, $3, $4, 'queued', $5, $6, $7, $8, $9, nullif($10, ''), $10, $11, $12,
                 $13, $14, $15, $16, now(), $17, $18, $19, $20, $21, $22)
             RETURNING id",
            actor.team.0,
            actor.id.0,
            version(METRIC_VERSION),
            version(ANALYSIS_VERSION),
            if launch.simulated {
                Source::Simulated.word()
            } else {
                Source::Measured.word()
            },
            configuration,
            hardware,
            format!("http://127.0.0.1:{}", launch.port),
            format!("host:{}:{}", launch.host_id, launch.port),
            model,
            launch.engine,
            launch.engine_version,
            workload_json(plan.workload)?,
            plan.workload.hash().0,
            plan.workload.name,
            plan.workload.describe(),
            plan.launch.0,
            place.word(),
            launch.stamp,
            launch.effective as _,
            &remarks,
            launch.simulated,
        )
        .fetch_one(&mut *connection)
        .await?,
    );
    let detail = format!("on launch {}", plan.launch);
    audit::note_more(
        connection,
        actor,
        Action::Queue,
        format!("run {run}"),
        &detail,
    )
    .await?;
    emit_state(connection, run, RunState::Queued).await?;
    Ok(run)
}

/// Stops what waits or runs on a launch, as if each run had been cancelled. Says
/// which.
pub(crate) async fn cancel_runs_of(
    connection: &mut PgConnection,
    launch: LaunchId,
) -> Result<Vec<RunId>, LabError> {
    let rows = sqlx::query!(
        "SELECT id, state FROM runs
         WHERE launch_id = $1 AND state IN ('queued', 'running') ORDER BY id FOR NO KEY UPDATE",
        launch.0,
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut stopped = Vec::new();
    for row in rows {
        let run = RunId(row.id);
        let state = RunState::from_word(&row.state).ok_or_else(|| {
            LabError::internal("reading a run's state", format!("`{}`", row.state))
        })?;
        if cancel(connection, run, state).await? {
            stopped.push(run);
        }
    }
    Ok(stopped)
}
