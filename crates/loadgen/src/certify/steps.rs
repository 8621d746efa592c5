//! Which chunk rates are tried, and when one holds. Pure.

use std::time::Duration;

use tokdyno_domain::{conditions::Certificate, timestamp::Timestamp};

/// More streams than this are certified as this many.
pub(super) const MOST_STREAMS: u32 = 1024;
/// Chunks per second of the first step, ...
const START: f64 = 5_000.0;
/// ... and of the last one.
const TOP: f64 = 320_000.0;
/// If the first step fails: so many slower ones, each half as fast.
const DOWN: u32 = 3;
/// No stream gets its chunks faster than this: no engine does.
const LEAST_INTERVAL: Duration = Duration::from_micros(200);
/// About how long a step takes.
const LENGTH: Duration = Duration::from_millis(300);
/// First chunk after the request.
const FIRST: Duration = Duration::from_millis(2);
/// Few streams ask several times, so that more than one first token is timed.
const LEAST_REQUESTS: u32 = 32;
const MOST_ROUNDS: u32 = 8;
/// A server that reached less of the rate than this was the limit, not the reader.
const REACHED: f64 = 0.8;

const TTFT_P50_MS: f64 = 1.0;
const TTFT_P99_MS: f64 = 10.0;
const TPOT: f64 = 0.01;

/// How a step is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) streams: u32,
    /// Chunks per second over all streams.
    pub(super) rate: f64,
    /// Requests of each stream, one after another.
    pub(super) rounds: u32,
    /// From the request to its first chunk.
    pub(super) first: Duration,
    /// From chunk to chunk.
    pub(super) interval: Duration,
    /// Chunks of a reply; at least two.
    pub(super) chunks: u32,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    /// As really written while all streams ran.
    pub(super) chunks_per_s: f64,
    pub(super) ttft_error_p50_ms: f64,
    pub(super) ttft_error_p99_ms: f64,
    pub(super) tpot_error: f64,
    /// Every chunk of every request came.
    pub(super) all_arrived: bool,
}

/// A request that came through, as written and as read, in ns since one origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Timed {
    pub(super) first_written: f64,
    pub(super) last_written: f64,
    pub(super) first_read: f64,
    /// Time per output token as the meter makes it, in ns; none if it makes none.
    pub(super) tpot: Option<f64>,
    pub(super) chunks: u32,
}

/// Steps up from the first; down from it if it fails.
#[derive(Debug)]
pub(super) struct Ladder {
    streams: u32,
    next: Option<f64>,
    /// The present step failed once: other work may have come in between.
    again: bool,
    downs: u32,
    held: Option<Outcome>,
    failed: Option<Outcome>,
}

impl Step {
    fn new(streams: u32, rate: f64) -> Self {
        let rounds = (LEAST_REQUESTS / streams).clamp(1, MOST_ROUNDS);
        let interval = Duration::from_secs_f64(f64::from(streams) / rate).max(LEAST_INTERVAL);
        let chunks = LENGTH.as_secs_f64() / f64::from(rounds) / interval.as_secs_f64();
        Self {
            streams,
            rate,
            rounds,
            first: FIRST,
            interval,
            chunks: (chunks as u32).max(2),
        }
    }

    /// Requests of the whole step.
    pub(super) const fn requests(&self) -> u32 {
        self.streams * self.rounds
    }
}

