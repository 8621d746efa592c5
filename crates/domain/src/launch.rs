//! The life of a launch: one start of one profile revision on one host.
//!
//! ```text
//! queued ──▶ starting ──▶ loading ──▶ ready ──▶ stopping ──▶ stopped
//!    │           │            │         │           │
//!    │           └────────────┴─────────┴───────────┴──▶ failed(reason)
//!    └──▶ stopped (cancelled before it began)
//!         starting, loading, ready, stopping ──▶ lost  (how it ended is not known)
//! ```

mod failure;
mod plan;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::{
    failure::{FailureKind, LaunchFailure},
    plan::{Afterwards, GIVE_BACK_LEAD_S, LaunchPlan, MeasurePlan},
};

/// Where a launch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchState {
    /// Waits for its turn: for a worker, or for the GPUs.
    Queued,
    /// The host is checked and the process is started.
    Starting,
    /// The process lives; the engine loads.
    Loading,
    /// It answers, and its effective configuration was read.
    Ready,
    /// It was told to end.
    Stopping,
    /// It ended because somebody wanted it to.
    Stopped,
    /// It could not start, or ended by itself; the reason is kept.
    Failed,
    /// The host rebooted, or the process vanished without a trace.
    Lost,
}

impl LaunchState {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Starting,
        Self::Loading,
        Self::Ready,
        Self::Stopping,
        Self::Stopped,
        Self::Failed,
        Self::Lost,
    ];

    /// The word as stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Loading => "loading",
            Self::Ready => "ready",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Lost => "lost",
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
        matches!(self, Self::Stopped | Self::Failed | Self::Lost)
    }

    /// Does it hold its GPUs?
    #[must_use]
    pub const fn holds_gpus(self) -> bool {
        !self.is_over() && !matches!(self, Self::Queued)
    }

    /// May a launch go from here to there?
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => matches!(next, Self::Starting | Self::Stopped | Self::Failed),
            Self::Starting => matches!(
                next,
                Self::Loading | Self::Stopping | Self::Stopped | Self::Failed | Self::Lost
            ),
            Self::Loading => matches!(
                next,
                Self::Ready | Self::Stopping | Self::Failed | Self::Lost
            ),
            Self::Ready => matches!(next, Self::Stopping | Self::Failed | Self::Lost),
            Self::Stopping => next.is_over(),
            Self::Stopped | Self::Failed | Self::Lost => false,
        }
    }
}

impl fmt::Display for LaunchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How a launch came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchOrigin {
    /// Started from here.
    Launched,
    /// Found running and adopted.
    Adopted,
    /// An adopted one, started again its own way.
    Restored,
}

impl LaunchOrigin {
    /// The word as stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Launched => "launched",
            Self::Adopted => "adopted",
            Self::Restored => "restored",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Launched, Self::Adopted, Self::Restored]
            .into_iter()
            .find(|origin| origin.word() == word)
    }
}

/// How far loading is, as the log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadStage {
    /// The process lives.
    Started,
    /// The arguments are understood.
    Arguments,
    /// The engine's processes and NCCL start.
    Engine,
    /// Weights are read.
    Weights,
    /// The key-value cache is laid out.
    Cache,
    /// CUDA graphs are captured.
    Graphs,
    /// The HTTP server starts.
    Http,
    /// The engine says that it is ready.
    Ready,
}

impl LoadStage {
    /// All of them, in order.
    pub const ALL: [Self; 8] = [
        Self::Started,
        Self::Arguments,
        Self::Engine,
        Self::Weights,
        Self::Cache,
        Self::Graphs,
        Self::Http,
        Self::Ready,
    ];

    /// The word as stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Arguments => "arguments",
            Self::Engine => "engine",
            Self::Weights => "weights",
            Self::Cache => "cache",
            Self::Graphs => "graphs",
            Self::Http => "http",
            Self::Ready => "ready",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.word() == word)
    }

    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Started => "process started",
            Self::Arguments => "arguments read",
            Self::Engine => "engine starting",
            Self::Weights => "loading weights",
            Self::Cache => "laying out the cache",
            Self::Graphs => "capturing CUDA graphs",
            Self::Http => "starting the HTTP server",
            Self::Ready => "ready",
        }
    }

    /// Place in the order, from 0.
    #[must_use]
    pub fn place(self) -> u32 {
        let place = Self::ALL.iter().position(|stage| *stage == self);
        u32::try_from(place.unwrap_or(0)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_is_for_ever_and_everything_can_end() {
        for from in LaunchState::ALL {
            assert_eq!(LaunchState::from_word(from.word()), Some(from));
            for to in LaunchState::ALL {
                if from.is_over() {
                    assert!(!from.may_become(to), "{from} must not become {to}");
                }
            }
            if !from.is_over() {
                assert!(from.may_become(LaunchState::Failed), "{from} can fail");
            }
        }
        for stage in LoadStage::ALL {
            assert_eq!(LoadStage::from_word(stage.word()), Some(stage));
        }
        assert!(!LaunchState::Queued.may_become(LaunchState::Ready));
        assert!(LaunchState::Ready.may_become(LaunchState::Lost));
    }
}
