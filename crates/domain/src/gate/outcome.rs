//! What a gate came to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{statistics::RatioInterval, verdict::Verdict};

/// What a rule, or a gate, came to; the worse the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is kept.
    Holds,
    /// Nobody can say: a figure is missing or in doubt, or its interval is too wide.
    NotEstablished,
    /// It is broken.
    Broken,
}

impl Outcome {
    /// The words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::NotEstablished => "not established",
            Self::Broken => "broken",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// What a rule came to, of a run or of a configuration against the baseline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The rule, as it reads back.
    pub rule: String,
    /// Name of the run or configuration.
    pub of: String,
    /// What it came to.
    pub outcome: Outcome,
    /// What was seen, or why nobody can say; a whole sentence.
    pub sentence: String,
    /// Of a bound: the figure nearest to breaking it, in the metric's unit.
    pub value: Option<f64>,
    /// Against the baseline: the interval of the ratio that decides.
    pub interval: Option<RatioInterval>,
    /// Against the baseline: what may be said of the two at all.
    pub verdict: Option<Verdict>,
}

/// What a gate came to, with the versions of the rules it was judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateOutcome {
    /// The worst of its rules.
    pub outcome: Outcome,
    /// Each rule, in their order; several where several were asked of.
    pub judgements: Vec<Judgement>,
    /// A figure of it comes from the stand-in.
    pub simulated: bool,
    /// Metric definitions.
    pub metric_version: u32,
    /// Rules of judgement.
    pub analysis_version: u32,
}
