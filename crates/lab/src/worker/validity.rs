//! Flags that follow from a run as a whole. They are stored with its stages once it is
//! over, so that the Board, which reads no samples, shows them as well.

use std::collections::BTreeMap;

use sqlx::{Connection, PgConnection, types::Json};
use tokdyno_domain::{
    effective::EffectiveConfiguration,
    ids::RunId,
    metrics::StageFlag,
    validity::{self, RunParts, StagePart},
    views::run::StageView,
    workload::Workload,
};

use crate::{LabError, facts, host_samples, stages};

/// Said of a run of which not all could be read.
const UNCHECKED: &str = "This run was not checked as a whole, since a part of what is stored of it cannot be read: nobody knows whether something else used the host meanwhile. The program's log says which part.";

/// Checks a run whose stages and samples are stored. Once more is as good as once. What
/// cannot be read hinders the check, which is said of the run, and not its end.
///
/// # Errors
/// [`LabError::DatabaseUnavailable`], and [`LabError::Internal`] if not even that can be
/// stored.
pub(super) async fn store(
    connection: &mut PgConnection,
    run: RunId,
    workload: &Workload,
) -> Result<(), LabError> {
    // A savepoint: what goes wrong must not spoil the transaction around it.
    let mut attempt = connection.begin().await?;
    match check(&mut attempt, run, workload).await {
        Ok(()) => attempt.commit().await?,
        Err(LabError::Internal(doing)) => {
            attempt.rollback().await?;
            tracing::error!(%run, doing, "a run was not checked as a whole");
            sqlx::query!(
                "UPDATE runs SET remarks = array_append(remarks, $2)
                 WHERE id = $1 AND $2 <> ALL(remarks)",
                run.0,
                UNCHECKED,
            )
            .execute(connection)
            .await?;
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn check(
    connection: &mut PgConnection,
    run: RunId,
    workload: &Workload,
) -> Result<(), LabError> {
    let stored = stages::of_runs(&mut *connection, &[run.0]).await?;
    let stages: Vec<StageView> = stored.into_iter().map(stages::StageRow::view).collect();
    let parts: Vec<StagePart<'_>> = stages.iter().map(StagePart::from).collect();
    let said = sqlx::query!(
        r#"SELECT settings AS "settings: Json<BTreeMap<String, String>>",
               effective AS "effective: Json<EffectiveConfiguration>"
           FROM runs WHERE id = $1"#,
        run.0,
    )
    .fetch_one(&mut *connection)
    .await?;
    let effective = said.effective.map(|effective| effective.0);
    let settings = facts::settings(said.settings.0, effective.as_ref());
    let samples = host_samples::of_run(&mut *connection, run).await?;
    let own = host_samples::own(&mut *connection, run).await?;
    let found = validity::check(&RunParts {
        stages: &parts,
        cold_prompts: workload.has_cold_prompts(),
        settings: &settings,
        samples: &samples,
        own: &own,
    });
    let mut changed: BTreeMap<u32, Vec<StageFlag>> = BTreeMap::new();
    for (index, flag) in found {
        let known = stages.iter().find(|stage| stage.index == index);
        let flags = changed
            .entry(index)
            .or_insert_with(|| known.map(|stage| stage.flags.clone()).unwrap_or_default());
        flag.put(flags);
    }
    for (index, flags) in &changed {
        stages::store_flags(&mut *connection, run, *index, flags).await?;
    }
    Ok(())
}
