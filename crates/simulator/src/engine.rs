//! The engine's thread: waits for deadlines and writes tokens.
//!
//! A thread of its own rather than a task: its waits are as exact as the kernel
//! makes them (a runtime's timers tick in milliseconds), and nothing that serves
//! pages can delay a token.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use crate::{
    config::SimConfig,
    pacer::{Emission, Job, Ns, Pacer, Ticket},
    sink::{Pushed, Sink},
    stats::{Finished, Stats},
    truth::{Clock, Trace, TruthLog},
};

/// How often a full socket is tried again.
const RETRY_NS: Ns = 2_000_000;
/// Longest wait without anything to do: the thread sees then that it is alone.
const IDLE: Duration = Duration::from_secs(3600);

/// A request for the engine.
pub(crate) struct Submission {
    pub(crate) ticket: Ticket,
    pub(crate) job: Job,
    pub(crate) sink: Sink,
    pub(crate) trace: Trace,
}

enum Command {
    Submit(Box<Submission>),
    Cancel(Ticket),
    Flush,
}

/// The engine has more commands waiting than it takes, or is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The stand-in has too many requests waiting. Send fewer at once.")]
pub(crate) struct Overloaded;

/// Speaks to the engine's thread, which ends with the last handle.
#[derive(Clone)]
pub(crate) struct EngineHandle {
    commands: SyncSender<Command>,
    stats: Arc<Mutex<Stats>>,
}

impl EngineHandle {
    /// Starts the thread. `lines` takes what an engine would log.
    pub(crate) fn start(
        config: Arc<SimConfig>,
        clock: Clock,
        log: Option<TruthLog>,
        lines: Option<SyncSender<String>>,
    ) -> io::Result<Self> {
        let (commands, receiver) = sync_channel(16_384);
        let stats = Arc::new(Mutex::new(Stats::new(&config)));
        let worker = Worker {
            pacer: Pacer::new(&config),
            config,
            clock,
            log,
            lines,
            stats: Arc::clone(&stats),
            live: HashMap::new(),
            unsent: HashSet::new(),
            scratch: Vec::with_capacity(4096),
        };
        thread::Builder::new()
            .name("sim-engine".to_owned())
            .spawn(move || worker.run(&receiver))?;
        Ok(Self { commands, stats })
    }

    pub(crate) fn submit(&self, submission: Submission) -> Result<(), Overloaded> {
        self.send(Command::Submit(Box::new(submission)))
    }

    /// Stops a request whose client is gone.
    pub(crate) fn cancel(&self, ticket: Ticket) {
        // An engine too busy to hear of it notices at the next write.
        let _ = self.send(Command::Cancel(ticket));
    }

    /// Forgets acceptance so far and begins a new spell.
    pub(crate) fn flush(&self) {
        self.locked(Stats::flush);
        let _ = self.send(Command::Flush);
    }

    /// The counts as they are.
    pub(crate) fn stats(&self) -> Stats {
        self.locked(|stats| stats.clone())
    }

