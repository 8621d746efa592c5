//! What the engine says of itself: models, server info, load.

use serde_json::{Map, Value, json};
use tokdyno_domain::engine::SIMULATED_MARKER;

use crate::{
    config::{Engine, SimConfig},
    stats::{CACHE_TOKENS, Stats},
};

/// `/v1/models`: one entry for each name.
pub(crate) fn models(config: &SimConfig, created: u64) -> Value {
    let data: Vec<Value> = config
        .served_names
        .iter()
        .map(|name| model(config, name, created))
        .collect();
    json!({ "object": "list", "data": data, SIMULATED_MARKER: true })
}

/// One entry of `/v1/models`.
pub(crate) fn model(config: &SimConfig, name: &str, created: u64) -> Value {
    json!({
        "id": name, "object": "model", "created": created, "owned_by": config.engine.word(),
        "root": config.model_path, "parent": null, "max_model_len": config.max_model_len,
    })
}

/// SGLang's `/model_info`.
pub(crate) fn model_info(config: &SimConfig) -> Value {
    json!({
        "model_path": config.model_path, "served_model_name": config.name(),
        "tokenizer_path": config.model_path, "is_generation": true,
        "preferred_sampling_params": null, "weight_version": "default", "load_format": "auto",
        "reasoning_parser": config.resolved.get("reasoning_parser"),
        "tool_call_parser": config.resolved.get("tool_call_parser"),
        "disaggregation_mode": "null", "has_image_understanding": false,
        "has_audio_understanding": false, "model_type": "kimi_k25",
        "architectures": ["KimiK25ForConditionalGeneration"], SIMULATED_MARKER: true,
    })
}

fn internal_state(config: &SimConfig, stats: &Stats) -> Map<String, Value> {
    let mut state = config.resolved.clone();
    state.insert("last_gen_throughput".into(), json!(stats.throughput));
    state.insert(
        "memory_usage".into(),
        json!({ "weight": 73.1, "kvcache": 9.8, "token_capacity": CACHE_TOKENS, "graph": {} }),
    );
    state.insert(
        "effective_max_running_requests_per_dp".into(),
        json!(config.max_running),
    );
    state.insert(
        "world_size".into(),
        config.resolved.get("tp_size").cloned().unwrap_or(json!(1)),
    );
    if let Some(length) = stats.accept_length {
        state.insert("avg_spec_accept_length".into(), json!(length));
    }
    state
}

/// SGLang's `/server_info`: all resolved arguments, flat, and more.
pub(crate) fn sglang_server_info(config: &SimConfig, stats: &Stats, status: &str) -> Value {
    let mut info = config.resolved.clone();
    info.insert("launch_command".into(), json!(config.launch_command));
    info.insert("status".into(), json!(status));
    info.insert("max_total_num_tokens".into(), json!(CACHE_TOKENS));
    info.insert(
        "max_req_input_len".into(),
        json!(config.max_model_len.saturating_sub(6)),
    );
    info.insert("kv_events".into(), Value::Null);
    info.insert("version".into(), json!(config.version));
    info.insert("frontend".into(), json!("python"));
    info.insert(
        "internal_states".into(),
        json!([internal_state(config, stats)]),
    );
    info.insert(SIMULATED_MARKER.into(), json!(true));
    info.insert("sim_speed".into(), json!(config.sim.speed));
    Value::Object(info)
}

