//! Histograms of times: small, mergeable, and good to one part in a thousand.
//!
//! They are for live views and for pooling what many stages or machines saw.
//! Percentiles that are stated as results come from the records
//! ([`crate::metrics::percentile`]), which know every value.

mod form;
mod stage;

use hdrhistogram::Histogram as Counts;

pub use self::{form::HistogramError, stage::StageHistograms};

/// Significant figures that are kept: no value is misstated by more than one part
/// in a thousand, or by half a unit where that is more.
pub const SIGNIFICANT_FIGURES: u8 = 3;

/// A day: longer times are counted as that.
const LONGEST_MS: f64 = 86_400_000.0;

/// Most values that are counted, far beyond any measurement; sums of a bin's
/// neighbours still fit.
const MOST: u64 = 1 << 60;

/// In what a histogram counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Microseconds, for latencies of whole requests.
    #[default]
    Micros,
    /// Nanoseconds, for times per token: several tokens of one chunk are often
    /// less than a microsecond apart.
    Nanos,
}

impl Unit {
    /// The word as written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Micros => "us",
            Self::Nanos => "ns",
        }
    }

    /// How many make a millisecond.
    #[must_use]
    pub const fn per_ms(self) -> f64 {
        match self {
            Self::Micros => 1e3,
            Self::Nanos => 1e6,
        }
    }

    /// A day in this unit.
    const fn longest(self) -> u64 {
        (LONGEST_MS * self.per_ms()) as u64
    }
}

/// How often each time was seen, to three significant figures, from one unit up to
/// a day. Shorter ones count as one unit, longer ones as a day.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    unit: Unit,
    /// None while there is no value.
    counts: Option<Counts<u64>>,
}

impl Histogram {
    /// An empty one.
    #[must_use]
    pub const fn new(unit: Unit) -> Self {
        Self { unit, counts: None }
    }

    /// In what it counts.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts.as_ref().map_or(0, Counts::len)
    }

    /// Has it no value?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts a time, in ms. What is no number is left out.
    pub fn record_ms(&mut self, ms: f64) {
        self.record_n_ms(ms, 1);
    }

    /// Counts a time that was seen so many times.
    pub fn record_n_ms(&mut self, ms: f64, count: u64) {
        if !ms.is_nan() {
            // Saturates, at 0 as well.
            self.add((ms * self.unit.per_ms()).round() as u64, count);
        }
    }

    /// Adds all that the other has counted. The order of merging does not matter,
    /// as long as both count in one unit.
    pub fn merge(&mut self, other: &Self) {
        let Some(counts) = &other.counts else {
            return;
        };
        let factor = self.unit.per_ms() / other.unit.per_ms();
        for (value, count) in other.counts() {
            let value = if self.unit == other.unit {
                value
            } else {
                (counts.median_equivalent(value) as f64 * factor).round() as u64
            };
            self.add(value, count);
        }
    }

    /// The smallest time that at least the share `q` (0 to 1) of all values do not
    /// exceed, in ms; none of none. There is no interpolation between values.
    #[must_use]
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        let counts = self.counts.as_ref().filter(|counts| !counts.is_empty())?;
        if q.is_nan() {
            return None;
        }
        let value = counts.value_at_quantile(q.clamp(0.0, 1.0));
        // The middle of the bin halves the error.
        let low = counts.lowest_equivalent(value);
        let high = counts.highest_equivalent(value);
        Some((low as f64 + high as f64) / 2.0 / self.unit.per_ms())
    }

    /// Each bin's smallest value with the number of values in it, ascending, empty
    /// bins left out.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().flat_map(|counts| {
            counts.iter_recorded().map(|bin| {
                let value = counts.lowest_equivalent(bin.value_iterated_to());
                (value, bin.count_at_value())
            })
        })
    }

    fn add(&mut self, value: u64, count: u64) {
        let longest = self.unit.longest();
        let count = count.min(MOST.saturating_sub(self.len()));
        if count == 0 {
            return;
        }
        if self.counts.is_none() {
            // It grows with its largest value, so that small ones cost little.
            self.counts = Counts::new(SIGNIFICANT_FIGURES).ok();
        }
        if let Some(counts) = &mut self.counts {
            let value = value.clamp(1, longest);
            if counts.record_n(value, count).is_err() {
                counts.saturating_record_n(value, count);
            }
        }
    }
}

