//! The live stand-in, over real sockets on loopback.

use std::{collections::BTreeMap, time::Duration};

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokdyno_domain::engine::SIMULATED_MARKER;
use tokdyno_simulator::{Engine, SimConfig, Simulator};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const FAST: [&str; 6] = ["--port", "0", "--sim-ttft-ms", "2", "--sim-step-ms", "1"];

async fn start(engine: Engine, flags: &[&str], env: &[(&str, &str)]) -> Simulator {
    let env: BTreeMap<String, String> = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let config = SimConfig::parse(engine, flags, env).expect("a configuration");
    Simulator::spawn(config).await.expect("a stand-in")
}

async fn fast(engine: Engine, flags: &[&str]) -> Simulator {
    start(engine, &[&FAST[..], flags].concat(), &[]).await
}

fn client() -> Client {
    // A second installation in the same process is refused, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .timeout(Duration::from_secs(60))
        .build()
        .expect("a client")
}

fn marked(response: &Response) {
    let marker = response.headers().get(SIMULATED_MARKER);
    assert_eq!(marker.expect("the marker"), "1", "{response:?}");
}

async fn get(simulator: &Simulator, path: &str) -> Response {
    let response = client()
        .get(format!("{}{path}", simulator.url()))
        .send()
        .await
        .expect("a reply");
    marked(&response);
    response
}

async fn get_json(simulator: &Simulator, path: &str) -> Value {
    let response = get(simulator, path).await;
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.expect("JSON")
}

async fn post(simulator: &Simulator, path: &str, body: &Value) -> Response {
    let response = client()
        .post(format!("{}{path}", simulator.url()))
        .json(body)
        .send()
        .await
        .expect("a reply");
    marked(&response);
    response
}

/// The data of a stream's events, and whether it ended as HTTP says it should.
async fn events(response: Response) -> (Vec<String>, bool) {
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().expect("text");
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    let mut response = response;
    let mut bytes = Vec::new();
    let whole = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let text = String::from_utf8(bytes).expect("UTF-8");
    let data = text
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .map(|event| event.strip_prefix("data: ").expect("data").to_owned())
        .collect();
    (data, whole)
}

fn parsed(events: &[String]) -> Vec<Value> {
    events
        .iter()
        .filter(|event| *event != "[DONE]")
        .map(|event| serde_json::from_str(event).expect("JSON"))
        .collect()
}

fn completion(tokens: u32, options: &Value) -> Value {
    json!({
        "model": "kimi-k2.5-int4", "prompt": "What are the main causes of rain?",
        "max_tokens": tokens, "ignore_eos": true, "stream": true, "stream_options": options,
        "temperature": 0
    })
}

fn chat(tokens: u32, options: &Value) -> Value {
    json!({
        "model": "kimi-k2.5-int4", "messages": [{ "role": "user", "content": "Hello there" }],
        "max_completion_tokens": tokens, "ignore_eos": true, "stream": true, "stream_options": options
    })
}

fn both() -> Value {
    json!({ "include_usage": true, "continuous_usage_stats": true })
}

