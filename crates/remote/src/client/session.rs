//! One connection: one agent, one order.

use std::{io, process::ExitStatus, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    error::RemoteError,
    tail::{Tail, last_lines},
    transport::{Transport, Upload, apart},
    trouble::Ending,
};
use crate::wire::{GREETING, HEARTBEAT_S, NO_AGENT, Reply, UPLOAD};

/// How long connecting may take, jump hosts and slow login shells included.
const CONNECT: Duration = Duration::from_secs(45);
/// How long storing the agent may take.
const UPLOAD_TIME: Duration = Duration::from_secs(300);
/// Bytes read ahead, where all that comes is for this side.
pub(super) const AHEAD: usize = 64 << 10;
/// Most bytes before the greeting.
const MAX_BANNER: u64 = 1 << 20;
/// Longest line of JSON.
const MAX_LINE: u64 = 64 << 20;

/// What answered.
pub(super) enum Opened {
    /// The agent; it waits for an order.
    Ready(Box<Session>),
    /// The stub: there is no agent yet. The system's name and architecture.
    NoAgent(String),
}

/// A started agent that has greeted.
#[derive(Debug)]
pub(super) struct Session {
    transport: Arc<dyn Transport>,
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    /// None once it was handed on.
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Tail,
    greeted: bool,
}

impl Session {
    /// Connects and waits for the greeting. At most `ahead` bytes are read ahead of
    /// what is wanted.
    pub(super) async fn open(
        transport: &Arc<dyn Transport>,
        ahead: usize,
    ) -> Result<Opened, RemoteError> {
        let command = apart(transport, |transport| transport.start()).await?;
        let mut session = Self::started(transport, command, ahead)?;
        match timeout(CONNECT, session.greeting()).await {
            Ok(greeting) => match greeting? {
                None => {
                    session.greeted = true;
                    Ok(Opened::Ready(Box::new(session)))
                }
                Some(machine) => Ok(Opened::NoAgent(machine)),
            },
            Err(_) => Err(session.timed_out(CONNECT)),
        }
    }

