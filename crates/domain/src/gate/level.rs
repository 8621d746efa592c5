//! Load levels by their short names.

use std::{fmt, str::FromStr};

use super::RuleError;
use crate::workload::{StageKind, Thousandths};

/// A load level by its short name: `single`, `c128`, `r4`, `ramp`, `replay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The single stream.
    Single,
    /// A closed loop of so many slots.
    Closed(u32),
    /// An open loop of so many requests per second, however they are spread.
    Rate(Thousandths),
    /// A rate that changes evenly.
    Ramp,
    /// A recorded trace.
    Replay,
}

impl Level {
    /// Is it this kind of stage?
    #[must_use]
    pub fn is(self, kind: StageKind) -> bool {
        match (self, kind) {
            (Self::Single, StageKind::SingleStream)
            | (Self::Ramp, StageKind::Ramp { .. })
            | (Self::Replay, StageKind::Replay { .. }) => true,
            (Self::Closed(asked), StageKind::ClosedLoop { concurrency }) => asked == concurrency,
            (Self::Rate(asked), StageKind::OpenLoop { rate, .. }) => asked == rate,
            _ => false,
        }
    }
}

impl FromStr for Level {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let number = |prefix: char| text.strip_prefix(prefix);
        match text {
            "single" => Some(Self::Single),
            "ramp" => Some(Self::Ramp),
            "replay" => Some(Self::Replay),
            _ => {
                let closed = number('c').and_then(|number| number.parse().ok());
                let rate = number('r')
                    .and_then(|number| number.parse().ok())
                    .and_then(Thousandths::new);
                closed.map(Self::Closed).or(rate.map(Self::Rate))
            }
        }
        .ok_or_else(|| RuleError::Level(text.to_owned()))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Closed(concurrency) => write!(f, "c{concurrency}"),
            Self::Rate(rate) => write!(f, "r{rate}"),
            Self::Ramp => f.write_str("ramp"),
            Self::Replay => f.write_str("replay"),
        }
    }
}
