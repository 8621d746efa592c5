//! What was launched on hosts before, for whoever judges the next launches.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgPool;
use tokdyno_domain::{access::Actor, ids::HostId, views::run::RunSummary};

use crate::LabError;

/// The hosts of runs' launches.
pub(crate) fn hosts<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<i64> {
    let hosts: BTreeSet<i64> = runs
        .into_iter()
        .filter_map(|run| Some(run.launch.as_ref()?.host.0.0))
        .collect();
    hosts.into_iter().collect()
}

/// Minutes that a launch with its measurement took on hosts, median over finished
/// runs: from the start of the engine until it was ready, and the run itself. How long
/// a server stood idle in between is not in it.
pub(crate) async fn minutes(
    pool: &PgPool,
    actor: &Actor,
    hosts: &[i64],
) -> Result<BTreeMap<HostId, f64>, LabError> {
    if hosts.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = sqlx::query!(
        r#"SELECT l.host_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY
                   EXTRACT(EPOCH FROM (l.ready_at - l.started_at)
                       + (runs.finished_at - runs.started_at))::float8 / 60) AS "minutes!"
           FROM runs JOIN launches l ON l.id = runs.launch_id
           WHERE runs.team_id = $1 AND runs.deleted_at IS NULL AND runs.state = 'finished'
             AND l.host_id = ANY($2) AND l.origin <> 'adopted'
             AND l.ready_at IS NOT NULL AND l.started_at IS NOT NULL
             AND runs.started_at IS NOT NULL AND runs.finished_at IS NOT NULL
           GROUP BY l.host_id"#,
        actor.team.0,
        hosts,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (HostId(row.host_id), row.minutes))
        .collect())
}
