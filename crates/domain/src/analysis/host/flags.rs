//! Sentences about a host during a run: drift, held-down clocks, heat, strangers.

use std::collections::{BTreeMap, BTreeSet};

use super::Own;
use crate::{
    host::{GpuSample, RunSample},
    text,
};

/// A clock that moves by more than this share of itself under load is said.
const DRIFT: f64 = 0.05;
/// Fewest samples under load that tell of a drift.
const FEWEST: usize = 5;
/// From this use on, in percent, a GPU is under load.
const BUSY: u32 = 50;
/// From this temperature on, in °C: GPUs begin to slow down not far above it.
const HOT: u32 = 85;
/// Strangers' requests are believed when so many samples in a row tell of them: the
/// engine's count and the client's are not taken at the same moment.
const IN_A_ROW: usize = 3;

/// What a reader of the figures must know of the host, a sentence each.
#[must_use]
pub fn host_flags(samples: &[RunSample], own: &Own) -> Vec<String> {
    let mut flags = Vec::new();
    flags.extend(drift(samples, own));
    flags.extend(throttles(samples, own));
    flags.extend(heat(samples, own));
    flags.extend(strangers(samples, own));
    flags.extend(foreign_requests(samples));
    flags
}

fn own_gpus<'a>(samples: &'a [RunSample], own: &'a Own) -> impl Iterator<Item = &'a GpuSample> {
    samples
        .iter()
        .flat_map(|sample| &sample.sample.gpus)
        .filter(|gpu| own.has_gpu(gpu))
}

/// From the tenth to the ninetieth percentile of the clock under load, per GPU.
fn drift(samples: &[RunSample], own: &Own) -> Option<String> {
    let mut clocks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for gpu in own_gpus(samples, own) {
        let busy = gpu.utilisation.is_none_or(|use_of_it| use_of_it >= BUSY);
        if let Some(mhz) = gpu.sm_mhz.filter(|_| busy) {
            clocks.entry(gpu.index).or_default().push(mhz);
        }
    }
    let mut drifted = Vec::new();
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
            drifted.push(gpu);
            let (least, most) = range.unwrap_or((low, high));
            range = Some((least.min(low), most.max(high)));
        }
    }
    let (least, most) = range?;
    Some(format!(
        "Clocks drifted by more than 5 % under load: {} ran between {} and {} MHz. Lock the clocks to compare runs.",
        gpu_names(&drifted),
        text::count(least.into()),
        text::count(most.into()),
    ))
}

fn throttles(samples: &[RunSample], own: &Own) -> Vec<String> {
    let mut reasons: BTreeMap<&str, (BTreeSet<u32>, u32)> = BTreeMap::new();
    for sample in samples {
        let mut seen = BTreeSet::new();
        for gpu in sample.sample.gpus.iter().filter(|gpu| own.has_gpu(gpu)) {
            for reason in &gpu.throttle {
                let (gpus, count) = reasons.entry(reason).or_default();
                gpus.insert(gpu.index);
                if seen.insert(reason) {
                    *count += 1;
                }
            }
        }
    }
    reasons
        .into_iter()
        .map(|(reason, (gpus, count))| {
            format!(
                "Clocks were held down ({reason}) on {} in {} of the samples.",
                gpu_names(&gpus.into_iter().collect::<Vec<_>>()),
                share(count as usize, samples.len()),
            )
        })
        .collect()
}

fn heat(samples: &[RunSample], own: &Own) -> Option<String> {
    let hottest = own_gpus(samples, own)
        .filter_map(|gpu| Some((gpu.temperature_c?, gpu.index)))
        .max()?;
    let (degrees, gpu) = hottest;
    (degrees >= HOT).then(|| {
        format!("GPU {gpu} reached {degrees} °C. Hot GPUs slow down; look at the cooling.")
    })
}

fn strangers(samples: &[RunSample], own: &Own) -> Vec<String> {
    let is_ours = |uuid: &String| {
        own.gpu_uuids
            .as_ref()
            .is_none_or(|ours| ours.contains(uuid))
    };
    let mut known: BTreeSet<u32> = own.pids.iter().copied().collect();
    if let Some(first) = samples.first() {
        known.extend(first.sample.processes.iter().map(|process| process.pid));
    }
    // Per process: its name, whose it is, the most memory it held, samples.
    let mut found: BTreeMap<u32, (String, u64, usize)> = BTreeMap::new();
    for sample in samples {
        let mut held: BTreeMap<u32, (String, u64)> = BTreeMap::new();
        for process in &sample.sample.processes {
            if known.contains(&process.pid) || !is_ours(&process.gpu_uuid) {
                continue;
            }
            let name = match &process.user {
                Some(user) => format!("{}, of {user}", process.name),
                None => process.name.clone(),
            };
            let (_, mib) = held.entry(process.pid).or_insert((name, 0));
            *mib = mib.saturating_add(process.used_mib);
        }
        for (pid, (name, mib)) in held {
            let (_, most, count) = found.entry(pid).or_insert((name, 0, 0));
            *most = mib.max(*most);
            *count += 1;
        }
    }
    found
        .into_iter()
        .map(|(pid, (name, mib, count))| {
            format!(
                "Process {pid} ({name}) came to the launch's GPUs during the run: it held up to {} MiB in {} of the samples.",
                text::count(mib),
                share(count, samples.len()),
            )
        })
        .collect()
}

