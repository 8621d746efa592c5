//! The effective configuration: what really runs, item by item against what the
//! profile asked for, and the stamp that follows.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// What an item is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Program and order of words.
    Command,
    /// An argument of the engine.
    Argument,
    /// An environment variable.
    Variable,
    /// Model, served name, drafter.
    Model,
    /// Engine and version.
    Engine,
    /// GPUs, clocks, driver.
    Hardware,
}

/// How what was asked and what was found stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Both values are known and differ.
    Differs,
    /// Something is in effect that nobody asked for.
    NotAsked,
    /// Asked for, and known to do nothing in this version.
    Inert,
    /// Asked for, and nothing tells whether it holds.
    NotReadable,
    /// The process was given it; whether it is used is not proved.
    Passed,
    /// The engine says that it resolved to what was asked.
    AsAsked,
    /// The library that uses it said so in its own log.
    Confirmed,
    /// Not asked for; told for the record.
    Noted,
}

impl Finding {
    /// All of them, in the order in which they are shown: trouble first.
    pub const ALL: [Self; 8] = [
        Self::Differs,
        Self::NotAsked,
        Self::Inert,
        Self::NotReadable,
        Self::Passed,
        Self::AsAsked,
        Self::Confirmed,
        Self::Noted,
    ];

    /// As shown.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::NotAsked => "set though not asked",
            Self::Inert => "asked but inert",
            Self::NotReadable => "not readable",
            Self::Passed => "passed",
            Self::AsAsked => "as asked",
            Self::Confirmed => "confirmed",
            Self::Noted => "noted",
        }
    }

    /// What the word means, in a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Differs => "What runs is not what the profile asks for.",
            Self::NotAsked => {
                "Something sets this outside the profile, such as a configuration file on the host."
            }
            Self::Inert => "The engine accepts it, but nothing in this version uses it.",
            Self::NotReadable => "Nothing that can be read tells whether it holds.",
            Self::Passed => {
                "The process was started with it. That the library uses it is not proved."
            }
            Self::AsAsked => "The engine reports that it resolved to this value.",
            Self::Confirmed => "The library that uses it reported it in its own log.",
            Self::Noted => "Not part of the profile; kept so that runs can be compared.",
        }
    }
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What it is about.
    pub subject: Subject,
    /// Its name: `--tp-size`, `NCCL_PROTO`, `driver`.
    pub name: String,
    /// What the profile asks for.
    pub asked: Option<String>,
    /// What was found.
    pub found: Option<String>,
    /// How the two stand to each other.
    pub finding: Finding,
    /// Where the found value was read, such as `/server_info`.
    pub read_from: String,
    /// A remark, such as why a value is inert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// What a launch and every run on it is stamped with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "stamp")]
pub enum Stamp {
    /// Everything that the profile asks for was found or passed, and nothing else.
    Verified,
    /// Something is not as asked; its names.
    Mismatched {
        /// Names of the items.
        items: Vec<String>,
    },
    /// It could not be found out; why.
    Unverifiable {
        /// A sentence.
        why: String,
    },
}

impl Stamp {
    /// The word as stored and shown.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Mismatched { .. } => "mismatched",
            Self::Unverifiable { .. } => "unverifiable",
        }
    }

    /// It in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Verified => {
                "What runs was read back from the host and is what the profile asks for.".to_owned()
            }
            Self::Mismatched { items } => format!(
                "What runs is not what the profile asks for: {}.",
                items.join(", ")
            ),
            Self::Unverifiable { why } => format!("What runs could not be read back: {why}"),
        }
    }
}

/// What really runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectiveConfiguration {
    /// When it was read.
    pub at: Timestamp,
    /// Trouble first.
    pub items: Vec<Item>,
    /// What follows.
    pub stamp: Stamp,
    /// What could not be read, and why.
    pub notes: Vec<String>,
}

impl EffectiveConfiguration {
    /// Puts items in order and draws the conclusion. `unreadable` says why the
    /// process or the engine could not be read at all, if so.
    #[must_use]
    pub fn conclude(
        at: Timestamp,
        mut items: Vec<Item>,
        unreadable: Option<String>,
        notes: Vec<String>,
    ) -> Self {
        items.sort_by(|a, b| (a.finding, a.subject, &a.name).cmp(&(b.finding, b.subject, &b.name)));
        let wrong: Vec<String> = items
            .iter()
            .filter(|item| matches!(item.finding, Finding::Differs | Finding::NotAsked))
            .map(|item| item.name.clone())
            .collect();
        let stamp = match unreadable {
            _ if !wrong.is_empty() => Stamp::Mismatched { items: wrong },
            Some(why) => Stamp::Unverifiable { why },
            None => Stamp::Verified,
        };
        Self {
            at,
            items,
            stamp,
            notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, finding: Finding) -> Item {
        Item {
            subject: Subject::Variable,
            name: name.to_owned(),
            asked: None,
            found: None,
            finding,
            read_from: String::new(),
            remark: None,
        }
    }

    #[test]
    fn one_wrong_item_makes_a_mismatch_and_trouble_comes_first() {
        let concluded = EffectiveConfiguration::conclude(
            Timestamp(0),
            vec![
                item("NCCL_PROTO", Finding::Passed),
                item("NCCL_ALGO", Finding::NotAsked),
            ],
            None,
            Vec::new(),
        );
        assert_eq!(concluded.items[0].name, "NCCL_ALGO");
        assert_eq!(
            concluded.stamp,
            Stamp::Mismatched {
                items: vec!["NCCL_ALGO".to_owned()]
            }
        );
    }

    #[test]
    fn inert_and_passed_do_not_stand_against_a_stamp_but_silence_does() {
        let items = || {
            vec![
                item("--x", Finding::Inert),
                item("NCCL_PROTO", Finding::Passed),
            ]
        };
        let at = Timestamp(0);
        let verified = EffectiveConfiguration::conclude(at, items(), None, Vec::new());
        assert_eq!(verified.stamp, Stamp::Verified);
        let why = Some("no server info.".to_owned());
        let unknown = EffectiveConfiguration::conclude(at, items(), why, Vec::new());
        assert_eq!(unknown.stamp.word(), "unverifiable");
    }
}
