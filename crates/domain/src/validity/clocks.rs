//! Clocks of the GPUs: those that move, and those that are held down.

use std::collections::{BTreeMap, BTreeSet};

use super::{FEWEST, Own, is_busy, own_gpus, share};
use crate::{host::RunSample, metrics::StageFlag};

/// A clock that moves by more than this share of itself under load. The speed of a
/// memory-bound decode follows the clock in part, so that less than this moves it by
/// less than what matters (2 %).
const DRIFT: f64 = 0.05;

/// From the tenth to the ninetieth percentile of the clock under load, per GPU.
pub(super) fn drift(samples: &[&RunSample], own: &Own) -> Option<StageFlag> {
    let mut clocks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for gpu in own_gpus(samples, own).filter(|gpu| is_busy(gpu)) {
        if let Some(mhz) = gpu.sm_mhz {
            clocks.entry(gpu.index).or_default().push(mhz);
        }
    }
    let mut gpus = Vec::new();
    let mut range: Option<(u32, u32)> = None;
    for (gpu, mut values) in clocks {
        values.sort_unstable();
        if values.len() < FEWEST {
            continue;
        }
        let tenth = values.len() / 10;
        let (Some(&low), Some(&high)) = (values.get(tenth), values.get(values.len() - 1 - tenth))
        else {
            continue;
        };
        if f64::from(high - low) > f64::from(high) * DRIFT {
            gpus.push(gpu);
            let (least, most) = range.unwrap_or((low, high));
            range = Some((least.min(low), most.max(high)));
        }
    }
    range.map(|(low_mhz, high_mhz)| StageFlag::ClockDrift {
        gpus,
        low_mhz,
        high_mhz,
    })
}

/// Whatever the driver names as a reason, however short: it is a fact, not a guess.
pub(super) fn held_down(samples: &[&RunSample], own: &Own) -> Option<StageFlag> {
    let mut gpus: BTreeSet<u32> = BTreeSet::new();
    let mut reasons: BTreeSet<&str> = BTreeSet::new();
    let mut seen = 0;
    for sample in samples {
        let mut any = false;
        for gpu in sample.sample.gpus.iter().filter(|gpu| own.has_gpu(gpu)) {
            if !gpu.throttle.is_empty() {
                any = true;
                gpus.insert(gpu.index);
                reasons.extend(gpu.throttle.iter().map(String::as_str));
            }
        }
        seen += usize::from(any);
    }
    (seen > 0).then(|| StageFlag::ClocksHeldDown {
        gpus: gpus.into_iter().collect(),
        reasons: reasons.into_iter().map(str::to_owned).collect(),
        share: share(seen, samples.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{gpu, refs, sample},
        *,
    };

    /// Twenty seconds, eight of them at another clock.
    fn run(low: u32, utilisation: u32) -> Vec<RunSample> {
        (0..20)
            .map(|second| {
                let mut slow = gpu(1, if second < 8 { low } else { 2000 });
                slow.utilisation = Some(utilisation);
                sample(second, vec![gpu(0, 2000), slow])
            })
            .collect()
    }

    #[test]
    fn a_drift_begins_beyond_a_twentieth() {
        let own = Own::default();
        assert_eq!(drift(&refs(&run(1900, 99)), &own), None, "5 %");
        assert_eq!(
            drift(&refs(&run(1899, 99)), &own),
            Some(StageFlag::ClockDrift {
                gpus: vec![1],
                low_mhz: 1899,
                high_mhz: 2000
            })
        );
    }

    #[test]
    fn a_drift_counts_under_load_on_our_gpus_and_over_enough_samples() {
        let own = Own::default();
        let moved = run(1000, 50);
        assert!(drift(&refs(&moved), &own).is_some());
        assert_eq!(drift(&refs(&run(1000, 49)), &own), None, "idle");
        let first_alone = Own {
            gpus: Some(vec![0]),
            ..Own::default()
        };
        assert_eq!(drift(&refs(&moved), &first_alone), None);
        assert!(drift(&refs(&moved[6..11]), &own).is_some(), "five samples");
        assert_eq!(drift(&refs(&moved[6..10]), &own), None, "four");
    }

    #[test]
    fn reasons_are_named_with_their_share() {
        let mut samples: Vec<RunSample> = (0..4)
            .map(|second| sample(second, vec![gpu(0, 2000), gpu(2, 2000)]))
            .collect();
        assert_eq!(held_down(&refs(&samples), &Own::default()), None);
        for place in [0, 1] {
            samples[1].sample.gpus[place].throttle = vec!["power cap".to_owned()];
        }
        let found = held_down(&refs(&samples), &Own::default());
        assert_eq!(
            found,
            Some(StageFlag::ClocksHeldDown {
                gpus: vec![0, 2],
                reasons: vec!["power cap".to_owned()],
                share: 0.25
            })
        );
        let other = Own {
            gpus: Some(vec![1]),
            ..Own::default()
        };
        assert_eq!(held_down(&refs(&samples), &other), None);
    }
}
