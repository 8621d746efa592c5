//! How much of the variation lies between launches, and how much within.

use serde::{Deserialize, Serialize};

use super::{
    launch::{Launch, values},
    moments::Moments,
};

/// Variance components on the logarithmic scale, for advice on how to go on: they
/// decide nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Components {
    /// Variance from launch to launch; where `within` is none it holds that too.
    pub between: f64,
    /// Variance from repeat to repeat of one launch; none if no launch has two.
    pub within: Option<f64>,
}

impl Components {
    /// One-way analysis of variance by the method of moments, pooled over
    /// configurations, each around its own mean; launches may have different
    /// numbers of repeats. A negative estimate of the variance between launches
    /// becomes 0. None if no configuration has two launches.
    ///
    /// Searle, S. R., Casella, G., McCulloch, C. E. (1992), *Variance Components*,
    /// chapter 3.
    #[must_use]
    pub fn of(configurations: &[&[Launch]]) -> Option<Self> {
        let mut groups = Sums::default();
        let (mut squares, mut freedom) = (0.0, 0.0);
        for launches in configurations {
            if let Some(Moments {
                variance: Some(variance),
                n,
                ..
            }) = Moments::of(&values(launches))
            {
                squares += variance * (n - 1.0);
                freedom += n - 1.0;
            }
            groups.add(launches);
        }
        if freedom <= 0.0 {
            return None;
        }
        if groups.within_freedom <= 0.0 {
            return Some(Self {
                between: squares / freedom,
                within: None,
            });
        }
        let within = groups.within_squares / groups.within_freedom;
        let between = groups.between_squares / groups.between_freedom;
        // How often a launch's own variance enters the mean square between launches.
        let weight = groups.weight / groups.between_freedom;
        Some(Self {
            between: ((between - within) / weight).max(0.0),
            within: Some(within),
        })
    }

    /// Variance of the value of a launch with so many repeats.
    #[must_use]
    pub fn of_launch(&self, repeats: f64) -> f64 {
        self.between + self.within.map_or(0.0, |within| within / repeats)
    }
}

#[derive(Default)]
struct Sums {
    within_squares: f64,
    within_freedom: f64,
    between_squares: f64,
    between_freedom: f64,
    weight: f64,
}

impl Sums {
    fn add(&mut self, launches: &[Launch]) {
        for launch in launches {
            let logs = launch.logs();
            self.within_squares += logs.variance.unwrap_or(0.0) * (logs.n - 1.0);
            self.within_freedom += logs.n - 1.0;
        }
        if launches.len() < 2 {
            return;
        }
        let repeats = || launches.iter().map(|launch| launch.logs().n);
        let total: f64 = repeats().sum();
        let mean = launches
            .iter()
            .map(|launch| launch.logs().n * launch.value())
            .sum::<f64>()
            / total;
        self.between_squares += launches
            .iter()
            .map(|launch| launch.logs().n * (launch.value() - mean).powi(2))
            .sum::<f64>();
        self.between_freedom += launches.len() as f64 - 1.0;
        self.weight += total - repeats().map(|n| n * n).sum::<f64>() / total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(logs: &[f64]) -> Launch {
        let figures: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        Launch::new(&figures).expect("a launch")
    }

    #[test]
    fn a_balanced_table_by_hand() {
        // Mean squares: within 2/2 … each launch ± 1 around 0, 4 and 8.
        let side = [
            launch(&[-1.0, 1.0]),
            launch(&[3.0, 5.0]),
            launch(&[7.0, 9.0]),
        ];
        let components = Components::of(&[&side]).expect("components");
        let within = components.within.expect("within");
        assert!((within - 2.0).abs() < 1e-9);
        // Between mean square 2 · 16 = 32; (32 − 2) / 2 = 15.
        assert!((components.between - 15.0).abs() < 1e-9);
        assert!((components.of_launch(2.0) - 16.0).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_told_apart_is_not() {
        let single = [launch(&[0.0]), launch(&[2.0])];
        let components = Components::of(&[&single]).expect("components");
        assert_eq!(components.within, None);
        assert!((components.between - 2.0).abs() < 1e-12);
        assert_eq!(Components::of(&[&single[..1]]), None);
        // Launches closer together than their repeats: none, not less than none.
        let close = [launch(&[-1.0, 1.0]), launch(&[-1.1, 1.1])];
        let components = Components::of(&[&close]).expect("components");
        assert_eq!(components.between, 0.0);
    }
}
