//! When the requests of an open loop are to be sent. Pure: equal arguments give
//! equal times.
//!
//! The first request leaves at the stage's start, each further one a gap later. A
//! gap is drawn with mean one and stretched by the rate: for a ramp the running sum
//! of the gaps is the number of requests that the rate has called for so far, so
//! the times are those at which that number is reached (a change of the time scale:
//! Çinlar 1975, *Introduction to Stochastic Processes*, chapter 4).

use rand::{SeedableRng, rngs::StdRng};
use rand_distr::{Distribution, Exp1, Gamma};
use tokdyno_domain::{
    prompts::{PromptSet, TraceRequest},
    workload::{Arrivals, LoadLevel, StageKind, StagePlan, StageSize, limits},
};

const NS_PER_S: f64 = 1e9;
/// After a trace whose requests all come at once it starts over so much later, in s.
const PAUSE_S: f64 = 1.0;
/// Keeps the draws of neighbouring stages apart.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The times of an open stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Since the stage's start, in ns, ascending.
    pub(crate) times_ns: Vec<u64>,
    /// The stage's time calls for more requests than a stage may have.
    pub(crate) is_cut: bool,
}

/// A rate that changes evenly from its first value to its last, and stays there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    /// Requests per second.
    from: f64,
    to: f64,
    /// How long it changes, in s.
    over_s: f64,
}

/// The schedule of a stage; none for a closed loop.
pub(crate) fn schedule(stage: &StagePlan, prompts: &PromptSet, seed: u64) -> Option<Schedule> {
    let rng = StdRng::seed_from_u64(seed.wrapping_add(GOLDEN.wrapping_mul(u64::from(stage.index))));
    let size = stage.level.size;
    match stage.level.kind {
        StageKind::SingleStream | StageKind::ClosedLoop { .. } => None,
        StageKind::OpenLoop { arrivals, .. } | StageKind::Ramp { arrivals, .. } => {
            let rate = Rate::of(stage.level)?;
            let sums = sums(arrivals, rng);
            Some(take(size, sums.map(|sum| rate.time_of(sum))))
        }
        StageKind::Replay { speed } => {
            let PromptSet::Trace { requests, .. } = prompts else {
                return None;
            };
            let speed = speed.get();
            Some(take(size, replay(requests).map(|at_s| at_s / speed)))
        }
    }
}

/// How long requests of an open stage are issued, in s, but for the luck of the
/// draw; none for a closed loop.
pub(crate) fn nominal_s(level: LoadLevel, prompts: &PromptSet) -> Option<f64> {
    match (level.size, level.kind) {
        (_, kind) if !kind.is_open() => None,
        (StageSize::Duration { seconds }, _) => Some(seconds),
        (StageSize::Requests { .. }, StageKind::Replay { speed }) => match prompts {
            PromptSet::Trace { requests, .. } => {
                let times = replay(requests).map(|at_s| at_s / speed.get());
                let last_ns = take(level.size, times).times_ns.last().copied()?;
                Some(last_ns as f64 / NS_PER_S)
            }
            _ => None,
        },
        (StageSize::Requests { .. }, _) => Rate::of(level).map(|rate| rate.over_s),
    }
}

/// Which entry of a trace the n-th request of a replay is, and how often the trace
/// was gone through before. Of an empty trace the first.
pub(crate) fn entry(requests: &[TraceRequest], number: u64) -> (u64, u64) {
    let length = (requests.len() as u64).max(1);
    (number % length, number / length)
}

impl Rate {
    /// That of an open loop or a ramp.
    fn of(level: LoadLevel) -> Option<Self> {
        let (from, to) = match level.kind {
            StageKind::OpenLoop { rate, .. } => (rate.get(), rate.get()),
            StageKind::Ramp { from, to, .. } => (from.get(), to.get()),
            _ => return None,
        };
        let over_s = match level.size {
            StageSize::Duration { seconds } => seconds,
            StageSize::Requests { requests } => 2.0 * f64::from(requests) / (from + to),
        };
        Some(Self { from, to, over_s })
    }

