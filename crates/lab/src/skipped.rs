//! Stages that a rule of the workload left out.

use sqlx::{PgConnection, PgPool};
use tokdyno_domain::{ids::RunId, views::run::SkippedStage, workload::Workload};

use crate::{LabError, clean, stages::small};

/// Notes that a stage is left out; noted twice, it stands there once.
pub(crate) async fn store(
    connection: &mut PgConnection,
    run: RunId,
    stage: u32,
    reason: Option<&str>,
) -> Result<(), LabError> {
    sqlx::query!(
        "INSERT INTO skipped_stages (run_id, stage, reason) VALUES ($1, $2, $3)
         ON CONFLICT DO NOTHING",
        run.0,
        i64::from(stage),
        reason.map(clean::owned),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Those of a run with their reasons, in the order of the plan.
pub(crate) async fn of_run(
    pool: &PgPool,
    run: RunId,
) -> Result<Vec<(u32, Option<String>)>, LabError> {
    let rows = sqlx::query!(
        "SELECT stage, reason FROM skipped_stages WHERE run_id = $1 ORDER BY stage",
        run.0
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (small(row.stage), row.reason))
        .collect())
}

/// The same with what each of them would have been.
pub(crate) async fn views(
    pool: &PgPool,
    run: RunId,
    workload: &Workload,
) -> Result<Vec<SkippedStage>, LabError> {
    let plan = workload.plan();
    Ok(of_run(pool, run)
        .await?
        .into_iter()
        .filter_map(|(index, reason)| {
            let planned = plan.iter().find(|planned| planned.index == index)?;
            Some(SkippedStage {
                index,
                kind: planned.level.kind,
                repeat: planned.repeat,
                reason,
            })
        })
        .collect())
}
