//! What experiments ask of flags that they vary.

use tokdyno_domain::{
    engine::EngineKind,
    experiment::{Flags, PlainFlags, Takes},
};

use super::flags::{Arity, Flag, find};

/// The flags of vLLM and SGLang as far as they are known here: several names of one
/// flag are one flag, and a switch takes no value. Flags that are not known, and all
/// of other engines, go by their spelling alone ([`PlainFlags`]).
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownFlags;

impl Flags for KnownFlags {
    fn usual(&self, engine: EngineKind, spelled: &str) -> String {
        known(engine, spelled).map_or_else(
            || PlainFlags.usual(engine, spelled),
            |flag| flag.names[0].to_owned(),
        )
    }

    fn takes(&self, engine: EngineKind, spelled: &str) -> Takes {
        match known(engine, spelled).map(|flag| flag.arity) {
            Some(Arity::Switch) => Takes::Nothing,
            Some(Arity::One) => Takes::One,
            Some(Arity::Many) => Takes::Many,
            None => PlainFlags.takes(engine, spelled),
        }
    }
}

fn known(engine: EngineKind, spelled: &str) -> Option<&'static Flag> {
    match engine {
        EngineKind::Vllm | EngineKind::Sglang => find(engine, spelled).0,
        EngineKind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        experiment::{Change, apply_with, changes_between_with},
        profile::{Activation, Parameters, ProfileSpec, READY_TIMEOUT_S},
    };

    use super::*;

    fn profile(engine: EngineKind, line: &str) -> ProfileSpec {
        ProfileSpec {
            engine,
            program: "serve".to_owned(),
            arguments: line.split_whitespace().map(str::to_owned).collect(),
            environment: Vec::new(),
            parameters: Parameters {
                model: "the-model".to_owned(),
                drafter: None,
                tensor_parallel: 8,
                port: 8000,
                served_name: String::new(),
            },
            directory: None,
            activation: Activation::None,
            ready_timeout_s: READY_TIMEOUT_S,
            notes: String::new(),
        }
    }

    fn set(flag: &str, value: &str) -> Change {
        Change::SetArgument {
            flag: flag.to_owned(),
            value: Some(value.to_owned()),
        }
    }

    #[test]
    fn names_of_one_flag_are_one_flag() {
        for (engine, spelled, usual) in [
            (EngineKind::Sglang, "--tp", "--tp-size"),
            (EngineKind::Vllm, "-tp", "--tensor-parallel-size"),
            (EngineKind::Vllm, "--max_model_len", "--max-model-len"),
            (EngineKind::Sglang, "--not_known", "--not-known"),
            (EngineKind::Other, "--tp", "--tp"),
        ] {
            assert_eq!(KnownFlags.usual(engine, spelled), usual);
        }
        let changed = apply_with(
            &profile(EngineKind::Sglang, "--tp 8 --x y"),
            &[set("--tp-size", "4")],
            &KnownFlags,
        );
        let changed = changed.expect("it can be made");
        assert_eq!(
            changed.arguments.join(" "),
            "--tp 4 --x y",
            "place and spelling stay"
        );
    }

    #[test]
    fn a_switch_leaves_the_word_behind_it_alone() {
        let vllm = EngineKind::Vllm;
        assert_eq!(
            KnownFlags.takes(vllm, "--enable-prefix-caching"),
            Takes::Nothing
        );
        assert_eq!(KnownFlags.takes(vllm, "--max-model-len"), Takes::One);
        assert_eq!(KnownFlags.takes(vllm, "--not-known"), Takes::Many);
        assert_eq!(
            KnownFlags.takes(EngineKind::Other, "--enable-prefix-caching"),
            Takes::Many
        );
        let base = profile(vllm, "--enable-prefix-caching the-model");
        let without = Change::RemoveArgument {
            flag: "--enable-prefix-caching".to_owned(),
        };
        let changed = apply_with(&base, &[without], &KnownFlags).expect("it can be made");
        assert_eq!(changed.arguments, ["the-model"]);
        assert!(
            apply_with(&base, &[set("--enable-prefix-caching", "yes")], &KnownFlags).is_err(),
            "a switch has no value"
        );
    }

    #[test]
    fn another_spelling_is_no_difference() {
        let from = profile(EngineKind::Sglang, "--tp 8 --mem-fraction-static 0.8");
        let to = profile(EngineKind::Sglang, "--mem-fraction-static 0.9 --tp-size=8");
        assert_eq!(
            changes_between_with(&from, &to, &KnownFlags),
            Ok(vec![set("--mem-fraction-static", "0.9")])
        );
    }
}