/// Equal if they count in the same unit and every bin holds the same.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit && self.counts().eq(other.counts())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(unit: Unit, values: &[f64]) -> Histogram {
        let mut histogram = Histogram::new(unit);
        for value in values {
            histogram.record_ms(*value);
        }
        histogram
    }

    #[test]
    fn nothing_has_no_quantile() {
        let nothing = Histogram::new(Unit::Micros);
        assert!(nothing.is_empty());
        assert_eq!(nothing.quantile_ms(0.5), None);
        let no_number = of(Unit::Micros, &[f64::NAN]);
        assert_eq!(no_number, nothing);
        assert_eq!(of(Unit::Micros, &[1.0]).quantile_ms(f64::NAN), None);
    }

    #[test]
    fn what_is_out_of_range_counts_at_its_end() {
        let ends = of(Unit::Micros, &[0.0, -4.0, f64::INFINITY, 1e300]);
        assert_eq!(ends.len(), 4);
        assert_eq!(ends.quantile_ms(0.5), Some(0.001));
        let day = ends.quantile_ms(1.0).expect("a day");
        assert!((day / LONGEST_MS - 1.0).abs() < 1e-3, "{day}");
    }

    #[test]
    fn counts_stop_rising_rather_than_start_again() {
        let mut many = Histogram::new(Unit::Micros);
        many.record_n_ms(1.0, u64::MAX);
        many.record_n_ms(2.0, 5);
        assert_eq!(many.len(), MOST);
        let twin = many.clone();
        many.merge(&twin);
        assert_eq!(many.len(), MOST);
        assert_eq!(many.quantile_ms(0.99), Some(1.0));
    }

    #[test]
    fn memory_grows_with_the_largest_value() {
        let bins = |histogram: &Histogram| {
            histogram
                .counts
                .as_ref()
                .map_or(0, hdrhistogram::Histogram::distinct_values)
        };
        let mut times = of(Unit::Micros, &[1.0]);
        let few = bins(&times);
        assert!((1..=4096).contains(&few), "{few}");
        times.record_ms(60_000.0);
        assert!(bins(&times) > few);
        let minute = times.quantile_ms(1.0).expect("a minute");
        assert!((minute / 60_000.0 - 1.0).abs() < 1e-3, "{minute}");
        assert_eq!(times.quantile_ms(0.0), Some(1.0));
    }

    #[test]
    fn tokens_less_than_a_microsecond_apart_are_told_apart() {
        let fast = of(Unit::Nanos, &[0.000_25, 0.000_75]);
        assert_eq!(fast.quantile_ms(0.0), Some(0.000_25));
        assert_eq!(fast.quantile_ms(1.0), Some(0.000_75));
        let mut latencies = of(Unit::Micros, &[3.0]);
        latencies.merge(&of(Unit::Nanos, &[1.5]));
        assert_eq!(latencies.quantile_ms(0.0), Some(1.5));
    }

    fn times() -> impl Strategy<Value = Vec<f64>> {
        // From a microsecond to about a day, every magnitude alike.
        prop::collection::vec(
            (0.0_f64..25.0).prop_map(|power| 0.001 * power.exp()),
            1..200,
        )
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_values(values in times(), q in 0.0_f64..=1.0) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = ((q * sorted.len() as f64).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            for unit in [Unit::Micros, Unit::Nanos] {
                let told = of(unit, &values).quantile_ms(q).expect("a quantile");
                let allowed = exact * 1e-3 + 0.5 / unit.per_ms();
                prop_assert!((told - exact).abs() <= allowed, "{} for {}", told, exact);
            }
        }

        #[test]
        fn the_order_of_merging_does_not_matter(one in times(), two in times(), three in times()) {
            for unit in [Unit::Micros, Unit::Nanos] {
                let all = of(unit, &[one.clone(), two.clone(), three.clone()].concat());
                let [one, two, three] = [&one, &two, &three].map(|values| of(unit, values));
                let merged = |parts: [&Histogram; 2]| {
                    let mut merged = parts[0].clone();
                    merged.merge(parts[1]);
                    merged
                };
                prop_assert_eq!(merged([&one, &two]), merged([&two, &one]));
                let left = merged([&merged([&one, &two]), &three]);
                let right = merged([&one, &merged([&two, &three])]);
                prop_assert_eq!(&left, &right);
                prop_assert_eq!(&left, &all);
                prop_assert_eq!(left.quantile_ms(0.9), all.quantile_ms(0.9));
            }
        }

        #[test]
        fn written_and_read_it_is_the_same(values in times()) {
            for unit in [Unit::Micros, Unit::Nanos] {
                let histogram = of(unit, &values);
                let text = serde_json::to_string(&histogram).expect("serialises");
                let back: Histogram = serde_json::from_str(&text).expect("reads back");
                prop_assert_eq!(&back, &histogram);
                prop_assert_eq!(serde_json::to_string(&back).expect("serialises"), text);
            }
        }
    }
}
