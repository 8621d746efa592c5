//! Ways to misbehave, on demand.

use std::{fmt, str::FromStr};

use crate::noise::uniform;

/// One way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// HTTP 500 with the engine's error body.
    Error500,
    /// An error object in mid-stream, then `[DONE]`.
    ErrorInStream,
    /// The stream goes silent in the middle and stays open.
    Stall,
    /// The connection is closed in mid-stream.
    Cut,
    /// Five seconds more until the first token.
    SlowFirstToken,
    /// No usage at all.
    NoUsage,
    /// Usage at the end only, whatever was asked.
    NoRunningUsage,
    /// 400 for `stream_options.continuous_usage_stats`.
    RefuseContinuousUsage,
    /// No `[DONE]`.
    NoDone,
    /// A whole JSON reply where a stream was asked for.
    NotStream,
    /// An event that is no JSON, in mid-stream.
    BadJson,
    /// A proper reply without a token.
    Empty,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Error500,
        Self::ErrorInStream,
        Self::Stall,
        Self::Cut,
        Self::SlowFirstToken,
        Self::NoUsage,
        Self::NoRunningUsage,
        Self::RefuseContinuousUsage,
        Self::NoDone,
        Self::NotStream,
        Self::BadJson,
        Self::Empty,
    ];

    /// The word on the command line and in the log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error500 => "error500",
            Self::ErrorInStream => "error-in-stream",
            Self::Stall => "stall",
            Self::Cut => "cut",
            Self::SlowFirstToken => "slow-first-token",
            Self::NoUsage => "no-usage",
            Self::NoRunningUsage => "no-running-usage",
            Self::RefuseContinuousUsage => "refuse-continuous-usage",
            Self::NoDone => "no-done",
            Self::NotStream => "not-stream",
            Self::BadJson => "bad-json",
            Self::Empty => "empty",
        }
    }
}

/// A fault and the share of requests it strikes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// Which.
    pub kind: FaultKind,
    /// Share of requests, 0 to 1.
    pub rate: f64,
}

/// Why a fault was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a fault. Write KIND or KIND:RATE with a rate from 0 to 1; kinds are {kinds}.",
    kinds = FaultKind::ALL.map(FaultKind::word).join(", ")
)]
pub struct BadFault(pub String);

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadFault(text.to_owned());
        let (word, rate) = match text.split_once(':') {
            Some((word, rate)) => (word, rate.parse().map_err(|_| bad())?),
            None => (text, 1.0),
        };
        let kind = FaultKind::ALL
            .into_iter()
            .find(|kind| kind.word() == word)
            .ok_or_else(bad)?;
        if !(0.0..=1.0).contains(&rate) {
            return Err(bad());
        }
        Ok(Self { kind, rate })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.word(), self.rate)
    }
}

/// The faults that strike one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Struck(u16);

impl Struck {
    /// Draws for the request with this serial number.
    #[must_use]
    pub fn draw(faults: &[Fault], seed: u64, serial: u64) -> Self {
        let mut struck = Self::default();
        for fault in faults {
            let purpose = 0xFA01 + u64::from(fault.kind as u8);
            if uniform(seed, purpose, serial) < fault.rate {
                struck.0 |= 1 << fault.kind as u16;
            }
        }
        struck
    }

    /// Does this one strike?
    #[must_use]
    pub const fn has(self, kind: FaultKind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    /// The words, for the log.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        FaultKind::ALL
            .into_iter()
            .filter(|kind| self.has(*kind))
            .map(FaultKind::word)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_with_and_without_a_rate() {
        let fault: Fault = "cut:0.25".parse().expect("a fault");
        assert_eq!((fault.kind, fault.rate), (FaultKind::Cut, 0.25));
        for kind in FaultKind::ALL {
            assert_eq!(kind.word().parse::<Fault>().expect("a fault").kind, kind);
        }
        for bad in ["", "explode", "cut:2", "cut:x", "cut:-1", "cut:NaN"] {
            assert_eq!(bad.parse::<Fault>(), Err(BadFault(bad.to_owned())));
        }
    }

    #[test]
    fn the_rate_is_the_share_struck() {
        let faults = ["cut:0.3".parse().expect("a fault")];
        let struck = (0..5000)
            .filter(|n| Struck::draw(&faults, 1, *n).has(FaultKind::Cut))
            .count();
        assert!((1350..1650).contains(&struck), "{struck}");
    }
}