    /// When so many requests were called for: N(t) = from·t + (to − from)·t² / 2T
    /// solved for t, in s.
    fn time_of(self, count: f64) -> f64 {
        let over = (self.from + self.to) / 2.0 * self.over_s;
        if count >= over {
            return self.over_s + (count - over) / self.to;
        }
        // In this form of the root nothing cancels out, whatever the slope.
        let slope = (self.to - self.from) / self.over_s;
        2.0 * count / (self.from + (self.from * self.from + 2.0 * slope * count).sqrt())
    }
}

/// Running sums of gaps with mean one, beginning with zero.
fn sums(arrivals: Arrivals, mut rng: StdRng) -> impl Iterator<Item = f64> {
    let gamma = match arrivals {
        Arrivals::Gamma { burstiness } => Gamma::new(burstiness.get(), 1.0 / burstiness.get()).ok(),
        Arrivals::Constant | Arrivals::Poisson => None,
    };
    let mut next_gap = move || match (arrivals, &gamma) {
        (Arrivals::Gamma { .. }, Some(gamma)) => gamma.sample(&mut rng),
        (Arrivals::Poisson, _) => Exp1.sample(&mut rng),
        // A positive shape is never refused, so this is the constant one.
        _ => 1.0,
    };
    std::iter::successors(Some(0.0), move |sum| Some(sum + next_gap()))
}

/// The times of a trace in s, again and again. Between two passes lies the mean gap.
fn replay(requests: &[TraceRequest]) -> impl Iterator<Item = f64> {
    let last_ms = requests.iter().map(|request| request.at_ms).max();
    let span_s = last_ms.unwrap_or(0) as f64 / 1000.0;
    let gaps = requests.len().saturating_sub(1).max(1) as f64;
    let pass_s = if span_s > 0.0 {
        span_s + span_s / gaps
    } else {
        PAUSE_S
    };
    let pass = move |pass: u32| {
        requests
            .iter()
            .map(move |request| f64::from(pass) * pass_s + request.at_ms as f64 / 1000.0)
    };
    let passes = if requests.is_empty() { 0 } else { u32::MAX };
    (0..passes).flat_map(pass)
}

