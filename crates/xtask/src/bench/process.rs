//! Programs held to one core, and what they cost.

use std::fs;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Ticks of the kernel's CPU times per second (`USER_HZ`, the same everywhere on Linux).
const TICKS_PER_SECOND: f64 = 100.0;
/// How often memory is looked at. Only what it grew by since the last look is
/// missed: the kernel keeps the peak.
const LOOK: Duration = Duration::from_millis(20);

/// The cores that the two sides are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cores {
    pub(super) client: usize,
    pub(super) server: usize,
}

/// What a program took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    /// User and system time of the program and of its children, in s.
    pub(super) cpu_s: f64,
    /// Sum of the peaks of its processes, in MiB.
    pub(super) memory_mib: f64,
}

impl Cores {
    /// The first two cores we may use. None where there is only one.
    pub(super) fn find() -> Result<Option<Self>> {
        let ours = sched_getaffinity(None).context("the cores cannot be asked for")?;
        let mut usable = (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core));
        let first_two = usable.next().zip(usable.next());
        Ok(first_two.map(|(client, server)| Self { client, server }))
    }
}

/// Starts a program that may use one core only.
///
/// # Errors
/// It cannot be started, or the core cannot be had.
pub(super) fn spawn_on(core: usize, command: &mut Command) -> Result<Child> {
    let before = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set(core);
    // A child begins with the cores of the thread that started it.
    sched_setaffinity(None, &one).with_context(|| format!("core {core} cannot be had"))?;
    let spawned = command.spawn();
    sched_setaffinity(None, &before)?;
    spawned.with_context(|| format!("{} cannot be run", crate::commands::describe(command)))
}

/// Waits for a program, and says what it cost. No other child may end meanwhile.
///
/// # Errors
/// The kernel does not tell.
pub(super) fn watch(child: &mut Child, longest: Duration) -> Result<(ExitStatus, Cost)> {
    let before = cpu_seconds_of_children()?;
    let began = Instant::now();
    let mut peaks: Vec<(u32, u64)> = Vec::new();
    loop {
        for pid in family(child.id()) {
            let Some(peak) = peak_kib(pid) else { continue };
            match peaks.iter_mut().find(|(known, _)| *known == pid) {
                Some((_, kib)) => *kib = peak.max(*kib),
                None => peaks.push((pid, peak)),
            }
        }
        if let Some(status) = child.try_wait()? {
            let kib: u64 = peaks.iter().map(|(_, kib)| kib).sum();
            let cost = Cost {
                cpu_s: cpu_seconds_of_children()? - before,
                memory_mib: kib as f64 / 1024.0,
            };
            return Ok((status, cost));
        }
        if began.elapsed() > longest {
            // Counted as any other failure by whoever looks at the status.
            child.kill()?;
        }
        std::thread::sleep(LOOK);
    }
}

/// A process and all below it.
fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(parent) = all.get(at).copied() {
        at += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(
                children
                    .split_whitespace()
                    .filter_map(|word| word.parse::<u32>().ok()),
            );
        }
    }
    all
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// CPU time of all children that have ended, and of theirs (`proc(5)`, fields
/// 16 and 17 of `stat`).
fn cpu_seconds_of_children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in brackets may hold blanks; the numbers begin behind it.
    let (_, numbers) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks: u64 = numbers
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(str::parse::<u64>)
        .sum::<Result<_, _>>()?;
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

/// The load of the machine over the last minute.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_held_to_its_core_and_its_cost_is_known() {
        let allowed = sched_getaffinity(None).unwrap();
        let core = (0..CpuSet::MAX_CPU)
            .find(|core| allowed.is_set(*core))
            .unwrap();
        let mut child = spawn_on(
            core,
            Command::new("sh").args([
                "-c",
                "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec sleep 0.2",
            ]),
        )
        .unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .unwrap();
        assert_eq!(list.trim(), core.to_string());
        assert_eq!(sched_getaffinity(None).unwrap(), allowed, "given back");
        let (status, cost) = watch(&mut child, Duration::from_secs(60)).unwrap();
        assert!(status.success());
        assert!(cost.cpu_s > 0.0 && cost.memory_mib > 0.0, "{cost:?}");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let (status, _) = watch(&mut child, Duration::from_millis(50)).unwrap();
        assert!(!status.success());
    }
}
