//! What differs between runs, and what a frozen comparison is made of.

mod separating;

use std::collections::{BTreeMap, BTreeSet};

pub use separating::separating;
use serde::{Deserialize, Serialize};

use crate::{
    chart::ChartSpec,
    timestamp::Timestamp,
    views::compare::{ClassKind, CompareView, ComparisonClass},
};

/// Version of the frozen document's form.
pub const COMPARISON_SCHEMA: u32 = 1;

/// Fewest and most runs of a comparison.
pub const RUNS: std::ops::RangeInclusive<usize> = 2..=12;

/// A frozen comparison's canonical document. It holds all that its page shows,
/// so that deleting a run, or a newer program, changes nothing in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenComparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema_version: u32,
    /// What it is called.
    pub title: String,
    /// When it was frozen, in microseconds since 1970.
    pub frozen_at: Timestamp,
    /// Rules by which verdicts were reached.
    pub analysis_version: u32,
    /// Metric definitions.
    pub metric_version: u32,
    /// Who vouches for it in spite of its class, if somebody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Override>,
    /// What it shows.
    pub view: CompareView<ChartSpec>,
}

/// A person's word that figures are to be read side by side although the comparison is
/// classed confounded or invalid. It changes no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// In spite of what, as in `different workloads`.
    pub in_spite_of: String,
    /// Who signed.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

impl Override {
    /// It in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "Compared in spite of {}, by {} on {}: {}.",
            self.in_spite_of,
            self.by,
            self.at.exact(),
            self.reason.trim_end_matches('.')
        )
    }
}

/// What an override of this comparison is in spite of; none where there is nothing to
/// override.
#[must_use]
pub fn to_override<C>(view: &CompareView<C>) -> Option<String> {
    let definitions: Vec<&str> = view
        .differences
        .iter()
        .filter(|difference| difference.kind == DifferenceKind::Definition)
        .map(|difference| match difference.key.as_str() {
            "workload" => "different workloads",
            _ => "different metric definitions",
        })
        .collect();
    match view.class.kind {
        ClassKind::Repeat | ClassKind::Controlled => None,
        ClassKind::Confounded => Some("what else differs or may differ".to_owned()),
        ClassKind::Invalid if definitions.is_empty() => {
            Some("simulated figures beside others".to_owned())
        }
        ClassKind::Invalid => Some(definitions.join(" and ")),
    }
}

impl FrozenComparison {
    /// The class in a sentence, and who overrides it.
    #[must_use]
    pub fn class_sentence(&self) -> String {
        let class = &self.view.class.sentence;
        self.overridden.as_ref().map_or_else(
            || class.clone(),
            |overridden| format!("{class} {}", overridden.sentence()),
        )
    }
}

/// What a key of the configuration is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// Workload or metric definition: figures cannot be compared.
    Definition,
    /// Model, hardware, engine, version, client.
    Environment,
    /// A setting of the engine.
    Setting,
}

/// A key whose values are not all equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What it is about.
    pub kind: DifferenceKind,
    /// The key.
    pub key: String,
    /// One value per run; none where it is not known.
    pub values: Vec<Option<String>>,
}

/// What is known of a run's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint {
    /// Workload hash, metric version.
    pub definition: BTreeMap<String, String>,
    /// Model, hardware, engine, version, client.
    pub environment: BTreeMap<String, String>,
    /// The engine's settings.
    pub settings: BTreeMap<String, String>,
}

type Part = fn(&Fingerprint) -> &BTreeMap<String, String>;

const PARTS: [(DifferenceKind, Part); 3] = [
    (DifferenceKind::Definition, |run| &run.definition),
    (DifferenceKind::Environment, |run| &run.environment),
    (DifferenceKind::Setting, |run| &run.settings),
];

/// What a start finds out by itself from the memory that happens to be free: seldom
/// twice the same to the last digit.
const FOUND_AT_START: [&str; 2] = ["max_total_num_tokens", "max_req_input_len"];

/// Share by which what is found at a start may differ and still be the same.
const SAME_START: f64 = 0.02;

/// Settings that differ between any two starts and say nothing about tuning.
const INCIDENTAL: [&str; 8] = [
    "port",
    "host",
    "pid",
    "startup_time",
    "random_seed",
    "launch_command",
    "nccl_port",
    "dist_init_addr",
];

