//! Where a figure comes from. Every figure carries this, everywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The source of a figure (design words; shown beside every figure).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Measured by Tokdyno's own meter.
    Measured,
    /// Read from a result file.
    Imported,
    /// Typed in by a person.
    Recorded,
    /// Not measured at all: somebody's estimate.
    Estimated,
    /// Measured, but against the stand-in engine: never a statement about a GPU.
    Simulated,
}

impl Source {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Measured,
        Self::Imported,
        Self::Recorded,
        Self::Estimated,
        Self::Simulated,
    ];

    /// The word for it, as stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Imported => "imported",
            Self::Recorded => "recorded",
            Self::Estimated => "estimated",
            Self::Simulated => "simulated",
        }
    }

    /// One line of help.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Measured => "Measured by Tokdyno against a live server.",
            Self::Imported => "Read from a result file; measured elsewhere.",
            Self::Recorded => {
                "Typed in by a person from notes; no request records stand behind it."
            }
            Self::Estimated => "Not measured: somebody's estimate.",
            Self::Simulated => {
                "Measured against the stand-in engine; says nothing about a real GPU."
            }
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.word() == word)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_match_the_wire() {
        for source in Source::ALL {
            assert_eq!(Source::from_word(source.word()), Some(source));
            let wire = serde_json::to_value(source).expect("a unit variant serialises");
            assert_eq!(wire, source.word());
        }
        assert_eq!(Source::from_word("Measured"), None);
    }
}
