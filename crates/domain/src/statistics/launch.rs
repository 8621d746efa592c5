//! The unit: a launch.

use super::moments::{LogMoments, Moments};

/// One launch, with a figure per repeat. All that its repeats say together is one
/// value, the mean of their logarithms: they share what this start of the server
/// happened to get, and say nothing about the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    logs: Moments,
    repeats: u32,
}

impl Launch {
    /// From positive figures, one per repeat. None if there is none, or if one is
    /// not a positive number.
    #[must_use]
    pub fn new(repeats: &[f64]) -> Option<Self> {
        Some(Self {
            logs: LogMoments::of(repeats)?,
            repeats: u32::try_from(repeats.len()).ok()?,
        })
    }

    /// A launch that speaks with a single figure.
    #[must_use]
    pub fn single(figure: f64) -> Option<Self> {
        Self::new(&[figure])
    }

    /// The mean of the logarithms of its repeats.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.logs.mean
    }

    /// Number of repeats.
    #[must_use]
    pub const fn repeats(&self) -> u32 {
        self.repeats
    }

    pub(super) const fn logs(&self) -> &Moments {
        &self.logs
    }
}

/// The launches' values, each a mean of logarithms.
pub(super) fn values(launches: &[Launch]) -> Vec<f64> {
    launches.iter().map(Launch::value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_speaks_with_the_mean_of_logs() {
        let launch = Launch::new(&[50.0, 200.0]).expect("a launch");
        assert!((launch.value() - 100.0_f64.ln()).abs() < 1e-12);
        assert_eq!(launch.repeats(), 2);
    }

    #[test]
    fn what_is_no_positive_figure_is_no_launch() {
        assert_eq!(Launch::new(&[]), None);
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Launch::new(&[90.0, wrong]), None);
        }
    }
}
