//! When each token is due: a state machine without clock or I/O.
//!
//! Times are nanoseconds since the engine's start. Whoever drives it asks for
//! the next deadline, waits until then (or jumps there, in virtual time) and
//! calls [`Pacer::advance`]. Deadlines follow from deadlines, never from the
//! moment of the call: a late timer delays one token and not all that follow.
//!
//! A *spell* is what noise between repeats acts on: it ends when the engine was
//! idle for 100 ms, when its cache is flushed, or after a minute.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use crate::{
    acceptance::Deck,
    config::{SimConfig, Speculation},
    model::StepModel,
    noise::{self, Noise},
};

/// Nanoseconds since the engine's start.
pub type Ns = u64;

const SPELL_IDLE_NS: Ns = 100_000_000;
const SPELL_LONGEST_NS: Ns = 60_000_000_000;
const LAUNCH: u64 = 0x1A0C;
const SPELL: u64 = 0x59E1;
const REQUEST: u64 = 0x4E90;

/// Number of a request within the engine's life, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request, as far as its pacing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Prompt tokens that must be computed (cached ones left out).
    pub prefill_tokens: u32,
    /// Tokens after which it is finished; at least 1.
    pub tokens: u32,
    /// Extra time before it can join a step.
    pub delay_ns: Ns,
}

/// What a verify step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verify {
    /// Tokens drafted.
    pub drafted: u32,
    /// Of them accepted.
    pub accepted: u32,
}

/// Tokens of one request that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emission {
    /// Whose.
    pub ticket: Ticket,
    /// The deadline.
    pub at: Ns,
    /// How many; at least 1.
    pub tokens: u32,
    /// Under speculation, what the step did.
    pub verify: Option<Verify>,
    /// Requests that ran in the step, this one included.
    pub batch: u32,
    /// Were these the last?
    pub finished: bool,
}

/// Fixed pacing: the first token this long after receipt, then one each step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FixedPacing {
    /// In ms.
    pub ttft_ms: f64,
    /// In ms.
    pub step_ms: f64,
}

/// Either way of pacing.
#[derive(Debug)]
pub enum Pacer {
    /// The model's steps, all running requests together.
    Batch(Box<BatchPacer>),
    /// Each request on its own, at fixed times.
    Fixed(FixedPacer),
}

impl Pacer {
    /// The pacer of a configuration.
    #[must_use]
    pub fn new(config: &SimConfig) -> Self {
        match config.sim.fixed {
            Some(fixed) => Self::Fixed(FixedPacer {
                ttft_ns: (fixed.ttft_ms * 1e6 / config.sim.speed) as Ns,
                step_ns: ((fixed.step_ms * 1e6 / config.sim.speed) as Ns).max(1),
                due: BinaryHeap::new(),
                running: BTreeMap::new(),
            }),
            None => Self::Batch(Box::new(BatchPacer::new(config))),
        }
    }

    /// A request was received at `at`.
    pub fn submit(&mut self, ticket: Ticket, at: Ns, job: Job) {
        match self {
            Self::Batch(pacer) => pacer.submit(ticket, at, job),
            Self::Fixed(pacer) => pacer.submit(ticket, at, job),
        }
    }

    /// A request is over before its end.
    pub fn cancel(&mut self, ticket: Ticket) {
        match self {
            Self::Batch(pacer) => {
                pacer.running.retain(|running| running.ticket != ticket);
                pacer.waiting.retain(|_, waiting| waiting.ticket != ticket);
            }
            Self::Fixed(pacer) => {
                pacer.running.remove(&ticket);
            }
        }
    }

    /// When there is something to do next; none while idle.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Ns> {
        match self {
            Self::Batch(pacer) => pacer.next_deadline(),
            Self::Fixed(pacer) => pacer.due.peek().map(|Reverse(due)| due.0),
        }
    }

    /// Does what is due at the next deadline and adds the tokens to `out`.
    pub fn advance(&mut self, out: &mut Vec<Emission>) {
        match self {
            Self::Batch(pacer) => pacer.advance(out),
            Self::Fixed(pacer) => pacer.advance(out),
        }
    }

    /// Begins a new spell for the noise between repeats.
    pub fn new_spell(&mut self) {
        if let Self::Batch(pacer) = self {
            pacer.spell_ends = 0;
        }
    }

    /// Requests running, and requests waiting.
    #[must_use]
    pub fn load(&self) -> (u32, u32) {
        let (running, waiting) = match self {
            Self::Batch(pacer) => (pacer.running.len(), pacer.waiting.len()),
            Self::Fixed(pacer) => (pacer.running.len(), 0),
        };
        (
            u32::try_from(running).unwrap_or(u32::MAX),
            u32::try_from(waiting).unwrap_or(u32::MAX),
        )
    }
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    job: Job,
}

