//! Asking an address who it is, before a measurement. Nothing here makes an engine
//! generate: SGLang's `/health` would, so it is never called.

use serde_json::{Map, Value};
use tokdyno_domain::{
    endpoint::{EndpointUrl, TlsTrust},
    engine::{EngineInfo, EngineKind},
    meter::ApiKey,
};

use crate::{
    error::ProbeError,
    fetch::{Fetcher, Reply},
    metrics::max_running_requests,
    replies::{Models, context_length, has_marker, kind_of_owner, kind_of_server_info, version},
    settings::{MOST_SETTINGS, Settings},
};

/// What a probe found.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeReport {
    /// Who answered.
    pub info: EngineInfo,
    /// Shortest time from asking to the head of a reply, in milliseconds. The first
    /// call's includes connecting, later ones' do not.
    pub round_trip_ms: f64,
    /// Remarks for people: what could not be learnt, and why.
    pub notes: Vec<String>,
}

/// Asks an endpoint for its models, its version and its settings: three to five
/// small GETs, one after another. Bounded: 3 s to connect, 5 s a call, 10 s in all,
/// 4 MiB a reply.
///
/// Only the list of models is needed; what else cannot be learnt becomes a note.
///
/// # Errors
/// [`ProbeError`] with cause and remedy when the endpoint cannot be measured.
pub async fn probe(
    endpoint: &EndpointUrl,
    key: Option<&ApiKey>,
    tls: &TlsTrust,
) -> Result<ProbeReport, ProbeError> {
    let fetcher = Fetcher::new(endpoint, key, tls).await?;
    let (models, first) = ask_models(&fetcher, endpoint, key.is_some()).await?;
    let mut asked = Asked {
        fetcher: &fetcher,
        shortest_ms: first.head_ms,
        simulated: first.simulated || models.simulated,
        notes: Vec::new(),
    };
    let owner = models.owner.as_deref().map(kind_of_owner);

    let version_reply = asked.optional("/version", None).await;
    let server_info = match owner {
        // A gateway of another make: its routes of these names are not ours to read.
        Some(EngineKind::Other) => None,
        Some(EngineKind::Vllm) => {
            asked
                .optional("/server_info", Some("config_format=json"))
                .await
        }
        _ => match asked.optional("/server_info", None).await {
            Some(reply) => Some(reply),
            None => asked.optional("/get_server_info", None).await,
        },
    };
    let server_info = server_info.and_then(into_object);
    let told_version = version_reply.as_ref().and_then(version);

    let kind = match owner {
        Some(kind @ (EngineKind::Vllm | EngineKind::Sglang)) => kind,
        Some(EngineKind::Other) => EngineKind::Other,
        None => match server_info.as_ref().and_then(kind_of_server_info) {
            Some(kind) => kind,
            // Of the engines known, only vLLM answers `/version` like this.
            None if told_version.is_some() => {
                asked.notes.push(
                    "The list of models does not name the engine; it was taken for vLLM because of its /version."
                        .to_owned(),
                );
                EngineKind::Vllm
            }
            None => EngineKind::Other,
        },
    };

    let empty = Map::new();
    let details = server_info.as_ref().unwrap_or(&empty);
    let mut settings = Settings::new(key.map(ApiKey::reveal));
    settings.add_server_info(details);
    let (settings, left_out) = settings.finish();
    if left_out > 0 {
        asked.notes.push(format!(
            "The server reports more settings than are kept ({MOST_SETTINGS}); {left_out} were left out."
        ));
    }
    match kind {
        EngineKind::Vllm if server_info.is_none() => asked.notes.push(
            "vLLM tells its settings only when started with VLLM_SERVER_DEV_MODE=1; they are unknown here."
                .to_owned(),
        ),
        EngineKind::Sglang if server_info.is_none() => asked.notes.push(
            "The server did not tell its settings (/server_info); they are unknown here.".to_owned(),
        ),
        EngineKind::Other => asked.notes.push(
            "The engine is neither vLLM nor SGLang as far as it tells; its settings are unknown."
                .to_owned(),
        ),
        EngineKind::Vllm | EngineKind::Sglang => {}
    }
    if models.names.len() > 1 {
        asked
            .notes
            .push(format!("It serves {} models.", models.names.len()));
    }
    let told_by_info = server_info
        .as_ref()
        .and_then(|info| version(&Value::Object(info.clone())));
    Ok(ProbeReport {
        info: EngineInfo {
            kind,
            version: told_by_info.or(told_version),
            models: models.names,
            max_model_len: models.max_model_len.or_else(|| context_length(details)),
            settings,
            max_running_requests: max_running_requests(details),
            simulated: asked.simulated,
        },
        round_trip_ms: asked.shortest_ms,
        notes: asked.notes,
    })
}

