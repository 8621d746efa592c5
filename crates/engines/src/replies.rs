//! What the replies say. Every field may be missing and any may be new: versions of
//! the engines differ.

use serde_json::{Map, Value};
use tokdyno_domain::engine::{EngineKind, SIMULATED_MARKER};

/// The list of models.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Models {
    /// Names, in the server's order.
    pub(crate) names: Vec<String>,
    /// Who owns the first of them, in the server's words.
    pub(crate) owner: Option<String>,
    /// Longest context of the first of them, in tokens.
    pub(crate) max_model_len: Option<u32>,
    /// The stand-in's marker is in it.
    pub(crate) simulated: bool,
}

impl Models {
    /// Reads a `/v1/models` reply; none if it is no list of models.
    pub(crate) fn read(reply: &Value) -> Option<Self> {
        let list = reply.get("data").unwrap_or(reply).as_array()?;
        let named: Vec<(&str, &Value)> = list
            .iter()
            .filter_map(|model| Some((model.get("id")?.as_str()?, model)))
            .collect();
        if named.is_empty() && !list.is_empty() {
            return None;
        }
        let first = named.first().map(|(_, model)| *model);
        Some(Self {
            names: named
                .iter()
                .take(200)
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            owner: first
                .and_then(|model| model.get("owned_by")?.as_str())
                .map(str::to_owned),
            max_model_len: first.and_then(|model| whole(model.get("max_model_len"))),
            simulated: has_marker(reply),
        })
    }
}

/// The version in a `/version` or server-info reply.
pub(crate) fn version(reply: &Value) -> Option<String> {
    let text = reply.get("version")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.chars().take(60).collect())
}

/// Whose server info is this? Told by fields only the one engine has.
pub(crate) fn kind_of_server_info(info: &Map<String, Value>) -> Option<EngineKind> {
    if info.contains_key("vllm_config") || info.contains_key("vllm_env") {
        Some(EngineKind::Vllm)
    } else if info.contains_key("internal_states")
        || (info.contains_key("tp_size") && info.contains_key("model_path"))
    {
        Some(EngineKind::Sglang)
    } else {
        None
    }
}

/// Whose name stands behind the models?
pub(crate) fn kind_of_owner(owner: &str) -> EngineKind {
    match owner.to_ascii_lowercase().as_str() {
        "vllm" => EngineKind::Vllm,
        "sglang" => EngineKind::Sglang,
        _ => EngineKind::Other,
    }
}

/// Longest context in tokens, where the server info tells.
pub(crate) fn context_length(info: &Map<String, Value>) -> Option<u32> {
    whole(info.get("context_length")).or_else(|| {
        whole(
            info.get("vllm_config")?
                .pointer("/model_config/max_model_len"),
        )
    })
}

/// Is the stand-in's marker a key of this object, and not switched off?
pub(crate) fn has_marker(reply: &Value) -> bool {
    reply
        .get(SIMULATED_MARKER)
        .is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
}

fn whole(value: Option<&Value>) -> Option<u32> {
    value?
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_and_extra_fields_do_no_harm() {
        let models = Models::read(&json!({"data": [{"id": "a", "new": 1}, {"no": "id"}]}))
            .expect("a list of models");
        assert_eq!(models.names, ["a"]);
        assert_eq!((models.owner, models.max_model_len), (None, None));
        assert!(!models.simulated);
    }

    #[test]
    fn what_is_no_list_of_models_is_told_from_an_empty_one() {
        let empty = Models::read(&json!({"data": []})).expect("a list");
        assert!(empty.names.is_empty());
        for other in [json!({"error": "x"}), json!(3), json!({"data": [1, 2]})] {
            assert_eq!(Models::read(&other), None, "{other}");
        }
    }

    #[test]
    fn the_marker_counts_unless_it_is_off() {
        assert!(has_marker(&json!({SIMULATED_MARKER: true})));
        assert!(has_marker(&json!({SIMULATED_MARKER: "1"})));
        assert!(!has_marker(&json!({SIMULATED_MARKER: false})));
        assert!(!has_marker(&json!([])));
    }

    proptest! {
        #[test]
        fn any_json_is_survived(text in r#"[\[\]{}",:a-z0-9\.]{0,60}"#) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                if let Some(models) = Models::read(&value) {
                    prop_assert!(models.names.len() <= 200);
                }
                version(&value);
                if let Some(object) = value.as_object() {
                    kind_of_server_info(object);
                }
            }
        }
    }
}