/// As many of the times as the size asks for, never more than a stage may have.
fn take(size: StageSize, times_s: impl Iterator<Item = f64>) -> Schedule {
    let (most, until_s) = match size {
        StageSize::Requests { requests } => (requests, f64::INFINITY),
        StageSize::Duration { seconds } => (limits::REQUESTS, seconds),
    };
    let mut times_s = times_s.take_while(|at_s| *at_s < until_s);
    let mut before = 0;
    let times_ns: Vec<u64> = times_s
        .by_ref()
        .take(most as usize)
        .map(|at_s| {
            // Saturates; a trace whose times go back waits for none of them.
            before = before.max((at_s * NS_PER_S).round() as u64);
            before
        })
        .collect();
    let is_bound_by_time = matches!(size, StageSize::Duration { .. });
    Schedule {
        times_ns,
        is_cut: is_bound_by_time && times_s.next().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokdyno_domain::workload::Thousandths;

    use super::*;

    const N: u32 = 20_000;

    fn number(value: f64) -> Thousandths {
        Thousandths::new(value).expect("in range")
    }

    fn stage(index: u32, kind: StageKind, size: StageSize) -> StagePlan {
        StagePlan {
            index,
            level: LoadLevel { kind, size },
            repeat: 0,
            first_prompt: 0,
            first_warmup_prompt: 0,
            warmup_requests: 0,
        }
    }

    fn times_s(kind: StageKind, size: StageSize, seed: u64) -> Vec<f64> {
        let prompts = PromptSet::Varied;
        let schedule = schedule(&stage(3, kind, size), &prompts, seed).expect("an open loop");
        assert!(schedule.times_ns.is_sorted() && !schedule.is_cut);
        let times = schedule.times_ns.iter();
        times.map(|at_ns| *at_ns as f64 / NS_PER_S).collect()
    }

    fn open(rate: f64, arrivals: Arrivals) -> StageKind {
        StageKind::OpenLoop {
            rate: number(rate),
            arrivals,
        }
    }

    fn gamma(burstiness: f64) -> Arrivals {
        Arrivals::Gamma {
            burstiness: number(burstiness),
        }
    }

    const fn requests(requests: u32) -> StageSize {
        StageSize::Requests { requests }
    }

    /// Mean of the gaps, and their variance over the squared mean.
    fn gaps(times_s: &[f64]) -> (f64, f64) {
        let gaps: Vec<f64> = times_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        (mean, variance / (mean * mean))
    }

    #[test]
    fn even_gaps_are_even() {
        let times = times_s(open(4.0, Arrivals::Constant), requests(5), 0);
        assert_eq!(times, [0.0, 0.25, 0.5, 0.75, 1.0]);
        let seconds = StageSize::Duration { seconds: 2.5 };
        let times = times_s(open(4.0, Arrivals::Constant), seconds, 0);
        assert_eq!(times.len(), 10);
    }

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_their_distribution() {
        // Variance over squared mean: 1 for Poisson, one over the shape for gamma.
        for (arrivals, spread) in [
            (Arrivals::Poisson, 1.0),
            (gamma(0.25), 4.0),
            (gamma(1.0), 1.0),
            (gamma(4.0), 0.25),
            (gamma(100.0), 0.01),
        ] {
            for seed in 0..5 {
                let (mean, relative) = gaps(&times_s(open(50.0, arrivals), requests(N), seed));
                // Five standard errors of each.
                let error = 5.0 * (spread / f64::from(N)).sqrt();
                assert!((mean * 50.0 - 1.0).abs() < error, "{arrivals:?} {mean}");
                let error = 5.0 * ((2.0 + 6.0 * spread) / f64::from(N)).sqrt() * spread * 1.5;
                assert!((relative - spread).abs() < error, "{arrivals:?} {relative}");
            }
        }
    }

    #[test]
    fn a_ramp_calls_for_as_many_as_its_rate() {
        let ramp = |from, to, arrivals| StageKind::Ramp {
            from: number(from),
            to: number(to),
            arrivals,
        };
        for (from, to) in [(1.0, 9.0), (9.0, 1.0), (5.0, 5.0)] {
            let seconds = StageSize::Duration { seconds: 100.0 };
            let times = times_s(ramp(from, to, Arrivals::Constant), seconds, 0);
            assert!(times.len().abs_diff(500) <= 1, "{}", times.len());
            for at_s in [10.0_f64, 50.0, 90.0] {
                let due = from * at_s + (to - from) * at_s * at_s / 200.0;
                let sent = times.iter().filter(|time| **time < at_s).count() as f64;
                assert!((sent - due).abs() <= 1.0, "{sent} for {due}");
            }
            // Poisson: 5,000 within five standard deviations.
            let seconds = StageSize::Duration { seconds: 1000.0 };
            let times = times_s(ramp(from, to, Arrivals::Poisson), seconds, 7);
            assert!(times.len().abs_diff(5000) < 354, "{}", times.len());
            // Bounded by requests the ramp takes as long as they take.
            let times = times_s(ramp(from, to, Arrivals::Constant), requests(500), 0);
            assert!((times[499] - 100.0).abs() < 2.0, "{}", times[499]);
        }
    }

    fn trace(times_ms: &[u64]) -> PromptSet {
        let requests = times_ms.iter().map(|at_ms| TraceRequest {
            at_ms: *at_ms,
            input_tokens: 10,
            output_tokens: 5,
        });
        PromptSet::Trace {
            name: "t".to_owned(),
            requests: requests.collect(),
        }
    }

    #[test]
    fn a_trace_keeps_its_times_and_starts_over() {
        let replay = |times_ms: &[u64], speed, size| {
            let kind = StageKind::Replay {
                speed: number(speed),
            };
            let plan = stage(0, kind, size);
            let schedule = schedule(&plan, &trace(times_ms), 0).expect("a replay");
            let times_ns = schedule.times_ns.into_iter();
            times_ns.map(|ns| ns / 1_000_000).collect::<Vec<_>>()
        };
        let times = [0, 100, 100, 400];
        assert_eq!(replay(&times, 1.0, requests(4)), times);
        assert_eq!(replay(&times, 2.0, requests(3)), [0, 50, 50]);
        let again = [0, 100, 100, 400, 533, 633, 633];
        assert_eq!(replay(&times, 1.0, requests(7)), again);
        let seconds = StageSize::Duration { seconds: 0.5 };
        assert_eq!(replay(&times, 1.0, seconds), times);
        assert_eq!(replay(&[0, 0], 1.0, requests(3)), [0, 0, 1000]);
        assert_eq!(replay(&[], 1.0, requests(3)), Vec::<u64>::new());
        // Out of order: none leaves before the one that stands before it.
        assert_eq!(replay(&[0, 90, 30], 1.0, requests(3)), [0, 90, 90]);
        let PromptSet::Trace { requests, .. } = trace(&times) else {
            panic!("a trace");
        };
        assert_eq!(entry(&requests, 6), (2, 1));
        assert_eq!(entry(&[], 6), (0, 6));
    }

    #[test]
    fn a_stage_takes_no_more_than_it_may() {
        let kind = open(10_000.0, Arrivals::Constant);
        let seconds = StageSize::Duration { seconds: 101.0 };
        let cut = schedule(&stage(0, kind, seconds), &PromptSet::Varied, 0).expect("open");
        assert_eq!((cut.times_ns.len(), cut.is_cut), (1_000_000, true));
        let closed = StageKind::ClosedLoop { concurrency: 2 };
        assert_eq!(
            schedule(&stage(0, closed, seconds), &PromptSet::Varied, 0),
            None
        );
    }

    #[test]
    fn how_long_it_will_take() {
        let level = |kind, size| LoadLevel { kind, size };
        let nominal = |kind, size| nominal_s(level(kind, size), &trace(&[0, 500, 2000]));
        let steady = open(4.0, Arrivals::Poisson);
        assert_eq!(nominal(steady, requests(10)), Some(2.5));
        let seconds = StageSize::Duration { seconds: 7.0 };
        assert_eq!(nominal(steady, seconds), Some(7.0));
        let speed = number(2.0);
        assert_eq!(nominal(StageKind::Replay { speed }, requests(3)), Some(1.0));
        assert_eq!(nominal(StageKind::SingleStream, seconds), None);
    }

    /// A run can be repeated years later only while this holds: where a new version
    /// of a library breaks it, the same workload no longer means the same times.
    #[test]
    fn the_times_of_a_seed_stay() {
        let first = |arrivals| {
            let times = times_s(open(1.0, arrivals), requests(4), 42);
            times
                .iter()
                .map(|at_s| (at_s * 1e6) as u64)
                .collect::<Vec<_>>()
        };
        assert_eq!(first(Arrivals::Poisson), [0, 598_635, 679_643, 1_647_836]);
        assert_eq!(first(gamma(0.5)), [0, 35_537, 3_007_280, 8_156_859]);
    }

    proptest! {
        #[test]
        fn equal_arguments_give_equal_times(seed: u64, rate in 0.1_f64..1000.0, shape in 0.1_f64..50.0, count in 1_u32..300) {
            let kind = open(rate, gamma(shape));
            let times = times_s(kind, requests(count), seed);
            prop_assert_eq!(&times, &times_s(kind, requests(count), seed));
            prop_assert_eq!(times.len(), count as usize);
            prop_assert_eq!(times[0], 0.0);
            // More of the same stage begins with the same.
            let more = times_s(kind, requests(count + 7), seed);
            prop_assert_eq!(&more[..count as usize], &times[..]);
            if count > 3 {
                prop_assert_ne!(&times, &times_s(kind, requests(count), seed ^ 1));
                let other = schedule(&stage(4, kind, requests(count)), &PromptSet::Varied, seed).expect("open");
                let other: Vec<f64> = other.times_ns.iter().map(|ns| *ns as f64 / NS_PER_S).collect();
                prop_assert_ne!(&times, &other, "each stage has its own");
            }
        }

        #[test]
        fn a_ramp_is_inverted(from in 0.01_f64..1000.0, to in 0.01_f64..1000.0, over_s in 0.1_f64..1000.0, share in 0.0_f64..1.0) {
            let rate = Rate { from, to, over_s };
            let at_s = share * over_s;
            let count = from * at_s + (to - from) * at_s * at_s / (2.0 * over_s);
            prop_assert!((rate.time_of(count) - at_s).abs() < 1e-6 * over_s.max(1.0));
        }
    }
}