impl Outcome {
    /// Puts the requests of a step together. None if none came through: then there
    /// is nothing to tell.
    pub(super) fn of(step: &Step, timed: &[Timed]) -> Option<Self> {
        if timed.is_empty() {
            return None;
        }
        let mut late: Vec<f64> = timed
            .iter()
            .map(|one| (one.first_read - one.first_written) / 1e6)
            .collect();
        late.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * late.len() as f64).ceil().max(1.0) as usize - 1;
            late.get(place.min(late.len() - 1)).copied()
        };
        let written: f64 = timed
            .iter()
            .map(|one| (one.last_written - one.first_written).max(1.0))
            .sum();
        let gaps: f64 = timed
            .iter()
            .map(|one| f64::from(one.chunks.saturating_sub(1)))
            .sum();
        // The mean over the replies of equal length. One without a time per token came
        // in a single read: it took no time at all, as far as could be told.
        let true_tpot = written / gaps.max(1.0);
        let tpot =
            timed.iter().map(|one| one.tpot.unwrap_or(0.0)).sum::<f64>() / timed.len() as f64;
        Some(Self {
            chunks_per_s: f64::from(step.streams) * 1e9 / true_tpot,
            ttft_error_p50_ms: at(0.5)?,
            ttft_error_p99_ms: at(0.99)?,
            tpot_error: tpot / true_tpot - 1.0,
            all_arrived: timed.len() == step.requests() as usize,
        })
    }

    /// Were all times true?
    pub(super) fn holds(&self) -> bool {
        self.all_arrived
            && self.ttft_error_p50_ms.abs() <= TTFT_P50_MS
            && self.ttft_error_p99_ms.abs() <= TTFT_P99_MS
            && self.tpot_error.abs() <= TPOT
    }
}

impl Ladder {
    pub(super) const fn new(streams: u32) -> Self {
        Self {
            streams,
            next: Some(START),
            again: false,
            downs: 0,
            held: None,
            failed: None,
        }
    }

    pub(super) const fn streams(&self) -> u32 {
        self.streams
    }

    /// What to try next; none at the end.
    pub(super) fn next(&self) -> Option<Step> {
        self.next.map(|rate| Step::new(self.streams, rate))
    }

    /// Takes what came of the step. One that fails is tried once more.
    pub(super) fn take(&mut self, step: &Step, outcome: Option<Outcome>) {
        let held = outcome.filter(Outcome::holds);
        if held.is_none() && outcome.is_some() && !self.again {
            self.again = true;
            return;
        }
        self.again = false;
        self.next = match held {
            Some(held) => {
                self.held = Some(held);
                let twice = step.rate * 2.0;
                let fastest = f64::from(self.streams) / LEAST_INTERVAL.as_secs_f64();
                let went_on = held.chunks_per_s >= REACHED * step.rate;
                (self.failed.is_none() && went_on && twice <= TOP.min(fastest)).then_some(twice)
            }
            None => {
                self.failed = outcome.or(self.failed);
                self.downs += 1;
                (self.held.is_none() && self.downs <= DOWN && outcome.is_some())
                    .then_some(step.rate / 2.0)
            }
        };
    }

