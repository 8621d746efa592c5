//! What the process tests share: folders, programs, and a small HTTP client that
//! can say things a well-behaved one would not.
//!
//! Programs are ended by their process id, never by name.

mod http;
mod programs;

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

pub(crate) use http::{Reply, Request, get, get_with, post, request};
pub(crate) use programs::{
    Finished, Server, Simulator, cargo_build, children_of, is_alive, kill_nine, send_interrupt,
    tokdyno,
};

/// How long anything may take on a slow, loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A data directory that PostgreSQL's own account can enter. If a killed server
/// left its database running, that is ended with it.
pub(crate) struct DataDir(tempfile::TempDir);

impl DataDir {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tokdyno-test-")
            .permissions(std::fs::Permissions::from_mode(0o711))
            .tempdir()
            .expect("a folder");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The process id of the private database's postmaster.
    pub(crate) fn postmaster(&self) -> Option<i32> {
        let file = self.path().join("postgres/cluster/postmaster.pid");
        let text = std::fs::read_to_string(file).ok()?;
        text.lines().next()?.trim().parse().ok()
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if let Some(pid) = self.postmaster()
            && is_alive(pid)
        {
            kill_nine(pid);
        }
    }
}

/// A site directory with the least that a page needs.
pub(crate) fn site(folder: &Path) -> PathBuf {
    let site = folder.join("site");
    std::fs::create_dir_all(site.join("pkg")).expect("made");
    let manifest = r#"{"build_id":"0123456789abcdef","js":"/pkg/t.js","wasm":"/pkg/t.wasm","css":"/pkg/t.css","plotly":"/pkg/p.js","public":["/favicon.svg"],"sizes":{}}"#;
    for (name, text) in [
        ("manifest.json", manifest),
        ("favicon.svg", "<svg/>"),
        ("pkg/t.css", "body{}"),
    ] {
        std::fs::write(site.join(name), text).expect("written");
    }
    site
}
