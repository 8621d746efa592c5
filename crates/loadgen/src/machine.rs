//! The machine that measures: what is recorded of it, and its file limit.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokdyno_domain::meter::ClientInfo;

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

/// Raises the limit of open files as far as it goes.
///
/// # Errors
/// A sentence, if `concurrency` connections do not fit.
pub(crate) fn make_room_for(concurrency: u32) -> Result<(), String> {
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
    room_within(getrlimit(Resource::Nofile).current, concurrency)
}

fn room_within(limit: Option<u64>, concurrency: u32) -> Result<(), String> {
    let needed = u64::from(concurrency) + SPARE_FILES;
    match limit {
        Some(limit) if limit < needed => Err(format!(
            "{concurrency} requests at once need {needed} open files, but this process may open {limit}. Raise the limit (ulimit -n {needed}) or lower the concurrency."
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_are_named() {
        assert_eq!(room_within(Some(1024), 960), Ok(()));
        assert_eq!(room_within(None, 8192), Ok(()));
        let sentence = room_within(Some(1024), 961).expect_err("too few");
        assert!(sentence.contains("1025") && sentence.contains("1024"));
    }

    #[test]
    fn the_machine_is_described() {
        let info = client_info();
        assert_eq!(info.pid, std::process::id());
        assert!(info.cpus > 0 && !info.host.is_empty());
    }
}