    fn started(
        transport: &Arc<dyn Transport>,
        mut command: Command,
        ahead: usize,
    ) -> Result<Self, RemoteError> {
        let mut child = command
            .spawn()
            .map_err(|error| transport.not_started(&error))?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(RemoteError::Protocol {
                host: transport.label().to_owned(),
                detail: "its output is not connected".to_owned(),
            });
        };
        Ok(Self {
            transport: Arc::clone(transport),
            stdin: child.stdin.take(),
            stdout: Some(BufReader::with_capacity(ahead, stdout)),
            stderr: Tail::of(stderr),
            child: Some(child),
            greeted: false,
        })
    }

    /// Skips whatever login shells print. None once the agent has greeted.
    async fn greeting(&mut self) -> Result<Option<String>, RemoteError> {
        let mut skipped = Vec::new();
        loop {
            let mut line = Vec::new();
            let room = MAX_BANNER.saturating_sub(skipped.len() as u64);
            let read = self.read_line(room, &mut line).await;
            if room == 0 {
                return Err(self.protocol("the login shell prints without end"));
            }
            if !read.is_ok_and(|length| length > 0) {
                return Err(self.ended(&skipped).await);
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if text == GREETING {
                return Ok(None);
            }
            if let Some(machine) = text.strip_prefix(NO_AGENT) {
                return Ok(Some(machine.to_owned()));
            }
            let other_version = text
                .strip_prefix("tokdyno-agent ")
                .is_some_and(|rest| rest.parse::<u32>().is_ok());
            if other_version {
                return Err(self.protocol(text));
            }
            skipped.extend_from_slice(&line);
        }
    }

    /// Sends an order and its payload.
    pub(super) async fn send(&mut self, parts: &[&[u8]]) -> Result<(), RemoteError> {
        for part in parts {
            let Some(stdin) = &mut self.stdin else {
                return Err(self.protocol("its input is closed"));
            };
            if stdin.write_all(part).await.is_err() {
                // An agent that refuses says so and hangs up; its answer counts.
                break;
            }
        }
        Ok(())
    }

    /// Reads the agent's answer.
    pub(super) async fn reply<T: DeserializeOwned>(&mut self) -> Result<T, RemoteError> {
        let line = self.line().await?;
        match serde_json::from_slice(&line) {
            Ok(Reply::Ok(value)) => Ok(value),
            Ok(Reply::Failed(failure)) => Err(RemoteError::Agent {
                host: self.transport.label().to_owned(),
                failure,
            }),
            Err(error) => Err(self.protocol(&error.to_string())),
        }
    }

    async fn read_line(&mut self, most: u64, line: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.stdout {
            Some(stdout) => stdout.take(most).read_until(b'\n', line).await,
            None => Ok(0),
        }
    }

    async fn read_up_to(&mut self, most: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.stdout {
            Some(stdout) => stdout.take(most).read_to_end(bytes).await,
            None => Ok(0),
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, RemoteError> {
        let mut line = Vec::new();
        let read = self.read_line(MAX_LINE, &mut line).await;
        if read.is_ok() && line.ends_with(b"\n") {
            Ok(line)
        } else {
            Err(self.ended(&[]).await)
        }
    }

    /// Reads exactly `length` raw bytes.
    pub(super) async fn bytes(&mut self, length: u64) -> Result<Vec<u8>, RemoteError> {
        let mut bytes = Vec::new();
        let read = self.read_up_to(length, &mut bytes).await;
        if read.is_ok() && bytes.len() as u64 == length {
            Ok(bytes)
        } else {
            Err(self.ended(&[]).await)
        }
    }

    /// Reads what there is, at least one byte; 0 at the end. Nothing is lost if the
    /// future is dropped.
    pub(super) async fn some(&mut self, buffer: &mut [u8]) -> usize {
        match &mut self.stdout {
            Some(stdout) => stdout.read(buffer).await.unwrap_or(0),
            None => 0,
        }
    }

    /// Gives signs of life from now on; input closes once what is returned is dropped.
    pub(super) fn beat(&mut self) -> Heartbeat {
        let stdin = self.stdin.take();
        Heartbeat(tokio::spawn(async move {
            let Some(mut stdin) = stdin else { return };
            loop {
                sleep(Duration::from_secs(HEARTBEAT_S)).await;
                if stdin.write_all(b"\n").await.is_err() {
                    return;
                }
            }
        }))
    }

    /// The process with its streams, positioned after the agent's answer. Of a
    /// session that reads one byte ahead only: others may hold more.
    pub(super) async fn into_child(mut self) -> Result<Child, RemoteError> {
        let stderr = self.stderr.release().await;
        let (Some(mut child), Some(stdout)) = (self.child.take(), self.stdout.take()) else {
            return Err(self.protocol("its output is not connected"));
        };
        child.stdin = self.stdin.take();
        child.stdout = Some(stdout.into_inner());
        child.stderr = stderr;
        Ok(child)
    }

    /// Why the stream ended.
    pub(super) async fn ended(&mut self, stdout: &[u8]) -> RemoteError {
        self.stdin = None;
        let status = self.exit().await;
        self.stderr.settle().await;
        let ending = Ending {
            code: status.and_then(|status| status.code()),
            stderr: self.stderr.text(),
            stdout: last_lines(&String::from_utf8_lossy(stdout)),
            greeted: self.greeted,
        };
        self.transport.explain(&ending)
    }

    /// A shared connection's first ssh stays for the others, so waiting is bounded.
    async fn exit(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        timeout(Duration::from_secs(5), child.wait())
            .await
            .ok()?
            .ok()
    }

    pub(super) fn protocol(&self, detail: &str) -> RemoteError {
        RemoteError::Protocol {
            host: self.transport.label().to_owned(),
            detail: detail.to_owned(),
        }
    }

    pub(super) fn timed_out(&self, limit: Duration) -> RemoteError {
        RemoteError::TimedOut {
            host: self.transport.label().to_owned(),
            seconds: limit.as_secs(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stdin = None;
        let Some(mut child) = self.child.take() else {
            return;
        };
        if !self.greeted {
            // Still connecting: nothing is lost by ending it.
            let _ = child.start_kill();
        }
        // The agent ends when its input does, and ssh with it; the first of a shared
        // connection stays for the others and must not be killed.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { child.wait().await });
        }
    }
}

/// Signs of life; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat(JoinHandle<()>);

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Stores the agent on its host.
pub(super) async fn store(
    transport: &Arc<dyn Transport>,
    machine: &str,
) -> Result<(), RemoteError> {
    let Some(upload) = apart(transport, |transport| transport.upload()).await? else {
        return Ok(());
    };
    let Upload {
        command,
        content,
        arch,
    } = upload;
    let host = || transport.label().to_owned();
    let (system, theirs) = machine.split_once(' ').unwrap_or((machine, ""));
    if system != "Linux" || arch.is_some_and(|ours| ours != same_name(theirs)) {
        return Err(RemoteError::OtherArchitecture {
            host: host(),
            theirs: machine.to_owned(),
            ours: format!("Linux {}", arch.unwrap_or("of an unknown architecture")),
        });
    }
    let mut session = Session::started(transport, command, AHEAD)?;
    let result = timeout(UPLOAD_TIME, session.feed(&content)).await;
    let word = match result {
        Ok(word) => word?,
        Err(_) => return Err(session.timed_out(UPLOAD_TIME)),
    };
    let no_place = |reason: &str| {
        Err(RemoteError::NoPlace {
            host: host(),
            reason: reason.to_owned(),
        })
    };
    match word.as_str() {
        "stored" => Ok(()),
        "nowhere" => no_place("both were tried with a small file"),
        "full" => no_place("the disk is full or a quota is used up"),
        _ => Err(RemoteError::Cut {
            host: host(),
            said: "The agent did not arrive whole and was not stored.".to_owned(),
        }),
    }
}

/// `uname -m` as Rust names it.
fn same_name(machine: &str) -> &str {
    match machine {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

impl Session {
    /// Feeds the upload stub and returns its word.
    async fn feed(&mut self, content: &[u8]) -> Result<String, RemoteError> {
        if let Some(mut stdin) = self.stdin.take() {
            // Whoever hangs up early says why.
            let _ = stdin.write_all(content).await;
            let _ = stdin.shutdown().await;
        }
        let mut output = Vec::new();
        let _ = self.read_up_to(MAX_BANNER, &mut output).await;
        let text = String::from_utf8_lossy(&output);
        match text
            .lines()
            .rev()
            .find_map(|line| line.trim().strip_prefix(UPLOAD))
        {
            Some(word) => Ok(word.to_owned()),
            None => Err(self.ended(&output).await),
        }
    }
}
