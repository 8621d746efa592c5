//! From values to places along an axis.

use tokdyno_domain::chart::Scale;

use crate::{
    drawable::is_log,
    text::{number, stepped},
    ticks::{NiceStep, decades, distinct, thinned},
};

/// An axis with its range and its ticks.
#[derive(Debug)]
pub(crate) struct Scaled {
    log: bool,
    low: f64,
    high: f64,
    /// Where ticks stand, and their labels.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Scaled {
    /// Chooses range and about `wanted` ticks for values, which are finite (and above
    /// zero where `scale` is logarithmic). `own` are the points' values without
    /// bars: ticks of [`Scale::Log2`] stand there. `apart` is the least distance of
    /// two ticks, as a part of the axis.
    pub(crate) fn new(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        own: impl Iterator<Item = f64>,
        wanted: usize,
        apart: f64,
    ) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let empty = low > high;
        let mut scaled = if is_log(scale) {
            let (low, high) = if empty { (1.0, 10.0) } else { (low, high) };
            let mut scaled = Self::log(low, high);
            let values = match scale {
                Scale::Log2 => distinct(own),
                _ => decades(scaled.low, scaled.high),
            };
            // A narrow range may hold no round value at all.
            let values = if values.is_empty() {
                distinct([low, high].into_iter())
            } else {
                values
            };
            let room = |a: f64, b: f64| scaled.place(b) - scaled.place(a) >= apart;
            scaled.ticks = thinned(&values, room)
                .into_iter()
                .map(|tick| (tick, number(tick)))
                .collect();
            scaled
        } else {
            let (low, high) = if empty { (0.0, 1.0) } else { (low, high) };
            Self::linear(scale, low, high, wanted)
        };
        if empty {
            // Without data any label would be made up.
            scaled.ticks.clear();
        }
        scaled
    }

    /// The values at which the axis begins and ends.
    pub(crate) fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Place of a value: 0 at the beginning of the axis, 1 at its end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (value, low, high) = if self.log {
            (value.log10(), self.low.log10(), self.high.log10())
        } else {
            (value, self.low, self.high)
        };
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    }

    fn log(low: f64, high: f64) -> Self {
        let (from, to) = (low.log10(), high.log10());
        let pad = if to - from < 1e-9 {
            0.3
        } else {
            (to - from) * 0.05
        };
        Self {
            log: true,
            low: 10_f64.powf(from - pad),
            high: 10_f64.powf(to + pad),
            ticks: Vec::new(),
        }
    }

    fn linear(scale: Scale, low: f64, high: f64, wanted: usize) -> Self {
        let from_zero = scale == Scale::LinearFromZero;
        let (mut low, mut high) = if from_zero {
            (low.min(0.0), high.max(0.0))
        } else {
            (low, high)
        };
        // A range too narrow for its size cannot be told apart in 64 bits.
        let size = low.abs().max(high.abs());
        if high - low <= size * 1e-9 || high - low < 1e-90 {
            let around = if size < 1e-80 { 1.0 } else { size * 0.1 };
            high += around;
            if !from_zero || low < 0.0 {
                low -= around;
            }
        }
        let pad = (high - low) * 0.04;
        if !from_zero || low < 0.0 {
            low -= pad;
        }
        if !from_zero || high > 0.0 {
            high += pad;
        }
        let step = NiceStep::of(high - low, wanted);
        // Ranges end at ticks, so that the grid closes the plot.
        if from_zero {
            low = (low / step.0).floor() * step.0;
            high = (high / step.0).ceil() * step.0;
        }
        Self {
            log: false,
            low,
            high,
            ticks: step
                .within(low, high)
                .into_iter()
                .map(|tick| (tick, stepped(tick, step.0)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scaled(scale: Scale, values: &[f64]) -> Scaled {
        Scaled::new(
            scale,
            values.iter().copied(),
            values.iter().copied(),
            6,
            0.05,
        )
    }

    fn labels(scaled: &Scaled) -> Vec<&str> {
        scaled
            .ticks
            .iter()
            .map(|(_, label)| label.as_str())
            .collect()
    }

    #[test]
    fn from_zero_begins_at_zero_and_ends_at_a_tick() {
        let scaled = scaled(Scale::LinearFromZero, &[849.0, 2370.0]);
        assert_eq!(
            labels(&scaled),
            ["0", "500", "1,000", "1,500", "2,000", "2,500"]
        );
        assert!(scaled.place(0.0).abs() < 1e-9);
        assert!((scaled.place(2500.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn doublings_are_evenly_spaced_and_labelled_as_they_are() {
        let scaled = scaled(Scale::Log2, &[1.0, 8.0, 32.0, 128.0]);
        assert_eq!(labels(&scaled), ["1", "8", "32", "128"]);
        let step = scaled.place(32.0) - scaled.place(8.0);
        assert!((scaled.place(128.0) - scaled.place(32.0) - step).abs() < 1e-9);
    }

    #[test]
    fn a_single_value_still_has_a_range() {
        for scale in [
            Scale::Linear,
            Scale::LinearFromZero,
            Scale::Log2,
            Scale::Log10,
        ] {
            let scaled = scaled(scale, &[7.0]);
            assert!((0.0..=1.0).contains(&scaled.place(7.0)));
            assert!(!scaled.ticks.is_empty(), "{scale:?}");
        }
    }

    proptest! {
        #[test]
        fn every_value_has_a_place(values in prop::collection::vec(-1e100..1e100_f64, 1..6), tiny in -1e-90..1e-90_f64) {
            for scale in [Scale::Linear, Scale::LinearFromZero] {
                for values in [values.clone(), vec![tiny], [values.clone(), vec![tiny]].concat()] {
                    let scaled = scaled(scale, &values);
                    for value in values {
                        prop_assert!((0.0..=1.0).contains(&scaled.place(value)));
                    }
                    prop_assert!(scaled.ticks.len() <= 64);
                    prop_assert!(scaled.ticks.iter().all(|(at, _)| at.is_finite()));
                }
            }
        }

        #[test]
        fn every_positive_value_has_a_place_among_ratios(powers in prop::collection::vec(-99.0..99.0_f64, 1..6)) {
            let values: Vec<f64> = powers.iter().map(|power| 10_f64.powf(*power)).collect();
            for scale in [Scale::Log2, Scale::Log10] {
                let scaled = scaled(scale, &values);
                for value in &values {
                    prop_assert!((0.0..=1.0).contains(&scaled.place(*value)));
                }
                prop_assert!(!scaled.ticks.is_empty());
            }
        }
    }
}
