//! Gates: what is asked for, and what is recorded of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    gate::{GateOutcome, Outcome},
    ids::{GateId, RunId},
    timestamp::Timestamp,
};

/// Longest reason of a decision, in characters.
pub const MAX_REASON: usize = 1000;

/// Rules to hold a run, or a comparison, to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GateForm {
    /// One run, or several that are compared, the baseline first.
    pub runs: Vec<RunId>,
    /// One rule a line.
    pub rules: String,
}

/// A recorded gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateView {
    /// Its number.
    pub id: GateId,
    /// The runs it is about, the baseline first where there are several.
    pub runs: Vec<RunId>,
    /// Who recorded it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Its rules, as they read back.
    pub rules: Vec<String>,
    /// What it came to then.
    pub outcome: GateOutcome,
    /// What a person made of it.
    pub decision: Option<Decision>,
}

/// What a person made of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Which way.
    pub kind: DecisionKind,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// Which way a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The runs are good enough.
    Accepted,
    /// They are not.
    Rejected,
}

impl DecisionKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Accepted, Self::Rejected];

    /// The word, as stored and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for DecisionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl GateView {
    /// Was it decided otherwise than its rules say? What is not established supports
    /// no acceptance either.
    #[must_use]
    pub fn is_override(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| {
            (decision.kind == DecisionKind::Accepted) != (self.outcome.outcome == Outcome::Holds)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_against_the_rules_is_an_override() {
        let decided = |outcome, kind: Option<DecisionKind>| GateView {
            id: GateId(1),
            runs: vec![RunId(1)],
            by: "a".to_owned(),
            at: Timestamp(0),
            rules: vec![],
            outcome: GateOutcome {
                outcome,
                judgements: vec![],
                simulated: false,
                metric_version: 1,
                analysis_version: 1,
            },
            decision: kind.map(|kind| Decision {
                kind,
                reason: "because".to_owned(),
                by: "b".to_owned(),
                at: Timestamp(1),
            }),
        };
        let (accepted, rejected) = (DecisionKind::Accepted, DecisionKind::Rejected);
        for (outcome, kind, expected) in [
            (Outcome::Holds, Some(accepted), false),
            (Outcome::Holds, Some(rejected), true),
            (Outcome::Broken, Some(accepted), true),
            (Outcome::Broken, Some(rejected), false),
            (Outcome::NotEstablished, Some(accepted), true),
            (Outcome::NotEstablished, Some(rejected), false),
            (Outcome::Broken, None, false),
        ] {
            assert_eq!(
                decided(outcome, kind).is_override(),
                expected,
                "{outcome}, {kind:?}"
            );
        }
        for kind in DecisionKind::ALL {
            assert_eq!(DecisionKind::from_word(kind.word()), Some(kind));
        }
        assert_eq!(DecisionKind::from_word("Accepted"), None);
    }
}
