//! Processes, as `/proc` shows them.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt,
};

use rustix::process::{Pid, PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
use tokdyno_domain::host::ProcessIdentity;

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: u32,
    pub(super) state: char,
    pub(super) parent: u32,
    pub(super) pgid: u32,
    pub(super) session: u32,
    pub(super) start_ticks: u64,
}

impl Stat {
    /// Reads the line of a `stat` file. The name in parentheses may hold anything,
    /// parentheses too, so what counts is what follows the last one.
    fn parse(pid: u32, line: &[u8]) -> Option<Self> {
        let end = line.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first of these is field 3 of proc_pid_stat(5).
        Some(Self {
            pid,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            pgid: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    /// Of one process; none if there is no such process.
    pub(super) fn of(pid: u32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Neither a zombie nor dead.
    pub(super) fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    pub(super) fn identity(&self, boot_id: &str) -> ProcessIdentity {
        ProcessIdentity {
            boot_id: boot_id.to_owned(),
            pid: self.pid,
            start_ticks: self.start_ticks,
            pgid: self.pgid,
        }
    }

    /// Is this the process that `identity` names? The boot is compared elsewhere.
    pub(super) fn is(&self, identity: &ProcessIdentity) -> bool {
        self.pid == identity.pid && self.start_ticks == identity.start_ticks
    }
}

/// Identity of the present boot.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Every process that can be seen.
pub(super) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Stat::of)
        .collect()
}

/// `roots` and everything below them.
pub(super) fn with_descendants(roots: &HashSet<u32>, all: &[Stat]) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for stat in all {
        children.entry(stat.parent).or_default().push(stat.pid);
    }
    let mut found = roots.clone();
    let mut open: Vec<u32> = roots.iter().copied().collect();
    while let Some(pid) = open.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            if found.insert(child) {
                open.push(child);
            }
        }
    }
    found
}

/// Words of the command line, byte for byte; none for kernel threads, zombies and
/// what cannot be read.
pub(super) fn argv(pid: u32) -> Option<Vec<Vec<u8>>> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = split_nul(&bytes);
    (!words.is_empty()).then_some(words)
}

/// The environment at the process's start, byte for byte. None if it cannot be
/// read, or no longer parses: programs that rename themselves write over it.
pub(super) fn environ(pid: u32) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    parse_environ(&fs::read(format!("/proc/{pid}/environ")).ok()?)
}

fn parse_environ(bytes: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    split_nul(bytes)
        .into_iter()
        .map(|field| {
            let equals = field.iter().position(|&byte| byte == b'=')?;
            let name = &field[..equals];
            // Names of real variables; a title written over them has blanks.
            let plain = !name.is_empty()
                && name
                    .iter()
                    .all(|byte| byte.is_ascii_graphic() && *byte != b'=');
            plain.then(|| (name.to_vec(), field[equals + 1..].to_vec()))
        })
        .collect::<Option<Vec<_>>>()
        // An empty one cannot be told from one that was wiped.
        .filter(|variables| !variables.is_empty())
}

fn split_nul(bytes: &[u8]) -> Vec<Vec<u8>> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// Number of the account that a process belongs to.
pub(super) fn uid(pid: u32) -> Option<u32> {
    Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

/// Signals the process that `identity` names, and no other: the handle is taken
/// first and the start time compared afterwards, so the number cannot pass to
/// another process in between.
///
/// Returns whether the signal was sent.
pub(super) fn signal(identity: &ProcessIdentity, signal: rustix::process::Signal) -> bool {
    let Some(pid) = i32::try_from(identity.pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    let handle = pidfd_open(pid, PidfdFlags::empty());
    if !Stat::of(identity.pid).is_some_and(|stat| stat.alive() && stat.is(identity)) {
        return false;
    }
    match handle {
        Ok(handle) => pidfd_send_signal(&handle, signal).is_ok(),
        // Kernels before 5.3 and some sandboxes have no handles of processes.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            kill_process(pid, signal).is_ok()
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_cannot_confuse_the_reader() {
        let line = b"42 (a) R 1 (b) S 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3";
        let stat = Stat::parse(42, line).expect("parses");
        assert_eq!(
            (
                stat.state,
                stat.parent,
                stat.pgid,
                stat.session,
                stat.start_ticks
            ),
            ('S', 7, 42, 40, 987_654)
        );
        assert_eq!(Stat::parse(42, b"42 (torn"), None);
    }

    #[test]
    fn an_environment_that_was_written_over_is_not_readable() {
        assert_eq!(
            parse_environ(b"A=1\0B=x=y\0C=\0"),
            Some(vec![
                (b"A".to_vec(), b"1".to_vec()),
                (b"B".to_vec(), b"x=y".to_vec()),
                (b"C".to_vec(), Vec::new()),
            ])
        );
        for overwritten in [
            b"sglang::scheduler_TP0".as_slice(),
            b"cheduler TP0=1\0",
            b"\0\0\0\0",
            b"",
        ] {
            assert_eq!(parse_environ(overwritten), None);
        }
    }

    #[test]
    fn this_process_is_found_with_its_words() {
        let me = std::process::id();
        let stat = Stat::of(me).expect("it lives");
        assert!(stat.alive());
        assert!(all().iter().any(|other| other.is(&stat.identity(""))));
        assert!(argv(me).expect("readable").len() == std::env::args_os().count());
        assert_eq!(uid(me), Some(rustix::process::getuid().as_raw()));
    }

    #[test]
    fn another_start_time_is_another_process() {
        let mut identity = Stat::of(std::process::id()).expect("it lives").identity("");
        identity.start_ticks += 1;
        // SIGTERM would end this test.
        assert!(!signal(&identity, rustix::process::Signal::TERM));
    }
}
