//! The life of a run.
//!
//! ```text
//! queued ──▶ running ──▶ finished | failed | cancelled
//!    │          └──────▶ interrupted        (its server, meter or host died)
//!    └─────────────────▶ cancelled          (before it began)
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Waiting for its turn.
    Queued,
    /// A worker holds its lease and a meter measures.
    Running,
    /// All stages ran.
    Finished,
    /// It could not go on; the reason is kept.
    Failed,
    /// Somebody stopped it; what was finished is kept.
    Cancelled,
    /// Its worker or meter died; what was finished is kept.
    Interrupted,
}

impl RunState {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Running,
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// The word as stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Is nothing more to come?
    #[must_use]
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// May a run go from here to there?
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => matches!(next, Self::Running | Self::Cancelled),
            Self::Running => next.is_over(),
            _ => false,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_is_for_ever() {
        for from in RunState::ALL {
            assert_eq!(RunState::from_word(from.word()), Some(from));
            for to in RunState::ALL {
                if from.is_over() {
                    assert!(!from.may_become(to), "{from} must not become {to}");
                }
            }
        }
        assert!(RunState::Queued.may_become(RunState::Running));
        assert!(!RunState::Queued.may_become(RunState::Finished));
        assert!(RunState::Running.may_become(RunState::Interrupted));
    }
}
