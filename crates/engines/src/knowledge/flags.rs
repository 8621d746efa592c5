//! Flags of the engines. Facts are those of vLLM 0.33 and SGLang 0.5.23; other
//! versions are named where they are known to differ.

use tokdyno_domain::engine::EngineKind;

use super::{sglang::SGLANG, stand_in::STAND_IN, vllm::VLLM};

/// What follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    /// Nothing.
    Switch,
    /// One value.
    One,
    /// One value or more.
    Many,
}

/// What is known of a flag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// All spellings, the usual one first.
    pub(crate) names: &'static [&'static str],
    /// What follows it.
    pub(crate) arity: Arity,
    /// Name of the resolved setting in the server info; blank for the name with
    /// underscores.
    pub(crate) setting: &'static str,
    /// Values it takes, for people; blank where there is nothing to say.
    pub(crate) values: &'static str,
    /// What holds without it; blank where that is not known.
    pub(crate) default: &'static str,
    /// What it does.
    pub(crate) meaning: &'static str,
}

impl Flag {
    /// A flag without a value.
    pub(super) const fn switch(
        names: &'static [&'static str],
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self {
            names,
            arity: Arity::Switch,
            setting: "",
            values: "",
            default,
            meaning,
        }
    }

    /// A flag with one value.
    pub(super) const fn one(
        names: &'static [&'static str],
        values: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self {
            names,
            arity: Arity::One,
            setting: "",
            values,
            default,
            meaning,
        }
    }

    /// A flag with any number of values.
    pub(super) const fn many(
        names: &'static [&'static str],
        values: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self {
            names,
            arity: Arity::Many,
            setting: "",
            values,
            default,
            meaning,
        }
    }

    /// The same, found under another name in the server info.
    pub(super) const fn resolved_as(mut self, setting: &'static str) -> Self {
        self.setting = setting;
        self
    }

    /// Name of the resolved setting.
    pub(crate) fn setting(&self) -> String {
        if self.setting.is_empty() {
            snake(self.names[0])
        } else {
            self.setting.to_owned()
        }
    }
}

/// `--tp-size` as the settings spell it: `tp_size`.
pub(crate) fn snake(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

/// What is known of a flag as spelled, and whether the spelling switches it off.
pub(crate) fn find(engine: EngineKind, spelled: &str) -> (Option<&'static Flag>, bool) {
    let table: &[Flag] = match engine {
        EngineKind::Vllm => VLLM,
        EngineKind::Sglang => SGLANG,
        EngineKind::Other => &[],
    };
    // vLLM takes underscores for dashes.
    let name = match engine {
        EngineKind::Vllm if spelled.starts_with("--") => spelled.replace('_', "-"),
        _ => spelled.to_owned(),
    };
    let look = |name: &str| {
        table
            .iter()
            .chain(STAND_IN)
            .find(|flag| flag.names.contains(&name))
    };
    if let Some(flag) = look(&name) {
        return (Some(flag), false);
    }
    let positive = name
        .strip_prefix("--no-")
        .and_then(|rest| look(&format!("--{rest}")))
        .filter(|flag| flag.arity == Arity::Switch);
    (positive, positive.is_some())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_spelling_stands_twice_and_every_flag_is_explained() {
        for table in [VLLM, SGLANG, STAND_IN] {
            let mut seen = BTreeSet::new();
            for flag in table {
                assert!(flag.meaning.ends_with('.'), "{:?}", flag.names);
                for name in flag.names {
                    assert!(name.starts_with('-'), "{name}");
                    assert!(seen.insert(name), "{name} stands twice");
                }
            }
        }
    }

    #[test]
    fn spellings_of_one_flag_are_one_flag() {
        let named = |engine, spelled| find(engine, spelled).0.map(|flag| flag.names[0]);
        assert_eq!(
            named(EngineKind::Vllm, "-tp"),
            Some("--tensor-parallel-size")
        );
        assert_eq!(
            named(EngineKind::Vllm, "--max_model_len"),
            Some("--max-model-len")
        );
        assert_eq!(named(EngineKind::Sglang, "--tp"), Some("--tp-size"));
        assert_eq!(named(EngineKind::Sglang, "--max_running_requests"), None);
        assert_eq!(named(EngineKind::Sglang, "--sim-seed"), Some("--sim-seed"));
        assert!(find(EngineKind::Vllm, "--no-enable-prefix-caching").1);
    }
}
