//! What differs between runs, and what a frozen comparison is made of.

use std::collections::{BTreeMap, BTreeSet};

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
    /// What it shows.
    pub view: CompareView<ChartSpec>,
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

/// The keys in which the runs differ, and the number of those in which they agree.
#[must_use]
pub fn differences(runs: &[Fingerprint]) -> (Vec<Difference>, u32) {
    type Part = fn(&Fingerprint) -> &BTreeMap<String, String>;
    let parts: [(DifferenceKind, Part); 3] = [
        (DifferenceKind::Definition, |run| &run.definition),
        (DifferenceKind::Environment, |run| &run.environment),
        (DifferenceKind::Setting, |run| &run.settings),
    ];
    let mut found = Vec::new();
    let mut equal = 0;
    for (kind, part) in parts {
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
            if told.all(|value| Some(value) == first) {
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
}
