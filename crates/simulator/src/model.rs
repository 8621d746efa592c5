//! How long a step of the engine takes.
//!
//! A step yields one token (under speculation: one verify step) for each running
//! request. Its time grows with the batch; a part of it is communication between
//! the GPUs, and that is the part on which NCCL variables act. The curves pass
//! through recorded figures (single stream and C = 128) by construction: they
//! are solved for here, not typed in. All that lies between, and every single
//! variable's share, is invented and listed in `docs/simulator.md`.

use std::collections::BTreeMap;

use crate::{
    acceptance::Drafter,
    config::{Engine, SimConfig},
};

/// Conditions of the recorded figures.
pub mod founding {
    /// Prompt tokens (18, 19 and 20 were recorded).
    pub const PROMPT_TOKENS: u32 = 19;
    /// Completion tokens.
    pub const OUTPUT_TOKENS: u32 = 256;
    /// Requests at C = 128.
    pub const REQUESTS: u32 = 512;
    /// C.
    pub const CONCURRENCY: u32 = 128;
}

/// What was recorded of a configuration, in tok/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recorded {
    /// Single stream, n / e2el.
    pub single_tps: f64,
    /// All requests together at C = 128.
    pub concurrent_tps: f64,
}

/// vLLM baseline.
pub const VLLM: Recorded = Recorded {
    single_tps: 82.5,
    concurrent_tps: 1536.0,
};
/// SGLang, CUDA graphs, triton, untuned.
pub const SGLANG: Recorded = Recorded {
    single_tps: 63.6,
    concurrent_tps: 2370.0,
};
/// SGLang with the whole NCCL set of the founding notes.
pub const SGLANG_TUNED: Recorded = Recorded {
    single_tps: 90.0,
    concurrent_tps: 2320.0,
};
/// SGLang with the AQ-MedAI drafter.
pub const SGLANG_AQ_MEDAI: Recorded = Recorded {
    single_tps: 62.9,
    concurrent_tps: 849.0,
};
/// SGLang with the team's own drafter.
pub const SGLANG_OWN_DRAFTER: Recorded = Recorded {
    single_tps: 40.8,
    concurrent_tps: 597.0,
};
/// vLLM with an EAGLE-3 drafter: 0.66 × baseline was recorded for one user; the
/// same share at C = 128 is invented.
pub const VLLM_EAGLE3: Recorded = Recorded {
    single_tps: 82.5 * 0.66,
    concurrent_tps: 1536.0 * 0.66,
};

/// Time a request spends outside the engine's steps before its first one
/// (tokenising, queueing between processes), in ms. Invented.
const FRONT_MS: f64 = 12.0;
/// What each prompt token that is not cached adds to a step, in ms. Invented,
/// and small enough that 18 or 20 prompt tokens make no difference.
const PREFILL_MS: f64 = 0.02;
/// Curvature of the step time over the batch (1 is a straight line). Invented.
const CURVE: f64 = 0.85;
/// What running without captured graphs adds to each step, in ms. Invented.
const EAGER_MS: f64 = 9.0;

/// A speed-up or slow-down of communication: the part that every step pays, and
/// the part that grows with the batch. 1 changes nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommFactors {
    /// On the constant part.
    pub latency: f64,
    /// On the part that grows with the batch.
    pub bandwidth: f64,
}

/// The communication part of a step's time, in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Comm {
    latency: f64,
    /// At a batch of 128.
    bandwidth: f64,
}

/// SGLang's communication: 51.5 % of a single-stream step was recorded as
/// all-reduce, which is 8.1 ms; the growing part is invented.
const SGLANG_COMM: Comm = Comm {
    latency: 8.1,
    bandwidth: 14.0,
};
/// vLLM's, invented: small, because its recorded figures may already include
/// tuned variables.
const VLLM_COMM: Comm = Comm {
    latency: 1.2,
    bandwidth: 3.0,
};
/// SGLang's under speculation (verify and draft), invented.
const SGLANG_SPEC_COMM: Comm = Comm {
    latency: 10.0,
    bandwidth: 16.0,
};

/// One variable's share in the effect of the whole set: exponents on the set's
/// factors. The shares of the set's values add up to 1.
struct Share {
    name: &'static str,
    value: &'static str,
    latency: f64,
    bandwidth: f64,
}

const fn share(name: &'static str, value: &'static str, latency: f64, bandwidth: f64) -> Share {
    Share {
        name,
        value,
        latency,
        bandwidth,
    }
}

/// The NCCL set of the founding notes.
pub const NCCL_SET: [(&str, &str); 6] = [
    ("NCCL_PROTO", "LL"),
    ("NCCL_ALGO", "Ring"),
    ("NCCL_P2P_LEVEL", "SYS"),
    ("NCCL_MAX_NCHANNELS", "16"),
    ("NCCL_BUFFSIZE", "16777216"),
    ("NCCL_NTHREADS", "512"),
];