#[tokio::test]
async fn a_vllm_chat_stream_has_vllms_shape() {
    let simulator = fast(Engine::Vllm, &[]).await;
    let body = chat(4, &json!({ "include_usage": true }));
    let (data, whole) = events(post(&simulator, "/v1/chat/completions", &body).await).await;
    assert!(whole);
    assert_eq!(data.last().expect("events"), "[DONE]");
    let chunks = parsed(&data);
    assert_eq!(chunks.len(), 6, "role, four tokens, usage: {data:?}");
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({ "role": "assistant", "content": "" })
    );
    for chunk in &chunks[1..5] {
        let delta = chunk["choices"][0]["delta"].as_object().expect("a delta");
        assert_eq!(delta.keys().collect::<Vec<_>>(), ["content"]);
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert!(chunk.get("usage").is_none());
    }
    assert_eq!(chunks[3]["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(chunks[4]["choices"][0]["finish_reason"], "length");
    assert_eq!(chunks[5]["choices"], json!([]));
    assert_eq!(chunks[5]["usage"]["completion_tokens"], 4);
}

#[tokio::test]
async fn an_sglang_chat_stream_has_sglangs_shape() {
    let simulator = fast(Engine::Sglang, &[]).await;
    let (data, _) = events(post(&simulator, "/v1/chat/completions", &chat(4, &both())).await).await;
    let chunks = parsed(&data);
    assert_eq!(chunks.len(), 7, "role, four tokens, end, usage: {data:?}");
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({ "reasoning_content": null, "role": "assistant", "content": "" })
    );
    for (index, chunk) in chunks[1..5].iter().enumerate() {
        assert_eq!(
            chunk["choices"][0]["delta"]["reasoning_content"],
            Value::Null
        );
        assert_eq!(chunk["choices"][0]["matched_stop"], Value::Null);
        assert_eq!(chunk["usage"]["completion_tokens"], index + 1);
    }
    assert_eq!(
        chunks[5]["choices"][0]["delta"],
        json!({ "reasoning_content": null })
    );
    assert_eq!(chunks[5]["choices"][0]["finish_reason"], "length");
    assert_eq!(chunks[6]["usage"]["completion_tokens"], 4);
}

#[tokio::test]
async fn running_usage_follows_each_engines_rule() {
    let only_continuous = json!({ "continuous_usage_stats": true });
    let vllm = fast(Engine::Vllm, &[]).await;
    let (data, _) =
        events(post(&vllm, "/v1/completions", &completion(3, &only_continuous)).await).await;
    assert!(
        parsed(&data)
            .iter()
            .all(|chunk| chunk.get("usage").is_none())
    );
    let (data, _) = events(post(&vllm, "/v1/completions", &completion(3, &both())).await).await;
    let counts: Vec<u64> = parsed(&data)
        .iter()
        .map(|chunk| {
            chunk["usage"]["completion_tokens"]
                .as_u64()
                .expect("a count")
        })
        .collect();
    assert_eq!(counts, [1, 2, 3, 3]);

    let sglang = fast(Engine::Sglang, &[]).await;
    let (data, _) =
        events(post(&sglang, "/v1/completions", &completion(3, &only_continuous)).await).await;
    let chunks = parsed(&data);
    assert_eq!(chunks.len(), 3, "no usage chunk was asked for");
    assert_eq!(chunks[2]["usage"]["completion_tokens"], 3);
    let (data, _) =
        events(post(&sglang, "/v1/completions", &completion(3, &json!({}))).await).await;
    assert!(parsed(&data).iter().all(|chunk| chunk["usage"].is_null()));
    assert!(data[0].contains("\"usage\":null"));
}

#[tokio::test]
async fn whole_replies_carry_the_same_counts() {
    for engine in [Engine::Vllm, Engine::Sglang] {
        let simulator = fast(engine, &[]).await;
        let mut body = completion(5, &Value::Null);
        body["stream"] = json!(false);
        let reply: Value = post(&simulator, "/v1/completions", &body)
            .await
            .json()
            .await
            .expect("JSON");
        assert_eq!(reply["usage"]["completion_tokens"], 5);
        assert_eq!(reply["choices"][0]["finish_reason"], "length");
        assert_eq!(
            reply["choices"][0]["text"]
                .as_str()
                .expect("text")
                .split_whitespace()
                .count(),
            5
        );
        let mut body = chat(5, &Value::Null);
        body["stream"] = json!(false);
        let reply: Value = post(&simulator, "/v1/chat/completions", &body)
            .await
            .json()
            .await
            .expect("JSON");
        assert_eq!(reply["choices"][0]["message"]["role"], "assistant");
    }
}

