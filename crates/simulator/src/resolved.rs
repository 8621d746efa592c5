//! The arguments as asked and as resolved: what server info reports.

use serde_json::{Map, Value, json};

use crate::{
    config::{Engine, SimConfig},
    flags::{self, Parsed},
};

/// The command line with keys masked: it is shown to whoever asks.
pub(crate) fn masked_command<S: AsRef<str>>(args: &[S]) -> String {
    let mut mask_next = false;
    let mut words = Vec::with_capacity(args.len());
    for word in args.iter().map(AsRef::as_ref) {
        let secret = |flag: &str| flag.contains("api-key") || flag.contains("api_key");
        if std::mem::take(&mut mask_next) {
            words.push("***".to_owned());
        } else if let Some((flag, _)) = word.split_once('=').filter(|(flag, _)| secret(flag)) {
            words.push(format!("{flag}=***"));
        } else {
            mask_next = word.starts_with('-') && secret(word);
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

/// The arguments as given, by name, keys masked and the stand-in's own left out.
pub(crate) fn asked(parsed: &Parsed) -> Map<String, Value> {
    let mut asked = Map::new();
    for (name, values) in &parsed.values {
        if name.starts_with("sim-") {
            continue;
        }
        let value = match (name.contains("api-key"), values.as_slice()) {
            (true, _) => json!("***"),
            (false, []) => Value::Bool(true),
            (false, [value]) => typed(value),
            (false, values) => values.iter().map(|value| typed(value)).collect(),
        };
        asked.insert(name.replace('-', "_"), value);
    }
    for name in &parsed.off {
        asked.insert(name.replace('-', "_"), Value::Bool(false));
    }
    asked
}

/// All arguments after defaults and the engine's own rules, flat.
pub(crate) fn all(config: &SimConfig, parsed: &Parsed) -> Map<String, Value> {
    let mut all = match config.engine {
        Engine::Sglang => flags::sglang_defaults(),
        Engine::Vllm => Map::new(),
    };
    for (name, values) in &parsed.values {
        if name.starts_with("sim-") || name.contains("api-key") {
            continue;
        }
        let key = name.replace('-', "_");
        let many = matches!(all.get(&key), Some(Value::Array(_))) || values.len() > 1;
        let value = match values.last() {
            None => Value::Bool(true),
            Some(_) if many => values.iter().map(|value| typed(value)).collect(),
            Some(value) => typed(value),
        };
        all.insert(key, value);
    }
    for name in &parsed.off {
        all.insert(name.replace('-', "_"), Value::Bool(false));
    }
    if config.engine == Engine::Sglang {
        sglang(config, &mut all);
    }
    for (name, value) in &config.sim.resolve {
        all.insert(name.clone(), value.clone());
    }
    all
}

fn sglang(config: &SimConfig, all: &mut Map<String, Value>) {
    all.insert("model_path".into(), json!(config.model_path));
    if all.get("tokenizer_path").is_none_or(Value::is_null) {
        all.insert("tokenizer_path".into(), json!(config.model_path));
    }
    all.insert("served_model_name".into(), json!(config.name()));
    all.insert("host".into(), json!(config.host));
    all.insert("port".into(), json!(config.port));
    all.insert("max_running_requests".into(), json!(config.max_running));
    if all.get("enable_deterministic_inference") == Some(&Value::Bool(true))
        && config.tensor_parallel > 1
    {
        all.insert("disable_custom_all_reduce".into(), Value::Bool(true));
    }
    if let Some(speculation) = config.speculation {
        for (key, value) in [
            ("speculative_num_steps", speculation.drafted),
            ("speculative_eagle_topk", 1),
            ("speculative_num_draft_tokens", speculation.drafted + 1),
        ] {
            if all.get(key).is_none_or(Value::is_null) || key.ends_with("draft_tokens") {
                all.insert(key.into(), json!(value));
            }
        }
    }
}

/// A number, truth value or object where the text is one, else the text.
pub(crate) fn typed(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Object(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{sglang, vllm};

    #[test]
    fn an_argument_can_be_resolved_otherwise_than_asked() {
        let config = sglang(&[
            "--attention-backend",
            "triton",
            "--max-running-requests",
            "128",
            "--sim-resolve",
            "attention-backend=fa3",
            "--sim-resolve=max_running_requests=32",
        ]);
        assert_eq!(config.resolved["attention_backend"], "fa3");
        assert_eq!(config.resolved["max_running_requests"], 32);
        assert_eq!(config.max_running, 32, "the cap is kept, not only reported");
        assert_eq!(config.asked["attention_backend"], "triton");
        assert_eq!(config.asked["max_running_requests"], 128);
        assert!(!config.asked.contains_key("sim_resolve"));
    }

    #[test]
    fn what_was_asked_shows_no_key() {
        let config = vllm(&[
            "--api-key",
            "secret",
            "--no-enable-prefix-caching",
            "-tp",
            "8",
        ]);
        assert_eq!(
            Value::Object(config.asked),
            json!({ "api_key": "***", "enable_prefix_caching": false, "tensor_parallel_size": 8 })
        );
    }
}
