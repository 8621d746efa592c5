//! Ready-made workloads.

use serde::{Deserialize, Serialize};

use super::Workload;

/// Ready-made workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// About a minute on a server of 80 tok/s: a first impression.
    Quick,
    /// About ten minutes: every level three times, so that spread shows.
    Standard,
    /// An hour and more: a fine ladder, five times.
    Thorough,
}

impl Preset {
    /// All of them, quickest first.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Thorough];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Thorough => "thorough",
        }
    }

    /// One line of help.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Quick => {
                "Single stream (3 requests) and C = 8, 32, once. About a minute: a first impression, no spread."
            }
            Self::Standard => {
                "Single stream (5 requests) and C = 1, 8, 32, 128, three repeats. The one to compare with."
            }
            Self::Thorough => {
                "Single stream (10 requests) and C = 1 to 256 in doublings, five repeats. For decisions."
            }
        }
    }

    /// The workload of this preset.
    #[must_use]
    pub fn workload(self) -> Workload {
        let (single, concurrencies, repeats): (u32, &[u32], u32) = match self {
            Self::Quick => (3, &[8, 32], 1),
            Self::Standard => (5, &[1, 8, 32, 128], 3),
            Self::Thorough => (10, &[1, 2, 4, 8, 16, 32, 64, 128, 256], 5),
        };
        let levels = Workload::levels(Some(single), concurrencies, None);
        Workload {
            repeats,
            ..Workload::with_levels(self.word(), levels)
        }
    }
}
