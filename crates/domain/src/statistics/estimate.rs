//! A figure with the values behind it: description, not inference.

use serde::{Deserialize, Serialize};

use super::moments::LogMoments;

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
    match (LogMoments::of(values)?, values) {
        // Not by way of its logarithm, which would round it.
        (_, [only]) => Some(*only),
        (moments, _) => Some(moments.mean.exp()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
