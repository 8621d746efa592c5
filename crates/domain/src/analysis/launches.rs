//! Runs of one configuration over its launches.

use std::collections::BTreeMap;

use crate::{
    ids::LaunchId, statistics::geometric_mean, views::run::StageView, workload::StageKind,
};

/// A figure of a run, one value per repeat: of its complete stages, and only where
/// there is none, of what an early end has left.
pub(crate) fn repeats(
    stages: &[StageView],
    kind: StageKind,
    figure: impl Fn(&StageView) -> Option<f64>,
) -> Vec<f64> {
    let of_kind = || stages.iter().filter(|stage| stage.kind == kind);
    let any_complete = of_kind().any(|stage| stage.complete);
    of_kind()
        .filter(|stage| stage.complete || !any_complete)
        .filter_map(figure)
        .collect()
}

/// The repeats of runs by launch. Runs without a launch of their own, such as those
/// against an address, count as one launch: a restart between them cannot be seen.
/// Where all runs are of one launch, each speaks with its mean.
pub(super) fn by_launch<'a>(
    runs: impl IntoIterator<Item = (Option<LaunchId>, &'a [f64])>,
) -> Vec<Vec<f64>> {
    let mut launches: BTreeMap<Option<LaunchId>, Vec<&[f64]>> = BTreeMap::new();
    for (launch, repeats) in runs {
        launches.entry(launch).or_default().push(repeats);
    }
    let lone = launches.len() == 1;
    launches
        .into_values()
        .map(|runs| {
            if lone && runs.len() > 1 {
                runs.iter()
                    .filter_map(|repeats| geometric_mean(repeats))
                    .collect()
            } else {
                runs.concat()
            }
        })
        .collect()
}

/// One value per launch; of a single launch, one per repeat.
pub(super) fn launch_values(launches: &[Vec<f64>]) -> Vec<f64> {
    match launches {
        [repeats] => repeats.clone(),
        several => several
            .iter()
            .filter_map(|repeats| geometric_mean(repeats))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_launch_are_its_repeats() {
        let (one, other) = ([50.0, 200.0], [110.0]);
        let launch = |id| Some(LaunchId(id));
        let same = by_launch([(launch(1), &one[..]), (launch(1), &other[..])]);
        assert_eq!(same.len(), 1);
        assert!((same[0][0] - 100.0).abs() < 1e-9 && same[0].len() == 2);
        assert_eq!(by_launch([(None, &one[..]), (None, &other[..])]), same);
        let two = by_launch([(launch(1), &one[..]), (launch(2), &other[..])]);
        assert_eq!(two, [one.to_vec(), other.to_vec()]);
        let values = launch_values(&two);
        assert!((values[0] - 100.0).abs() < 1e-9 && values.len() == 2);
    }
}