impl Fingerprint {
    /// What it says of a key; none if nothing.
    #[must_use]
    pub fn value(&self, kind: DifferenceKind, key: &str) -> Option<&str> {
        PARTS
            .iter()
            .find(|(part, _)| *part == kind)
            .and_then(|(_, part)| part(self).get(key))
            .map(String::as_str)
    }

    /// All that is known of the two is equal, and as much is known of both.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.settings.is_empty() == other.settings.is_empty()
            && differences(&[self.clone(), other.clone()]).0.is_empty()
    }
}

/// The keys in which the runs differ, and the number of those in which they agree.
#[must_use]
pub fn differences(runs: &[Fingerprint]) -> (Vec<Difference>, u32) {
    let mut found = Vec::new();
    let mut equal = 0;
    for (kind, part) in PARTS {
        let keys: BTreeSet<&String> = runs.iter().flat_map(|run| part(run).keys()).collect();
        for key in keys {
            if kind == DifferenceKind::Setting && INCIDENTAL.contains(&key.as_str()) {
                continue;
            }
            let values: Vec<Option<String>> =
                runs.iter().map(|run| part(run).get(key).cloned()).collect();
            // A server that tells none of its settings does not differ in each of
            // them: that they are not known is one thing, and is said once.
            let mut told = runs
                .iter()
                .zip(&values)
                .filter(|(run, _)| !part(run).is_empty())
                .map(|(_, value)| value);
            let first = told.next();
            if told
                .all(|value| first.is_some_and(|first| alike(key, first.as_ref(), value.as_ref())))
            {
                equal += 1;
            } else {
                found.push(Difference {
                    kind,
                    key: key.clone(),
                    values,
                });
            }
        }
    }
    (found, equal)
}

fn alike(key: &str, one: Option<&String>, other: Option<&String>) -> bool {
    let number = |value: Option<&String>| value?.parse::<f64>().ok();
    one == other
        || FOUND_AT_START.contains(&key)
            && number(one)
                .zip(number(other))
                .is_some_and(|(one, other)| (one - other).abs() <= SAME_START * one.max(other))
}

/// Several configurations of which each differs from the first in one key: for each
/// of them, what made the difference is known. None where that is not so, or where it
/// is the same key for all, which [`classify`] knows.
#[must_use]
pub fn one_at_a_time(configurations: &[(&str, &Fingerprint)]) -> Option<ComparisonClass> {
    let [(first, base), others @ ..] = configurations else {
        return None;
    };
    let changed: Vec<String> = others
        .iter()
        .map(|(name, print)| {
            let (found, _) = differences(&[(*base).clone(), (*print).clone()]);
            match found.as_slice() {
                [only] if only.kind != DifferenceKind::Definition => {
                    Some(format!("{name} in {}", only.key))
                }
                _ => None,
            }
        })
        .collect::<Option<_>>()?;
    (changed.len() > 1).then(|| ComparisonClass {
        kind: ClassKind::Controlled,
        sentence: format!(
            "Controlled: each differs from {first} in one thing only: {}.",
            changed.join("; ")
        ),
    })
}

/// The class that follows from the differences.
#[must_use]
pub fn classify(differences: &[Difference], settings_known: bool) -> ComparisonClass {
    let of = |kind: DifferenceKind| {
        let keys: Vec<&str> = differences
            .iter()
            .filter(|difference| difference.kind == kind)
            .map(|difference| difference.key.as_str())
            .collect();
        keys
    };
    let class = |kind, sentence: String| ComparisonClass { kind, sentence };
    let definition = of(DifferenceKind::Definition);
    if !definition.is_empty() {
        return class(
            ClassKind::Invalid,
            format!(
                "Not comparable: {}, so the figures answer different questions.",
                differ(&definition)
            ),
        );
    }
    let mut factors = of(DifferenceKind::Environment);
    factors.extend(of(DifferenceKind::Setting));
    match (factors.as_slice(), settings_known) {
        ([], true) => class(
            ClassKind::Repeat,
            "Nothing that is known differs: a repetition.".to_owned(),
        ),
        ([], false) => class(
            ClassKind::Confounded,
            "What differs is not known: the settings of at least one server could not be read."
                .to_owned(),
        ),
        ([one], true) => class(
            ClassKind::Controlled,
            format!("Controlled: only {one} differs."),
        ),
        ([one], false) => class(
            ClassKind::Confounded,
            format!(
                "{one} differs, and the settings of at least one server could not be read, so more may."
            ),
        ),
        (many, known) => class(
            ClassKind::Confounded,
            format!(
                "Confounded: {} things differ{}, so none of them alone explains the result.",
                many.len(),
                if known {
                    ""
                } else {
                    ", and the settings of at least one server could not be read"
                }
            ),
        ),
    }
}