/// Every value that has an effect. All invented but the sum over the set.
const SHARES: [Share; 13] = [
    share("NCCL_PROTO", "LL", 0.55, 0.80),
    share("NCCL_ALGO", "Ring", 0.20, 0.08),
    share("NCCL_P2P_LEVEL", "SYS", 0.14, 0.02),
    share("NCCL_MAX_NCHANNELS", "16", 0.08, 0.07),
    share("NCCL_NTHREADS", "512", 0.02, 0.02),
    share("NCCL_BUFFSIZE", "16777216", 0.01, 0.01),
    share("NCCL_PROTO", "LL128", 0.25, 0.20),
    share("NCCL_PROTO", "Simple", -0.30, -0.25),
    share("NCCL_ALGO", "Tree", 0.12, 0.15),
    share("NCCL_MAX_NCHANNELS", "8", 0.10, 0.20),
    share("NCCL_MAX_NCHANNELS", "32", 0.02, -0.05),
    share("NCCL_P2P_DISABLE", "1", -0.60, 0.90),
    share("NCCL_SHM_DISABLE", "1", -1.20, 1.80),
];

/// How the batch-dependent time of a step is made up.
#[derive(Debug, Clone, PartialEq)]
pub struct StepModel {
    /// Step time of a batch of one, in ms, before NCCL variables.
    single_ms: f64,
    /// Step time at the batch at which the curve is pinned, in ms.
    pinned_ms: f64,
    /// That batch: 128, or 48 where speculation caps it.
    pinned_batch: u32,
    comm: Comm,
    factors: CommFactors,
    eager_ms: f64,
    /// All times are multiplied by this.
    scale: f64,
}

impl StepModel {
    /// The model of a configuration.
    #[must_use]
    pub fn new(config: &SimConfig) -> Self {
        let drafter = config.speculation.map(|speculation| speculation.drafter);
        let (recorded, comm, cap) = match (config.engine, drafter) {
            (Engine::Vllm, None) => (VLLM, VLLM_COMM, 128),
            (Engine::Vllm, Some(_)) => (VLLM_EAGLE3, VLLM_COMM, 128),
            (Engine::Sglang, None) => (SGLANG, SGLANG_COMM, 128),
            (Engine::Sglang, Some(Drafter::AqMedAi)) => (SGLANG_AQ_MEDAI, SGLANG_SPEC_COMM, 48),
            (Engine::Sglang, Some(_)) => (SGLANG_OWN_DRAFTER, SGLANG_SPEC_COMM, 48),
        };
        let (single_ms, pinned_ms) = solve(recorded, drafter, cap);
        Self {
            single_ms,
            pinned_ms,
            pinned_batch: cap,
            comm,
            factors: nccl_factors(&config.nccl),
            eager_ms: if config.eager { EAGER_MS } else { 0.0 },
            scale: 1.0 / config.sim.speed,
        }
    }

    /// Time between the receipt of a request and the moment it can join a step.
    #[must_use]
    pub fn front_ns(&self) -> u64 {
        nanoseconds(FRONT_MS * self.scale)
    }

    /// Time of a step with `batch` running requests, `prefill` prompt tokens of
    /// which are computed in it, and a noise factor.
    #[must_use]
    pub fn step_ns(&self, batch: u32, prefill: u32, noise: f64) -> u64 {
        let ms = self.decode_ms(batch) + PREFILL_MS * f64::from(prefill);
        nanoseconds(ms * noise * self.scale).max(1)
    }

    /// Step time without prefill, noise and speed-up, in ms.
    #[must_use]
    pub fn decode_ms(&self, batch: u32) -> f64 {
        let batch = batch.max(1);
        let base =
            self.single_ms + (self.pinned_ms - self.single_ms) * progress(batch, self.pinned_batch);
        let grown = f64::from(batch - 1) / 127.0;
        base + self.comm.latency * (self.factors.latency - 1.0)
            + self.comm.bandwidth * grown * (self.factors.bandwidth - 1.0)
            + self.eager_ms
    }
}

/// 0 at a batch of one, 1 at the pinned batch.
fn progress(batch: u32, pinned: u32) -> f64 {
    (f64::from(batch.max(1) - 1) / f64::from(pinned - 1)).powf(CURVE)
}

/// Steps in which an answer of the founding length is made: the one with the
/// prefill, and the decode or verify steps.
fn steps(drafter: Option<Drafter>) -> f64 {
    let later = f64::from(founding::OUTPUT_TOKENS - 1);
    1.0 + later / drafter.map_or(1.0, Drafter::accept_length)
}