    /// The outcome; none if nothing ever came through.
    pub(super) fn certificate(&self, at: Timestamp) -> Option<Certificate> {
        let outcome = self.held.or(self.failed)?;
        Some(Certificate {
            at,
            concurrency: self.streams,
            chunks_per_s: if self.held.is_some() {
                outcome.chunks_per_s
            } else {
                0.0
            },
            is_limit: self.downs > 0,
            ttft_error_p50_ms: outcome.ttft_error_p50_ms,
            ttft_error_p99_ms: outcome.ttft_error_p99_ms,
            tpot_error: outcome.tpot_error,
            remembered: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp(0);

    fn good(rate: f64) -> Outcome {
        Outcome {
            chunks_per_s: rate,
            ttft_error_p50_ms: 0.1,
            ttft_error_p99_ms: 2.0,
            tpot_error: -0.002,
            all_arrived: true,
        }
    }

    /// Climbs to the end; steps up to `limit` hold. Gives the rates that were tried.
    fn climb(streams: u32, limit: f64) -> (Vec<f64>, Ladder) {
        let mut ladder = Ladder::new(streams);
        let mut tried = Vec::new();
        while let Some(step) = ladder.next() {
            tried.push(step.rate);
            let mut outcome = good(step.rate);
            outcome.all_arrived = step.rate <= limit;
            ladder.take(&step, Some(outcome));
        }
        (tried, ladder)
    }

    #[test]
    fn rates_double_until_one_fails() {
        let (tried, ladder) = climb(512, 50_000.0);
        assert_eq!(tried, [5e3, 10e3, 20e3, 40e3, 80e3, 80e3]);
        let certificate = ladder.certificate(AT).expect("a certificate");
        assert_eq!(certificate.chunks_per_s, 40e3);
        assert!(certificate.is_limit);
        let (tried, ladder) = climb(512, 1e9);
        assert_eq!(tried.last(), Some(&320e3));
        assert!(!ladder.certificate(AT).expect("a certificate").is_limit);
    }

    #[test]
    fn a_single_failure_is_no_limit() {
        let mut ladder = Ladder::new(64);
        let step = ladder.next().expect("a step");
        ladder.take(
            &step,
            Some(good(0.0)).map(|one| Outcome {
                all_arrived: false,
                ..one
            }),
        );
        assert_eq!(ladder.next(), Some(step));
        ladder.take(&step, Some(good(step.rate)));
        assert_eq!(ladder.next().map(|step| step.rate), Some(10e3));
    }

    #[test]
    fn few_streams_are_not_hurried_beyond_reason() {
        assert_eq!(climb(1, 1e9).0, [5e3]);
        assert_eq!(climb(2, 1e9).0, [5e3, 10e3]);
        for streams in [1, 2, 64, 1024] {
            let mut ladder = Ladder::new(streams);
            let mut length = Duration::ZERO;
            while let Some(step) = ladder.next() {
                assert!(step.interval >= LEAST_INTERVAL && step.chunks >= 2);
                length += (step.first + step.interval * step.chunks) * step.rounds;
                ladder.take(&step, Some(good(step.rate)));
            }
            assert!(
                length < Duration::from_millis(2800),
                "{streams}: {length:?}"
            );
        }
    }

    #[test]
    fn a_slow_machine_is_certified_lower() {
        let (tried, ladder) = climb(64, 2_000.0);
        assert_eq!(tried, [5e3, 5e3, 2.5e3, 2.5e3, 1.25e3]);
        let certificate = ladder.certificate(AT).expect("a certificate");
        assert_eq!(
            (certificate.chunks_per_s, certificate.is_limit),
            (1250.0, true)
        );
        let (tried, ladder) = climb(64, 0.0);
        assert_eq!(tried.len(), 8);
        assert_eq!(ladder.certificate(AT).expect("one").chunks_per_s, 0.0);
    }

    #[test]
    fn a_server_that_cannot_go_faster_is_no_limit_of_the_reader() {
        let mut ladder = Ladder::new(512);
        let step = ladder.next().expect("a step");
        ladder.take(&step, Some(good(step.rate * 0.5)));
        assert_eq!(ladder.next(), None);
        let certificate = ladder.certificate(AT).expect("a certificate");
        assert_eq!(
            (certificate.chunks_per_s, certificate.is_limit),
            (2500.0, false)
        );
    }

    #[test]
    fn nothing_at_all_is_no_certificate() {
        let mut ladder = Ladder::new(4);
        let step = ladder.next().expect("a step");
        ladder.take(&step, None);
        assert_eq!((ladder.next(), ladder.certificate(AT)), (None, None));
    }

    #[test]
    fn each_bound_counts() {
        assert!(good(1.0).holds());
        for broken in [
            Outcome {
                ttft_error_p50_ms: 1.1,
                ..good(1.0)
            },
            Outcome {
                ttft_error_p99_ms: 10.1,
                ..good(1.0)
            },
            Outcome {
                tpot_error: -0.011,
                ..good(1.0)
            },
            Outcome {
                all_arrived: false,
                ..good(1.0)
            },
        ] {
            assert!(!broken.holds(), "{broken:?}");
        }
    }

    #[test]
    fn errors_are_those_beside_what_was_written() {
        let step = Step::new(32, 5_000.0);
        let one = Timed {
            first_written: 0.0,
            last_written: 100e6,
            first_read: 0.5e6,
            tpot: Some(9.9e6),
            chunks: 11,
        };
        let outcome = Outcome::of(&step, &[one; 32]).expect("an outcome");
        assert_eq!(outcome.ttft_error_p50_ms, 0.5);
        assert!((outcome.tpot_error + 0.01).abs() < 1e-12);
        assert_eq!(outcome.chunks_per_s, 3200.0);
        assert!(outcome.all_arrived);
        assert!(!Outcome::of(&step, &[one]).expect("one").all_arrived);
        assert_eq!(Outcome::of(&step, &[]), None);
    }
}
