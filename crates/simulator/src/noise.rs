//! Seeded noise between launches, between repeats and between requests. All of
//! it is invented; without the flags there is none.

use rand::{Rng, SeedableRng, rngs::SmallRng};
use rand_distr::StandardNormal;

/// Standard deviations of the factors on the step time, as shares (0.02 is 2 %).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Noise {
    /// Between launches: one factor for the life of the engine.
    pub launch: f64,
    /// Between repeats: one factor for each spell (see [`crate::pacer`]).
    pub repeat: f64,
    /// Between requests: one factor each; a step takes the mean over its batch.
    pub request: f64,
}

/// Mixes a seed with a purpose and a serial number (finaliser of SplitMix64).
#[must_use]
pub fn mix(seed: u64, purpose: u64, serial: u64) -> u64 {
    let mut z = seed
        .wrapping_add(purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(serial.wrapping_mul(0xD1B5_4A32_D192_ED03));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in 0..1 for this purpose and serial number.
#[must_use]
pub fn uniform(seed: u64, purpose: u64, serial: u64) -> f64 {
    SmallRng::seed_from_u64(mix(seed, purpose, serial)).random()
}

/// A log-normal factor with median 1 and this relative spread; 1 without noise.
#[must_use]
pub fn factor(spread: f64, seed: u64, purpose: u64, serial: u64) -> f64 {
    if spread <= 0.0 {
        return 1.0;
    }
    let z: f64 = SmallRng::seed_from_u64(mix(seed, purpose, serial)).sample(StandardNormal);
    (spread * z).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spread_no_noise() {
        assert!((factor(0.0, 1, 2, 3) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_spread_is_the_one_asked_for() {
        let logs: Vec<f64> = (0..4000).map(|n| factor(0.03, 7, 1, n).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 4000.0;
        let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 3999.0;
        assert!(mean.abs() < 0.003, "{mean}");
        assert!((variance.sqrt() - 0.03).abs() < 0.002, "{variance}");
    }

    #[test]
    fn equal_seeds_give_equal_factors() {
        assert_eq!(
            factor(0.1, 1, 2, 3).to_bits(),
            factor(0.1, 1, 2, 3).to_bits()
        );
        assert_ne!(
            factor(0.1, 1, 2, 3).to_bits(),
            factor(0.1, 2, 2, 3).to_bits()
        );
    }
}
