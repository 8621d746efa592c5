//! Temperatures of the GPUs: near the limit, and drifting from repeat to repeat.

use std::collections::BTreeMap;

use super::{FEWEST, Own, RunParts, StagePart, is_busy, own_gpus};
use crate::{host::RunSample, metrics::StageFlag, workload::StageKind};

/// From this temperature on, in °C: GPUs begin to slow down not far above it (data
/// sheets name 87 to 93).
const HOT: u32 = 85;

/// More degrees than this between repeats of a level: boost clocks are taken back by
/// about 15 MHz for every five to ten degrees, so this is worth 1 to 2 % of 2 GHz.
const DRIFT: u32 = 10;

pub(super) fn check(samples: &[&RunSample], own: &Own) -> Option<StageFlag> {
    let (celsius, gpu) = own_gpus(samples, own)
        .filter_map(|gpu| Some((gpu.temperature_c?, gpu.index)))
        .max()?;
    (celsius >= HOT).then_some(StageFlag::HotGpu { gpu, celsius })
}

/// Per level, later repeats against the first of which enough samples are known; of
/// several GPUs the one that moved most.
pub(super) fn drift(run: &RunParts<'_>) -> Vec<(u32, StageFlag)> {
    let mut first: BTreeMap<StageKind, BTreeMap<u32, u32>> = BTreeMap::new();
    let mut found = Vec::new();
    for stage in run.stages {
        let now = medians(run, stage);
        if now.is_empty() {
            continue;
        }
        let Some(before) = first.get(&stage.kind) else {
            first.insert(stage.kind, now);
            continue;
        };
        let most = now
            .iter()
            .filter_map(|(gpu, to)| Some((*gpu, *before.get(gpu)?, *to)))
            .max_by_key(|(_, from, to)| from.abs_diff(*to));
        if let Some((gpu, from, to)) = most.filter(|(_, from, to)| from.abs_diff(*to) > DRIFT) {
            found.push((stage.index, StageFlag::TemperatureDrift { gpu, from, to }));
        }
    }
    found
}

/// The median temperature of each GPU under load during a stage.
fn medians(run: &RunParts<'_>, stage: &StagePart<'_>) -> BTreeMap<u32, u32> {
    let mut degrees: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for sample in run.samples {
        if sample.stage != Some(stage.index) {
            continue;
        }
        for gpu in sample.sample.gpus.iter().filter(|gpu| run.own.has_gpu(gpu)) {
            if let Some(celsius) = gpu.temperature_c.filter(|_| is_busy(gpu)) {
                degrees.entry(gpu.index).or_default().push(celsius);
            }
        }
    }
    degrees
        .into_iter()
        .filter(|(_, values)| values.len() >= FEWEST)
        .filter_map(|(gpu, mut values)| {
            values.sort_unstable();
            Some((gpu, *values.get(values.len() / 2)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{CLOSED, gpu, of_run, part, refs, sample},
        *,
    };
    use crate::conditions::StageConditions;

    #[test]
    fn heat_is_said_from_its_limit_on() {
        let at = |celsius| {
            let mut one = gpu(2, 2000);
            one.temperature_c = Some(celsius);
            check(
                &refs(&[sample(0, vec![gpu(0, 2000), one])]),
                &Own::default(),
            )
        };
        assert_eq!(at(84), None);
        assert_eq!(
            at(85),
            Some(StageFlag::HotGpu {
                gpu: 2,
                celsius: 85
            })
        );
    }

    /// Two repeats of so many seconds; the second at another temperature.
    fn drifted(later: u32, seconds: u32, utilisation: u32) -> Vec<(u32, StageFlag)> {
        let calm = StageConditions::default();
        let stages = [
            part(0, CLOSED, &calm),
            part(1, StageKind::SingleStream, &calm),
            part(2, CLOSED, &calm),
        ];
        let mut samples = Vec::new();
        for (stage, celsius) in [(0, 60), (1, 90), (2, later)] {
            for second in 0..seconds {
                let mut one = gpu(0, 2000);
                one.temperature_c = Some(celsius);
                one.utilisation = Some(utilisation);
                samples.push(RunSample {
                    stage: Some(stage),
                    ..sample(i64::from(second), vec![one])
                });
            }
        }
        of_run(&stages, &[], &samples, drift)
    }

    #[test]
    fn repeats_of_a_level_are_held_against_its_first() {
        assert_eq!(drifted(70, 5, 99), [], "ten degrees");
        let flag = |to| {
            (
                2,
                StageFlag::TemperatureDrift {
                    gpu: 0,
                    from: 60,
                    to,
                },
            )
        };
        assert_eq!(drifted(71, 5, 99), [flag(71)]);
        assert_eq!(drifted(49, 5, 99), [flag(49)]);
        assert_eq!(drifted(71, 4, 99), [], "too few samples");
        assert_eq!(drifted(71, 5, 10), [], "idle");
    }
}
