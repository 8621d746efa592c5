//! Hosts to test on, each with a home of its own.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokdyno_domain::host::{ProcessIdentity, Reach};
use tokdyno_remote::{
    Host, ProcessStatus, RawCommand, RemoteConfig, Spawn, Spawned, testing::TestSshd,
};

pub(crate) fn agent() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tokdyno-agent"))
}

/// A host and what keeps it there.
pub(crate) struct TestHost {
    pub(crate) host: Host,
    pub(crate) home: PathBuf,
    pub(crate) sshd: Option<TestSshd>,
    _folder: Option<TempDir>,
}

/// This machine, with another home.
pub(crate) fn local() -> TestHost {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    fs::create_dir_all(home.join("bin")).expect("a home");
    let path = std::env::var("PATH").expect("a PATH");
    let config = RemoteConfig {
        local_environment: [
            ("HOME", home.display().to_string()),
            (
                "XDG_STATE_HOME",
                home.join(".local/state").display().to_string(),
            ),
            ("PATH", format!("{}:{path}", home.join("bin").display())),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .to_vec(),
        ..RemoteConfig::new(agent().to_owned())
    };
    TestHost {
        host: Host::open(&config, &Reach::Local),
        home,
        sshd: None,
        _folder: Some(folder),
    }
}

/// A host behind SSH.
pub(crate) fn remote(shell: &str) -> TestHost {
    let sshd = TestSshd::with_shell(shell).expect("an sshd");
    TestHost {
        host: Host::open(&sshd.config(agent()), &sshd.reach()),
        home: sshd.home(),
        sshd: Some(sshd),
        _folder: None,
    }
}

/// Both kinds of hosts.
pub(crate) fn both() -> [TestHost; 2] {
    [local(), remote("/bin/bash")]
}

impl TestHost {
    /// Puts a program on the host's PATH.
    pub(crate) fn install(&self, name: &str, script: &str) {
        let path = self.home.join("bin").join(name);
        fs::write(&path, script).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.home.join(".local/state/tokdyno/launches").join(name)
    }

    pub(crate) async fn sh(&self, folder: &str, script: &str) -> Spawned {
        self.host
            .spawn(&Spawn {
                folder: folder.to_owned(),
                command: RawCommand::new(["sh", "-c", script]),
            })
            .await
            .expect("starts")
    }

    /// Waits until a launch is over, or 10 s.
    pub(crate) async fn over(&self, folder: &str, identity: &ProcessIdentity) -> ProcessStatus {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let status = self.host.status(folder, identity).await.expect("a status");
            if !matches!(status, ProcessStatus::Running { .. }) || Instant::now() > until {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a file of a folder holds `text`, or 10 s.
    pub(crate) async fn says(&self, folder: &str, text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let log = self.host.read(folder, "log", 1 << 20).await.expect("a log");
            let log = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
            if log.contains(text) || Instant::now() > until {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Does a process live, zombies not counted?
pub(crate) fn lives(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|line| {
        line.rsplit_once(')')
            .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    })
}

/// Waits until a process is gone, or 10 s.
pub(crate) async fn gone(pid: u32) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while lives(pid) {
        if Instant::now() > until {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}
