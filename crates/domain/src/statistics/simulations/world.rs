//! Launches out of a seeded generator.

use std::collections::BTreeMap;

use crate::statistics::{Launch, LogEstimate, interval::student_t};

/// How launches differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Effect {
    /// Normal on the scale of the figure itself.
    Normal,
    /// Normal on the logarithmic scale.
    LogNormal,
    /// Student's t with three degrees of freedom on the logarithmic scale, which
    /// now and then throws a launch far out; scaled to the same standard deviation.
    HeavyTailed,
    /// One launch in ten is a fifth slower than the others, as after a start that
    /// got a worse path between its GPUs.
    Lopsided,
}

const SLOW_SHARE: f64 = 0.1;
const SLOW: f64 = 0.8;

/// A host on which launches and repeats vary.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) effect: Effect,
    /// Standard deviation from launch to launch, as a share.
    pub(super) between: f64,
    /// Standard deviation from repeat to repeat, on the logarithmic scale.
    pub(super) within: f64,
    /// Repeats of a launch.
    pub(super) repeats: u32,
}

impl World {
    pub(super) const fn equal(effect: Effect, spread: f64) -> Self {
        Self {
            effect,
            between: spread,
            within: spread,
            repeats: 3,
        }
    }

    /// Single repeats, where the launch effect alone decides.
    pub(super) const fn bare(effect: Effect, spread: f64) -> Self {
        Self {
            effect,
            between: spread,
            within: 0.0,
            repeats: 1,
        }
    }

    /// Launches of a configuration whose typical figure is 100 tok/s.
    pub(super) fn launches(&self, random: &mut Random, count: u32) -> Vec<Launch> {
        (0..count).map(|_| self.launch(random, 0.0)).collect()
    }

    /// One launch, moved by so much on the logarithmic scale.
    pub(super) fn launch(&self, random: &mut Random, shift: f64) -> Launch {
        let effect = match self.effect {
            Effect::Normal => (1.0 + self.between * random.normal()).max(0.01),
            Effect::LogNormal => (self.between * random.normal()).exp(),
            Effect::HeavyTailed => (self.between * random.student_3() / 3.0_f64.sqrt()).exp(),
            Effect::Lopsided => {
                let slow = if random.uniform() < SLOW_SHARE {
                    SLOW
                } else {
                    1.0
                };
                slow * (self.between * random.normal()).exp()
            }
        };
        let centre = 100.0 * effect * shift.exp();
        if self.repeats == 1 && self.within == 0.0 {
            return Launch::single(centre).expect("a positive figure");
        }
        let repeats: Vec<f64> = (0..self.repeats)
            .map(|_| centre * (self.within * random.normal()).exp())
            .collect();
        Launch::new(&repeats).expect("positive figures")
    }

    /// The mean of the logarithm of a launch's figure: what is estimated.
    pub(super) fn truth(&self) -> f64 {
        let bias = match self.effect {
            // E ln(1 + σz), from its series.
            Effect::Normal => {
                let square = self.between.powi(2);
                -square / 2.0 - 3.0 * square.powi(2) / 4.0 - 15.0 * square.powi(3) / 6.0
            }
            Effect::LogNormal | Effect::HeavyTailed => 0.0,
            Effect::Lopsided => SLOW_SHARE * SLOW.ln(),
        };
        100.0_f64.ln() + bias
    }
}

/// A small generator (SplitMix64) with normal values (Box and Muller).
pub(crate) struct Random {
    state: u64,
    spare: Option<f64>,
}

impl Random {
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self {
            state: seed,
            spare: None,
        }
    }

    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // Never 0, whose logarithm there is none of.
        ((z >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }

    fn student_3(&mut self) -> f64 {
        let chi: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (chi / 3.0).sqrt()
    }
}

/// Critical values of t, each worked out once. Degrees of freedom are rounded down
/// to fiftieths, which shifts a rate by less than a hundredth of a percent.
pub(super) struct Critical {
    confidence: f64,
    known: BTreeMap<u32, f64>,
}

impl Critical {
    pub(super) const fn at(confidence: f64) -> Self {
        Self {
            confidence,
            known: BTreeMap::new(),
        }
    }

    fn value(&mut self, freedom: f64) -> f64 {
        let fiftieths = (freedom * 50.0 + 1e-6) as u32;
        *self.known.entry(fiftieths).or_insert_with(|| {
            student_t(self.confidence, f64::from(fiftieths) / 50.0).expect("a critical value")
        })
    }

    /// The ends of the estimate's interval, on the logarithmic scale.
    pub(super) fn ends(&mut self, estimate: &LogEstimate) -> (f64, f64) {
        let spread = estimate.spread.expect("a spread");
        let half = self.value(spread.freedom) * spread.standard_error;
        (estimate.centre - half, estimate.centre + half)
    }

    /// Does it cover a logarithm?
    pub(super) fn covers(&mut self, estimate: &LogEstimate, truth: f64) -> bool {
        let (low, high) = self.ends(estimate);
        low <= truth && truth <= high
    }
}
