//! Which way is better.

use serde::{Deserialize, Serialize};

/// Whether more of a metric is better, as of a speed, or less, as of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    #[default]
    Higher,
    /// Less is better.
    Lower,
}

impl Better {
    /// The logarithm of a ratio, turned so that positive is better.
    #[must_use]
    pub const fn turned(self, log: f64) -> f64 {
        match self {
            Self::Higher => log,
            Self::Lower => -log,
        }
    }

    /// Is the figure better than the other one?
    #[must_use]
    pub fn is_better(self, figure: f64, than: f64) -> bool {
        match self {
            Self::Higher => figure > than,
            Self::Lower => figure < than,
        }
    }
}
