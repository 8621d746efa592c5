//! The machine that measures: what is recorded of it, and its file limit.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokdyno_domain::{meter::ClientInfo, workload::StageKind};

/// Files the process needs beside one per connection.
const SPARE_FILES: u64 = 64;

/// What is recorded of this machine.
pub(crate) fn client_info() -> ClientInfo {
    ClientInfo {
        host: read("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned()),
        pid: std::process::id(),
        cpus: std::thread::available_parallelism()
            .map_or(0, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        governor: governor(),
    }
}

/// Frequency governor of the first processor, where readable.
pub(crate) fn governor() -> Option<String> {
    read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
}

/// A small file of the kernel's, without its line end; none if it is blank.
pub(crate) fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

/// Fewer files may be opened than connections are needed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FewFiles {
    connections: u32,
    needed: u64,
    limit: u64,
}

impl FewFiles {
    /// A sentence on a stage of this kind, which needs them.
    pub(crate) fn sentence(&self, kind: StageKind) -> String {
        let Self {
            connections,
            needed,
            limit,
        } = self;
        let or = match kind {
            StageKind::ClosedLoop { .. } => " or lower the concurrency",
            StageKind::OpenLoop { .. } | StageKind::Ramp { .. } => " or lower the rate",
            // Their connections are as many for every load.
            StageKind::SingleStream | StageKind::Replay { .. } => "",
        };
        format!(
            "{connections} connections at once need {needed} open files, but this process may open {limit}. Raise the limit (ulimit -n {needed}){or}."
        )
    }
}

/// Raises the limit of open files as far as it goes.
///
/// # Errors
/// So many connections do not fit.
pub(crate) fn make_room_for(connections: u32) -> Result<(), FewFiles> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Refused in some sandboxes; what counts is what is read back.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        );
    }
    room_within(getrlimit(Resource::Nofile).current, connections)
}

fn room_within(limit: Option<u64>, connections: u32) -> Result<(), FewFiles> {
    let needed = u64::from(connections) + SPARE_FILES;
    match limit {
        Some(limit) if limit < needed => Err(FewFiles {
            connections,
            needed,
            limit,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::workload::{Arrivals, Thousandths};

    use super::*;

    #[test]
    fn too_few_files_are_named() {
        assert_eq!(room_within(Some(1024), 960), Ok(()));
        assert_eq!(room_within(None, 8192), Ok(()));
        let few = room_within(Some(1024), 961).expect_err("too few");
        let rate = StageKind::OpenLoop {
            rate: Thousandths::ONE,
            arrivals: Arrivals::Constant,
        };
        let replay = StageKind::Replay {
            speed: Thousandths::ONE,
        };
        for (kind, end) in [
            (
                StageKind::ClosedLoop { concurrency: 961 },
                "(ulimit -n 1025) or lower the concurrency.",
            ),
            (rate, "(ulimit -n 1025) or lower the rate."),
            (replay, "(ulimit -n 1025)."),
        ] {
            let sentence = few.sentence(kind);
            assert!(sentence.contains("may open 1024"), "{sentence}");
            assert!(sentence.ends_with(end), "{sentence}");
        }
    }

    #[test]
    fn the_machine_is_described() {
        let info = client_info();
        assert_eq!(info.pid, std::process::id());
        assert!(info.cpus > 0 && !info.host.is_empty());
    }
}
