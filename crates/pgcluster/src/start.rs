//! Starting a postmaster and waiting until it takes connections.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::layout::{Layout, PORT};
use crate::postmaster::{self, PidFile};
use crate::readiness::accepts_connections;
use crate::{ClusterError, Durability};

/// Longest wait for the first connection; a recovery may go on behind it.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(60);

/// How long the remains of a killed server may stand in the way of a new one.
const REMAINS_PATIENCE: Duration = Duration::from_secs(20);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// A log longer than this is moved aside at the next start.
const LONGEST_LOG: u64 = 8 * 1024 * 1024;

/// How much of the log goes into a message.
const SHOWN_LOG: u64 = 1500;

/// What PostgreSQL says while backends of a killed postmaster still end.
const REMAINS: &[&str] = &[
    "is still in use",
    "pre-existing shared memory block",
    "already exists",
];

/// A postmaster that accepts connections.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) socket_dir: PathBuf,
    pub(crate) port: u16,
    /// Absent where another process started it.
    pub(crate) child: Option<Child>,
}

/// Starts PostgreSQL on an existing cluster that does not run, and waits.
///
/// # Errors
/// It ended, or accepts no connections in time. In the latter case it is left
/// running, because stopping it would only make the recovery begin again.
pub(crate) fn start(
    layout: &Layout,
    account: &Account,
    binaries: &Binaries,
    durability: Durability,
) -> Result<Running, ClusterError> {
    let socket_dir = layout.create_socket_dir(account)?;
    clear_reused_pid(&layout.cluster_dir(), &socket_dir);
    let begun = Instant::now();
    loop {
        let log_start = rotate_log(layout)?;
        let child = spawn(layout, account, binaries, durability, &socket_dir)?;
        match wait_ready(layout, Some(child), log_start) {
            Err(ClusterError::Start { tail, .. })
                if begun.elapsed() < REMAINS_PATIENCE
                    && REMAINS.iter().any(|words| tail.contains(words)) =>
            {
                std::thread::sleep(PAUSE * 20);
            }
            outcome => return outcome,
        }
    }
}

/// Waits until the postmaster of the cluster accepts connections: `child` if
/// it is ours, else the one that `postmaster.pid` names.
///
/// # Errors
/// It ended, or accepts no connections in time.
pub(crate) fn wait_ready(
    layout: &Layout,
    mut child: Option<Child>,
    log_start: u64,
) -> Result<Running, ClusterError> {
    let cluster_dir = layout.cluster_dir();
    let begun = Instant::now();
    loop {
        let ended = match &mut child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => postmaster::running(&cluster_dir).is_none(),
        };
        if ended {
            return Err(ClusterError::Start {
                log: layout.log_file(),
                tail: log_tail(layout, log_start),
            });
        }
        if let Some(PidFile {
            pid,
            socket_dir: Some(socket_dir),
            port: Some(port),
        }) = PidFile::read(&cluster_dir)
            && child.as_ref().is_none_or(|child| child.id() == pid)
            && accepts_connections(&socket_dir, port)
        {
            return Ok(Running {
                pid,
                socket_dir,
                port,
                child,
            });
        }
        if begun.elapsed() > START_PATIENCE {
            return Err(ClusterError::NotReady {
                waited: START_PATIENCE,
                log: layout.log_file(),
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Opening fails where the last part of the path is a link.
pub(crate) const NO_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

fn spawn(
    layout: &Layout,
    account: &Account,
    binaries: &Binaries,
    durability: Durability,
    socket_dir: &Path,
) -> Result<Child, ClusterError> {
    let program = binaries.bin_dir.join("postgres");
    let log_path = layout.log_file();
    let open_log = || {
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            // The folder belongs to PostgreSQL's account: a link that it put here
            // must not make root write elsewhere.
            .custom_flags(NO_LINKS)
            .open(&log_path)
    };
    let log = open_log().map_err(ClusterError::io("Opening", &log_path))?;
    let log_again = log
        .try_clone()
        .map_err(ClusterError::io("Opening", &log_path))?;
    let mut command = account.command(&program, &layout.home);
    command.arg("-D").arg(layout.cluster_dir());
    let settings = [
        "listen_addresses=".to_owned(),
        format!("port={PORT}"),
        format!("unix_socket_directories={}", quote_list_item(socket_dir)),
        "unix_socket_permissions=0700".to_owned(),
        "logging_collector=off".to_owned(),
        "log_destination=stderr".to_owned(),
    ];
    let throwaway = [
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
    ]
    .map(str::to_owned)
    .into_iter()
    .filter(|_| durability == Durability::Throwaway);
    for setting in settings.into_iter().chain(throwaway) {
        command.args(["-c", &setting]);
    }
    command
        // A group of its own: Ctrl-C in the terminal must reach the program,
        // which then stops PostgreSQL in order, and not both at once.
        .process_group(0)
        .stdout(Stdio::from(log))
        .stderr(Stdio::from(log_again))
        .spawn()
        .map_err(|source| ClusterError::CannotRun {
            program,
            user: account.other_name().map(str::to_owned),
            source,
        })
}

/// Removes the traces of a dead postmaster whose number another process has by
/// now: PostgreSQL would take that process for a server and refuse to start.
/// With the owner's lock held and no postmaster alive nobody else needs them.
fn clear_reused_pid(cluster_dir: &Path, socket_dir: &Path) {
    let socket = socket_dir.join(format!(".s.PGSQL.{PORT}"));
    let lock = socket_dir.join(format!(".s.PGSQL.{PORT}.lock"));
    for file in [postmaster::path(cluster_dir), lock] {
        let Some(pid) = std::fs::read_to_string(&file)
            .ok()
            .and_then(|text| text.lines().next()?.trim().parse().ok())
        else {
            continue;
        };
        if postmaster::exists(pid) && !postmaster::is_postmaster(pid, cluster_dir) {
            tracing::warn!(pid, file = %file.display(), "stale process id, now another process's: removed");
            let _ = std::fs::remove_file(&file);
            let _ = std::fs::remove_file(&socket);
        }
    }
}

/// Moves a long log aside and returns the length of the one that goes on.
fn rotate_log(layout: &Layout) -> Result<u64, ClusterError> {
    let path = layout.log_file();
    let length = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if length <= LONGEST_LOG {
        return Ok(length);
    }
    std::fs::rename(&path, path.with_extension("1")).map_err(ClusterError::io("Moving", &path))?;
    Ok(0)
}

/// The last of what was written to the log after `start`.
fn log_tail(layout: &Layout, start: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = std::fs::File::open(layout.log_file())?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(end.saturating_sub(SHOWN_LOG))))?;
        let mut bytes = Vec::new();
        file.take(SHOWN_LOG).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_else(|error| format!("(the log cannot be read: {error})"))
}

/// One item of a list setting, quoted: a path may hold commas and spaces.
fn quote_list_item(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_quote_stays_one_item() {
        assert_eq!(quote_list_item(Path::new("/a, \"b")), "\"/a, \"\"b\"");
    }
}