#[derive(Debug)]
struct Running {
    ticket: Ticket,
    left: u32,
    deck: Option<Deck>,
    noise: f64,
    started: bool,
}

/// Steps of the model: see [`Pacer::Batch`].
#[derive(Debug)]
pub struct BatchPacer {
    model: StepModel,
    noise: Noise,
    launch_factor: f64,
    seed: u64,
    cap: usize,
    speculation: Option<Speculation>,
    /// By the moment they may join, then by number.
    waiting: BTreeMap<(Ns, Ticket), Waiting>,
    running: Vec<Running>,
    /// End of the step that is running.
    step_ends: Option<Ns>,
    /// End of the last step: none begins before.
    free_from: Ns,
    spell: u64,
    spell_ends: Ns,
}

impl BatchPacer {
    fn new(config: &SimConfig) -> Self {
        let (noise, seed) = (config.sim.noise, config.sim.seed);
        Self {
            model: StepModel::new(config),
            noise,
            launch_factor: noise::factor(noise.launch, seed, LAUNCH, 0),
            seed,
            cap: config.max_running as usize,
            speculation: config.speculation,
            waiting: BTreeMap::new(),
            running: Vec::new(),
            step_ends: None,
            free_from: 0,
            spell: 0,
            spell_ends: SPELL_LONGEST_NS,
        }
    }

    fn submit(&mut self, ticket: Ticket, at: Ns, job: Job) {
        let from = at + self.model.front_ns() + job.delay_ns;
        self.waiting.insert((from, ticket), Waiting { ticket, job });
    }

    fn next_deadline(&self) -> Option<Ns> {
        self.step_ends.or_else(|| {
            self.waiting
                .first_key_value()
                .map(|((from, _), _)| (*from).max(self.free_from))
        })
    }

    fn advance(&mut self, out: &mut Vec<Emission>) {
        let Some(now) = self.next_deadline() else {
            return;
        };
        if self.step_ends.take().is_some() {
            self.finish_step(now, out);
        }
        self.start_step(now);
    }

    fn finish_step(&mut self, now: Ns, out: &mut Vec<Emission>) {
        let batch = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        let drafted = self
            .speculation
            .map_or(0, |speculation| speculation.drafted);
        for running in &mut self.running {
            let verify = match &mut running.deck {
                Some(deck) if running.started => Some(Verify {
                    drafted,
                    accepted: deck.draw(),
                }),
                _ => None,
            };
            running.started = true;
            let tokens = (1 + verify.map_or(0, |verify| verify.accepted)).min(running.left);
            running.left -= tokens;
            out.push(Emission {
                ticket: running.ticket,
                at: now,
                tokens,
                verify,
                batch,
                finished: running.left == 0,
            });
        }
        self.running.retain(|running| running.left > 0);
        self.free_from = now;
    }

    fn start_step(&mut self, now: Ns) {
        if now >= self.spell_ends
            || (self.running.is_empty() && now.saturating_sub(self.free_from) > SPELL_IDLE_NS)
        {
            self.spell += 1;
            self.spell_ends = now + SPELL_LONGEST_NS;
        }
        let mut prefill = 0_u32;
        while self.running.len() < self.cap
            && let Some(entry) = self.waiting.first_entry()
            && entry.key().0 <= now
        {
            let Waiting { ticket, job } = entry.remove();
            prefill = prefill.saturating_add(job.prefill_tokens);
            self.running.push(Running {
                ticket,
                left: job.tokens.max(1),
                deck: self.speculation.map(|speculation| {
                    Deck::new(
                        speculation.drafter,
                        speculation.drafted,
                        self.seed,
                        ticket.0,
                    )
                }),
                noise: noise::factor(self.noise.request, self.seed, REQUEST, ticket.0),
                started: false,
            });
        }
        if self.running.is_empty() {
            return;
        }
        let batch = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        let own = self
            .running
            .iter()
            .map(|running| running.noise)
            .sum::<f64>()
            / f64::from(batch);
        let spell = noise::factor(self.noise.repeat, self.seed, SPELL, self.spell);
        let factor = self.launch_factor * spell * own;
        self.step_ends = Some(now + self.model.step_ns(batch, prefill, factor));
    }
}