/// vLLM's `/server_info` (developers' mode), as text or as objects.
pub(crate) fn vllm_server_info(config: &SimConfig, as_json: bool) -> Value {
    let given = |key: &str, default: Value| config.resolved.get(key).cloned().unwrap_or(default);
    let mut settings = json!({
        "model_config": {
            "model": config.model_path, "served_model_name": config.served_names,
            "max_model_len": config.max_model_len, "trust_remote_code": given("trust_remote_code", json!(false)),
            "enforce_eager": config.eager,
        },
        "parallel_config": {
            "tensor_parallel_size": given("tensor_parallel_size", json!(1)),
            "pipeline_parallel_size": given("pipeline_parallel_size", json!(1)),
            "data_parallel_size": given("data_parallel_size", json!(1)),
            "disable_custom_all_reduce": given("disable_custom_all_reduce", json!(false)),
        },
        "scheduler_config": {
            "max_num_seqs": config.max_running, "stream_interval": config.stream_interval,
            "max_num_batched_tokens": given("max_num_batched_tokens", json!(8192)),
        },
        "cache_config": {
            "gpu_memory_utilization": given("gpu_memory_utilization", json!(0.92)),
            "enable_prefix_caching": config.prefix_cache,
        },
        "attention_config": { "backend": given("attention_backend", Value::Null) },
        "speculative_config": given("speculative_config", Value::Null),
        "compilation_config": given("compilation_config", json!({})),
    });
    for section in settings
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        for (name, value) in &config.sim.resolve {
            if let Some(reported) = section.get_mut(name) {
                *reported = value.clone();
            }
        }
    }
    let pick = |prefix: &str| -> Map<String, Value> {
        config
            .env
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect()
    };
    let lines: Vec<String> = config
        .env
        .iter()
        .filter(|(name, _)| !name.starts_with("VLLM_") && !name.starts_with("SGLANG_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    json!({
        "vllm_config": if as_json { settings } else { json!(settings.to_string()) },
        "vllm_env": pick("VLLM_"),
        "system_env": { "env_vars": lines.join("\n") },
        SIMULATED_MARKER: true,
        "sim_speed": config.sim.speed,
    })
}

/// SGLang's `/v1/loads`.
pub(crate) fn loads(config: &SimConfig, stats: &Stats, unix_seconds: f64) -> Value {
    let mut load = json!({
        "timestamp": unix_seconds, "dp_rank": 0,
        "num_running_reqs": stats.running, "num_waiting_reqs": stats.waiting,
        "num_used_tokens": stats.running * 150, "num_total_tokens": stats.running * 150,
        "max_total_num_tokens": CACHE_TOKENS, "max_running_requests": config.max_running,
        "token_usage": f64::from(stats.running) * 150.0 / CACHE_TOKENS as f64,
        "gen_throughput": stats.throughput, "cache_hit_rate": 0.0,
        "utilization": f64::from(stats.running) / f64::from(config.max_running),
        "memory": { "weight_gb": 73.1, "kv_cache_gb": 9.8, "graph_gb": 0.0, "token_capacity": CACHE_TOKENS },
        "queues": { "waiting": stats.waiting, "grammar": 0, "paused": 0, "retracted": 0 },
    });
    if let (Some(length), Some(rate)) = (stats.accept_length, stats.accept_rate(config)) {
        load["speculative"] = json!({ "accept_length": length, "accept_rate": rate });
    }
    json!({
        "version": config.version, "accelerator": null, "num_accelerators": 1,
        "loads": [load], SIMULATED_MARKER: true,
    })
}

/// vLLM's `/version`.
pub(crate) fn version(config: &SimConfig) -> Value {
    json!({ "version": config.version, SIMULATED_MARKER: true })
}

/// Is there a `/version`, a `/server_info` and so on on this engine?
pub(crate) fn serves(config: &SimConfig, path: &str) -> bool {
    let (vllm, dev) = (config.engine == Engine::Vllm, config.dev_mode);
    match path {
        "/version" | "/load" => vllm,
        "/server_info" => !vllm || dev,
        "/reset_prefix_cache" => vllm && dev,
        "/metrics" => config.metrics,
        "/health_generate" | "/ready" | "/model_info" | "/get_model_info" | "/get_server_info"
        | "/v1/loads" | "/flush_cache" => !vllm,
        "/health" | "/v1/models" | "/v1/completions" | "/v1/chat/completions" => true,
        _ => !vllm && path.starts_with("/v1/models/"),
    }
}
