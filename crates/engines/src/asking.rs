//! Asking a launched engine whether it lives, whether it generates, and what it is
//! working on. Over loopback or a forwarded port.

use std::time::Duration;

use serde_json::{Value, json};
use tokdyno_domain::{
    endpoint::{EndpointUrl, TlsTrust},
    engine::EngineKind,
    meter::ApiKey,
};

use crate::{
    error::ProbeError,
    fetch::{Fetcher, Reply},
    line::one_line,
    mask::masked_text,
};

/// How long the first token may take: kernels may be compiled for it.
const FIRST_TOKEN: Duration = Duration::from_secs(120);

/// Whether an engine lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It serves.
    Ok,
    /// It does not serve yet: nothing listens, or it says so.
    Starting,
    /// It says that it is broken; a sentence.
    Dead(String),
    /// It could not be asked; a sentence.
    Unreachable(String),
}

/// Asks an engine whether it lives. Nothing here makes it generate, so SGLang's
/// `/health` is never called.
pub async fn health(engine: EngineKind, endpoint: &EndpointUrl, key: Option<&ApiKey>) -> Health {
    let fetcher = match Fetcher::new(endpoint, key, &TlsTrust::System).await {
        Ok(fetcher) => fetcher,
        Err(error) => return Health::Unreachable(error.to_string()),
    };
    let routes: &[&str] = match engine {
        EngineKind::Vllm => &["/health"],
        // Older versions lack the first; the others answer once it serves.
        EngineKind::Sglang => &["/ready", "/model_info", "/get_model_info"],
        EngineKind::Other => &["/v1/models"],
    };
    for route in routes {
        let reply = match fetcher.get(route, None).await {
            Ok(reply) => reply,
            // vLLM listens only once its engine is built, SGLang once its model is
            // loaded. A forwarded port is accepted first and closed at once then.
            Err(ProbeError::Refused { .. } | ProbeError::Broken { .. }) => return Health::Starting,
            Err(error) => return Health::Unreachable(error.to_string()),
        };
        return match (engine, reply.status) {
            (_, 200..300) => Health::Ok,
            (_, 404 | 405) => continue,
            (EngineKind::Vllm, status @ 500..) => Health::Dead(format!(
                "{route} answers HTTP {status}: the engine behind the web server is dead."
            )),
            (_, 503) => Health::Starting,
            (_, status @ (401 | 403)) => Health::Unreachable(format!(
                "{route} answers HTTP {status}: it asks for a key. Without it, the server cannot be watched."
            )),
            (_, status) => {
                Health::Dead(format!("{route} answers HTTP {status}: {}.", said(&reply)))
            }
        };
    }
    Health::Unreachable(format!(
        "None of {} exists there, so it cannot be told whether it serves.",
        routes.join(", ")
    ))
}

/// Has an engine generate one token: the proof that it works. Waits for at most two
/// minutes.
///
/// # Errors
/// A sentence that says why there was no token.
pub async fn one_token(
    endpoint: &EndpointUrl,
    key: Option<&ApiKey>,
    model: &str,
) -> Result<(), String> {
    let fetcher = Fetcher::new(endpoint, key, &TlsTrust::System)
        .await
        .map_err(|error| error.to_string())?;
    let plain = json!({"model": model, "prompt": "1", "max_tokens": 1, "temperature": 0});
    let reply = ask(&fetcher, "/v1/completions", &plain).await?;
    let reply = if matches!(reply.status, 400 | 404 | 405 | 422) {
        // Some servers only chat.
        let chat = json!({
            "model": model, "max_tokens": 1, "temperature": 0,
            "messages": [{"role": "user", "content": "1"}],
        });
        ask(&fetcher, "/v1/chat/completions", &chat).await?
    } else {
        reply
    };
    if !(200..300).contains(&reply.status) {
        return Err(format!(
            "The request for one token was answered with HTTP {}: {}.",
            reply.status,
            said(&reply)
        ));
    }
    generated(&reply).map_err(|why| format!("The request for one token was answered, but {why}."))
}

/// Requests that an engine is working on just now, waiting ones included; none if it
/// does not tell. Makes nothing generate, so it may be asked during a measurement.
///
/// # Errors
/// A sentence that says why it could not be asked.
pub async fn in_flight(
    engine: EngineKind,
    endpoint: &EndpointUrl,
    key: Option<&ApiKey>,
) -> Result<Option<u64>, String> {
    let fetcher = Fetcher::new(endpoint, key, &TlsTrust::System)
        .await
        .map_err(|error| error.to_string())?;
    type Read = fn(&[u8]) -> Option<u64>;
    let loads: (&str, Option<&str>, Read) =
        ("/v1/loads", Some("include=core&format=json"), of_loads);
    let metrics: (&str, Option<&str>, Read) = ("/metrics", None, of_metrics);
    let load: (&str, Option<&str>, Read) = ("/load", None, of_load);
    let routes: &[_] = match engine {
        EngineKind::Sglang => &[loads, metrics],
        // `/load` counts only if the engine was told to, and says 0 otherwise.
        EngineKind::Vllm => &[metrics, load],
        EngineKind::Other => &[metrics],
    };
    for (route, query, read) in routes {
        let reply = fetcher
            .get(route, *query)
            .await
            .map_err(|error| error.to_string())?;
        if reply.status == 200
            && let Some(count) = read(&reply.body)
        {
            return Ok(Some(count));
        }
    }
    Ok(None)
}