    pub(crate) fn count_prompt(&self, tokens: u32, cached: u32) {
        self.locked(|stats| {
            stats.prompt_tokens += u64::from(tokens);
            stats.cached_tokens += u64::from(cached);
        });
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Stats) -> T) -> T {
        act(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn send(&self, command: Command) -> Result<(), Overloaded> {
        self.commands.try_send(command).map_err(|_| Overloaded)
    }
}

struct Live {
    sink: Sink,
    trace: Trace,
    first: Ns,
    last: Ns,
    verify_steps: u64,
}

struct Worker {
    config: Arc<SimConfig>,
    pacer: Pacer,
    clock: Clock,
    log: Option<TruthLog>,
    lines: Option<SyncSender<String>>,
    stats: Arc<Mutex<Stats>>,
    live: HashMap<Ticket, Live>,
    /// Streams whose socket was full.
    unsent: HashSet<Ticket>,
    scratch: Vec<u8>,
}

impl Worker {
    fn run(mut self, commands: &Receiver<Command>) {
        let mut emissions = Vec::new();
        loop {
            while let Ok(command) = commands.try_recv() {
                self.obey(command);
            }
            while let Some(due) = self.pacer.next_deadline()
                && due <= self.clock.now()
            {
                emissions.clear();
                self.pacer.advance(&mut emissions);
                self.deliver(&emissions);
                // What comes in while a long backlog is worked off must not wait
                // for its end.
                while let Ok(command) = commands.try_recv() {
                    self.obey(command);
                }
            }
            self.retry();
            match commands.recv_timeout(self.wait()) {
                Ok(command) => self.obey(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn wait(&self) -> Duration {
        let now = self.clock.now();
        let retry = (!self.unsent.is_empty()).then_some(now + RETRY_NS);
        match self.pacer.next_deadline().into_iter().chain(retry).min() {
            Some(due) => Duration::from_nanos(due.saturating_sub(now)),
            None => IDLE,
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit(submission) => {
                let Submission {
                    ticket,
                    job,
                    sink,
                    trace,
                } = *submission;
                self.pacer.submit(ticket, trace.received, job);
                let live = Live {
                    sink,
                    trace,
                    first: 0,
                    last: 0,
                    verify_steps: 0,
                };
                self.live.insert(ticket, live);
            }
            Command::Cancel(ticket) => self.end(ticket, "cancelled"),
            Command::Flush => self.pacer.new_spell(),
        }
        let load = self.pacer.load();
        self.with_stats(|stats| (stats.running, stats.waiting) = load);
    }

    fn deliver(&mut self, emissions: &[Emission]) {
        if emissions.is_empty() {
            return;
        }
        let mut gaps = Vec::new();
        for emission in emissions {
            self.deliver_one(emission, &mut gaps);
        }
        let interval = self.config.log_interval;
        let load = self.pacer.load();
        let line = self.lines.is_some();
        let line = {
            let mut stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
            (stats.running, stats.waiting) = load;
            for (gap, tokens) in gaps {
                stats.gap(gap, tokens);
            }
            let due = stats.step(emissions, interval);
            (due && line).then(|| stats.log_line(&self.config))
        };
        if let (Some(line), Some(lines)) = (line, &self.lines) {
            // A log that nobody reads must not stop the engine.
            let _ = lines.try_send(line);
        }
    }

    fn deliver_one(&mut self, emission: &Emission, gaps: &mut Vec<(Ns, u32)>) {
        let Some(live) = self.live.get_mut(&emission.ticket) else {
            return;
        };
        if live.first == 0 {
            live.first = emission.at;
            live.trace.batch_at_start = emission.batch;
        } else {
            gaps.push((emission.at - live.last, emission.tokens));
        }
        live.last = emission.at;
        live.verify_steps += u64::from(emission.verify.is_some());
        let outcome = match &mut live.sink {
            Sink::Whole(_) => {
                live.trace.tokens += emission.tokens;
                let at = self.clock.now();
                if self.log.is_some() {
                    live.trace.chunks.push((emission.at, at, emission.tokens));
                }
                emission.finished.then_some("complete")
            }
            Sink::Stream(sink) => {
                let pushed = sink.push(
                    emission.tokens,
                    emission.finished,
                    &self.clock,
                    &mut self.scratch,
                );
                if !sink.pending.is_empty() {
                    self.unsent.insert(emission.ticket);
                }
                let (chunk, outcome) = match pushed {
                    Pushed::Held => (None, None),
                    Pushed::Sent { tokens, at } => (Some((tokens, at)), None),
                    Pushed::Over { outcome, last } => (last, Some(outcome)),
                };
                if let Some((tokens, at)) = chunk {
                    live.trace.tokens += tokens;
                    if self.log.is_some() {
                        live.trace.chunks.push((emission.at, at, tokens));
                    }
                }
                outcome
            }
        };
        if let Some(outcome) = outcome {
            self.end(emission.ticket, outcome);
        }
    }

    /// Tries the sockets that were full.
    fn retry(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        self.unsent
            .retain(|ticket| match self.live.get_mut(ticket) {
                Some(Live {
                    sink: Sink::Stream(sink),
                    ..
                }) => match sink.flush() {
                    Ok(empty) => !empty,
                    Err(_) => {
                        gone.push(*ticket);
                        false
                    }
                },
                _ => false,
            });
        for ticket in gone {
            self.end(ticket, "cancelled");
        }
    }

    fn end(&mut self, ticket: Ticket, outcome: &'static str) {
        let Some(Live {
            sink,
            mut trace,
            first,
            last,
            verify_steps,
        }) = self.live.remove(&ticket)
        else {
            return;
        };
        self.pacer.cancel(ticket);
        self.unsent.remove(&ticket);
        trace.outcome = outcome;
        if outcome != "complete" {
            trace.finish_reason = "abort";
        }
        let finished = Finished {
            received: trace.received,
            first,
            last,
            tokens: trace.tokens,
            reason: trace.finish_reason,
        };
        self.with_stats(|stats| stats.finish(finished, verify_steps));
        // The log first: who has the last token may look for the line.
        if let Some(log) = &self.log {
            log.write(trace);
        }
        if let Sink::Whole(end) = sink
            && outcome == "complete"
        {
            let _ = end.send(());
        }
    }

    fn with_stats(&self, act: impl FnOnce(&mut Stats)) {
        act(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
