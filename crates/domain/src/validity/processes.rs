//! Processes of others on the launch's GPUs.

use std::collections::{BTreeMap, BTreeSet};

use super::{Own, share};
use crate::{host::RunSample, metrics::StageFlag};

/// Most processes that are named.
const NAMED: usize = 5;

/// Every process that the driver lists has a context on the GPU and can compute at any
/// moment; how much it did is not to be seen. So there is no limit below which one
/// counts as harmless.
pub(super) fn check(samples: &[&RunSample], own: &Own) -> Option<StageFlag> {
    let is_ours = |uuid: &String| {
        own.gpu_uuids
            .as_ref()
            .is_none_or(|ours| ours.contains(uuid))
    };
    let known: BTreeSet<u32> = own.pids.iter().copied().collect();
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    let (mut most, mut seen) = (0_u64, 0_usize);
    for sample in samples {
        let mut held: Option<u64> = None;
        for process in &sample.sample.processes {
            if known.contains(&process.pid) || !is_ours(&process.gpu_uuid) {
                continue;
            }
            let all = held.get_or_insert(0);
            *all = all.saturating_add(process.used_mib);
            found.entry(process.pid).or_insert_with(|| {
                let name = &process.name;
                match &process.user {
                    Some(user) => format!("Process {} ({name}, of {user})", process.pid),
                    None => format!("Process {} ({name})", process.pid),
                }
            });
        }
        if let Some(mib) = held {
            most = most.max(mib);
            seen += 1;
        }
    }
    if seen == 0 {
        return None;
    }
    let more = found.len().saturating_sub(NAMED);
    let mut processes: Vec<String> = found.into_values().take(NAMED).collect();
    if more > 0 {
        processes.push(format!("{more} more"));
    }
    Some(StageFlag::OtherProcesses {
        processes,
        mib: most,
        share: share(seen, samples.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            host,
            testing::{refs, sample},
        },
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
    fn who_comes_to_our_gpus_is_named() {
        let own = Own {
            gpus: None,
            gpu_uuids: Some(vec!["GPU-a".to_owned()]),
            pids: vec![10],
        };
        let mut samples: Vec<RunSample> = (0..4).map(|second| sample(second, vec![])).collect();
        for second in &mut samples {
            // There from the beginning: the engine's own.
            second.sample.processes = vec![process(7, "GPU-a")];
        }
        samples[2]
            .sample
            .processes
            .extend([process(9, "GPU-elsewhere"), process(10, "GPU-a")]);
        assert_eq!(host(&samples, &own), []);
        samples[2]
            .sample
            .processes
            .extend([process(8, "GPU-a"), process(8, "GPU-a")]);
        assert_eq!(
            host(&samples, &own),
            [StageFlag::OtherProcesses {
                processes: vec!["Process 8 (python3, of alice)".to_owned()],
                mib: 2400,
                share: 0.25
            }]
        );
    }

    #[test]
    fn a_crowd_is_counted_rather_than_named() {
        let mut samples = vec![sample(0, vec![])];
        samples[0].sample.processes = (1..=7).map(|pid| process(pid, "GPU-a")).collect();
        let Some(StageFlag::OtherProcesses { processes, .. }) =
            check(&refs(&samples), &Own::default())
        else {
            panic!("others are there");
        };
        assert_eq!((processes.len(), processes[5].as_str()), (6, "2 more"));
    }
}