async fn ask(fetcher: &Fetcher, path: &str, body: &Value) -> Result<Reply, String> {
    fetcher
        .post(path, body, FIRST_TOKEN)
        .await
        .map_err(|error| error.to_string())
}

/// The beginning of a reply, for a sentence.
fn said(reply: &Reply) -> String {
    let text = serde_json::from_slice::<Value>(&reply.body)
        .ok()
        .and_then(|value| {
            let message = value
                .pointer("/error/message")
                .or_else(|| value.get("message"))?;
            message.as_str().map(str::to_owned)
        })
        .unwrap_or_else(|| reply.start());
    one_line(&masked_text(&text, None), 200)
        .trim_end_matches('.')
        .to_owned()
}

/// Is there a token in the reply?
fn generated(reply: &Reply) -> Result<(), String> {
    let value: Value = serde_json::from_slice(&reply.body)
        .map_err(|_| format!("not in JSON: {}", reply.start()))?;
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(format!("with an error: {}", said(reply)));
    }
    if let Some(count) = value
        .pointer("/usage/completion_tokens")
        .and_then(Value::as_u64)
    {
        return if count > 0 {
            Ok(())
        } else {
            Err("its usage counts no token".to_owned())
        };
    }
    let choices = value.get("choices").and_then(Value::as_array);
    if choices.is_some_and(|choices| !choices.is_empty()) {
        Ok(())
    } else {
        Err("it holds no choice".to_owned())
    }
}

/// SGLang's `/v1/loads`: running and waiting over all ranks.
fn of_loads(body: &[u8]) -> Option<u64> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let loads = value.get("loads")?.as_array()?;
    loads
        .iter()
        .map(|load| {
            let running = load.get("num_running_reqs")?.as_u64()?;
            let waiting = load.get("num_waiting_reqs").and_then(Value::as_u64);
            running.checked_add(waiting.unwrap_or(0))
        })
        .try_fold(0_u64, |sum, one| sum.checked_add(one?))
}

/// vLLM's `/load`.
fn of_load(body: &[u8]) -> Option<u64> {
    let value: Value = serde_json::from_slice(body).ok()?;
    value.get("server_load")?.as_u64()
}

/// Either engine's metrics: running and waiting, over data-parallel ranks.
fn of_metrics(body: &[u8]) -> Option<u64> {
    const COUNTED: [&str; 4] = [
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "sglang:num_running_reqs",
        "sglang:num_queue_reqs",
    ];
    let text = String::from_utf8_lossy(body);
    let mut sum = 0.0;
    let mut told = false;
    for line in text.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels),
            None => (series, ""),
        };
        // All ranks of tensor parallelism count the same requests.
        let repeats = labels.contains("tp_rank=\"") && !labels.contains("tp_rank=\"0\"");
        if COUNTED.contains(&name)
            && !repeats
            && let Ok(value) = value.trim().parse::<f64>()
            && value.is_finite()
            && value >= 0.0
        {
            sum += value;
            told = true;
        }
    }
    told.then_some(sum as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_and_waiting_requests_are_added_up() {
        let loads =
            br#"{"loads":[{"num_running_reqs":3,"num_waiting_reqs":2},{"num_running_reqs":4}]}"#;
        assert_eq!(of_loads(loads), Some(9));
        assert_eq!(of_loads(b"{}"), None);
        assert_eq!(of_load(br#"{"server_load":7}"#), Some(7));
        let metrics = b"# HELP vllm:num_requests_running x\nvllm:num_requests_running{engine=\"0\",model_name=\"a b\"} 2.0\nvllm:num_requests_waiting{engine=\"0\"} 1.0\nvllm:num_requests_waiting_by_reason{reason=\"capacity\"} 1.0\n";
        assert_eq!(of_metrics(metrics), Some(3));
        let ranks = b"sglang:num_running_reqs{tp_rank=\"0\"} 5\nsglang:num_running_reqs{tp_rank=\"1\"} 5\nsglang:num_queue_reqs{tp_rank=\"0\"} 1\n";
        assert_eq!(of_metrics(ranks), Some(6));
        assert_eq!(of_metrics(b"python_info 1\n"), None);
    }
}
