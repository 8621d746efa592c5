//! The log of true send times (`--sim-log`): one JSON object a line, the first
//! one about the engine, then one for each request, written when it is over.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::json;

use crate::{config::SimConfig, pacer::Ns};

/// The engine's clock: nanoseconds since its start, on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
    /// Unix time of the start, in ns.
    pub(crate) unix_ns: u64,
    /// `CLOCK_MONOTONIC` of the start, in ns: other processes of the machine
    /// share it.
    pub(crate) monotonic_ns: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let monotonic = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            origin: Instant::now(),
            unix_ns: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX),
            monotonic_ns: u64::try_from(monotonic.tv_sec).unwrap_or(0) * 1_000_000_000
                + u64::try_from(monotonic.tv_nsec).unwrap_or(0),
        }
    }

    pub(crate) fn now(&self) -> Ns {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// What is known of one request, with times since the engine's start.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) id: String,
    pub(crate) stream: bool,
    pub(crate) received: Ns,
    pub(crate) prompt_tokens: u32,
    pub(crate) batch_at_start: u32,
    pub(crate) tokens: u32,
    pub(crate) finish_reason: &'static str,
    pub(crate) faults: Vec<&'static str>,
    /// `complete`, `cancelled`, `stalled`, `cut` or `error`.
    pub(crate) outcome: &'static str,
    /// When each chunk was due, when its bytes went to the socket, its tokens.
    pub(crate) chunks: Vec<(Ns, Ns, u32)>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    stream: bool,
    received_ns: Ns,
    received_unix_ns: u64,
    prompt_tokens: u32,
    batch_at_start: u32,
    tokens: u32,
    finish_reason: &'a str,
    outcome: &'a str,
    faults: &'a [&'static str],
    first_sent_ns: Option<Ns>,
    last_sent_ns: Option<Ns>,
    /// µs: the first since receipt, the others since their predecessor.
    due_us: Vec<i64>,
    sent_us: Vec<i64>,
    chunk_tokens: Vec<u32>,
}

impl Trace {
    fn line(&self, clock: &Clock) -> serde_json::Result<Vec<u8>> {
        let deltas = |pick: fn(&(Ns, Ns, u32)) -> Ns| {
            let mut before = 0;
            self.chunks
                .iter()
                .map(|chunk| {
                    // Rounded since receipt, so that roundings do not add up.
                    let since = pick(chunk) as i64 - self.received as i64;
                    let us = since.div_euclid(1000);
                    let delta = us - before;
                    before = us;
                    delta
                })
                .collect()
        };
        let mut line = serde_json::to_vec(&Line {
            id: &self.id,
            stream: self.stream,
            received_ns: self.received,
            received_unix_ns: clock.unix_ns + self.received,
            prompt_tokens: self.prompt_tokens,
            batch_at_start: self.batch_at_start,
            tokens: self.tokens,
            finish_reason: self.finish_reason,
            outcome: self.outcome,
            faults: &self.faults,
            first_sent_ns: self.chunks.first().map(|chunk| chunk.1),
            last_sent_ns: self.chunks.last().map(|chunk| chunk.1),
            due_us: deltas(|chunk| chunk.0),
            sent_us: deltas(|chunk| chunk.1),
            chunk_tokens: self.chunks.iter().map(|chunk| chunk.2).collect(),
        })?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Where finished requests are written, by a thread of its own.
#[derive(Debug, Clone)]
pub(crate) struct TruthLog(SyncSender<Trace>);

impl TruthLog {
    /// Opens the file (what was in it is lost) and writes its first line.
    pub(crate) fn open(path: &Path, config: &SimConfig, clock: Clock) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let head = json!({
            "log": "tokdyno-stand-in", "log_version": 1, "simulated": true,
            "engine": config.engine.word(), "version": config.version, "model": config.name(),
            "seed": config.sim.seed, "speed": config.sim.speed,
            "started_unix_ns": clock.unix_ns, "started_monotonic_ns": clock.monotonic_ns,
        });
        writeln!(file, "{head}")?;
        let (sender, receiver) = sync_channel(4096);
        thread::Builder::new()
            .name("sim-log".to_owned())
            .spawn(move || write_lines(&receiver, file, clock))?;
        Ok(Self(sender))
    }

    /// Hands a finished request over. Waits if the disk is behind: a log with
    /// holes would be no truth.
    pub(crate) fn write(&self, trace: Trace) {
        // The writer is gone only if the disk failed, which it has reported.
        let _ = self.0.send(trace);
    }
}

fn write_lines(receiver: &Receiver<Trace>, mut file: File, clock: Clock) {
    while let Ok(trace) = receiver.recv() {
        let written = trace
            .line(&clock)
            .map_err(io::Error::from)
            .and_then(|line| file.write_all(&line));
        if let Err(error) = written {
            eprintln!(
                "The log of true send times ends here: {error}. Free space on the disk and start the stand-in again."
            );
            return;
        }
    }
}
