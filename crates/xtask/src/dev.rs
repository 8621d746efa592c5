//! Build, serve, and rebuild what changes. The pages reload by themselves.

use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use notify::{RecursiveMode, Watcher};

use crate::commands::{self, cargo, in_root, root, target_dir};
use crate::web;

/// What is watched. `app` alone would include what npm installed.
const WATCHED: &[&str] = &[
    "app/src",
    "app/Cargo.toml",
    "crates",
    "server",
    "style",
    "public",
    "migrations",
    "Cargo.toml",
];

/// No change for so long: an editor is done saving.
const QUIET: Duration = Duration::from_millis(250);

/// Longest collecting of changes, however many keep coming.
const LONGEST_COLLECTING: Duration = Duration::from_secs(3);

/// Longest wait for the server to end; it stops its database on the way.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// How often to look whether the server has ended by itself.
const LOOK: Duration = Duration::from_secs(1);

/// What has to be done about some changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Work {
    style: bool,
    web: bool,
    server: bool,
}

impl Work {
    /// What a change of one file asks for, by its path from the root.
    fn of(path: &Path) -> Self {
        let everything = Self {
            style: true,
            web: true,
            server: true,
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name.ends_with('~') || name.ends_with(".swp") {
            return Self::default();
        }
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        match parts.next().as_deref() {
            Some("style" | "public") => Self {
                style: true,
                ..Self::default()
            },
            Some("server" | "migrations") => Self {
                server: true,
                ..Self::default()
            },
            // Only `domain` reaches the browser.
            Some("crates") => match parts.next().as_deref() {
                Some("domain") => everything,
                Some("xtask") | None => Self::default(),
                Some(_) => Self {
                    server: true,
                    ..Self::default()
                },
            },
            Some("app" | "Cargo.toml") => everything,
            _ => Self::default(),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            style: self.style || other.style,
            web: self.web || other.web,
            server: self.server || other.server,
        }
    }
}

/// Runs until it is interrupted.
///
/// # Errors
/// The first build fails, or the files cannot be watched.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (sender, changes) = sync_channel(1024);
    let mut watcher = notify::recommended_watcher(move |event| {
        if let Ok(notify::Event { kind, paths, .. }) = event
            && (kind.is_create() || kind.is_modify() || kind.is_remove())
        {
            for path in paths {
                // A full channel has work enough in it already.
                let _ = sender.try_send(path);
            }
        }
    })
    .context("files cannot be watched")?;
    let root = root().canonicalize()?;
    for watched in WATCHED {
        watcher
            .watch(&root.join(watched), RecursiveMode::Recursive)
            .with_context(|| format!("{watched} cannot be watched"))?;
    }
    web::build(web::Profile::Dev)?;
    build_server()?;
    let mut server = Some(start_server(arguments)?);
    loop {
        let Some(work) = collect(&changes, &root, &mut server)? else {
            return Ok(());
        };
        if let Err(error) = act(work, &mut server, arguments) {
            eprintln!("dev: {error:#}. The last good build goes on.");
        }
    }
}

/// Waits for changes that ask for work. `None` if the watcher has ended.
fn collect(
    changes: &Receiver<std::path::PathBuf>,
    root: &Path,
    server: &mut Option<Child>,
) -> Result<Option<Work>> {
    let work_of = |path: &Path| Work::of(path.strip_prefix(root).unwrap_or(path));
    let mut work = Work::default();
    while work == Work::default() {
        match changes.recv_timeout(LOOK) {
            Ok(path) => work = work_of(&path),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(child) = server
                    && let Some(status) = child.try_wait()?
                {
                    eprintln!(
                        "dev: the server has ended ({status}). It starts again after the next change."
                    );
                    *server = None;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
    let begun = Instant::now();
    while begun.elapsed() < LONGEST_COLLECTING {
        match changes.recv_timeout(QUIET) {
            Ok(path) => work = work.and(work_of(&path)),
            Err(_) => break,
        }
    }
    Ok(Some(work))
}

fn act(work: Work, server: &mut Option<Child>, arguments: &[String]) -> Result<()> {
    if work.server {
        println!("dev: building the server …");
        build_server()?;
    }
    if work.web {
        web::build(web::Profile::Dev)?;
    } else if work.style {
        println!("dev: renewing the style sheet …");
        web::refresh_style(web::Profile::Dev)?;
    }
    if work.server || server.is_none() {
        println!("dev: starting the server again …");
        stop_server(server)?;
        *server = Some(start_server(arguments)?);
    }
    Ok(())
}

fn build_server() -> Result<()> {
    commands::run(cargo().args([
        "build",
        "--package",
        "tokdyno-server",
        "--package",
        "tokdyno-loadgen",
        "--package",
        "tokdyno-remote",
    ]))
}

fn start_server(arguments: &[String]) -> Result<Child> {
    in_root(target_dir().join("debug/tokdyno"))
        .arg("serve")
        .args(arguments)
        .env("TOKDYNO_DEV", "1")
        .env("TOKDYNO_SITE", web::site_dir(web::Profile::Dev))
        .spawn()
        .context("the server cannot be started")
}

fn stop_server(server: &mut Option<Child>) -> Result<()> {
    let Some(mut child) = server.take() else {
        return Ok(());
    };
    if child.try_wait()?.is_none() {
        commands::interrupt(&child)?;
    }
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > STOP_PATIENCE {
            eprintln!("dev: the server does not end by itself and is killed.");
            child.kill()?;
            child.wait()?;
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(path: &str) -> (bool, bool, bool) {
        let Work { style, web, server } = Work::of(Path::new(path));
        (style, web, server)
    }

    #[test]
    fn a_change_asks_for_as_little_as_it_can() {
        assert_eq!(work("style/10-tokens.css"), (true, false, false));
        assert_eq!(work("public/favicon.svg"), (true, false, false));
        assert_eq!(work("server/src/main.rs"), (false, false, true));
        assert_eq!(work("migrations/0001_first.sql"), (false, false, true));
        assert_eq!(work("crates/lab/src/lib.rs"), (false, false, true));
        assert_eq!(work("crates/domain/src/lib.rs"), (true, true, true));
        assert_eq!(work("app/src/lib.rs"), (true, true, true));
        assert_eq!(work("crates/xtask/src/main.rs"), (false, false, false));
        assert_eq!(work("app/src/.lib.rs.swp"), (false, false, false));
    }
}