/// Fixed times: see [`Pacer::Fixed`].
#[derive(Debug)]
pub struct FixedPacer {
    ttft_ns: Ns,
    step_ns: Ns,
    due: BinaryHeap<Reverse<(Ns, Ticket)>>,
    /// Tokens left.
    running: BTreeMap<Ticket, u32>,
}

impl FixedPacer {
    fn submit(&mut self, ticket: Ticket, at: Ns, job: Job) {
        self.running.insert(ticket, job.tokens.max(1));
        self.due
            .push(Reverse((at + self.ttft_ns + job.delay_ns, ticket)));
    }

    fn advance(&mut self, out: &mut Vec<Emission>) {
        let Some(Reverse((now, ticket))) = self.due.pop() else {
            return;
        };
        let batch = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        let Some(left) = self.running.get_mut(&ticket) else {
            return;
        };
        *left -= 1;
        let finished = *left == 0;
        if finished {
            self.running.remove(&ticket);
        } else {
            self.due.push(Reverse((now + self.step_ns, ticket)));
        }
        out.push(Emission {
            ticket,
            at: now,
            tokens: 1,
            verify: None,
            batch,
            finished,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::sglang;

    fn job(tokens: u32) -> Job {
        Job {
            prefill_tokens: 19,
            tokens,
            delay_ns: 0,
        }
    }

    fn run(pacer: &mut Pacer) -> Vec<Emission> {
        let mut out = Vec::new();
        while pacer.next_deadline().is_some() {
            pacer.advance(&mut out);
        }
        out
    }

    #[test]
    fn fixed_pacing_is_to_the_nanosecond_and_independent_of_the_batch() {
        let mut pacer = Pacer::new(&sglang(&["--sim-ttft-ms", "5", "--sim-step-ms", "10"]));
        pacer.submit(Ticket(0), 1000, job(3));
        pacer.submit(Ticket(1), 2000, job(2));
        let at: Vec<(u64, Ns, bool)> = run(&mut pacer)
            .iter()
            .map(|emission| (emission.ticket.0, emission.at, emission.finished))
            .collect();
        assert_eq!(
            at,
            [
                (0, 5_001_000, false),
                (1, 5_002_000, false),
                (0, 15_001_000, false),
                (1, 15_002_000, true),
                (0, 25_001_000, true),
            ]
        );
    }

    #[test]
    fn a_cancelled_request_gets_nothing_more_and_the_rest_goes_on() {
        for flags in [
            &[] as &[&str],
            &["--sim-ttft-ms", "1", "--sim-step-ms", "1"],
        ] {
            let mut pacer = Pacer::new(&sglang(flags));
            for serial in 0..3 {
                pacer.submit(Ticket(serial), 0, job(5));
            }
            let mut out = Vec::new();
            while out.is_empty() {
                pacer.advance(&mut out);
            }
            pacer.cancel(Ticket(1));
            let rest = run(&mut pacer);
            assert!(rest.iter().all(|emission| emission.ticket != Ticket(1)));
            assert_eq!(rest.iter().filter(|emission| emission.finished).count(), 2);
            assert_eq!(pacer.load(), (0, 0));
        }
    }

    #[test]
    fn no_more_than_the_cap_run_at_once() {
        let mut pacer = Pacer::new(&sglang(&["--speculative-algorithm", "EAGLE3"]));
        for serial in 0..100 {
            pacer.submit(Ticket(serial), 0, job(20));
        }
        let emissions = run(&mut pacer);
        assert_eq!(emissions.iter().map(|e| e.batch).max(), Some(48));
        assert_eq!(emissions.iter().filter(|e| e.finished).count(), 100);
        let total: u32 = emissions.iter().map(|e| e.tokens).sum();
        assert_eq!(total, 2000);
    }

    #[test]
    fn a_request_that_comes_in_mid_step_joins_the_next_one() {
        let mut pacer = Pacer::new(&sglang(&[]));
        pacer.submit(Ticket(0), 0, job(3));
        let mut out = Vec::new();
        pacer.advance(&mut out);
        let end = pacer.next_deadline().expect("a step");
        pacer.submit(Ticket(1), end - 12_500_000, job(1));
        let emissions = run(&mut pacer);
        let batches: Vec<u32> = emissions.iter().map(|e| e.batch).collect();
        assert_eq!(batches, [1, 2, 2, 1]);
    }
}
