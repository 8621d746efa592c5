//! The written form: `{"unit":"us","significant_figures":3,"counts":[[value,count],…]}`.

use serde::{Deserialize, Serialize};

use super::{Histogram, SIGNIFICANT_FIGURES, Unit};

/// Most bins there can be: three figures over the 47 powers of two that a day has in
/// nanoseconds are under 40,000.
const MOST_BINS: usize = 65_536;

/// Most values that a written histogram may state: a million requests of a million
/// tokens.
const MOST_WRITTEN: u64 = 1_000_000_000_000;

/// Why a written histogram is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// Another precision.
    #[error(
        "a histogram of {0} significant figures cannot be read; Tokdyno writes {SIGNIFICANT_FIGURES}"
    )]
    Figures(u8),
    /// More bins than values have.
    #[error("a histogram of {0} bins cannot be; there are at most {MOST_BINS}")]
    Bins(usize),
    /// A value that is out of range or not above the one before.
    #[error("the histogram's value {0} is out of order, or not between 1 and a day")]
    Value(u64),
    /// No count, or more than anything has been counted.
    #[error(
        "the histogram's value {0} is counted 0 times, or all together are more than {MOST_WRITTEN}"
    )]
    Count(u64),
}

#[derive(Serialize, Deserialize)]
struct Written {
    unit: Word,
    significant_figures: u8,
    counts: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Word {
    #[serde(rename = "us")]
    Micros,
    #[serde(rename = "ns")]
    Nanos,
}

impl From<Word> for Unit {
    fn from(word: Word) -> Self {
        match word {
            Word::Micros => Self::Micros,
            Word::Nanos => Self::Nanos,
        }
    }
}

impl From<&Histogram> for Written {
    fn from(histogram: &Histogram) -> Self {
        Self {
            unit: match histogram.unit {
                Unit::Micros => Word::Micros,
                Unit::Nanos => Word::Nanos,
            },
            significant_figures: SIGNIFICANT_FIGURES,
            counts: histogram.counts().collect(),
        }
    }
}

impl TryFrom<Written> for Histogram {
    type Error = HistogramError;

    fn try_from(written: Written) -> Result<Self, HistogramError> {
        if written.significant_figures != SIGNIFICANT_FIGURES {
            return Err(HistogramError::Figures(written.significant_figures));
        }
        if written.counts.len() > MOST_BINS {
            return Err(HistogramError::Bins(written.counts.len()));
        }
        let mut histogram = Self::new(written.unit.into());
        let (mut before, mut total) = (0, 0_u64);
        for (value, count) in written.counts {
            if value <= before || value > histogram.unit.longest() {
                return Err(HistogramError::Value(value));
            }
            total = total.saturating_add(count);
            if count == 0 || total > MOST_WRITTEN {
                return Err(HistogramError::Count(value));
            }
            histogram.add(value, count);
            before = value;
        }
        Ok(histogram)
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?
            .try_into()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_can_read_it() {
        let mut histogram = Histogram::new(Unit::Micros);
        histogram.record_n_ms(0.5, 3);
        histogram.record_ms(12.0);
        assert_eq!(
            serde_json::to_string(&histogram).expect("serialises"),
            r#"{"unit":"us","significant_figures":3,"counts":[[500,3],[12000,1]]}"#
        );
    }

    #[test]
    fn what_cannot_have_been_counted_is_refused() {
        let read = |unit: &str, figures: u8, counts: &str| {
            serde_json::from_str::<Histogram>(&format!(
                r#"{{"unit":"{unit}","significant_figures":{figures},"counts":{counts}}}"#
            ))
        };
        assert!(read("us", 3, "[[1,1],[86400000000,2]]").is_ok());
        assert!(read("us", 3, "[]").is_ok());
        for (unit, figures, counts) in [
            ("ms", 3, "[]"),
            ("us", 2, "[]"),
            ("us", 3, "[[0,1]]"),
            ("us", 3, "[[86400000001,1]]"),
            ("us", 3, "[[5,1],[5,1]]"),
            ("us", 3, "[[5,1],[4,1]]"),
            ("us", 3, "[[5,0]]"),
            ("us", 3, "[[5,1000000000001]]"),
            (
                "us",
                3,
                "[[5,18446744073709551615],[6,18446744073709551615]]",
            ),
            ("us", 3, "[[-5,1]]"),
            ("us", 3, "[[5.5,1]]"),
        ] {
            assert!(
                read(unit, figures, counts).is_err(),
                "{unit} {figures} {counts}"
            );
        }
        let many: Vec<(u64, u64)> = (1..=70_000).map(|value| (value, 1)).collect();
        let many = serde_json::to_string(&many).expect("serialises");
        assert!(read("us", 3, &many).is_err());
    }
}
