//! How much launches varied on a host before.

use serde::{Deserialize, Serialize};

use super::{launch::Launch, launch::values, moments::Moments};

/// The launch-to-launch variation seen on a host in earlier plans. It stands in
/// where a side has a single launch, and is named wherever it does: that these
/// launches vary as those did is an assumption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PooledHistory {
    /// Standard deviation of the launches' values (means of logarithms of their
    /// repeats) around their configuration's mean. What repeats vary within a
    /// launch is in it.
    pub between_launch_sd_log: f64,
    /// Its degrees of freedom: launches less configurations.
    pub df: u32,
    /// What it was taken from, as in `12 launches of 4 configurations on gpu1`.
    pub label: String,
}

impl PooledHistory {
    /// Pooled over configurations with the same number of repeats per launch as
    /// those to be judged. None if no configuration has two launches, or if none of
    /// them varied.
    #[must_use]
    pub fn of(label: impl Into<String>, configurations: &[&[Launch]]) -> Option<Self> {
        let (mut squares, mut df) = (0.0, 0_u32);
        for launches in configurations {
            let Some(moments) = Moments::of(&values(launches)) else {
                continue;
            };
            let Some(variance) = moments.variance else {
                continue;
            };
            squares += variance * (moments.n - 1.0);
            df = df.saturating_add(u32::try_from(launches.len() - 1).unwrap_or(u32::MAX));
        }
        (squares > 0.0).then(|| Self {
            between_launch_sd_log: (squares / f64::from(df)).sqrt(),
            df,
            label: label.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_configuration_is_taken_around_its_own_mean() {
        let side = |figures: &[f64]| -> Vec<Launch> {
            figures
                .iter()
                .map(|figure| Launch::single(figure.exp()).expect("a launch"))
                .collect()
        };
        let (one, other, lone) = (side(&[1.0, 1.2]), side(&[3.0, 3.1, 3.2]), side(&[7.0]));
        let history = PooledHistory::of("gpu1", &[&one, &other, &lone]).expect("a history");
        // Squares 0.02 and 0.02 over 1 + 2 degrees of freedom.
        assert_eq!(history.df, 3);
        assert!((history.between_launch_sd_log.powi(2) - 0.04 / 3.0).abs() < 1e-12);
        assert_eq!(PooledHistory::of("gpu1", &[&lone]), None);
    }
}
