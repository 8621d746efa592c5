//! Before anything is timed: which model, and which request fields the server
//! takes.

use std::time::Duration;

use serde::Deserialize;
use tokdyno_domain::{
    meter::{ApiKey, MeterSpec},
    record::{Failure, FailureKind},
};

use crate::{
    chunk,
    connection::{Connection, Target},
    http::{Decoder, Head, HttpError, Piece},
    load::Shared,
    reply::{Reply, Sent, presentable},
    request,
};

/// Most bytes of a model list.
const MAX_LIST: usize = 4 << 20;
/// Longest wait for the model list.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Where the trial requests take their prompts, far from those of any stage.
const FIRST_PROMPT: u64 = 1 << 41;

#[derive(Deserialize)]
struct ModelList {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

/// The model name to send.
///
/// # Errors
/// A sentence with cause and remedy.
pub(crate) async fn choose_model(spec: &MeterSpec, target: &Target) -> Result<String, String> {
    let route = spec.endpoint.route("/v1/models");
    let request = request::get(&route, spec.api_key.as_ref());
    let mut connection = target.connect().await?;
    let fetched = match tokio::time::timeout(LIST_TIMEOUT, fetch(&mut connection, &request)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(format!(
            "No answer within {} seconds",
            LIST_TIMEOUT.as_secs()
        )),
    };
    let secret = spec.api_key.as_ref().map(ApiKey::reveal);
    let names = match fetched {
        Ok((head, body)) if head.status == 200 => {
            match serde_json::from_slice::<ModelList>(&body) {
                Ok(list) => Ok(list
                    .data
                    .into_iter()
                    .map(|model| model.id)
                    .collect::<Vec<_>>()),
                Err(_) => Err(format!(
                    "{route} answered with something that is no list of models. Check that the address is an OpenAI-compatible server."
                )),
            }
        }
        Ok((head, _)) if matches!(head.status, 401 | 403) => {
            return Err(key_sentence(head.status, secret.is_some()));
        }
        Ok((head, body)) => {
            let said =
                chunk::error_message(&body).map_or_else(String::new, |said| format!(": {said}"));
            Err(presentable(
                &format!(
                    "{route} answered {}{said}. Check the address, and that the server is ready",
                    head.status
                ),
                secret,
            ) + ".")
        }
        Err(reason) => Err(format!(
            "{route} gave no list of models: {reason}. Check the address and the server's log."
        )),
    };
    match (&spec.model, names) {
        (Some(wanted), Ok(names)) if !names.contains(wanted) && !names.is_empty() => Err(format!(
            "The server has no model `{wanted}`. It has: {}. Choose one of these.",
            names.join(", ")
        )),
        // Some servers have no list; the trial request will tell.
        (Some(wanted), _) => Ok(wanted.clone()),
        (None, Ok(names)) => names.into_iter().next().ok_or_else(|| {
            "The server lists no model. Load one, or name the model to send.".to_owned()
        }),
        (None, Err(reason)) => Err(format!("{reason} Or name the model to send.")),
    }
}

/// Finds the fullest request the server takes, warms the first connection up
/// with it, and leaves it in the template. Gives the names of dropped fields.
///
/// # Errors
/// A sentence with cause and remedy.
pub(crate) async fn find_variant(
    spec: &MeterSpec,
    shared: &mut Shared,
    connection: &mut Option<Connection>,
) -> Result<Vec<String>, String> {
    let wanted = shared.template.extras;
    let mut first_failure = None;
    for (index, variant) in (0_u32..).zip(wanted.variants()) {
        shared.template.extras = variant;
        let Some(failure) = try_once(spec, shared, connection, index).await? else {
            return Ok(variant.dropped_from(wanted));
        };
        let refused =
            matches!(failure.http_status, Some(400 | 422)) && failure.kind == FailureKind::Status;
        let failure = first_failure.get_or_insert(failure);
        if !refused {
            return Err(explain(failure, spec));
        }
    }
    Err(first_failure.map_or_else(String::new, |failure| explain(&failure, spec)))
}

async fn try_once(
    spec: &MeterSpec,
    shared: &Shared,
    connection: &mut Option<Connection>,
    index: u32,
) -> Result<Option<Failure>, String> {
    if let Some(open) = connection
        && !open.is_fresh().await
    {
        *connection = None;
    }
    if connection.is_none() {
        *connection = Some(shared.target.connect().await?);
    }
    let prompt = FIRST_PROMPT + u64::from(index);
    let text = shared.prompts.prompt(shared.seed, prompt);
    let request = shared
        .template
        .request(&text, spec.workload.warmup_output_tokens);
    let mut reply = Reply::new(spec.workload.warmup_output_tokens);
    shared
        .exchange(
            connection,
            &request,
            std::time::Instant::now(),
            &mut reply,
            |_| {},
        )
        .await;
    let sent = Sent {
        stage: 0,
        seq: index,
        prompt,
        sent_ns: 0,
        connect_ns: None,
    };
    let secret = spec.api_key.as_ref().map(ApiKey::reveal);
    Ok(reply.into_record(&sent, secret).0.failure)
}

/// A failure of the trial request, with what to do about it.
pub(crate) fn explain(failure: &Failure, spec: &MeterSpec) -> String {
    let said = failure.message.trim_end_matches('.');
    let route = spec.endpoint.route(spec.workload.api.path());
    match failure.http_status {
        Some(status @ (401 | 403)) => key_sentence(status, spec.api_key.is_some()),
        Some(404) => format!(
            "{said}. Either {route} does not exist there or the model name is unknown: check the address, the kind of API and the model."
        ),
        Some(400 | 422) => {
            format!("{said}. Check the model, the lengths asked for and the kind of API.")
        }
        Some(429) => format!(
            "{said}. The server limits requests: lift its limit, or measure another address."
        ),
        Some(status) if status >= 500 => {
            format!("{said}. Look at the server's log; it may still be loading.")
        }
        _ => failure.message.clone(),
    }
}

fn key_sentence(status: u16, given: bool) -> String {
    if given {
        format!(
            "The server answered {status}: it does not accept the key. Check the key of this endpoint."
        )
    } else {
        format!("The server answered {status}: it wants a key. Give the key of this endpoint.")
    }
}

/// A whole reply, outside of any timing.
async fn fetch(connection: &mut Connection, request: &[u8]) -> Result<(Head, Vec<u8>), String> {
    connection
        .write_all(request)
        .await
        .map_err(|error| error.to_string())?;
    let mut decoder = Decoder::new();
    let (mut head, mut body) = (None, Vec::new());
    let mut buffer = vec![0; 16 << 10];
    loop {
        let (count, _) = std::future::poll_fn(|cx| connection.poll_read(cx, &mut buffer))
            .await
            .map_err(|error| format!("the connection broke ({error})"))?;
        if count == 0 {
            return match head {
                Some(head) if decoder.ends_with_connection() => Ok((head, body)),
                _ => Err("the connection was closed before the reply was over".to_owned()),
            };
        }
        let mut input = buffer.get(..count).unwrap_or_default();
        loop {
            match decoder
                .next(&mut input)
                .map_err(|error: HttpError| error.to_string())?
            {
                None => break,
                Some(Piece::Head(found)) => head = Some(found),
                Some(Piece::Body(bytes)) => body.extend_from_slice(bytes),
                Some(Piece::End) => return head.map(|head| (head, body)).ok_or_else(String::new),
            }
            if body.len() > MAX_LIST {
                return Err(format!("the reply is larger than {MAX_LIST} bytes"));
            }
        }
    }
}
