//! The program under test, as a process.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{OnceLock, mpsc},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::{PATIENCE, Reply, get, post, request, wait_for};

/// `tokdyno` with nothing of the caller's settings.
pub(crate) fn tokdyno(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokdyno"));
    command.args(arguments).stdin(Stdio::null());
    for variable in [
        "DATABASE_URL",
        "TOKDYNO_DATA_DIR",
        "TOKDYNO_SITE",
        "TOKDYNO_LOG",
        "TOKDYNO_DEV",
        "TOKDYNO_SERVER",
        "TOKDYNO_HOST_METER",
        "OPENAI_API_KEY",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
    ] {
        command.env_remove(variable);
    }
    command
}

/// The measuring program.
fn meter() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "TOKDYNO_METER", "tokdyno-loadgen", "tokdyno-meter")
}

/// The program that works on hosts.
fn agent() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "TOKDYNO_AGENT", "tokdyno-remote", "tokdyno-agent")
}

/// A program of another package: as the variable names it, else built once, because
/// cargo builds only this package's own programs for its tests.
fn built(once: &OnceLock<PathBuf>, variable: &str, package: &str, program: &str) -> PathBuf {
    let path = once.get_or_init(|| {
        if let Some(named) = std::env::var_os(variable) {
            return PathBuf::from(named);
        }
        cargo_build(&["-p", package, "--bin", program]);
        let beside = Path::new(env!("CARGO_BIN_EXE_tokdyno")).with_file_name(program);
        assert!(beside.is_file(), "{} is there", beside.display());
        beside
    });
    path.clone()
}

/// Builds something with the cargo that runs the tests.
pub(crate) fn cargo_build(what: &[&str]) {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .args(what)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success(), "{what:?} builds");
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Runs a command to its end.
    pub(crate) fn of(mut command: Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        Self::wait(child)
    }

    /// Waits for a program whose outputs are piped.
    pub(crate) fn wait(mut child: Child) -> Self {
        let read = |pipe: Option<Box<dyn Read + Send>>| {
            let mut pipe = pipe.expect("piped");
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = pipe.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
        let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
        let code = exit_code(&mut child).unwrap_or_else(|| {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the program did not end");
        });
        Self {
            code,
            stdout: stdout.join().expect("read"),
            stderr: stderr.join().expect("read"),
        }
    }
}

