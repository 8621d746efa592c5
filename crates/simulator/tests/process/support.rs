//! Starting stand-ins as processes, each in a group of its own.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

/// Longest wait for anything: a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
}

/// A stand-in with its log, outputs merged. Its whole group is killed with this.
pub(crate) struct StandIn {
    child: Child,
    place: tempfile::TempDir,
}

fn program(args: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stand-in"));
    command.args(args);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("NCCL_") || name.starts_with("TOKDYNO_SIM") {
            command.env_remove(name);
        }
    }
    command
        .env("HOME", "/nonexistent")
        .envs(env.iter().copied());
    command
}

/// Runs to the end.
pub(crate) fn output(args: &[&str], env: &[(&str, &str)]) -> Output {
    program(args, env).output().expect("started")
}

impl StandIn {
    pub(crate) fn start(args: &[&str], env: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let log = File::create(place.path().join("log")).expect("a log");
        let child = program(args, env)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect("started");
        Self { child, place }
    }

    /// Starts and waits until it says where it listens.
    pub(crate) fn listening(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut stand_in = Self::start(args, env);
        stand_in.logs("listening on http://");
        stand_in
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.place.path().join("log")
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).expect("a log")
    }

    /// Waits until its log holds this text.
    pub(crate) fn logs(&mut self, text: &str) {
        let what = format!("`{text}` in the log");
        wait_for(&what, || {
            let there = self.log().contains(text);
            if !there && let Ok(Some(status)) = self.child.try_wait() {
                // It may have said it last.
                let log = self.log();
                assert!(
                    log.contains(text),
                    "ended ({status}) without `{text}`:\n{log}"
                );
            }
            there
        });
    }

    pub(crate) fn running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Host and port on which it listens.
    pub(crate) fn address(&self) -> String {
        let log = self.log();
        let (_, rest) = log.split_once("listening on http://").expect("an address");
        rest.lines().next().expect("a line").to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid_of(self.pid()), signal).expect("a signal");
    }

    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(pid_of(self.pid()), signal).expect("a signal");
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> End {
        let mut status = None;
        wait_for("the end of the stand-in", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        let status = status.expect("ended");
        match status.signal() {
            Some(signal) => End::Signal(signal),
            None => End::Code(status.code().expect("a code")),
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = kill_process_group(pid_of(self.pid()), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
}

pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "no sign of {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener
        .local_addr()
        .expect("an address")
        .port()
        .to_string()
}

/// One request on a connection of its own: status and body. None if the
/// connection is refused.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut reply = Vec::new();
    // A connection that is cut has said what it had to say.
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8(reply).expect("UTF-8");
    let status = reply.get(9..12).and_then(|text| text.parse().ok())?;
    let (_, body) = reply.split_once("\r\n\r\n").unwrap_or_default();
    Some((status, body.to_owned()))
}

pub(crate) fn status(address: &str, path: &str) -> Option<u16> {
    ask(address, "GET", path, "").map(|(status, _)| status)
}

pub(crate) fn get(address: &str, path: &str) -> Value {
    let (status, body) = ask(address, "GET", path, "").expect("a reply");
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).expect("JSON")
}

/// A completion of so many tokens, whole.
pub(crate) fn complete(address: &str, tokens: u32) -> Option<(u16, String)> {
    let body = json!({
        "model": "kimi-k2.5-int4", "prompt": "Hello", "max_tokens": tokens, "ignore_eos": true
    });
    ask(address, "POST", "/v1/completions", &body.to_string())
}

/// A folder with simulated GPUs.
pub(crate) fn gpu_folder(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let gpus: Vec<Value> = (0..count)
        .map(|at| {
            json!({ "uuid": format!("GPU-{at}"), "name": "Test GPU (simulated)", "memory_mib": 10_000 })
        })
        .collect();
    let text = json!({ "gpus": gpus, "driver": "580.95.05", "cuda": "13.0" });
    fs::write(folder.path().join("gpus.json"), text.to_string()).expect("written");
    folder
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}
