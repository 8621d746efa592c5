//! How sure a figure is. One pure module; a change of its rules raises
//! [`ANALYSIS_VERSION`], which every stored verdict carries.
//!
//! Figures are speeds, so they are compared as ratios: means and intervals are
//! taken of logarithms, differences of logarithms are ratios.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Version of the rules in this module and in [`crate::verdict`].
///
/// 2: several launches of a configuration count as such, one value each.
pub const ANALYSIS_VERSION: u32 = 2;

/// Probability with which an interval covers the truth.
pub const CONFIDENCE: f64 = 0.95;

/// Smallest effect that matters, as a share, where nobody says otherwise.
pub const RELEVANT_EFFECT: f64 = 0.02;

/// A figure with the spread of the values behind it. `low` and `high` are their
/// smallest and largest, not a confidence interval, and are labelled so.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
    /// Number of values.
    pub n: u32,
}

impl Estimate {
    /// Of values, one per repeat or run; none of none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        let n = u32::try_from(values.len()).ok().filter(|n| *n > 0)?;
        Some(Self {
            mean: values.iter().sum::<f64>() / f64::from(n),
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            n,
        })
    }

    /// The ends of a bar, where there is more than one value.
    #[must_use]
    pub fn bar(&self) -> Option<(f64, f64)> {
        (self.n > 1).then_some((self.low, self.high))
    }
}

/// The geometric mean of positive values, which is what comparisons of ratios rest
/// on; none of none, or where a value is not positive.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    match (log_moments(values)?, values) {
        // Not by way of its logarithm, which would round it.
        (_, [only]) => Some(*only),
        ((mean, _, _), _) => Some(mean.exp()),
    }
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioInterval {
    /// Ratio of the geometric means, second over first.
    pub ratio: f64,
    /// Lower end, at [`CONFIDENCE`]; none if a side has a single value, or if the
    /// values of neither side differ.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// The ratio second / first of two samples of positive values: Welch's t interval
/// on logarithms, degrees of freedom after Satterthwaite. None if a side is empty
/// or holds a value that is not positive.
///
/// Repeats that agree to the last digit were rounded or copied. They tell nothing
/// of the spread, so where both sides are like that there is no interval: one of
/// no width would claim certainty.
///
/// Welch, B. L. (1947), *Biometrika* 34: 28–35.
#[must_use]
pub fn ratio(first: &[f64], second: &[f64]) -> Option<RatioInterval> {
    let (mean_1, var_1, n_1) = log_moments(first)?;
    let (mean_2, var_2, n_2) = log_moments(second)?;
    let difference = mean_2 - mean_1;
    let half_width = match (var_1, var_2) {
        (Some(var_1), Some(var_2)) => {
            let (share_1, share_2) = (var_1 / n_1, var_2 / n_2);
            let variance = share_1 + share_2;
            if variance > 0.0 {
                let freedom = variance * variance
                    / (share_1 * share_1 / (n_1 - 1.0) + share_2 * share_2 / (n_2 - 1.0));
                student_t(freedom).map(|t| t * variance.sqrt())
            } else {
                None
            }
        }
        _ => None,
    };
    Some(RatioInterval {
        ratio: difference.exp(),
        low: half_width.map(|half| (difference - half).exp()),
        high: half_width.map(|half| (difference + half).exp()),
    })
}

/// Mean, sample variance (none of a single value) and number of the logarithms.
fn log_moments(values: &[f64]) -> Option<(f64, Option<f64>, f64)> {
    if values.is_empty()
        || values
            .iter()
            .any(|value| !(value.is_finite() && *value > 0.0))
    {
        return None;
    }
    let n = values.len() as f64;
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    // Equal values: their mean may be off by a rounding, the spread is still none.
    let alike = values.windows(2).all(|pair| pair.first() == pair.last());
    let variance = (values.len() > 1).then(|| {
        if alike {
            return 0.0;
        }
        logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0)
    });
    Some((mean, variance, n))
}

/// The two-sided critical value of Student's t at [`CONFIDENCE`].
fn student_t(freedom: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_of_the_tables() {
        for (freedom, value) in [(1.0, 12.706), (4.0, 2.776), (30.0, 2.042)] {
            let t = student_t(freedom).expect("a value");
            assert!((t - value).abs() < 1e-3, "{freedom}: {t}");
        }
    }

    #[test]
    fn equal_samples_have_ratio_one_inside_the_interval() {
        let interval = ratio(&[90.0, 91.0, 89.5], &[90.0, 91.0, 89.5]).expect("a ratio");
        assert!((interval.ratio - 1.0).abs() < 1e-12);
        assert!(interval.low.expect("low") < 1.0 && interval.high.expect("high") > 1.0);
    }

    #[test]
    fn a_single_value_has_a_ratio_but_no_interval() {
        let interval = ratio(&[63.6], &[90.0]).expect("a ratio");
        assert!((interval.ratio - 90.0 / 63.6).abs() < 1e-12);
        assert_eq!((interval.low, interval.high), (None, None));
        assert_eq!(ratio(&[], &[1.0]), None);
        assert_eq!(ratio(&[0.0], &[1.0]), None);
    }

    #[test]
    fn repeats_without_any_spread_claim_no_certainty() {
        for (first, second) in [(63.6, 90.0), (63.7, 90.1), (0.1, 0.3)] {
            let interval = ratio(&[first; 3], &[second; 3]).expect("a ratio");
            assert!((interval.ratio - second / first).abs() < 1e-12);
            assert_eq!((interval.low, interval.high), (None, None));
        }
        // The spread of one side is still something to go by.
        let interval = ratio(&[63.6; 3], &[90.0, 90.1, 89.9]).expect("a ratio");
        assert!(interval.low.expect("low") < interval.high.expect("high"));
    }

    #[test]
    fn welch_by_hand() {
        // Logs 0, 2 and 3, 3.2: means 1 and 3.1, variances 2 and 0.02.
        let e = std::f64::consts::E;
        let interval = ratio(&[1.0, e.powi(2)], &[e.powi(3), e.powf(3.2)]).expect("a ratio");
        let variance: f64 = 2.0 / 2.0 + 0.02 / 2.0;
        let freedom = variance.powi(2) / (1.0_f64 + 0.0001);
        let half = student_t(freedom).expect("t") * variance.sqrt();
        assert!((interval.ratio.ln() - 2.1).abs() < 1e-9);
        assert!((interval.low.expect("low").ln() - (2.1 - half)).abs() < 1e-9);
    }

    #[test]
    fn means_are_of_ratios() {
        let mean = geometric_mean(&[50.0, 200.0]).expect("a mean");
        assert!((mean - 100.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    #[test]
    fn estimates_keep_their_spread() {
        let estimate = Estimate::of([2.0, 4.0, f64::NAN]).expect("an estimate");
        assert_eq!(
            (estimate.mean, estimate.bar(), estimate.n),
            (3.0, Some((2.0, 4.0)), 2)
        );
        assert_eq!(Estimate::of([1.0]).expect("an estimate").bar(), None);
        assert_eq!(Estimate::of([]), None);
    }
}