/// `the workload differs`, `the workload and the metric definitions differ`.
#[must_use]
pub fn differ(keys: &[&str]) -> String {
    match keys {
        [one] => format!("the {one} differs"),
        several => format!("the {} differ", several.join(" and the ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(settings: &[(&str, &str)]) -> Fingerprint {
        let mut print = Fingerprint::default();
        print
            .definition
            .insert("workload".to_owned(), "w".to_owned());
        print.settings = settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        print
    }

    #[test]
    fn one_two_and_no_differences() {
        let base = print(&[("tp_size", "8"), ("port", "1")]);
        let class = |other: &Fingerprint, known| {
            classify(&differences(&[base.clone(), other.clone()]).0, known).kind
        };
        assert_eq!(
            class(&print(&[("tp_size", "8"), ("port", "2")]), true),
            ClassKind::Repeat
        );
        assert_eq!(
            class(&print(&[("tp_size", "4")]), true),
            ClassKind::Controlled
        );
        assert_eq!(
            class(&print(&[("tp_size", "4")]), false),
            ClassKind::Confounded
        );
        assert_eq!(
            class(&print(&[("tp_size", "4"), ("x", "y")]), true),
            ClassKind::Confounded
        );
        let mut other = base.clone();
        other
            .definition
            .insert("workload".to_owned(), "v".to_owned());
        assert_eq!(class(&other, true), ClassKind::Invalid);
    }

    #[test]
    fn a_key_known_to_one_side_only_is_a_difference() {
        let one = print(&[("a", "1"), ("b", "2")]);
        let (found, equal) = differences(&[one, print(&[("b", "2")])]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].values, [Some("1".to_owned()), None]);
        assert_eq!(equal, 2);
    }

    #[test]
    fn a_server_that_tells_nothing_does_not_differ_in_everything() {
        let told = print(&[("a", "1"), ("b", "2")]);
        let other = print(&[("a", "1"), ("b", "3")]);
        let silent = print(&[]);
        assert_eq!(differences(&[told.clone(), silent.clone()]).0, []);
        let (found, _) = differences(&[told, silent, other]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key, "b");
        let class = classify(&found, false);
        assert!(
            class.sentence.contains("could not be read"),
            "{}",
            class.sentence
        );
    }

    #[test]
    fn a_document_of_analysis_version_2_is_shown_as_it_was() {
        // As the program of that version wrote it, but for charts left out.
        let stored = include_str!("comparison/frozen_v2.json");
        let comparison: FrozenComparison = serde_json::from_str(stored).expect("a document");
        assert_eq!(comparison.analysis_version, 2);
        let view = comparison.view.clone().map_charts(|chart| chart.title);
        assert!(view.groups.is_empty() && view.separating.is_empty());
        assert!(view.rows.iter().all(|row| row.groups.is_empty()));
        assert_eq!(view.rows[0].cells.len(), 2);
        assert_eq!(
            view.charts,
            ["Speed for one user against throughput at C = 128"]
        );
        // Nothing is judged again, and what was written is written again.
        let old: serde_json::Value = serde_json::from_str(stored).expect("JSON");
        let new = serde_json::to_value(&comparison).expect("JSON");
        for part in ["verdicts", "crossovers", "class", "differences", "charts"] {
            assert_eq!(new["view"][part], old["view"][part], "{part}");
        }
        assert!(
            view.verdicts
                .iter()
                .all(|verdict| verdict.analysis_version == 2 && verdict.family.is_none())
        );
        assert!(
            view.crossovers[0].contains("tuned"),
            "{:?}",
            view.crossovers
        );
    }
}
