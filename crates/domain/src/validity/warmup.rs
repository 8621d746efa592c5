//! A first repeat that is slower than the others: caches, graphs and clocks were not
//! warm.

use super::{RunParts, StagePart};
use crate::metrics::StageFlag;

/// Fewest repeats after the first: of one alone nobody knows the spread.
const LATER: usize = 2;

/// The first lies below the others' mean by more than so many times their whole range.
/// Of three repeats that differ by chance alone the first does so in one case of ten.
const RANGES: f64 = 3.0;

/// And moves the mean over all by more than this share: the smallest difference that
/// matters.
const BIAS: f64 = 0.02;

/// Levels whose figure is chosen (rates) have no speed that could rise.
pub(super) fn check(run: &RunParts<'_>) -> Vec<(u32, StageFlag)> {
    let mut kinds: Vec<_> = run.stages.iter().map(|stage| stage.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
        .into_iter()
        .filter_map(|kind| {
            let mut repeats: Vec<&StagePart<'_>> = run
                .stages
                .iter()
                .filter(|stage| stage.kind == kind && stage.complete)
                .collect();
            repeats.sort_by_key(|stage| stage.repeat);
            let (first, later) = repeats.split_first()?;
            Some((first.index, slow_beginning(first, later)?))
        })
        .collect()
}

fn slow_beginning(first: &StagePart<'_>, later: &[&StagePart<'_>]) -> Option<StageFlag> {
    let first = first.speed?;
    let speeds: Vec<f64> = later.iter().filter_map(|stage| stage.speed).collect();
    if speeds.len() < LATER {
        return None;
    }
    let count = speeds.len() as f64;
    let mean = speeds.iter().sum::<f64>() / count;
    let low = speeds.iter().copied().fold(f64::INFINITY, f64::min);
    let high = speeds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let slower = (mean - first) / mean;
    let bias = slower / (count + 1.0);
    (bias > BIAS && mean - first > RANGES * (high - low))
        .then_some(StageFlag::SlowBeginning { slower, bias })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, of_run, part, wearers},
        *,
    };
    use crate::{conditions::StageConditions, workload::StageKind};

    fn found(kind: StageKind, speeds: &[f64]) -> Vec<(u32, StageFlag)> {
        let calm = StageConditions::default();
        let stages: Vec<StagePart<'_>> = (0..)
            .zip(speeds)
            .map(|(index, speed)| StagePart {
                speed: Some(*speed),
                ..part(index, kind, &calm)
            })
            .collect();
        of_run(&stages, &[], &[], check)
    }

    #[test]
    fn a_first_repeat_far_below_the_others_is_flagged() {
        // The mean over four is 2 % too low from 92 on.
        assert_eq!(found(CLOSED, &[92.1, 100.0, 100.5, 99.5]), []);
        let flags = found(CLOSED, &[91.9, 100.0, 100.5, 99.5]);
        assert_eq!(wearers(&flags), [0]);
        let said = flags[0].1.sentence();
        assert!(
            said.contains("8.1 % slower") && said.contains("2.0 % too low"),
            "{said}"
        );
        assert!(!flags[0].1.forbids_verdict());
    }

    #[test]
    fn a_wide_spread_or_too_few_repeats_prove_nothing() {
        assert_eq!(found(CLOSED, &[88.0, 98.0, 102.0]), [], "three ranges");
        assert_eq!(wearers(&found(CLOSED, &[87.9, 98.0, 102.0])), [0]);
        assert_eq!(found(CLOSED, &[50.0, 100.0]), []);
        assert_eq!(found(CLOSED, &[]), []);
        assert_eq!(found(CLOSED, &[120.0, 100.0, 100.0]), [], "faster");
    }

    #[test]
    fn each_level_is_held_against_itself_over_its_complete_repeats() {
        let calm = StageConditions::default();
        let stage = |index, kind, repeat, speed| StagePart {
            repeat,
            speed: Some(speed),
            ..part(index, kind, &calm)
        };
        let single = StageKind::SingleStream;
        let mut stages = [
            stage(0, single, 0, 50.0),
            stage(1, CLOSED, 0, 500.0),
            stage(2, single, 1, 60.0),
            stage(3, CLOSED, 1, 500.0),
            stage(4, single, 2, 60.0),
            stage(5, CLOSED, 2, 500.0),
        ];
        assert_eq!(wearers(&of_run(&stages, &[], &[], check)), [0]);
        stages[0].complete = false;
        assert_eq!(of_run(&stages, &[], &[], check), []);
    }
}
