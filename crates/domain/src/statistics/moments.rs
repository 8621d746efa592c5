//! Mean and variance, and of logarithms.

/// Mean and sample variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moments {
    pub(super) mean: f64,
    /// With n − 1 below the line; none of a single value.
    pub(super) variance: Option<f64>,
    pub(super) n: f64,
}

/// The same of logarithms of positive values.
pub(super) struct LogMoments;

impl Moments {
    /// Of finite values; none of none.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        // Equal values: their mean may be off by a rounding, the spread is still none.
        let alike = values.windows(2).all(|pair| pair.first() == pair.last());
        let variance = (values.len() > 1).then(|| {
            if alike {
                return 0.0;
            }
            values
                .iter()
                .map(|value| (value - mean).powi(2))
                .sum::<f64>()
                / (n - 1.0)
        });
        Some(Self { mean, variance, n })
    }

    /// Variance of the mean, with its degrees of freedom.
    pub(super) fn share(&self) -> Option<Share> {
        Some(Share {
            variance: self.variance? / self.n,
            freedom: self.n - 1.0,
        })
    }
}

impl LogMoments {
    /// None of none, or where a value is not positive and finite.
    pub(super) fn of(values: &[f64]) -> Option<Moments> {
        if values
            .iter()
            .any(|value| !(value.is_finite() && *value > 0.0))
        {
            return None;
        }
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        Moments::of(&logs)
    }
}

/// A variance that enters a sum, with the degrees of freedom of its estimate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) variance: f64,
    pub(super) freedom: f64,
}

/// The sum of independent variances, its degrees of freedom after Satterthwaite.
/// None where the sum is zero: no spread was seen, which tells nothing of it.
///
/// Satterthwaite, F. E. (1946), *Biometrics Bulletin* 2: 110–114.
pub(super) fn satterthwaite(shares: &[Share]) -> Option<Share> {
    let variance: f64 = shares.iter().map(|share| share.variance).sum();
    if !(variance.is_finite() && variance > 0.0) {
        return None;
    }
    // Relative parts, whose squares neither vanish nor overflow.
    let inverse: f64 = shares
        .iter()
        .map(|share| (share.variance / variance).powi(2) / share.freedom)
        .sum();
    Some(Share {
        variance,
        freedom: inverse.recip(),
    })
}
