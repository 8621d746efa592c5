//! An engine's resolved arguments as flat text, the form in which configurations
//! are compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    line::one_line,
    mask::{MASK, is_secret_name, masked_text},
};

/// Most settings that are kept.
pub(crate) const MOST_SETTINGS: usize = 400;
/// Most characters of one value.
const LONGEST_VALUE: usize = 500;
/// Objects are entered to this depth.
const DEEPEST: usize = 4;

/// Kept first when there are more settings than fit: what tuning turns on.
const FIRST: [&str; 22] = [
    "env.",
    "launch_command",
    "model_path",
    "served_model_name",
    "tp_size",
    "dp_size",
    "pp_size",
    "ep_size",
    "attention_backend",
    "sampling_backend",
    "speculative_",
    "cuda_graph",
    "disable_",
    "enable_",
    "quantization",
    "dtype",
    "kv_cache_dtype",
    "mem_fraction",
    "max_",
    "chunked_prefill",
    "schedule",
    "num_continuous",
];

/// Collects settings within the bounds.
pub(crate) struct Settings<'a> {
    found: BTreeMap<String, String>,
    known_key: Option<&'a str>,
}

impl<'a> Settings<'a> {
    /// Starts empty; `known_key` is masked wherever it turns up.
    pub(crate) fn new(known_key: Option<&'a str>) -> Self {
        Self {
            found: BTreeMap::new(),
            known_key,
        }
    }

    /// Takes over what a server-info reply says, whichever engine's it is.
    pub(crate) fn add_server_info(&mut self, info: &Map<String, Value>) {
        for (name, value) in info {
            match name.as_str() {
                // Repeats the arguments, and adds what changes from second to second.
                "internal_states" => self.add_own_environment(value),
                // Says how it went, not how it is set.
                "startup_time" | "status" | "version" | "kv_events" => {}
                "vllm_config" => self.add("", value, 0),
                "vllm_env" | "env_vars" | "env" => self.add("env", value, 0),
                "system_env" => self.add_environment_lines(value),
                // Bookkeeping of the engine's own.
                name if name.starts_with('_') => {}
                name => self.add(name, value, 0),
            }
        }
    }

    /// The settings, and how many did not fit.
    pub(crate) fn finish(self) -> (BTreeMap<String, String>, usize) {
        let left_out = self.found.len().saturating_sub(MOST_SETTINGS);
        if left_out == 0 {
            return (self.found, 0);
        }
        let mut ranked: Vec<(String, String)> = self.found.into_iter().collect();
        ranked.sort_by_cached_key(|(name, _)| {
            FIRST
                .iter()
                .position(|first| name.starts_with(first))
                .unwrap_or(FIRST.len())
        });
        ranked.truncate(MOST_SETTINGS);
        (ranked.into_iter().collect(), left_out)
    }

    fn add(&mut self, name: &str, value: &Value, depth: usize) {
        match value {
            // Unset. Left out, so that what was set stands out.
            Value::Null => {}
            Value::Bool(flag) => self.insert(name, flag.to_string()),
            Value::Number(number) => self.keep(name, &number.to_string()),
            Value::String(text) => self.keep(name, text),
            Value::Object(inner) if depth < DEEPEST => {
                for (key, value) in inner {
                    let path = if name.is_empty() {
                        key.clone()
                    } else {
                        format!("{name}.{key}")
                    };
                    self.add(&path, value, depth + 1);
                }
            }
            Value::Array(items)
                if !items.is_empty()
                    && !items.iter().any(|item| item.is_object() || item.is_array()) =>
            {
                self.keep(name, &value.to_string());
            }
            Value::Object(_) | Value::Array(_) => {}
        }
    }

    /// SGLang, when told to expose them, lists its variables per rank; the first
    /// rank stands for all.
    fn add_own_environment(&mut self, states: &Value) {
        if let Some(variables) = states.get(0).and_then(|state| state.get("env_vars")) {
            self.add("env", variables, 0);
        }
    }

    /// vLLM reports variables as lines `NAME=value` in one text.
    fn add_environment_lines(&mut self, system: &Value) {
        let Some(lines) = system.get("env_vars").and_then(Value::as_str) else {
            return;
        };
        for line in lines.lines() {
            if let Some((name, value)) = line.split_once('=') {
                self.keep(&format!("env.{}", name.trim()), value.trim());
            }
        }
    }

    fn keep(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        if is_secret_name(name) {
            self.insert(name, MASK.to_owned());
        } else {
            // Masked before it is cut: half a key would not look like one.
            let value = one_line(&masked_text(value, self.known_key), LONGEST_VALUE);
            self.insert(name, value);
        }
    }

    fn insert(&mut self, name: &str, value: String) {
        // A reply of megabytes of distinct names must not become a map of them.
        if self.found.len() < MOST_SETTINGS * 10 {
            let name = masked_text(&one_line(name, 120), self.known_key);
            if !name.is_empty() {
                self.found.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(info: &Value) -> (BTreeMap<String, String>, usize) {
        let mut settings = Settings::new(Some("the-given-key"));
        settings.add_server_info(info.as_object().expect("an object"));
        settings.finish()
    }

    #[test]
    fn nested_values_are_flattened_and_secrets_masked() {
        let (found, left_out) = settings(&json!({
            "tp_size": 8,
            "disable_radix_cache": false,
            "api_key": "abc",
            "context_length": null,
            "note": "uses the-given-key here",
            "cuda_graph_config": {"decode": {"max_bs": 32, "bs": [1, 2, 4], "token": "t"}},
            "internal_states": [{"tp_size": 8, "last_gen_throughput": 3.5, "env_vars": {"SGLANG_X": "1"}}],
            "encoder_urls": [],
        }));
        assert_eq!(left_out, 0);
        let expected: BTreeMap<String, String> = [
            ("api_key", "•••"),
            ("cuda_graph_config.decode.bs", "[1,2,4]"),
            ("cuda_graph_config.decode.max_bs", "32"),
            ("cuda_graph_config.decode.token", "•••"),
            ("disable_radix_cache", "false"),
            ("env.SGLANG_X", "1"),
            ("note", "uses ••• here"),
            ("tp_size", "8"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_environment_that_vllm_reports_is_read() {
        let (found, _) = settings(&json!({
            "vllm_config": {"scheduler_config": {"max_num_seqs": 256}},
            "vllm_env": {"VLLM_API_KEY": "k", "VLLM_USE_V1": true},
            "system_env": {"env_vars": "NCCL_PROTO=LL\nNCCL_ALGO=Ring\n", "cuda": "13"},
        }));
        assert_eq!(found["scheduler_config.max_num_seqs"], "256");
        assert_eq!(found["env.VLLM_API_KEY"], MASK);
        assert_eq!(found["env.VLLM_USE_V1"], "true");
        assert_eq!(found["env.NCCL_PROTO"], "LL");
        assert_eq!(found["env.NCCL_ALGO"], "Ring");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_the_important_stays() {
        let mut info: Map<String, Value> = (0..1000)
            .map(|n| (format!("a{n:04}"), json!("x".repeat(900))))
            .collect();
        info.insert("tp_size".to_owned(), json!(8));
        let (found, left_out) = settings(&Value::Object(info));
        assert_eq!(found.len(), MOST_SETTINGS);
        assert_eq!(left_out, 601);
        assert_eq!(found["tp_size"], "8");
        assert!(
            found
                .values()
                .all(|value| value.chars().count() <= LONGEST_VALUE)
        );
    }
}
