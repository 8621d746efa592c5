//! Several pairs at once.

use serde::{Deserialize, Serialize};

/// Pairs that are judged together, so that *any* false verdict among them is as
/// unlikely as one alone would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// What they have in common, as in `every configuration against vLLM`.
    pub name: String,
    /// Pairs that could be tested.
    pub size: u32,
}

/// What came of a pair's test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// The hypothesis that there is no difference fell.
    pub rejected: bool,
    /// The error at which it was tested: of a pair that fell, its own step's; of
    /// the others, that of the step at which the procedure stopped. The interval
    /// with one less this as confidence excludes a ratio of one just if the pair
    /// fell.
    pub error: f64,
    /// The smallest error of the family at which it would have fallen.
    pub adjusted: f64,
}

/// Holm's step-down procedure over the pairs' p values, in their order.
///
/// Holm, S. (1979), *Scandinavian Journal of Statistics* 6: 65–70.
#[must_use]
pub fn holm(p_values: &[f64], error: f64) -> Vec<Tested> {
    let mut order: Vec<(usize, f64)> = p_values.iter().copied().enumerate().collect();
    order.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut stopped_at: Option<f64> = None;
    let mut adjusted: f64 = 0.0;
    let mut tested: Vec<(usize, Tested)> = order
        .iter()
        .zip((1..=order.len()).rev())
        .map(|(&(place, p), left)| {
            let step = error / left as f64;
            adjusted = adjusted.max((p * left as f64).min(1.0));
            let falls = p <= step;
            if stopped_at.is_none() && !falls {
                stopped_at = Some(step);
            }
            let tested = Tested {
                rejected: stopped_at.is_none(),
                error: stopped_at.unwrap_or(step),
                adjusted,
            };
            (place, tested)
        })
        .collect();
    tested.sort_by_key(|(place, _)| *place);
    tested.into_iter().map(|(_, tested)| tested).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_by_hand() {
        // Steps 0.05/4, /3, /2, /1: 0.01 falls, 0.02 does not, and there it stops.
        let tested = holm(&[0.02, 0.01, 0.03, 0.04], 0.05);
        let fell: Vec<bool> = tested.iter().map(|test| test.rejected).collect();
        assert_eq!(fell, [false, true, false, false]);
        assert!((tested[1].error - 0.0125).abs() < 1e-15);
        for place in [0, 2, 3] {
            assert!((tested[place].error - 0.05 / 3.0).abs() < 1e-15);
            assert!((tested[place].adjusted - 0.06).abs() < 1e-15);
        }
        let all = holm(&[0.001, 0.05, 0.002], 0.05);
        assert!(all.iter().all(|test| test.rejected));
        assert!(holm(&[], 0.05).is_empty());
        assert!(!holm(&[f64::NAN], 0.05)[0].rejected);
    }
}
