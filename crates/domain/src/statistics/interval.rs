//! An estimate on the logarithmic scale, and the intervals made of it.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::moments::{Share, satterthwaite};

/// An estimated logarithm: of a speed, or of a ratio of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogEstimate {
    /// The estimate.
    pub centre: f64,
    /// How far it may be off; none where the data do not tell.
    pub spread: Option<Spread>,
}

/// The error of an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard error, on the logarithmic scale.
    pub standard_error: f64,
    /// Degrees of freedom of Student's t.
    pub freedom: f64,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioInterval {
    /// Ratio of the geometric means, second over first.
    pub ratio: f64,
    /// Lower end; none where there is nothing to go by: single values, or values
    /// that agree to the last digit.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A configuration's figure with its interval over launches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanInterval {
    /// Geometric mean over launches, in the figure's unit.
    pub mean: f64,
    /// Lower end; none where there is nothing to go by.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl LogEstimate {
    /// With the sum of independent variances as error. Values without any spread
    /// were rounded or copied: an interval of no width would claim certainty, so
    /// there is none.
    pub(super) fn new(centre: f64, shares: Option<&[Share]>) -> Self {
        Self {
            centre,
            spread: shares.and_then(satterthwaite).map(|share| Spread {
                standard_error: share.variance.sqrt(),
                freedom: share.freedom,
            }),
        }
    }

    /// The ends of the interval on the logarithmic scale.
    #[must_use]
    pub fn ends(&self, confidence: f64) -> Option<(f64, f64)> {
        let spread = self.spread?;
        let half = student_t(confidence, spread.freedom)? * spread.standard_error;
        half.is_finite()
            .then_some((self.centre - half, self.centre + half))
    }

    /// As a ratio, with the interval at a confidence between 0 and 1.
    #[must_use]
    pub fn ratio(&self, confidence: f64) -> RatioInterval {
        let ends = self.ends(confidence);
        RatioInterval {
            ratio: self.centre.exp(),
            low: ends.map(|(low, _)| low.exp()),
            high: ends.map(|(_, high)| high.exp()),
        }
    }

    /// As a figure, with the interval at a confidence between 0 and 1.
    #[must_use]
    pub fn mean(&self, confidence: f64) -> MeanInterval {
        let RatioInterval { ratio, low, high } = self.ratio(confidence);
        MeanInterval {
            mean: ratio,
            low,
            high,
        }
    }

    /// Two-sided probability of an estimate this far from a ratio of one, were the
    /// ratio one. None without a spread.
    #[must_use]
    pub fn p_value(&self) -> Option<f64> {
        let spread = self.spread?;
        let distribution = StudentsT::new(0.0, 1.0, spread.freedom).ok()?;
        let t = self.centre.abs() / spread.standard_error;
        // The lower tail, where small probabilities keep their digits.
        Some((2.0 * distribution.cdf(-t)).min(1.0))
    }
}

/// The two-sided critical value of Student's t. None for a confidence that is not
/// between 0 and 1, or without degrees of freedom.
pub(super) fn student_t(confidence: f64, freedom: f64) -> Option<f64> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    // By the lower tail: 1 − α/2 would round a small α away.
    Some(-distribution.inverse_cdf((1.0 - confidence) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_of_the_tables() {
        for (confidence, freedom, value) in [
            (0.95, 1.0, 12.706),
            (0.95, 4.0, 2.776),
            (0.95, 30.0, 2.042),
            (0.99, 8.0, 3.355),
            (0.999, 3.0, 12.924),
        ] {
            let t = student_t(confidence, freedom).expect("a value");
            assert!((t - value).abs() < 1e-3, "{freedom}: {t}");
        }
        assert_eq!(student_t(1.0, 4.0), None);
        assert_eq!(student_t(0.95, 0.0), None);
    }

    #[test]
    fn the_p_value_is_the_level_whose_interval_ends_at_one() {
        for freedom in [1.3, 4.0, 8.0, 60.0] {
            for level in [0.2, 0.05, 0.004, 1e-5] {
                let standard_error = 0.01;
                let t = student_t(1.0 - level, freedom).expect("a value");
                let estimate = LogEstimate {
                    centre: t * standard_error,
                    spread: Some(Spread {
                        standard_error,
                        freedom,
                    }),
                };
                let p = estimate.p_value().expect("a p value");
                assert!((p / level - 1.0).abs() < 1e-5, "{freedom}, {level}: {p}");
                let low = estimate.ratio(1.0 - level).low.expect("an end");
                assert!((low - 1.0).abs() < 1e-9);
            }
        }
    }
}
