//! Clearing the engine's prefix cache.

use std::time::Duration;

use tokdyno_domain::{
    conditions::CacheReset, endpoint::EndpointUrl, engine::EngineKind, meter::ApiKey,
};
use tokio::time::Instant;

use super::{Answer, Asker};
use crate::connection::Target;

/// How long requests that still run are waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// From one try to the next.
const PAUSE: Duration = Duration::from_millis(250);
const VLLM: &str = "/reset_prefix_cache";
const SGLANG: &str = "/flush_cache";

/// How a try went.
#[derive(Debug, PartialEq, Eq)]
enum Tried {
    Cleared,
    /// Requests run; it may go later.
    Busy,
    /// There is no such route.
    Missing,
    Failed(String),
}

/// Clears the prefix cache, in the way of the engine that its metrics show; if they
/// show none, in the way of either. Before anything is timed: waits up to ten seconds
/// for requests that still run.
pub(crate) async fn reset_cache(
    target: &Target,
    endpoint: &EndpointUrl,
    key: Option<&ApiKey>,
) -> CacheReset {
    reset_within(PATIENCE, target, endpoint, key).await
}

/// The same with another wait.
pub(super) async fn reset_within(
    patience: Duration,
    target: &Target,
    endpoint: &EndpointUrl,
    key: Option<&ApiKey>,
) -> CacheReset {
    let mut asker = Asker::new(target, endpoint, key);
    let kind = asker.readings().await.map(|readings| readings.kind);
    let routes: &[&str] = match kind {
        Some(EngineKind::Vllm) => &[VLLM],
        Some(EngineKind::Sglang) => &[SGLANG],
        _ => &[VLLM, SGLANG],
    };
    let until = Instant::now() + patience;
    for route in routes {
        loop {
            match tried(route, asker.post(route).await) {
                Tried::Cleared => return CacheReset::Cleared,
                Tried::Missing => break,
                Tried::Busy if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                Tried::Busy => {
                    return CacheReset::Refused {
                        reason: format!(
                            "The engine did not clear its prefix cache within {} seconds: requests, perhaps of others, were running. Measure while nobody else uses it.",
                            patience.as_secs()
                        ),
                    };
                }
                Tried::Failed(reason) => return CacheReset::Refused { reason },
            }
        }
    }
    CacheReset::Refused {
        reason: no_way(kind).to_owned(),
    }
}

fn tried(route: &str, answer: Result<Answer, String>) -> Tried {
    let answer = match answer {
        Ok(answer) => answer,
        Err(cause) => {
            return Tried::Failed(format!(
                "Asking the engine to clear its prefix cache ({route}) failed: {}. Look at its log.",
                cause.trim_end_matches('.')
            ));
        }
    };
    match answer.status {
        200 => {
            let said: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
            // Older versions say nothing; SGLang says it in words.
            match said.as_ref().and_then(|said| said.get("success")) {
                Some(serde_json::Value::Bool(false)) => Tried::Busy,
                _ => Tried::Cleared,
            }
        }
        400 if route == SGLANG => Tried::Busy,
        404 | 405 => Tried::Missing,
        status @ (401 | 403) => Tried::Failed(format!(
            "The engine does not let this key clear its prefix cache ({status}). SGLang started with --admin-api-key wants that key; give it, or choose another treatment of the cache."
        )),
        status => Tried::Failed(format!(
            "The engine answered {status} when asked to clear its prefix cache ({route}). Look at its log."
        )),
    }
}

const fn no_way(kind: Option<EngineKind>) -> &'static str {
    match kind {
        Some(EngineKind::Vllm) => {
            "vLLM lets its prefix cache be cleared only if it was started with VLLM_SERVER_DEV_MODE=1. Start it so, reachable from this machine alone, or choose another treatment of the cache."
        }
        Some(EngineKind::Sglang) => {
            "The server has no /flush_cache here. Give the address of SGLang itself, without a proxy before it, or choose another treatment of the cache."
        }
        _ => {
            "The server has neither /reset_prefix_cache (vLLM, only with VLLM_SERVER_DEV_MODE=1) nor /flush_cache (SGLang). Choose another treatment of the cache, or give the address of the engine itself."
        }
    }
}
