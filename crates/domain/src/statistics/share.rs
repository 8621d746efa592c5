//! What share of a whole a part has, on the logarithmic scale.

use serde::{Deserialize, Serialize};

use super::interval::student_t;

/// A part of a total ratio: the logarithm of the part's ratio over that of the total.
/// Shares of parts that multiply to the total add up to one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogShare {
    /// The share; 1 is the whole, less than 0 works against it.
    pub share: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence of that interval, by itself.
    pub confidence: f64,
}

/// The share of a part in a whole from their logarithms, block by block, with Fieller's
/// interval: the shares θ for which the mean of *part* − θ · *whole* is not further from
/// zero than Student's t allows. The two are paired, so what blocks share does not widen
/// it. None below two blocks, and where the whole itself might be nothing at this
/// confidence: a share of it would be unbounded.
///
/// Fieller, E. C. (1954), *Journal of the Royal Statistical Society B* 16: 175–185.
#[must_use]
pub fn log_share(parts_and_wholes: &[(f64, f64)], confidence: f64) -> Option<LogShare> {
    let n = parts_and_wholes.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = |pick: fn(&(f64, f64)) -> f64| parts_and_wholes.iter().map(pick).sum::<f64>() / n;
    let (part, whole) = (mean(|pair| pair.0), mean(|pair| pair.1));
    // Squared half widths: variances and covariance of the means, times t².
    let factor = student_t(confidence, n - 1.0)?.powi(2) / (n * (n - 1.0));
    let product = |of: fn(f64, f64) -> f64| {
        let sum: f64 = parts_and_wholes
            .iter()
            .map(|(one, other)| of(one - part, other - whole))
            .sum();
        factor * sum
    };
    let (parts, wholes, both) = (
        product(|one, _| one * one),
        product(|_, other| other * other),
        product(|one, other| one * other),
    );
    let square = whole * whole - wholes;
    let middle = part * whole - both;
    let rest = part * part - parts;
    // A whole that never varied was rounded or copied.
    if !(square > 0.0 && wholes > 0.0) {
        return None;
    }
    // Never negative but for rounding.
    let root = (middle * middle - square * rest).max(0.0).sqrt();
    Some(LogShare {
        share: part / whole,
        low: (middle - root) / square,
        high: (middle + root) / square,
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_where_the_test_of_the_difference_ends() {
        let pairs = [(0.30, 0.34), (0.33, 0.36), (0.31, 0.33), (0.35, 0.38)];
        let share = log_share(&pairs, 0.95).expect("a share");
        assert!(share.low < share.share && share.share < share.high);
        for end in [share.low, share.high] {
            let differences: Vec<f64> = pairs
                .iter()
                .map(|(part, whole)| part - end * whole)
                .collect();
            let mean = differences.iter().sum::<f64>() / 4.0;
            let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 3.0;
            let t = mean.abs() / (variance / 4.0).sqrt();
            assert!((t - 3.182).abs() < 1e-2, "{t}");
        }
    }

    #[test]
    fn a_whole_has_all_of_itself_and_nothing_has_no_shares() {
        let whole = [(0.3, 0.3), (0.4, 0.4), (0.35, 0.35)];
        let share = log_share(&whole, 0.95).expect("a share");
        for value in [share.share, share.low, share.high] {
            assert!((value - 1.0).abs() < 1e-6, "{share:?}");
        }
        // A whole that may be nothing, one block, and values without any spread.
        assert_eq!(
            log_share(&[(0.1, 0.2), (0.1, -0.3), (0.0, 0.1)], 0.95),
            None
        );
        assert_eq!(log_share(&[(0.1, 0.2)], 0.95), None);
        assert_eq!(log_share(&[(0.1, 0.2), (0.1, 0.2)], 0.95), None);
    }
}
