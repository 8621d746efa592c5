//! Which of the target's layers an engine captures for an EAGLE-3 drafter.
//!
//! The ids in a drafter's configuration are read in two ways: as the layer whose
//! *input* is captured, or as the one whose *output* is. A drafter that gets the other
//! layers than it was trained on is slow and says nothing about it.

use serde_json::Value;
use tokdyno_domain::{
    engine::EngineKind,
    launch::{FailureKind, LaunchFailure},
};

use crate::version::Version;

/// Which layers an engine captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrafterLayers {
    /// Ids as they stand in the configuration; empty where it names none.
    pub ids: Vec<u32>,
    /// Layers whose input is captured; empty where that depends on the target.
    pub captures: Vec<u32>,
    /// What is to be said of it.
    pub note: String,
}

/// What is wrong with a drafter on an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrafterCheck {
    /// It may be wrong, or not as thought; a sentence.
    Caution(String),
    /// It is wrong: launching it would measure a broken drafter.
    Failure(LaunchFailure),
}

/// Where the ids stand, which decides how vLLM reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Nested,
}

/// How sure the rule of an engine version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// One is always added.
    AlwaysOneMore,
    /// One is added if the first id is 1.
    OneMoreIfFirstIsOne,
    /// The ids are used as they are.
    AsTheyAre,
}

/// Layers that an engine captures for a drafter with this `config.json`.
///
/// # Errors
/// A sentence if the configuration cannot be read.
pub fn drafter_layers(
    config_json: &str,
    engine: EngineKind,
    version: Option<&str>,
) -> Result<DrafterLayers, String> {
    let Some((ids, place)) = ids_of(config_json)? else {
        return Ok(DrafterLayers {
            ids: Vec::new(),
            captures: Vec::new(),
            note: "The drafter's configuration names no layers. The engine captures its usual ones: 2, half of the target's layers, and the third from the end.".to_owned(),
        });
    };
    let (rule, sure) = rule_of(engine, version);
    let captures = apply(rule, &ids);
    let mut note = match rule {
        Rule::AlwaysOneMore => "This version of SGLang adds 1 to each id.".to_owned(),
        Rule::OneMoreIfFirstIsOne if ids.first() == Some(&1) => {
            "SGLang 0.5.23 adds 1 to each id because the first is 1.".to_owned()
        }
        Rule::OneMoreIfFirstIsOne => {
            "SGLang 0.5.23 uses the ids as they are because the first is not 1.".to_owned()
        }
        Rule::AsTheyAre if place == Place::Nested => "vLLM's V1 runner uses these ids as they are; its V2 runner passes ids inside eagle_config over and captures the model's usual layers.".to_owned(),
        Rule::AsTheyAre => "The ids are used as they are.".to_owned(),
    };
    if !sure {
        note.push_str(" For the engine's version this was not looked up; 0.5.8 and 0.5.9 of SGLang add 1 always, 0.5.23 only if the first id is 1.");
    }
    Ok(DrafterLayers {
        ids,
        captures,
        note,
    })
}

/// Compares the layers that an engine captures with those that the ids mean by
/// convention: a first id of 1 means *output of*, anything else *input of*.
/// `target_config_json` is the target model's configuration, where readable.
#[must_use]
pub fn check_drafter(
    config_json: &str,
    target_config_json: Option<&str>,
    engine: EngineKind,
    version: Option<&str>,
) -> Option<DrafterCheck> {
    let caution = |text: String| Some(DrafterCheck::Caution(text));
    let layers = match drafter_layers(config_json, engine, version) {
        Ok(layers) => layers,
        Err(why) => return caution(why),
    };
    let target = target_config_json.and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(text) = target
        .as_ref()
        .and_then(|target| without_hooks(target, engine, version))
    {
        return caution(text);
    }
    if layers.ids.is_empty() {
        return None;
    }
    if let Some(count) = target.as_ref().and_then(layer_count)
        && let Some(beyond) = layers.captures.iter().find(|layer| **layer >= count)
    {
        return Some(DrafterCheck::Failure(LaunchFailure::new(
            FailureKind::DrafterLayers,
            format!(
                "It would capture layer {beyond}, and the target has layers 0 to {}.",
                count.saturating_sub(1)
            ),
        )));
    }
    let meant = apply(Rule::OneMoreIfFirstIsOne, &layers.ids);
    if layers.captures == meant {
        return None;
    }
    let text = format!(
        "The drafter's ids {} mean the inputs of layers {}, and this engine captures those of {}. {}",
        list(&layers.ids),
        list(&meant),
        list(&layers.captures),
        layers.note
    );
    let (_, sure) = rule_of(engine, version);
    if engine == EngineKind::Sglang && sure {
        Some(DrafterCheck::Failure(LaunchFailure::new(
            FailureKind::DrafterLayers,
            text,
        )))
    } else {
        // How vLLM reads them depends on its runner and on who wrote the file.
        caution(text)
    }
}