#[tokio::test]
async fn reasoning_comes_in_the_engines_own_field() {
    for (engine, field) in [
        (Engine::Vllm, "reasoning"),
        (Engine::Sglang, "reasoning_content"),
    ] {
        let simulator = fast(engine, &["--reasoning-parser", "kimi_k2"]).await;
        let (data, _) =
            events(post(&simulator, "/v1/chat/completions", &chat(8, &Value::Null)).await).await;
        let deltas: Vec<Value> = parsed(&data)
            .iter()
            .filter_map(|chunk| {
                chunk["choices"]
                    .get(0)
                    .map(|choice| choice["delta"].clone())
            })
            .collect();
        assert_eq!(
            deltas
                .iter()
                .filter(|delta| delta[field].is_string())
                .count(),
            6
        );
        let mut body = chat(8, &Value::Null);
        body["chat_template_kwargs"] = json!({ "thinking": false });
        let (data, _) = events(post(&simulator, "/v1/chat/completions", &body).await).await;
        assert!(
            parsed(&data)
                .iter()
                .all(|chunk| !chunk["choices"][0]["delta"][field].is_string())
        );
    }
}

#[tokio::test]
async fn an_unknown_model_is_refused_by_vllm_and_served_by_sglang() {
    let mut body = completion(2, &Value::Null);
    body["model"] = json!("nope");
    let vllm = fast(Engine::Vllm, &[]).await;
    let reply = post(&vllm, "/v1/completions", &body).await;
    assert_eq!(reply.status(), StatusCode::NOT_FOUND);
    let reply: Value = reply.json().await.expect("JSON");
    assert_eq!(reply["error"]["type"], "NotFoundError");
    assert_eq!(reply["error"]["code"], 404);
    let sglang = fast(Engine::Sglang, &[]).await;
    let (data, _) = events(post(&sglang, "/v1/completions", &body).await).await;
    assert_eq!(parsed(&data)[0]["model"], "nope");
}

#[tokio::test]
async fn bad_requests_get_the_engines_error_body() {
    for (engine, pointer) in [
        (Engine::Vllm, "/error/message"),
        (Engine::Sglang, "/message"),
    ] {
        let simulator = fast(
            engine,
            &["--max-model-len", "100"][..if engine == Engine::Vllm { 2 } else { 0 }],
        )
        .await;
        for body in [
            json!({}),
            json!({ "prompt": "a", "max_tokens": 0 }),
            json!([1]),
            completion(9_000_000, &Value::Null),
        ] {
            let reply = post(&simulator, "/v1/completions", &body).await;
            assert_eq!(reply.status(), StatusCode::BAD_REQUEST, "{body}");
            let reply: Value = reply.json().await.expect("JSON");
            assert!(
                reply.pointer(pointer).expect("a message").is_string(),
                "{reply}"
            );
        }
        assert_eq!(
            get(&simulator, "/nothing").await.status(),
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            get(&simulator, "/v1/completions").await.status(),
            StatusCode::METHOD_NOT_ALLOWED
        );
    }
}

