//! What `postmaster.pid` and the kernel say about a PostgreSQL that runs.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// What `postmaster.pid` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: u32,
    /// Unknown until PostgreSQL has made its socket.
    pub(crate) socket_dir: Option<PathBuf>,
    pub(crate) port: Option<u16>,
}

impl PidFile {
    /// The file in `cluster_dir`, if it is there and starts with a process id.
    pub(crate) fn read(cluster_dir: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path(cluster_dir)).ok()?)
    }

    /// Lines: process id, data directory, start time, port, socket directory,
    /// listen address, shared memory key, status (PostgreSQL's `pidfile.h`).
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let pid = lines.next()?.parse().ok()?;
        let port = lines.nth(2).and_then(|line| line.parse().ok());
        let socket_dir = lines
            .next()
            .filter(|line| line.starts_with('/'))
            .map(PathBuf::from);
        Some(Self {
            pid,
            socket_dir,
            port,
        })
    }
}

/// Where PostgreSQL keeps its process id.
pub(crate) fn path(cluster_dir: &Path) -> PathBuf {
    cluster_dir.join("postmaster.pid")
}

/// The live postmaster of `cluster_dir`, if there is one.
pub(crate) fn running(cluster_dir: &Path) -> Option<PidFile> {
    PidFile::read(cluster_dir).filter(|file| is_postmaster(file.pid, cluster_dir))
}

/// Whether process `pid` is the postmaster of `cluster_dir`. A number alone
/// proves nothing: after a restart of a container somebody else has it.
///
/// The working directory of another user's process is hidden from root in a
/// container without `SYS_PTRACE`; the command line is not.
pub(crate) fn is_postmaster(pid: u32, cluster_dir: &Path) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let is_postgres = std::fs::read_to_string(process.join("comm"))
        .is_ok_and(|name| matches!(name.trim(), "postgres" | "postmaster"));
    let works_here = || std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == cluster_dir);
    let was_told = || {
        std::fs::read(process.join("cmdline"))
            .is_ok_and(|words| names_cluster(&words, cluster_dir.as_os_str().as_encoded_bytes()))
    };
    is_postgres && (was_told() || works_here())
}

/// Whether a command line, as `/proc` shows it, has `-D` and this directory.
fn names_cluster(command_line: &[u8], cluster_dir: &[u8]) -> bool {
    let mut words = command_line.split(|byte| *byte == 0);
    words.any(|word| word == b"-D") && words.next() == Some(cluster_dir)
}

/// Whether any process has this number (one of another user's counts, too).
pub(crate) fn exists(pid: u32) -> bool {
    to_pid(pid).is_some_and(|pid| {
        !matches!(
            test_kill_process(pid),
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL)
        )
    })
}

/// Sends `signal`; a process that is gone already is no error.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = to_pid(pid)
        && let Err(errno) = kill_process(pid, signal)
        && errno != rustix::io::Errno::SRCH
    {
        tracing::warn!(%errno, pid = pid.as_raw_nonzero().get(), "signal not delivered");
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_file_of_a_ready_and_of_a_starting_server() {
        let ready =
            "4242\n/d/postgres/cluster\n1700000000\n5432\n/d/postgres/socket\n\n 123 4\nready   \n";
        assert_eq!(
            PidFile::parse(ready),
            Some(PidFile {
                pid: 4242,
                socket_dir: Some("/d/postgres/socket".into()),
                port: Some(5432)
            })
        );
        let starting = "4242\n/d/postgres/cluster\n1700000000\n5432\n";
        assert_eq!(PidFile::parse(starting).unwrap().socket_dir, None);
        assert_eq!(PidFile::parse(""), None);
        assert_eq!(PidFile::parse("-1\n"), None);
    }

    #[test]
    fn the_command_line_tells_whose_postmaster_it_is() {
        let line = b"/usr/bin/postgres\0-D\0/d/cluster\0-c\0port=5432\0";
        assert!(names_cluster(line, b"/d/cluster"));
        assert!(!names_cluster(line, b"/d/clust"));
        assert!(!names_cluster(
            b"postgres: checkpointer \0\0",
            b"/d/cluster"
        ));
    }

    #[test]
    fn this_process_exists_and_is_no_postmaster() {
        let own = std::process::id();
        assert!(exists(own));
        assert!(!is_postmaster(own, &std::env::current_dir().unwrap()));
    }
}