fn rule_of(engine: EngineKind, version: Option<&str>) -> (Rule, bool) {
    if engine != EngineKind::Sglang {
        return (Rule::AsTheyAre, true);
    }
    match version.and_then(Version::read) {
        Some(version) if version.at_most(&[0, 5, 9]) => {
            (Rule::AlwaysOneMore, version.at_least(&[0, 5, 8]))
        }
        Some(version) => (Rule::OneMoreIfFirstIsOne, version.at_least(&[0, 5, 23])),
        None => (Rule::OneMoreIfFirstIsOne, false),
    }
}

fn apply(rule: Rule, ids: &[u32]) -> Vec<u32> {
    let more = match rule {
        Rule::AlwaysOneMore => 1,
        Rule::OneMoreIfFirstIsOne => u32::from(ids.first() == Some(&1)),
        Rule::AsTheyAre => 0,
    };
    ids.iter().map(|id| id.saturating_add(more)).collect()
}

fn ids_of(config_json: &str) -> Result<Option<(Vec<u32>, Place)>, String> {
    const NAME: &str = "eagle_aux_hidden_state_layer_ids";
    let config: Value = serde_json::from_str(config_json)
        .map_err(|error| format!("The drafter's config.json is not JSON ({error})."))?;
    let nested = config.get("eagle_config").and_then(|inner| inner.get(NAME));
    let (found, place) = match (config.get(NAME), nested) {
        (Some(ids), _) if !ids.is_null() => (ids, Place::Top),
        (_, Some(ids)) if !ids.is_null() => (ids, Place::Nested),
        _ => return Ok(None),
    };
    let ids: Option<Vec<u32>> = found.as_array().and_then(|ids| {
        ids.iter()
            .map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()))
            .collect()
    });
    match ids {
        Some(ids) if !ids.is_empty() => Ok(Some((ids, place))),
        _ => Err(format!(
            "The drafter's config.json gives {NAME}, but not as a list of layers."
        )),
    }
}

/// Layers of the target, also where the language model is a part of it.
fn layer_count(target: &Value) -> Option<u32> {
    [target.get("text_config"), Some(target)]
        .into_iter()
        .flatten()
        .find_map(|config| config.get("num_hidden_layers")?.as_u64())
        .and_then(|count| u32::try_from(count).ok())
}

/// Kimi-K2.5's wrapper class hands the capture on only in newer versions.
fn without_hooks(target: &Value, engine: EngineKind, version: Option<&str>) -> Option<String> {
    let kimi = target
        .get("architectures")?
        .as_array()?
        .iter()
        .any(|name| name.as_str() == Some("KimiK25ForConditionalGeneration"));
    let version = version.and_then(Version::read)?;
    (kimi && engine == EngineKind::Sglang && version.at_most(&[0, 5, 9])).then(|| {
        "SGLang 0.5.9 and before do not hand EAGLE-3's capture on through Kimi-K2.5's wrapper class; 0.5.23 does.".to_owned()
    })
}