fn foreign_requests(samples: &[RunSample]) -> Option<String> {
    let excess: Vec<u64> = samples
        .iter()
        .map(
            |sample| match (sample.engine_requests, sample.own_in_flight) {
                (Some(all), Some(own)) => all.saturating_sub(own.into()),
                _ => 0,
            },
        )
        .collect();
    let told = samples
        .iter()
        .filter(|sample| sample.engine_requests.is_some() && sample.own_in_flight.is_some())
        .count();
    let believed: Vec<&[u64]> = excess
        .split(|more| *more == 0)
        .filter(|row| row.len() >= IN_A_ROW)
        .collect();
    let most = believed.iter().flat_map(|row| row.iter()).max()?;
    let count: usize = believed.iter().map(|row| row.len()).sum();
    Some(format!(
        "The engine worked on other people's requests too: up to {} at once, in {} of the samples.",
        text::count(*most),
        share(count, told),
    ))
}

fn share(part: usize, whole: usize) -> String {
    text::share(part as f64 / whole.max(1) as f64)
}

/// `GPU 3`, or `GPUs 0, 1 and 3`.
fn gpu_names(gpus: &[u32]) -> String {
    match gpus {
        [] => "no GPU".to_owned(),
        [one] => format!("GPU {one}"),
        [head @ .., last] => {
            let head: Vec<String> = head.iter().map(u32::to_string).collect();
            format!("GPUs {} and {last}", head.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{gpu, sample},
        *,
    };
    use crate::host::GpuProcess;

    fn process(pid: u32, gpu_uuid: &str) -> GpuProcess {
        GpuProcess {
            gpu_uuid: gpu_uuid.to_owned(),
            pid,
            name: "python3".to_owned(),
            user: Some("alice".to_owned()),
            used_mib: 1200,
        }
    }

    #[test]
    fn a_quiet_host_has_no_flag() {
        let samples: Vec<RunSample> = (0..20)
            .map(|second| sample(second, vec![gpu(0, 2000 + u32::from(second % 3 == 0) * 15)]))
            .collect();
        assert_eq!(host_flags(&samples, &Own::default()), Vec::<String>::new());
        assert_eq!(host_flags(&[], &Own::default()), Vec::<String>::new());
    }

    #[test]
    fn a_drift_counts_under_load_alone_and_on_our_gpus_alone() {
        let run = |low: u32, utilisation: u32| -> Vec<RunSample> {
            (0..20)
                .map(|second| {
                    let mut slow = gpu(1, if second < 8 { low } else { 2500 });
                    slow.utilisation = Some(utilisation);
                    sample(second, vec![gpu(0, 2500), slow])
                })
                .collect()
        };
        let flags = host_flags(&run(2100, 99), &Own::default());
        assert_eq!(flags.len(), 1);
        assert!(
            flags[0].contains("GPU 1 ran between 2,100 and 2,500 MHz"),
            "{flags:?}"
        );
        assert!(
            host_flags(&run(2400, 99), &Own::default()).is_empty(),
            "4 %"
        );
        assert!(host_flags(&run(300, 3), &Own::default()).is_empty(), "idle");
        let first_alone = Own {
            gpus: Some(vec![0]),
            ..Own::default()
        };
        assert!(host_flags(&run(2100, 99), &first_alone).is_empty());
    }

    #[test]
    fn held_down_clocks_and_heat_are_said_with_their_share() {
        let samples: Vec<RunSample> = (0..4)
            .map(|second| {
                let mut hot = gpu(2, 2000);
                hot.temperature_c = Some(if second == 3 { 91 } else { 60 });
                if second == 0 {
                    hot.throttle = vec!["power cap".to_owned()];
                }
                let mut other = gpu(0, 2000);
                other.throttle.clone_from(&hot.throttle);
                sample(second, vec![other, hot])
            })
            .collect();
        assert_eq!(
            host_flags(&samples, &Own::default()),
            [
                "Clocks were held down (power cap) on GPUs 0 and 2 in 25 % of the samples.",
                "GPU 2 reached 91 °C. Hot GPUs slow down; look at the cooling.",
            ]
        );
    }

    #[test]
    fn who_comes_to_our_gpus_during_the_run_is_named() {
        let mut samples: Vec<RunSample> = (0..4).map(|second| sample(second, vec![])).collect();
        for second in &mut samples {
            second.sample.processes = vec![process(7, "GPU-a")];
        }
        samples[2].sample.processes.extend([
            process(8, "GPU-a"),
            process(9, "GPU-elsewhere"),
            process(10, "GPU-a"),
        ]);
        let own = Own {
            gpus: None,
            gpu_uuids: Some(vec!["GPU-a".to_owned()]),
            pids: vec![10],
        };
        let flags = host_flags(&samples, &own);
        assert_eq!(flags.len(), 1, "{flags:?}");
        assert!(
            flags[0].contains("Process 8 (python3, of alice)") && flags[0].contains("25 %"),
            "{flags:?}"
        );
    }

    #[test]
    fn requests_of_others_are_believed_when_they_stay() {
        let run = |excess: &[u64]| -> Vec<RunSample> {
            excess
                .iter()
                .zip(0..)
                .map(|(more, second)| RunSample {
                    engine_requests: Some(8 + more),
                    own_in_flight: Some(8),
                    ..sample(second, vec![])
                })
                .collect()
        };
        assert!(host_flags(&run(&[0, 5, 5, 0, 3, 0, 2, 2]), &Own::default()).is_empty());
        let flags = host_flags(&run(&[0, 1, 4, 2, 0, 0]), &Own::default());
        assert_eq!(
            flags,
            [
                "The engine worked on other people's requests too: up to 4 at once, in 50 % of the samples."
            ]
        );
        let mut silent = run(&[9, 9, 9]);
        for second in &mut silent {
            second.engine_requests = None;
        }
        assert!(host_flags(&silent, &Own::default()).is_empty());
    }
}