/// Outer none: it did not end in time. Inner none: a signal ended it.
fn exit_code(child: &mut Child) -> Option<Option<i32>> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().expect("waited") {
            return Some(status.code());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// A home of its own, so that tests touch nobody's.
fn home(data_dir: &Path) -> PathBuf {
    let home = data_dir.join("home");
    std::fs::create_dir_all(&home).expect("made");
    home
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
    /// Host and port of the listener for shared links.
    pub(crate) share: Option<String>,
    /// Everything it printed until it was ready.
    pub(crate) greeting: String,
}

impl Server {
    /// Starts a server and waits until it says where it is. Its log goes into
    /// `server.log` in the data directory, below whatever was there.
    pub(crate) fn start(data_dir: &Path, arguments: &[&str]) -> Self {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(data_dir.join("server.log"))
            .expect("a log");
        let mut child = tokdyno(&["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .args(arguments)
            .env("TOKDYNO_SITE", super::site(data_dir))
            .env("TOKDYNO_METER", meter())
            .env("TOKDYNO_AGENT", agent())
            // What is kept on a host, which this machine is as well, goes there.
            .env("HOME", home(data_dir))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("started");
        let stdout = child.stdout.take().expect("piped");
        let (lines, printed) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    break;
                }
            }
        });
        let mut server = Self {
            child,
            address: String::new(),
            share: None,
            greeting: String::new(),
        };
        let start = Instant::now();
        while !server.greeting.contains("the database is") {
            match printed.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
                Ok(line) => server.greeting.push_str(&(line + "\n")),
                Err(_) => panic!(
                    "the server did not start: {}",
                    std::fs::read_to_string(data_dir.join("server.log")).unwrap_or_default()
                ),
            }
        }
        for line in server.greeting.lines() {
            if let Some(address) = line.strip_prefix("Tokdyno is at http://") {
                server.address = address.to_owned();
            }
            if let Some((_, share)) = line.split_once("comparisons are at http://") {
                server.share = share.split('/').next().map(str::to_owned);
            }
        }
        server
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Stops it in order.
    pub(crate) fn stop(mut self) -> Option<i32> {
        terminate(&self.child);
        exit_code(&mut self.child).expect("the server stops")
    }

    /// Ends it without a chance to tidy up.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        get(&self.address, path)
    }

    /// Queues a single stream of so many requests of 8 tokens.
    pub(crate) fn queue(&self, endpoint: &str, requests: u32) -> i64 {
        let body = serde_json::json!({
            "endpoint": { "url": endpoint },
            "model": null,
            "configuration": "test",
            "hardware": "none",
            "workload": {
                "preset": null,
                "api": "completions",
                "single_stream": requests,
                "concurrencies": "",
                "requests": null,
                "output_tokens": 8,
                "repeats": 1,
                "warmup_requests": 0,
                "prompt_file": null,
                "founding_prompts": false,
            },
        });
        let reply = post(
            &self.address,
            "/api/v1/runs",
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        );
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.json()["run"].as_i64().expect("a run")
    }

    /// The run's state and the requests stored; none while the server or its
    /// database is away.
    pub(crate) fn run(&self, run: i64) -> Option<(String, u64)> {
        let path = format!("/api/v1/runs/{run}");
        let asked = super::Request {
            method: "GET",
            path: &path,
            headers: &[],
            body: b"",
        };
        let reply = request(&self.address, &asked).filter(|reply| reply.status == 200)?;
        let view = reply.json();
        Some((
            view["summary"]["state"].as_str()?.to_owned(),
            view["records"].as_u64()?,
        ))
    }

    /// Waits until so many requests of the run are stored.
    pub(crate) fn wait_for_records(&self, run: i64, least: u64) -> u64 {
        wait_for("records", || {
            let (state, records) = self.run(run)?;
            assert!(
                records >= least || matches!(state.as_str(), "queued" | "running"),
                "run {run} is {state} with {records} records"
            );
            (records >= least).then_some(records)
        })
    }

    /// Waits until the run is over.
    pub(crate) fn wait_until_over(&self, run: i64) -> (String, u64) {
        wait_for("the end of the run", || {
            let (state, records) = self.run(run)?;
            (!matches!(state.as_str(), "queued" | "running")).then_some((state, records))
        })
    }

    /// The (stage, seq) of every stored request of the run, in the order listed.
    pub(crate) fn record_keys(&self, run: i64) -> Vec<(u32, u32)> {
        let reply = self.get(&format!("/runs/{run}/records.csv"));
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply
            .body
            .lines()
            .skip(1)
            .map(|line| {
                let mut fields = line.split(',');
                let mut number = || {
                    fields
                        .next()
                        .and_then(|field| field.parse().ok())
                        .expect("a number")
                };
                (number(), number())
            })
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            terminate(&self.child);
            if exit_code(&mut self.child).is_none() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// A stand-in engine.
pub(crate) struct Simulator {
    child: Child,
    pub(crate) url: String,
    /// What it truly sent.
    log: tempfile::NamedTempFile,
}

impl Simulator {
    /// Starts one with a token every so many milliseconds.
    pub(crate) fn start(step_ms: u32) -> Self {
        let step = step_ms.to_string();
        let log = tempfile::NamedTempFile::new().expect("a file");
        let log_path = log.path().to_string_lossy().into_owned();
        let mut child = tokdyno(&[
            "simulate",
            "sglang",
            "--model-path",
            "test-model",
            "--port",
            "0",
            "--sim-step-ms",
            &step,
            "--sim-ttft-ms",
            &step,
            "--sim-log",
            &log_path,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap_or_else(|| panic!("no address in {line}"))
            .to_owned();
        // What it logs later must have somewhere to go.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Self { child, url, log }
    }

    /// Replies of [`Server::queue`]'s length that it has sent to their end.
    pub(crate) fn completed(&self) -> u64 {
        let text = std::fs::read_to_string(self.log.path()).expect("a log");
        text.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|line| line["outcome"] == "complete" && line["tokens"] == 8)
            .count() as u64
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn terminate(child: &Child) {
    signal(i32::try_from(child.id()).expect("a pid"), Signal::TERM);
}

pub(crate) fn send_interrupt(child: &Child) {
    signal(i32::try_from(child.id()).expect("a pid"), Signal::INT);
}

pub(crate) fn kill_nine(pid: i32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Gone already is as good.
        let _ = kill_process(pid, signal);
    }
}

pub(crate) fn is_alive(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
}

/// The children of a process that run this program.
pub(crate) fn children_of(parent: i32, program: &str) -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // pid (comm) state ppid …; the name may hold blanks and brackets.
            let Some((head, rest)) = stat.rsplit_once(')') else {
                return false;
            };
            let name = head.split_once('(').map_or("", |(_, name)| name);
            let ppid = rest.split_whitespace().nth(1);
            name == program && ppid == Some(parent.to_string().as_str())
        })
        .collect()
}