fn list(layers: &[u32]) -> String {
    let texts: Vec<String> = layers.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(ids: &str) -> String {
        format!(r#"{{"eagle_config":{{"eagle_aux_hidden_state_layer_ids":{ids}}}}}"#)
    }

    fn top(ids: &str) -> String {
        format!(r#"{{"eagle_aux_hidden_state_layer_ids":{ids}}}"#)
    }

    /// Every row of the table of conventions.
    #[test]
    fn each_engine_captures_what_its_version_makes_of_the_ids() {
        let sglang = EngineKind::Sglang;
        let vllm = EngineKind::Vllm;
        let (low, high) = ("[1,29,57]", "[2,30,58]");
        let cases = [
            (sglang, "0.5.8.post1", nested(low), [2, 30, 58]),
            (sglang, "0.5.9", nested(low), [2, 30, 58]),
            (sglang, "0.5.9", nested(high), [3, 31, 59]),
            (sglang, "0.5.23", nested(low), [2, 30, 58]),
            (sglang, "0.5.23", nested(high), [2, 30, 58]),
            (vllm, "0.33.0", top(low), [1, 29, 57]),
            (vllm, "0.33.0", top(high), [2, 30, 58]),
            (vllm, "0.33.0", nested(low), [1, 29, 57]),
            (vllm, "0.33.0", nested(high), [2, 30, 58]),
        ];
        for (engine, version, config, captures) in cases {
            let layers = drafter_layers(&config, engine, Some(version)).expect("layers");
            assert_eq!(layers.captures, captures, "{engine} {version} {config}");
        }
    }

    #[test]
    fn an_id_off_by_one_is_a_failure_on_sglang_and_a_caution_on_vllm() {
        let check = |config: &str, engine, version| check_drafter(config, None, engine, version);
        let off = check(&nested("[2,30,58]"), EngineKind::Sglang, Some("0.5.9"));
        let Some(DrafterCheck::Failure(failure)) = off else {
            panic!("{off:?}");
        };
        assert_eq!(failure.kind, FailureKind::DrafterLayers);
        assert!(failure.detail.contains("[3, 31, 59]"), "{failure}");
        for config in [nested("[1,29,57]"), top("[1,29,57]")] {
            let vllm = check(&config, EngineKind::Vllm, Some("0.33.0"));
            assert!(matches!(vllm, Some(DrafterCheck::Caution(_))), "{vllm:?}");
        }
        for version in [Some("0.5.23"), None] {
            for ids in ["[1,29,57]", "[2,30,58]"] {
                assert_eq!(check(&nested(ids), EngineKind::Sglang, version), None);
            }
        }
    }

    #[test]
    fn layers_beyond_the_target_are_a_failure() {
        let target = r#"{"text_config":{"num_hidden_layers":61}}"#;
        let check = |ids| {
            check_drafter(
                &nested(ids),
                Some(target),
                EngineKind::Sglang,
                Some("0.5.23"),
            )
        };
        assert_eq!(check("[2,30,58]"), None);
        assert!(matches!(check("[2,30,61]"), Some(DrafterCheck::Failure(_))));
    }

    #[test]
    fn configurations_without_ids_or_without_sense_are_told() {
        let sglang = EngineKind::Sglang;
        let none = drafter_layers("{}", sglang, None).expect("layers");
        assert!(none.ids.is_empty() && none.note.contains("usual"));
        assert_eq!(check_drafter("{}", None, sglang, None), None);
        for bad in ["", "no", &nested("[]"), &nested("[\"a\"]"), &top("7")] {
            assert!(drafter_layers(bad, sglang, None).is_err(), "{bad}");
            assert!(matches!(
                check_drafter(bad, None, sglang, None),
                Some(DrafterCheck::Caution(_))
            ));
        }
    }

    #[test]
    fn a_wrapper_without_hooks_is_told_by_version() {
        let target = r#"{"architectures":["KimiK25ForConditionalGeneration"]}"#;
        let check = |version| {
            check_drafter(
                &nested("[1,29,57]"),
                Some(target),
                EngineKind::Sglang,
                Some(version),
            )
        };
        assert!(matches!(check("0.5.9"), Some(DrafterCheck::Caution(_))));
        assert_eq!(check("0.5.23"), None);
    }
}
