//! Processes that look like engines, and what can be told about a process.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use tokdyno_domain::host::{Gpu, GpuProcess, Keeper, ProcessFacts};

use super::{
    cgroup, filter, gpus, nccl, ports,
    process::{self, Stat},
    users,
};
use crate::wire::{Failure, FailureWord};

/// Words for people: bytes that are no UTF-8 are replaced.
pub(super) fn lossy(words: &[Vec<u8>]) -> Vec<String> {
    words
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Does this command line start an engine? Words are compared, not searched: a
/// shell, an editor or a search that only mentions one is none.
fn starts_engine(words: &[String]) -> bool {
    fn base(word: &str) -> &str {
        word.rsplit('/').next().unwrap_or(word)
    }
    let is_engine = |word: &str| matches!(word, "vllm" | "sglang");
    let Some(program) = words.first().map(|word| base(word)) else {
        return false;
    };
    let serves = |rest: &[String]| rest.first().is_some_and(|word| word == "serve");
    if is_engine(program) {
        return serves(&words[1..]);
    }
    if program.starts_with("python") || program.starts_with("pypy") {
        let rest = &words[1..];
        let by_module = rest.windows(2).any(|pair| {
            pair[0] == "-m"
                && pair[1].split('.').next().is_some_and(is_engine)
                && (pair[1].ends_with("api_server")
                    || pair[1].ends_with("launch_server")
                    || is_engine(&pair[1])
                    || pair[1].ends_with(".main"))
        });
        // Options of Python itself may come before the script.
        let script = rest.iter().position(|word| !word.starts_with('-'));
        let by_script = script.is_some_and(|at| {
            (is_engine(base(&rest[at])) && serves(&rest[at + 1..]))
                || rest[at].ends_with("sglang/launch_server.py")
                || rest[at].ends_with("vllm/entrypoints/openai/api_server.py")
        });
        return by_module || by_script;
    }
    words
        .get(1..3)
        .is_some_and(|pair| pair[0] == "simulate" && is_engine(&pair[1]))
}

/// The tops of the process trees that look like engines or hold GPU memory.
pub(super) fn find() -> Vec<ProcessFacts> {
    let all = process::all();
    let (cards, holders) = cards_and_holders();
    let holding: HashSet<u32> = holders.iter().map(|holder| holder.pid).collect();
    let candidates: HashSet<u32> = all
        .iter()
        .filter(|stat| stat.alive())
        .filter(|stat| {
            holding.contains(&stat.pid)
                || process::argv(stat.pid).is_some_and(|words| starts_engine(&lossy(&words)))
        })
        .map(|stat| stat.pid)
        .collect();
    let parents: HashMap<u32, u32> = all.iter().map(|stat| (stat.pid, stat.parent)).collect();
    let is_top = |pid: u32| {
        let mut at = pid;
        // Bounded: a snapshot of a changing tree may hold a circle.
        for _ in 0..all.len() {
            match parents.get(&at) {
                Some(&parent) if parent != 0 && parent != at => {
                    if candidates.contains(&parent) {
                        return false;
                    }
                    at = parent;
                }
                _ => return true,
            }
        }
        true
    };
    all.iter()
        .filter(|stat| candidates.contains(&stat.pid) && is_top(stat.pid))
        .filter_map(|stat| describe(stat, &[], &all, &cards, &holders))
        .collect()
}

/// One process; none if there is no such process.
pub(super) fn facts(pid: u32, names: &[String]) -> Result<Option<ProcessFacts>, Failure> {
    if pid == 0 {
        return Err(Failure::new(
            FailureWord::BadRequest,
            "There is no process 0. Name a process by its number.",
        ));
    }
    let Some(stat) = Stat::of(pid).filter(Stat::alive) else {
        return Ok(None);
    };
    let (cards, holders) = cards_and_holders();
    Ok(describe(&stat, names, &process::all(), &cards, &holders))
}

fn cards_and_holders() -> (Vec<Gpu>, Vec<GpuProcess>) {
    let Some(program) = gpus::program() else {
        return (Vec::new(), Vec::new());
    };
    let holders = gpus::ask_processes(&program).unwrap_or_default();
    // Their numbers are needed only where somebody uses them.
    let cards = if holders.is_empty() {
        Vec::new()
    } else {
        gpus::all(&program).unwrap_or_default()
    };
    (cards, holders)
}

fn describe(
    stat: &Stat,
    names: &[String],
    all: &[Stat],
    cards: &[Gpu],
    holders: &[GpuProcess],
) -> Option<ProcessFacts> {
    let words = process::argv(stat.pid)?;
    let family = process::with_descendants(&HashSet::from([stat.pid]), all);
    let held: Vec<&GpuProcess> = holders
        .iter()
        .filter(|holder| family.contains(&holder.pid))
        .collect();
    let mut numbers: Vec<u32> = held
        .iter()
        .filter_map(|holder| cards.iter().find(|card| card.uuid == holder.gpu_uuid))
        .map(|card| card.index)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let (command, masked) = filter::masked_command(&lossy(&words));
    let (environment, mut withheld) = process::environ(stat.pid)
        .map(|variables| filter::environment(&variables, names))
        .map_or((None, Vec::new()), |(shown, withheld)| {
            (Some(shown), withheld)
        });
    if masked {
        withheld.push("command line".to_owned());
    }
    Some(ProcessFacts {
        identity: stat.identity(&process::boot_id()),
        user: process::uid(stat.pid).map_or_else(|| "unknown".to_owned(), users::name),
        command,
        directory: fs::read_link(format!("/proc/{}/cwd", stat.pid))
            .ok()
            .map(|path| path.display().to_string()),
        environment,
        withheld,
        ports: ports::of(stat.pid, &family),
        gpu_mib: held.iter().map(|holder| holder.used_mib).sum(),
        gpus: numbers,
        keeper: fs::read_to_string(format!("/proc/{}/cgroup", stat.pid))
            .map_or(Keeper::Process, |text| cgroup::keeper(&text)),
        nccl_conf: nccl::named_by(family),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn engines_are_recognised_by_how_they_are_started() {
        for line in [
            "vllm serve /models/k --port 8000",
            "/opt/env/bin/python3 /opt/env/bin/vllm serve /models/k",
            "python3 -u -m sglang.launch_server --model-path /m",
            "/root/ml-env/bin/python3.12 -m vllm.entrypoints.openai.api_server",
            "/opt/env/bin/python /opt/env/bin/sglang serve --model-path /m",
            "python3 -m vllm serve /m",
            "tokdyno simulate vllm --port 8000",
            "/opt/tokdyno simulate sglang",
        ] {
            assert!(starts_engine(&words(line)), "{line}");
        }
    }

    #[test]
    fn whoever_only_mentions_an_engine_is_none() {
        for line in [
            "vim vllm.py",
            "grep -r vllm serve",
            "ssh gpu1 vllm serve /m",
            "docker run vllm/vllm-openai serve",
            "python3 -m pip install vllm",
            "python3 bench.py --backend sglang",
            "vllm bench throughput",
            "",
        ] {
            assert!(!starts_engine(&words(line)), "{line}");
        }
        assert!(!starts_engine(&[
            "sh".to_owned(),
            "-c".to_owned(),
            "vllm serve x".to_owned()
        ]));
        assert!(!starts_engine(&[]));
    }
}
