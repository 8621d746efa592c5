//! A host each second, for as long as somebody listens.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use tokdyno_domain::host::{GpuProcess, GpuSample, HostSample};

use super::{gpus, inventory, liveness::Client, nvidia};

const SECOND: Duration = Duration::from_secs(1);
/// After so long a GPU that is not heard of is taken for gone.
const SILENT: Duration = Duration::from_secs(4);
/// Who holds memory changes rarely, and asking is a process of its own.
const HOLDERS_EACH: Duration = Duration::from_secs(5);

/// Writes a line of JSON, a [`HostSample`], each second until the client goes.
pub(super) fn stream(out: &mut impl Write, client: &mut Client) -> io::Result<()> {
    let program = gpus::program();
    let mut cards = program.as_deref().and_then(Cards::start);
    let holders = Arc::new(Mutex::new(Vec::new()));
    if let Some(program) = program.clone() {
        watch_holders(program, Arc::clone(&holders));
    }
    let mut next = Instant::now();
    loop {
        let sample = HostSample {
            at: inventory::now(),
            gpus: cards.as_mut().map(Cards::latest).unwrap_or_default(),
            processes: holders.lock().map(|list| list.clone()).unwrap_or_default(),
            load: load(),
        };
        let mut line = serde_json::to_vec(&sample)?;
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()?;
        // From the planned moment, so that delays do not add up.
        next += SECOND;
        if !client.there_after(next.saturating_duration_since(Instant::now())) {
            return Ok(());
        }
    }
}

fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn watch_holders(program: PathBuf, holders: Arc<Mutex<Vec<GpuProcess>>>) {
    thread::spawn(move || {
        loop {
            if let Ok(found) = gpus::ask_processes(&program)
                && let Ok(mut list) = holders.lock()
            {
                *list = found;
            }
            thread::sleep(HOLDERS_EACH);
        }
    });
}

/// One `nvidia-smi` that repeats its query, instead of one each second: starting it
/// costs more than asking.
struct Cards {
    child: Child,
    program: PathBuf,
    fields: String,
    lines: mpsc::Receiver<String>,
    /// When each GPU was heard of, and what it said.
    heard: Vec<(Instant, GpuSample)>,
    started: Instant,
}

impl Cards {
    fn start(program: &Path) -> Option<Self> {
        let mut fields = nvidia::SAMPLE_FIELDS.to_owned();
        for name in nvidia::THROTTLE_FIELDS {
            let with_reasons = format!("{},{name}", nvidia::SAMPLE_FIELDS);
            if gpus::query(program, &with_reasons).is_ok() {
                fields = with_reasons;
                break;
            }
        }
        // The first sample should not be an empty one.
        let now = Instant::now();
        let heard = gpus::query(program, &fields)
            .unwrap_or_default()
            .lines()
            .filter_map(nvidia::sample)
            .map(|sample| (now, sample))
            .collect();
        let (child, lines) = repeat(program, &fields).ok()?;
        Some(Self {
            child,
            program: program.to_owned(),
            fields,
            lines,
            heard,
            started: now,
        })
    }

    /// The newest values of each GPU. One that is not heard of any more is gone.
    fn latest(&mut self) -> Vec<GpuSample> {
        let now = Instant::now();
        for line in self.lines.try_iter() {
            let Some(sample) = nvidia::sample(&line) else {
                continue;
            };
            match self
                .heard
                .iter_mut()
                .find(|(_, one)| one.index == sample.index)
            {
                Some(older) => *older = (now, sample),
                None => self.heard.push((now, sample)),
            }
        }
        self.heard
            .retain(|(at, _)| now.duration_since(*at) < SILENT);
        self.heard.sort_by_key(|(_, sample)| sample.index);
        if matches!(self.child.try_wait(), Ok(Some(_))) && self.started.elapsed() >= SECOND {
            // It ended: a driver that restarts, or one that knows no repeating.
            if let Ok((child, lines)) = repeat(&self.program, &self.fields) {
                (self.child, self.lines) = (child, lines);
            }
            self.started = now;
        }
        self.heard
            .iter()
            .map(|(_, sample)| sample.clone())
            .collect()
    }
}

impl Drop for Cards {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn repeat(program: &Path, fields: &str) -> io::Result<(Child, mpsc::Receiver<String>)> {
    let mut child = Command::new(program)
        .args(gpus::each_second(fields))
        .env("LC_ALL", "C")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (send, receive) = mpsc::sync_channel(1024);
    if let Some(pipe) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // Full only if nobody takes samples any more.
                if send.try_send(line).is_err() {
                    break;
                }
            }
        });
    }
    Ok((child, receive))
}