/// The calls after the first, none of which may fail the probe.
struct Asked<'a> {
    fetcher: &'a Fetcher,
    shortest_ms: f64,
    simulated: bool,
    notes: Vec<String>,
}

impl Asked<'_> {
    /// JSON from a route, if the server has it and answers in time.
    async fn optional(&mut self, path: &str, query: Option<&str>) -> Option<Value> {
        let reply = match self.fetcher.get(path, query).await {
            Ok(reply) => reply,
            Err(error) => {
                self.notes.push(format!("{path} gave no answer: {error}"));
                return None;
            }
        };
        self.shortest_ms = self.shortest_ms.min(reply.head_ms);
        self.simulated |= reply.simulated;
        match reply.status {
            200 => {}
            // Not every engine has every route.
            404 | 405 => return None,
            401 | 403 => {
                self.notes
                    .push(format!("{path} asks for a key with more rights."));
                return None;
            }
            status => {
                self.notes.push(format!("{path} answered HTTP {status}."));
                return None;
            }
        }
        match serde_json::from_slice::<Value>(&reply.body) {
            Ok(value) => {
                self.simulated |= has_marker(&value);
                Some(value)
            }
            Err(_) => {
                self.notes.push(format!("{path} did not answer in JSON."));
                None
            }
        }
    }
}

async fn ask_models(
    fetcher: &Fetcher,
    endpoint: &EndpointUrl,
    has_key: bool,
) -> Result<(Models, Reply), ProbeError> {
    let reply = match fetcher.get("/v1/models", None).await {
        Ok(reply) => reply,
        Err(error) => return Err(explain(fetcher, endpoint, error).await),
    };
    if reply.status != 200 {
        return Err(refusal(fetcher, endpoint, &reply, has_key));
    }
    let at = || fetcher.at().to_owned();
    let Ok(value) = serde_json::from_slice::<Value>(&reply.body) else {
        return Err(ProbeError::NotJson {
            at: at(),
            start: reply.start(),
        });
    };
    let Some(models) = Models::read(&value) else {
        return Err(ProbeError::NotModels {
            at: at(),
            start: reply.start(),
        });
    };
    if models.names.is_empty() {
        return Err(ProbeError::NoModels { at: at() });
    }
    Ok((models, reply))
}

/// A broken connection is often http taken for https or the other way round; that
/// is found out by trying.
async fn explain(fetcher: &Fetcher, endpoint: &EndpointUrl, error: ProbeError) -> ProbeError {
    let at = fetcher.at().to_owned();
    match error {
        ProbeError::Broken { .. } if !endpoint.is_tls() && fetcher.speaks_other_scheme().await => {
            ProbeError::SpeaksTls { at }
        }
        ProbeError::Tls { .. } if endpoint.is_tls() && fetcher.speaks_other_scheme().await => {
            ProbeError::SpeaksPlainHttp { at }
        }
        error => error,
    }
}

fn refusal(fetcher: &Fetcher, endpoint: &EndpointUrl, reply: &Reply, has_key: bool) -> ProbeError {
    let at = fetcher.at().to_owned();
    match reply.status {
        status @ (401 | 403) if has_key => ProbeError::KeyRefused { at, status },
        status @ (401 | 403) => ProbeError::KeyMissing { at, status },
        404 => ProbeError::NotOpenAi {
            at,
            path: endpoint.route("/v1/models").path().to_owned(),
        },
        503 => ProbeError::Loading { at },
        300..400 => ProbeError::Redirected {
            at,
            location: reply
                .location
                .clone()
                .unwrap_or_else(|| "it does not say where".to_owned()),
        },
        // A web server's own words for TLS that was expected.
        400 if !endpoint.is_tls() && says_https_was_expected(&reply.body) => {
            ProbeError::SpeaksTls { at }
        }
        status => ProbeError::Status {
            at,
            status,
            start: reply.start(),
        },
    }
}

fn says_https_was_expected(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&body[..body.len().min(4096)]).to_ascii_lowercase();
    text.contains("https port") || text.contains("http request to an https server")
}

fn into_object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