/// Step times at batch 1 and at the cap from the recorded figures, in ms.
///
/// Single stream: e2el = front + prefill + steps · t₁.
/// Closed loop at C = 128 with 512 requests in lock-step: rounds of `cap`
/// requests, each steps · t plus its prefill, the last round perhaps smaller
/// (and t there interpolated). Where nothing waits (cap ≥ C) each round also
/// begins with the front time of its requests; else only the first.
fn solve(recorded: Recorded, drafter: Option<Drafter>, cap: u32) -> (f64, f64) {
    let steps = steps(drafter);
    let prompt_ms = PREFILL_MS * f64::from(founding::PROMPT_TOKENS);
    let tokens = f64::from(founding::OUTPUT_TOKENS);
    let single = (tokens * 1000.0 / recorded.single_tps - FRONT_MS - prompt_ms) / steps;

    let requests = f64::from(founding::REQUESTS);
    let total = requests * tokens * 1000.0 / recorded.concurrent_tps;
    let full = founding::REQUESTS / cap;
    let rest = founding::REQUESTS % cap;
    let fronts = if cap >= founding::CONCURRENCY {
        full
    } else {
        1
    };
    let in_steps = (total - f64::from(fronts) * FRONT_MS - requests * prompt_ms) / steps;
    // full · t + (t₁ + (t − t₁) · p) = in_steps, solved for t.
    let (p, last) = if rest == 0 {
        (0.0, 0.0)
    } else {
        let p = progress(rest, cap);
        (p, single * (1.0 - p))
    };
    (single, (in_steps - last) / (f64::from(full) + p))
}

/// What the whole NCCL set does to SGLang's communication, from the recorded
/// figures before and after.
fn set_factors() -> CommFactors {
    let (single, pinned) = solve(SGLANG, None, 128);
    let (tuned_single, tuned_pinned) = solve(SGLANG_TUNED, None, 128);
    let saved = single - tuned_single;
    CommFactors {
        latency: 1.0 - saved / SGLANG_COMM.latency,
        bandwidth: 1.0 + (tuned_pinned - pinned + saved) / SGLANG_COMM.bandwidth,
    }
}

/// What these variables do to communication.
#[must_use]
pub fn nccl_factors(env: &BTreeMap<String, String>) -> CommFactors {
    let (mut latency, mut bandwidth) = (0.0, 0.0);
    for share in &SHARES {
        if env
            .get(share.name)
            .is_some_and(|value| value.eq_ignore_ascii_case(share.value))
        {
            latency += share.latency;
            bandwidth += share.bandwidth;
        }
    }
    let set = set_factors();
    CommFactors {
        latency: set.latency.powf(latency),
        bandwidth: set.bandwidth.powf(bandwidth),
    }
}

fn nanoseconds(ms: f64) -> u64 {
    // Negative and not-a-number become 0, as `as` saturates.
    (ms * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_the_set_add_up() {
        let (mut latency, mut bandwidth) = (0.0, 0.0);
        for (name, value) in NCCL_SET {
            let share = SHARES
                .iter()
                .find(|share| share.name == name && share.value == value)
                .expect("a share");
            latency += share.latency;
            bandwidth += share.bandwidth;
        }
        assert!((latency - 1.0_f64).abs() < 1e-9, "{latency}");
        assert!((bandwidth - 1.0_f64).abs() < 1e-9, "{bandwidth}");
    }

    #[test]
    fn the_set_makes_small_batches_faster_and_large_ones_slower() {
        let set = set_factors();
        assert!(set.latency > 0.2 && set.latency < 0.8, "{set:?}");
        assert!(set.bandwidth > 1.0 && set.bandwidth < 2.0, "{set:?}");
    }

    #[test]
    fn single_variables_have_their_order() {
        let latency = |name: &str, value: &str| {
            nccl_factors(&BTreeMap::from([(name.to_owned(), value.to_owned())])).latency
        };
        let set: Vec<f64> = [
            ("NCCL_PROTO", "LL"),
            ("NCCL_ALGO", "Ring"),
            ("NCCL_P2P_LEVEL", "SYS"),
            ("NCCL_MAX_NCHANNELS", "16"),
            ("NCCL_NTHREADS", "512"),
            ("NCCL_BUFFSIZE", "16777216"),
        ]
        .map(|(name, value)| latency(name, value))
        .to_vec();
        assert!(set.is_sorted(), "{set:?}");
        assert!(set.iter().all(|factor| *factor < 1.0), "{set:?}");
        assert!(latency("NCCL_P2P_DISABLE", "1") > 1.0);
        assert!((latency("NCCL_DEBUG", "WARN") - 1.0).abs() < f64::EPSILON);
    }
}