#[tokio::test]
async fn keys_guard_what_each_engine_guards() {
    let vllm = fast(Engine::Vllm, &["--api-key", "k"]).await;
    assert_eq!(
        get(&vllm, "/v1/models").await.status(),
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(get(&vllm, "/version").await.status(), StatusCode::OK);
    let sglang = fast(Engine::Sglang, &["--api-key", "k", "--admin-api-key", "a"]).await;
    assert_eq!(
        get(&sglang, "/server_info").await.status(),
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(get(&sglang, "/ready").await.status(), StatusCode::OK);
    for (path, key, status) in [
        ("/server_info", "k", 200),
        ("/flush_cache", "k", 401),
        ("/flush_cache", "a", 200),
    ] {
        let reply = client()
            .get(format!("{}{path}", sglang.url()))
            .bearer_auth(key)
            .send()
            .await
            .expect("a reply");
        marked(&reply);
        assert_eq!(reply.status(), status, "{path} {key}");
    }
}

#[tokio::test]
async fn information_says_what_runs_and_that_it_is_simulated() {
    let flags = [
        "--port",
        "0",
        "--served-model-name",
        "k",
        "--tp",
        "8",
        "--enable-metrics",
        "--num-continuous-decode-steps",
        "4",
        "--speculative-algorithm",
        "EAGLE3",
    ];
    let sglang = start(Engine::Sglang, &flags, &[]).await;
    for path in ["/server_info", "/get_server_info"] {
        let info = get_json(&sglang, path).await;
        assert_eq!(info[SIMULATED_MARKER], true);
        assert_eq!(info["version"], "0.5.23");
        assert_eq!(info["tp_size"], 8);
        assert_eq!(info["num_continuous_decode_steps"], 4);
        assert_eq!(
            info["internal_states"][0]["effective_max_running_requests_per_dp"],
            48
        );
        assert!(
            info["launch_command"]
                .as_str()
                .expect("text")
                .contains("--tp 8")
        );
    }
    assert_eq!(
        get_json(&sglang, "/v1/models").await["data"][0]["owned_by"],
        "sglang"
    );
    assert_eq!(get_json(&sglang, "/v1/models/k").await["id"], "k");
    assert_eq!(
        get(&sglang, "/v1/models/other").await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        get_json(&sglang, "/model_info").await["served_model_name"],
        "k"
    );
    assert_eq!(
        get_json(&sglang, "/v1/loads").await["loads"][0]["max_running_requests"],
        48
    );
    let metrics = get(&sglang, "/metrics").await.text().await.expect("text");
    assert!(metrics.contains("sglang:num_running_reqs{"));
    assert_eq!(
        get(&sglang, "/version").await.status(),
        StatusCode::NOT_FOUND
    );

    let env = [("VLLM_SERVER_DEV_MODE", "1"), ("NCCL_PROTO", "LL")];
    let vllm = start(
        Engine::Vllm,
        &["serve", "/m/kimi", "--port", "0", "-tp", "8"],
        &env,
    )
    .await;
    let info = get_json(&vllm, "/server_info?config_format=json").await;
    assert_eq!(
        info["vllm_config"]["parallel_config"]["tensor_parallel_size"],
        8
    );
    assert_eq!(info["system_env"]["env_vars"], "NCCL_PROTO=LL");
    assert!(get_json(&vllm, "/server_info").await["vllm_config"].is_string());
    assert_eq!(
        get_json(&vllm, "/version").await,
        json!({ "version": "0.33.0", SIMULATED_MARKER: true })
    );
    assert_eq!(get_json(&vllm, "/load").await["server_load"], 0);
    assert_eq!(get(&vllm, "/health").await.status(), StatusCode::OK);
    assert_eq!(
        post(&vllm, "/reset_prefix_cache", &Value::Null)
            .await
            .json::<Value>()
            .await
            .expect("JSON"),
        json!({ "success": true })
    );

    let plain = start(Engine::Vllm, &["--port", "0"], &[]).await;
    assert_eq!(
        get(&plain, "/server_info").await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(get(&plain, "/metrics").await.status(), StatusCode::OK);
    let silent = start(Engine::Sglang, &["--port", "0"], &[]).await;
    assert_eq!(
        get(&silent, "/metrics").await.status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn an_argument_can_be_resolved_otherwise_than_asked() {
    let flags = [
        "--port",
        "0",
        "--attention-backend",
        "triton",
        "--sim-resolve",
        "attention_backend=flashinfer",
        "--sim-resolve",
        "max_running_requests=32",
    ];
    let sglang = start(Engine::Sglang, &flags, &[]).await;
    let info = get_json(&sglang, "/server_info").await;
    assert_eq!(info["attention_backend"], "flashinfer");
    assert_eq!(info["max_running_requests"], 32);
    let state = &info["internal_states"][0];
    assert_eq!(state["effective_max_running_requests_per_dp"], 32);
    assert_eq!(state["attention_backend"], "flashinfer");

    let flags = [
        "--port",
        "0",
        "-tp",
        "8",
        "--sim-resolve",
        "gpu-memory-utilization=0.5",
        "--sim-resolve=tensor_parallel_size=4",
    ];
    let env = [("VLLM_SERVER_DEV_MODE", "1")];
    let vllm = start(Engine::Vllm, &flags, &env).await;
    let info = get_json(&vllm, "/server_info?config_format=json").await;
    let settings = &info["vllm_config"];
    assert_eq!(settings["cache_config"]["gpu_memory_utilization"], 0.5);
    assert_eq!(settings["parallel_config"]["tensor_parallel_size"], 4);
}

#[tokio::test]
async fn sglangs_health_generates_a_token() {
    let simulator = fast(Engine::Sglang, &["--sim-speed", "100", "--enable-metrics"]).await;
    assert_eq!(get(&simulator, "/health").await.status(), StatusCode::OK);
    let metrics = get(&simulator, "/metrics")
        .await
        .text()
        .await
        .expect("text");
    let line = metrics
        .lines()
        .find(|line| line.starts_with("sglang:generation_tokens_total"))
        .expect("a counter");
    assert!(line.ends_with(" 1.0"), "{line}");
}

#[tokio::test]
async fn speculation_packs_tokens_and_counts_drafts() {
    let spec = r#"{"method":"eagle3","model":"d","num_speculative_tokens":3}"#;
    let flags = [
        "--port",
        "0",
        "--speculative-config",
        spec,
        "--sim-speed",
        "200",
    ];
    let simulator = start(Engine::Vllm, &flags, &[]).await;
    let (data, _) =
        events(post(&simulator, "/v1/completions", &completion(256, &both())).await).await;
    let chunks = parsed(&data);
    // First token, 175 verify steps, the usage chunk.
    assert_eq!(chunks.len(), 177);
    assert_eq!(chunks[176]["usage"]["completion_tokens"], 256);
    let metrics = get(&simulator, "/metrics")
        .await
        .text()
        .await
        .expect("text");
    let value = |name: &str| -> f64 {
        metrics
            .lines()
            .find(|line| line.starts_with(&format!("vllm:{name}{{")))
            .and_then(|line| line.rsplit(' ').next())
            .and_then(|value| value.parse().ok())
            .expect("a sample")
    };
    assert_eq!(value("spec_decode_num_drafts_total"), 175.0);
    assert_eq!(value("spec_decode_num_draft_tokens_total"), 525.0);
    assert_eq!(value("spec_decode_num_accepted_tokens_total"), 80.0);
    assert_eq!(value("generation_tokens_total"), 256.0);
}

#[tokio::test]
async fn sglang_tells_the_accept_length_after_a_window_and_forgets_it_on_flush() {
    let flags = [
        "--port",
        "0",
        "--speculative-algorithm",
        "EAGLE3",
        "--speculative-draft-model-path",
        "AQ-MedAI/Kimi-K2-Instruct-eagle3",
        "--decode-log-interval",
        "1",
        "--sim-speed",
        "200",
    ];
    let simulator = start(Engine::Sglang, &flags, &[]).await;
    assert!(
        get_json(&simulator, "/server_info").await["internal_states"][0]["avg_spec_accept_length"]
            .is_null()
    );
    events(
        post(
            &simulator,
            "/v1/completions",
            &completion(256, &Value::Null),
        )
        .await,
    )
    .await;
    let info = get_json(&simulator, "/server_info").await;
    let length = info["internal_states"][0]["avg_spec_accept_length"]
        .as_f64()
        .expect("a length");
    assert!((length - 1.68).abs() < 0.01, "{length}");
    assert_eq!(
        get(&simulator, "/flush_cache").await.status(),
        StatusCode::OK
    );
    assert!(
        get_json(&simulator, "/server_info").await["internal_states"][0]["avg_spec_accept_length"]
            .is_null()
    );
}

#[tokio::test]
async fn cached_prompt_tokens_are_reported_where_asked() {
    let simulator = fast(Engine::Sglang, &["--enable-cache-report"]).await;
    let options = json!({ "include_usage": true });
    let mut cached = Vec::new();
    for flush in [false, false, true] {
        if flush {
            get(&simulator, "/flush_cache").await;
        }
        let (data, _) =
            events(post(&simulator, "/v1/completions", &completion(2, &options)).await).await;
        let usage = parsed(&data).pop().expect("a chunk")["usage"].clone();
        let prompt = usage["prompt_tokens"].as_u64().expect("a count");
        cached.push(
            usage["prompt_tokens_details"]["cached_tokens"]
                .as_u64()
                .expect("a count"),
        );
        assert_eq!(prompt, 10);
    }
    assert_eq!(cached, [0, 9, 0]);
}

#[tokio::test]
async fn without_ignore_eos_some_answers_stop_early() {
    let simulator = fast(Engine::Vllm, &["--sim-speed", "20"]).await;
    let mut reasons = BTreeMap::new();
    for _ in 0..40 {
        let mut body = completion(16, &Value::Null);
        body["stream"] = json!(false);
        body["ignore_eos"] = json!(false);
        let reply: Value = post(&simulator, "/v1/completions", &body)
            .await
            .json()
            .await
            .expect("JSON");
        let reason = reply["choices"][0]["finish_reason"]
            .as_str()
            .expect("text")
            .to_owned();
        let tokens = reply["usage"]["completion_tokens"]
            .as_u64()
            .expect("a count");
        assert_eq!(reason == "length", tokens == 16);
        *reasons.entry(reason).or_insert(0) += 1;
    }
    assert!(reasons["stop"] > 2 && reasons["length"] > 10, "{reasons:?}");
}

async fn misbehave(engine: Engine, fault: &str) -> Response {
    let simulator = fast(engine, &["--sim-fault", fault]).await;
    let response = post(&simulator, "/v1/completions", &completion(8, &both())).await;
    // It must outlive the reply, and the test process ends soon.
    std::mem::forget(simulator);
    response
}

#[tokio::test]
async fn each_fault_does_what_its_name_says() {
    for engine in [Engine::Vllm, Engine::Sglang] {
        assert_eq!(
            misbehave(engine, "error500").await.status(),
            StatusCode::INTERNAL_SERVER_ERROR
        );
        assert_eq!(
            misbehave(engine, "refuse-continuous-usage").await.status(),
            StatusCode::BAD_REQUEST
        );

        let (data, whole) = events(misbehave(engine, "error-in-stream").await).await;
        assert!(whole && data.last().expect("events") == "[DONE]");
        assert!(
            parsed(&data)
                .iter()
                .any(|chunk| chunk["error"]["message"].is_string())
        );

        let (data, whole) = events(misbehave(engine, "cut").await).await;
        assert!(!whole && data.len() == 2, "{data:?}");

        let (data, whole) = events(misbehave(engine, "no-done").await).await;
        assert!(whole && data.last().expect("events") != "[DONE]");

        let (data, _) = events(misbehave(engine, "no-usage").await).await;
        assert!(parsed(&data).iter().all(|chunk| chunk["usage"].is_null()));
        assert_eq!(parsed(&data).len(), 8);

        let (data, _) = events(misbehave(engine, "no-running-usage").await).await;
        let usages = parsed(&data)
            .iter()
            .filter(|chunk| chunk["usage"].is_object())
            .count();
        assert_eq!(usages, 1);

        let (data, _) = events(misbehave(engine, "bad-json").await).await;
        let broken = data
            .iter()
            .filter(|event| serde_json::from_str::<Value>(event).is_err())
            .count();
        assert_eq!(broken, 2, "the broken event and [DONE]");

        let (data, _) = events(misbehave(engine, "empty").await).await;
        let chunks = parsed(&data);
        assert_eq!(chunks[0]["choices"][0]["text"], "");
        assert_eq!(
            chunks.last().expect("usage")["usage"]["completion_tokens"],
            0
        );

        let reply = misbehave(engine, "not-stream").await;
        assert_eq!(reply.headers()["content-type"], "application/json");
        assert_eq!(
            reply.json::<Value>().await.expect("JSON")["usage"]["completion_tokens"],
            8
        );
    }
}

#[tokio::test]
async fn a_stalled_stream_stays_open_and_silent() {
    let mut response = misbehave(Engine::Vllm, "stall").await;
    let mut chunks = 0;
    let silent = loop {
        match tokio::time::timeout(Duration::from_secs(1), response.chunk()).await {
            Ok(Ok(Some(_))) => chunks += 1,
            Ok(other) => break Err(format!("{other:?}")),
            Err(_) => break Ok(()),
        }
    };
    assert_eq!(silent, Ok(()));
    assert!(chunks >= 1);
}

#[tokio::test]
async fn a_slow_first_token_is_slow() {
    let simulator = fast(
        Engine::Vllm,
        &["--sim-fault", "slow-first-token", "--sim-speed", "10"],
    )
    .await;
    let started = std::time::Instant::now();
    events(post(&simulator, "/v1/completions", &completion(2, &Value::Null)).await).await;
    // Five seconds at ten times the speed; a busy machine only makes it longer.
    assert!(started.elapsed() >= Duration::from_millis(500));
}

#[tokio::test]
async fn the_log_holds_what_was_sent_and_when_it_was_due() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("truth.jsonl");
    let text = path.to_str().expect("a path");
    let simulator = start(
        Engine::Sglang,
        &[
            "--port",
            "0",
            "--sim-ttft-ms",
            "20",
            "--sim-step-ms",
            "5",
            "--sim-log",
            text,
        ],
        &[],
    )
    .await;
    let requests: Vec<_> = (0..5)
        .map(|_| {
            let url = format!("{}/v1/completions", simulator.url());
            tokio::spawn(async move {
                let body = completion(10, &both());
                let response = client()
                    .post(url)
                    .json(&body)
                    .send()
                    .await
                    .expect("a reply");
                events(response).await.0.len()
            })
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.expect("a stream"), 12);
    }
    simulator.stop().await;
    let mut lines = Vec::new();
    for _ in 0..100 {
        lines = std::fs::read_to_string(&path)
            .expect("a log")
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
            .collect();
        if lines.len() == 6 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["simulated"], true);
    for line in &lines[1..] {
        assert_eq!(line["outcome"], "complete");
        assert_eq!(line["tokens"], 10);
        let due: Vec<i64> = serde_json::from_value(line["due_us"].clone()).expect("times");
        let sent: Vec<i64> = serde_json::from_value(line["sent_us"].clone()).expect("times");
        assert_eq!(due, [&[20_000][..], &[5_000; 9]].concat());
        assert_eq!(sent.len(), 10);
        let (mut due_at, mut sent_at) = (0, 0);
        for (due, sent) in due.iter().zip(&sent) {
            due_at += due;
            sent_at += sent;
            assert!(sent_at >= due_at, "never before the deadline: {line}");
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_place() {
    let simulator = fast(Engine::Sglang, &["--max-running-requests", "1"]).await;
    let mut response = post(
        &simulator,
        "/v1/completions",
        &completion(100_000, &Value::Null),
    )
    .await;
    response.chunk().await.expect("a chunk").expect("bytes");
    drop(response);
    let mut running = u64::MAX;
    for _ in 0..200 {
        running = get_json(&simulator, "/v1/loads").await["loads"][0]["num_running_reqs"]
            .as_u64()
            .expect("a count");
        if running == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(running, 0);
}

/// A client may send its next request while it still reads, or before the stand-in
/// has noticed that its last token is out.
#[tokio::test]
async fn a_long_request_that_comes_early_is_answered() {
    let simulator = fast(Engine::Vllm, &["--max-model-len", "200000"]).await;
    let request = |words: usize| {
        let mut body = completion(16, &both());
        body["prompt"] = json!("word ".repeat(words));
        let body = body.to_string();
        format!(
            "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let address = simulator.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let both_at_once = request(3) + &request(30_000);
    let exchange = async {
        stream.write_all(both_at_once.as_bytes()).await?;
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        let done = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("[DONE]").count();
        while done(&bytes) < 2 {
            match stream.read(&mut buffer).await? {
                0 => break,
                read => bytes.extend_from_slice(&buffer[..read]),
            }
        }
        Ok::<_, std::io::Error>(done(&bytes))
    };
    let answered = tokio::time::timeout(Duration::from_secs(60), exchange).await;
    assert_eq!(answered.expect("in time").expect("no break"), 2);
}

#[tokio::test]
async fn an_address_in_use_is_a_plain_sentence() {
    let first = fast(Engine::Vllm, &[]).await;
    let port = first.local_addr().port().to_string();
    let config = SimConfig::parse(Engine::Vllm, &["--port", &port], BTreeMap::new()).expect("ok");
    let error = Simulator::spawn(config).await.expect_err("a refusal");
    assert!(
        error.to_string().contains("cannot listen on 127.0.0.1"),
        "{error}"
    );
}
