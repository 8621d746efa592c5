//! What the host did during a run, as charts and sentences.

#[cfg(test)]
mod tests;

use sqlx::{PgConnection, types::Json};
use tokdyno_domain::{
    analysis::{host_charts, host_flags},
    chart::ChartSpec,
    host::{Inventory, ProcessIdentity, RunSample},
    ids::RunId,
    validity::Own,
    views::run::RunSummary,
};

use crate::{Lab, LabError, launch_rows};

/// Most samples that are read: of more, every k-th. They are a second apart.
const MOST: i64 = 7_200;

impl Lab {
    /// Charts and flags of the samples of a run's host.
    pub(crate) async fn host_meanwhile(
        &self,
        run: &RunSummary,
    ) -> Result<(Vec<ChartSpec>, Vec<String>), LabError> {
        let mut connection = self.0.pool.acquire().await?;
        let samples = of_run(&mut connection, run.id).await?;
        let own = own(&mut connection, run.id).await?;
        Ok((
            host_charts(&samples, &own, run.source),
            host_flags(&samples, &own),
        ))
    }
}

/// The samples of a run's host, in order of time.
pub(crate) async fn of_run(
    connection: &mut PgConnection,
    run: RunId,
) -> Result<Vec<RunSample>, LabError> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM host_samples WHERE run_id = $1"#,
        run.0,
    )
    .fetch_one(&mut *connection)
    .await?;
    let every = count / MOST + 1;
    let samples = sqlx::query_scalar!(
        r#"SELECT sample AS "sample: Json<RunSample>" FROM host_samples
               WHERE run_id = $1 AND seq % $2 = 0 ORDER BY seq LIMIT $3"#,
        run.0,
        every,
        MOST * 2,
    )
    .fetch_all(connection)
    .await?;
    Ok(samples.into_iter().map(|sample| sample.0).collect())
}

/// Which GPUs and which process are those of a run's launch.
pub(crate) async fn own(connection: &mut PgConnection, run: RunId) -> Result<Own, LabError> {
    let row = sqlx::query!(
        r#"SELECT l.gpus, l.identity AS "identity: Json<ProcessIdentity>",
                   h.inventory AS "inventory: Json<Inventory>"
               FROM runs JOIN launches l ON l.id = runs.launch_id
               JOIN hosts h ON h.id = l.host_id WHERE runs.id = $1"#,
        run.0,
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(Own::default());
    };
    let gpus = row.gpus.map(launch_rows::read_gpus);
    let gpu_uuids = match (&gpus, row.inventory) {
        (Some(gpus), Some(inventory)) => Some(
            inventory
                .gpus
                .iter()
                .filter(|gpu| gpus.contains(&gpu.index))
                .map(|gpu| gpu.uuid.clone())
                .collect(),
        ),
        _ => None,
    };
    Ok(Own {
        gpus,
        gpu_uuids,
        pids: row
            .identity
            .map(|identity| identity.pid)
            .into_iter()
            .collect(),
    })
}
