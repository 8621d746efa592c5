//! Before anything is timed: which model, and which request fields the server
//! takes.

use std::time::{Duration, Instant};

use serde::Deserialize;
use tokdyno_domain::{
    meter::{ApiKey, MeterSpec},
    prompts::Prompt,
    record::{Failure, FailureKind, RequestRecord},
};

use crate::{
    chunk,
    connection::{Connection, Target},
    fetch::fetch,
    load::{Shared, freshen},
    reply::{Reply, Sent, presentable},
    request,
};

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
    let prompt = FIRST_PROMPT + u64::from(index);
    let text = shared.prompts.prompt(shared.seed, prompt, &shared.fit);
    let record = ask(
        shared,
        connection,
        &text,
        spec.workload.warmup_output_tokens,
    )
    .await?;
    Ok(record.failure)
}

/// One request outside of any stage, whose record is for us alone.
///
/// # Errors
/// A sentence: no connection.
pub(crate) async fn ask(
    shared: &Shared,
    connection: &mut Option<Connection>,
    prompt: &Prompt,
    max_tokens: u32,
) -> Result<RequestRecord, String> {
    freshen(connection).await;
    if connection.is_none() {
        *connection = Some(shared.target.connect().await?);
    }
    let request = shared.template.request(prompt, max_tokens);
    let mut reply = Reply::new(max_tokens);
    shared
        .exchange(connection, &request, Instant::now(), &mut reply, |_| {})
        .await;
    let nowhere = Sent {
        stage: 0,
        seq: 0,
        prompt: 0,
        sent_ns: 0,
        intended_ns: None,
        turn: None,
        asked_tokens: None,
        connect_ns: None,
    };
    Ok(reply.into_record(&nowhere, shared.secret()).0)
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
