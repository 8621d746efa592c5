//! How long launches of an experiment take, from what their like took before.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use tokdyno_domain::{
    experiment::{Cell, Pace, Paces},
    host::Inventory,
    ids::{ContentHash, HostId, LaunchId},
    profile::ProfileSpec,
};

use super::rows::stored;
use crate::LabError;

/// Newest launches of a configuration that its pace is taken from.
const NEWEST: i64 = 5;

/// Paces on this host under this workload: of a cell from launches with its very hash,
/// of the others from what is known of these, else from the base profile's.
pub(crate) async fn paces(
    connection: &mut PgConnection,
    host: HostId,
    cells: &[Cell],
    base: &ContentHash,
    workload: &ContentHash,
    gpus: u32,
) -> Result<Paces, LabError> {
    let hashes: Vec<String> = cells
        .iter()
        .map(|cell| &cell.hash)
        .chain([base])
        .map(|hash| hash.0.clone())
        .collect();
    // One that was kept running after its run is not waited for. An adopted one was not
    // started: it was ready when it was found, which tells nothing of a start.
    let rows = sqlx::query!(
        r#"SELECT hash, avg(ready_s) AS "ready_s!", avg(measure_s) AS "measure_s!"
           FROM (
               SELECT r.hash,
                   extract(epoch FROM l.ready_at - coalesce(l.started_at, l.created_at))::float8
                       AS ready_s,
                   extract(epoch FROM CASE
                       WHEN l.plan ->> 'afterwards' = 'stop' AND l.state = 'stopped'
                           THEN l.ended_at - l.ready_at
                       ELSE measured.finished_at - measured.started_at END)::float8 AS measure_s,
                   row_number() OVER (PARTITION BY r.hash ORDER BY l.id DESC) AS place
               FROM launches l
               JOIN profile_revisions r ON r.id = l.revision_id
               JOIN LATERAL (
                   SELECT started_at, finished_at FROM runs
                   WHERE launch_id = l.id AND state = 'finished' AND workload_hash = $3
                   ORDER BY id LIMIT 1) measured ON true
               WHERE l.host_id = $1 AND r.hash = ANY($2) AND l.ready_at IS NOT NULL
                 AND l.origin <> 'adopted'
           ) newest
           WHERE place <= $4 AND ready_s IS NOT NULL AND measure_s IS NOT NULL
           GROUP BY hash"#,
        host.0,
        &hashes,
        workload.0,
        NEWEST,
    )
    .fetch_all(connection)
    .await?;
    let known: BTreeMap<String, Pace> = rows
        .into_iter()
        .map(|row| {
            let pace = Pace {
                ready_s: row.ready_s,
                measure_s: row.measure_s,
            };
            (row.hash, pace)
        })
        .collect();
    let of_cells: BTreeMap<u32, Pace> = cells
        .iter()
        .filter_map(|cell| Some((cell.index, *known.get(&cell.hash.0)?)))
        .collect();
    let overall = mean(of_cells.values()).or_else(|| known.get(&base.0).copied());
    Ok(Paces {
        overall,
        cells: of_cells,
        gpus,
    })
}

/// GPU seconds that a launch has held so far, or held. `gpus` are counted where it names
/// none.
pub(crate) async fn launch_gpu_s(
    connection: &mut PgConnection,
    launch: LaunchId,
    gpus: u32,
) -> Result<f64, LabError> {
    let seconds = sqlx::query_scalar!(
        r#"SELECT coalesce(extract(epoch FROM coalesce(ended_at, now()) - started_at), 0)::float8
               * coalesce(cardinality(gpus), $2) AS "seconds!"
           FROM launches WHERE id = $1"#,
        launch.0,
        stored(gpus),
    )
    .fetch_one(connection)
    .await?;
    Ok(seconds)
}

fn mean<'a>(paces: impl ExactSizeIterator<Item = &'a Pace>) -> Option<Pace> {
    let count = paces.len();
    if count == 0 {
        return None;
    }
    let sum = paces.fold((0.0, 0.0), |(ready, measure), pace| {
        (ready + pace.ready_s, measure + pace.measure_s)
    });
    Some(Pace {
        ready_s: sum.0 / count as f64,
        measure_s: sum.1 / count as f64,
    })
}

/// GPUs that a launch of the widest of these profiles holds.
pub(super) fn gpus<'a>(
    specs: impl Iterator<Item = &'a ProfileSpec>,
    inventory: Option<&Inventory>,
) -> u32 {
    let all = inventory.map(|inventory| inventory.gpus.len());
    let held = specs.map(|spec| match (spec.gpus(), all) {
        (Some(named), _) => named.len(),
        (None, Some(all)) if all > 0 => all,
        // Nobody has counted them.
        (None, _) => spec.parameters.tensor_parallel as usize,
    });
    u32::try_from(held.max().unwrap_or(1).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::launches::spec;

    #[test]
    fn a_launch_holds_the_gpus_it_names_else_as_many_as_there_are() {
        let whole = spec();
        let mut named = spec();
        named
            .environment
            .push(("CUDA_VISIBLE_DEVICES".to_owned(), "0,1,2".to_owned()));
        assert_eq!(gpus([&whole].into_iter(), None), 2, "its ranks");
        assert_eq!(gpus([&whole, &named].into_iter(), None), 3);
        assert_eq!(gpus([].into_iter(), None), 1);
    }

    #[test]
    fn the_overall_pace_is_the_mean_of_those_known() {
        let pace = |ready_s| Pace {
            ready_s,
            measure_s: 10.0,
        };
        assert_eq!(mean([].iter()), None);
        let known = [pace(20.0), pace(40.0)];
        assert_eq!(mean(known.iter()), Some(pace(30.0)));
    }
}
