//! Samples in short, and percentiles.

use serde::{Deserialize, Serialize};

/// Requests below which no p99 is stated: it would be the maximum by another name.
pub const P99_NEEDS: usize = 100;

/// A sample in short. All null where there was nothing to summarise.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile; null below [`P99_NEEDS`] requests.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl Distribution {
    /// Summarises values (percentiles by linear interpolation between order
    /// statistics, as in NumPy's default).
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.retain(|value| value.is_finite());
        if values.is_empty() {
            return Self::default();
        }
        values.sort_by(f64::total_cmp);
        let count = values.len();
        Self {
            count: count as u64,
            mean: Some(values.iter().sum::<f64>() / count as f64),
            min: values.first().copied(),
            p50: percentile(&values, 50.0),
            p90: percentile(&values, 90.0),
            p95: percentile(&values, 95.0),
            p99: if count >= P99_NEEDS {
                percentile(&values, 99.0)
            } else {
                None
            },
            max: values.last().copied(),
        }
    }

    /// The same of values that each stand for a number of equal ones: as if they
    /// had been written out, at the cost of one entry each. Weights come from
    /// servers and files, so none may decide how much memory is used. Values of one
    /// request are no independent ones: whether there is a p99 is a matter of the
    /// `requests` they came from.
    #[must_use]
    pub fn weighted(mut values: Vec<(f64, u64)>, requests: usize) -> Self {
        values.retain(|(value, weight)| value.is_finite() && *weight > 0);
        values.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut count = 0_u64;
        let mut total = 0.0;
        // How many values there are up to each entry, itself included.
        let upto: Vec<u64> = values
            .iter()
            .map(|(value, weight)| {
                count = count.saturating_add(*weight);
                total += value * *weight as f64;
                count
            })
            .collect();
        let Some(last) = count.checked_sub(1) else {
            return Self::default();
        };
        let at = |rank: u64| {
            let entry = upto.partition_point(|upto| *upto <= rank);
            values.get(entry).map(|(value, _)| *value)
        };
        let percentile = |p: f64| {
            let rank = p / 100.0 * last as f64;
            // Beyond 2^53 the product may round past the last value.
            let below = (rank.floor() as u64).min(last);
            let low = at(below)?;
            let high = at(below.saturating_add(1)).unwrap_or(low);
            Some(low + (high - low) * (rank - rank.floor()))
        };
        Self {
            count,
            mean: Some(total / count as f64),
            min: values.first().map(|(value, _)| *value),
            p50: percentile(50.0),
            p90: percentile(90.0),
            p95: percentile(95.0),
            p99: if requests >= P99_NEEDS {
                percentile(99.0)
            } else {
                None
            },
            max: values.last().map(|(value, _)| *value),
        }
    }
}

/// Percentile `p` (0 to 100) of ascending values, linearly interpolated; none of
/// an empty slice.
#[must_use]
pub fn percentile(ascending: &[f64], p: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let rank = (p / 100.0).clamp(0.0, 1.0) * last as f64;
    let below = rank.floor() as usize;
    let low = *ascending.get(below)?;
    let high = ascending.get(below + 1).copied().unwrap_or(low);
    Some(low + (high - low) * (rank - rank.floor()))
}

/// Median of values in any order; none of none.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    percentile(&values, 50.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn undefined_is_none() {
        assert_eq!(Distribution::of(vec![]), Distribution::default());
        let few = Distribution::of((0..99).map(f64::from).collect());
        assert_eq!((few.p99, few.p95), (None, Some(93.1)));
        assert!(
            Distribution::of((0..100).map(f64::from).collect())
                .p99
                .is_some()
        );
    }

    #[test]
    fn many_values_of_few_requests_have_no_p99() {
        let values = vec![(1.0, 4000), (2.0, 4000)];
        let few = Distribution::weighted(values.clone(), P99_NEEDS - 1);
        assert_eq!((few.count, few.p95, few.p99), (8000, Some(2.0), None));
        let enough = Distribution::weighted(values, P99_NEEDS);
        assert_eq!(enough.p99, Some(2.0));
    }

    proptest! {
        #[test]
        fn weights_mean_as_if_written_out(
            values in prop::collection::vec((-1e6_f64..1e6, 0_u64..60), 0..20),
        ) {
            let written: Vec<f64> = values
                .iter()
                .flat_map(|(value, weight)| std::iter::repeat_n(*value, *weight as usize))
                .collect();
            let short = Distribution::weighted(values, written.len());
            let long = Distribution::of(written);
            prop_assert_eq!(short.count, long.count);
            for (short, long) in [
                (short.min, long.min),
                (short.p50, long.p50),
                (short.p90, long.p90),
                (short.p95, long.p95),
                (short.p99, long.p99),
                (short.max, long.max),
            ] {
                prop_assert_eq!(short, long);
            }
            prop_assert_eq!(short.mean.is_some(), long.mean.is_some());
            if let (Some(short), Some(long)) = (short.mean, long.mean) {
                prop_assert!((short - long).abs() < 1e-6, "{} {}", short, long);
            }
        }

        #[test]
        fn percentiles_rise_and_stay_within(
            mut values in prop::collection::vec(-1e6_f64..1e6, 1..200),
            one in 0.0_f64..=100.0,
            other in 0.0_f64..=100.0,
        ) {
            values.sort_by(f64::total_cmp);
            let at = |p| percentile(&values, p).expect("a value");
            let (low, high) = (at(one.min(other)), at(one.max(other)));
            // Interpolating may round in the last digit.
            prop_assert!(low <= high + 1e-9);
            prop_assert!(values[0] <= low && high <= values[values.len() - 1] + 1e-9);
        }
    }
}
