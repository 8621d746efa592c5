//! One request: who may ask, what is asked, and the reply.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    config::{Engine, SimConfig},
    engine::{EngineHandle, Submission},
    fault::{FaultKind, Struck},
    http::{self, Connection, Request},
    info,
    noise::{mix, uniform},
    openai::{self, Body, Encoder, Shape},
    pacer::{Job, Ns, Ticket},
    prefix_cache::PrefixCache,
    sink::{Mishap, Sink, StreamEnd, StreamSink},
    truth::{Clock, Trace},
};

/// Longest that a stalled or waiting connection is kept.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// How long SGLang's health check waits for a token.
const HEALTH_WAIT: Duration = Duration::from_secs(20);
/// Extra time to the first token under `slow-first-token`.
const SLOW_NS: f64 = 5e9;
/// Tokens of a chat answer for which no limit was sent. Invented.
const UNLIMITED: u32 = 1024;
/// Share of requests without `ignore_eos` that stop early. Invented.
const EARLY_STOPS: f64 = 0.3;

/// How far an engine that listens has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Starting,
    Ready,
    Stopping,
}

impl Phase {
    /// SGLang's word for it in server info.
    const fn status(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Stopping => "stopping",
        }
    }
}

/// What all connections share.
pub(crate) struct State {
    pub(crate) config: Arc<SimConfig>,
    pub(crate) engine: EngineHandle,
    pub(crate) clock: Clock,
    phase: AtomicU8,
    next_ticket: AtomicU64,
    cached: Mutex<PrefixCache>,
}

/// What to do with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Next,
    Close,
}

struct Reply {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Reply {
    fn json(status: u16, value: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: value.to_string().into_bytes(),
        }
    }

    fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: text.as_bytes().to_vec(),
        }
    }

    fn empty(status: u16) -> Self {
        Self::text(status, "")
    }
}

impl State {
    pub(crate) fn new(
        config: Arc<SimConfig>,
        engine: EngineHandle,
        clock: Clock,
        phase: Phase,
    ) -> Self {
        Self {
            phase: AtomicU8::new(phase as u8),
            config,
            engine,
            clock,
            next_ticket: AtomicU64::new(0),
            cached: Mutex::default(),
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Stopping,
        }
    }

    fn ticket(&self) -> Ticket {
        Ticket(self.next_ticket.fetch_add(1, Ordering::Relaxed))
    }

    fn unix_seconds(&self) -> f64 {
        (self.clock.unix_ns + self.clock.now()) as f64 / 1e9
    }

    /// Tokens of this prompt that are in the cache; remembers the prompt.
    fn cached_tokens(&self, prompt: &str, tokens: u32) -> u32 {
        if !self.config.prefix_cache {
            return 0;
        }
        self.cached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .look_up(prompt, tokens, self.config.engine)
    }

    fn flush(&self) {
        self.cached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.engine.flush();
    }
}

/// Answers one request on its connection.
pub(crate) async fn answer(
    state: &State,
    connection: &mut Connection,
    request: &Request,
) -> std::io::Result<Then> {
    let received = state.clock.now();
    let reply = if let Some(refusal) = unauthorized(&state.config, request) {
        refusal
    } else {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/v1/completions" | "/v1/chat/completions")
                if state.phase() == Phase::Stopping =>
            {
                let message = "The server is shutting down and takes no more requests.";
                unavailable(&state.config, message)
            }
            ("POST", "/v1/completions") => {
                return generate(state, connection, request, received, false).await;
            }
            ("POST", "/v1/chat/completions") => {
                return generate(state, connection, request, received, true).await;
            }
            _ => other(state, request).await,
        }
    };
    send(connection, request, &reply).await
}

async fn send(connection: &Connection, request: &Request, reply: &Reply) -> std::io::Result<Then> {
    let bytes = http::whole(
        reply.status,
        reply.content_type,
        &reply.body,
        request.keep_alive,
    );
    http::write_all(&connection.stream, &bytes).await?;
    Ok(if request.keep_alive {
        Then::Next
    } else {
        Then::Close
    })
}

fn unauthorized(config: &SimConfig, request: &Request) -> Option<Reply> {
    let path = request.path.as_str();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
    let key = match config.engine {
        Engine::Vllm if starts(&["/v1", "/v2", "/inference", "/cohere"]) => &config.api_key,
        Engine::Vllm => &None,
        Engine::Sglang if starts(&["/health", "/ready", "/metrics"]) => &None,
        Engine::Sglang if path == "/flush_cache" && config.admin_api_key.is_some() => {
            &config.admin_api_key
        }
        Engine::Sglang => &config.api_key,
    };
    let expected = format!("Bearer {}", key.as_ref()?);
    (request.authorization.as_deref() != Some(expected.as_str()))
        .then(|| Reply::json(401, &json!({ "error": "Unauthorized" })))
}

async fn other(state: &State, request: &Request) -> Reply {
    let config = &state.config;
    let path = request.path.as_str();
    if !info::serves(config, path) {
        return Reply::json(404, &json!({ "detail": "Not Found" }));
    }
    let vllm = config.engine == Engine::Vllm;
    let method_fits = match path {
        "/reset_prefix_cache" | "/v1/completions" | "/v1/chat/completions" => {
            request.method == "POST"
        }
        "/flush_cache" => matches!(request.method.as_str(), "GET" | "POST"),
        _ => request.method == "GET",
    };
    if !method_fits {
        return Reply::json(405, &json!({ "detail": "Method Not Allowed" }));
    }
    let created = state.clock.unix_ns / 1_000_000_000;
    match path {
        // Until SGLang has tried itself, and once it has been told to stop.
        "/health" | "/ready" | "/health_generate" if state.phase() != Phase::Ready => {
            Reply::empty(503)
        }
        "/health" if vllm => Reply::empty(200),
        "/health"
            if config
                .env
                .get("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION")
                .is_some_and(|on| on == "0" || on.eq_ignore_ascii_case("false")) =>
        {
            Reply::empty(200)
        }
        "/health" | "/health_generate" => health_by_token(state).await,
        "/ready" => Reply::empty(200),
        "/version" => Reply::json(200, &info::version(config)),
        "/load" => {
            let stats = state.engine.stats();
            // Real engines count only if asked to.
            let counts = config.resolved.contains_key("enable_server_load_tracking");
            let load = if counts {
                stats.running + stats.waiting
            } else {
                0
            };
            Reply::json(200, &json!({ "server_load": load }))
        }
        "/v1/models" => Reply::json(200, &info::models(config, created)),
        "/model_info" | "/get_model_info" => Reply::json(200, &info::model_info(config)),
        "/server_info" if vllm => {
            let as_json = request.query_value("config_format") == Some("json");
            Reply::json(200, &info::vllm_server_info(config, as_json))
        }
        "/server_info" | "/get_server_info" => Reply::json(
            200,
            &info::sglang_server_info(config, &state.engine.stats(), state.phase().status()),
        ),
        "/v1/loads" => {
            let stats = state.engine.stats();
            Reply::json(200, &info::loads(config, &stats, state.unix_seconds()))
        }
        "/metrics" => Reply {
            status: 200,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body: state.engine.stats().prometheus(config).into_bytes(),
        },
        "/reset_prefix_cache" => {
            state.flush();
            Reply::json(200, &json!({ "success": true }))
        }
        "/flush_cache" => flush_cache(state, request).await,
        _ => {
            let name = path.strip_prefix("/v1/models/").unwrap_or("");
            if config.served_names.iter().any(|served| served == name) {
                Reply::json(200, &info::model(config, name, created))
            } else {
                let message = format!("The model '{name}' does not exist");
                Reply::json(
                    404,
                    &json!({ "error": {
                        "message": message, "type": "invalid_request_error",
                        "param": "model", "code": "model_not_found"
                    } }),
                )
            }
        }
    }
}

/// SGLang clears its cache only while nothing runs; it tries once, or for as
/// long as the query says.
async fn flush_cache(state: &State, request: &Request) -> Reply {
    let seconds: f64 = request
        .query_value("timeout")
        .and_then(|text| text.parse().ok())
        .filter(|seconds: &f64| (0.0..=600.0).contains(seconds))
        .unwrap_or(0.0);
    let until = state.clock.now() + (seconds * 1e9) as Ns;
    loop {
        let stats = state.engine.stats();
        if stats.running + stats.waiting == 0 {
            state.flush();
            return Reply::text(200, "Cache flushed.\n");
        }
        if state.clock.now() >= until {
            return Reply::text(400, "Not flushed: requests are running or waiting.\n");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// SGLang proves its health by generating a token, looking once a second.
async fn health_by_token(state: &State) -> Reply {
    let (end, ended) = oneshot::channel();
    let submission = Submission {
        ticket: state.ticket(),
        job: Job {
            prefill_tokens: 1,
            tokens: 1,
            delay_ns: 0,
        },
        sink: Sink::Whole(end),
        trace: Trace {
            id: "HEALTH_CHECK".to_owned(),
            received: state.clock.now(),
            prompt_tokens: 1,
            finish_reason: "length",
            ..Default::default()
        },
    };
    let ticket = submission.ticket;
    if state.engine.submit(submission).is_err() {
        return Reply::empty(503);
    }
    let token = tokio::time::timeout(HEALTH_WAIT, ended);
    let second = Duration::from_secs_f64(1.0 / state.config.sim.speed.max(1.0));
    let ((), token) = tokio::join!(tokio::time::sleep(second), token);
    if matches!(token, Ok(Ok(()))) {
        Reply::empty(200)
    } else {
        state.engine.cancel(ticket);
        Reply::empty(503)
    }
}

fn bad_request(config: &SimConfig, message: &str) -> Reply {
    let body = openai::error(config.engine, 400, "BadRequestError", None, message);
    Reply::json(400, &body)
}

/// How long the answer is and why it ends.
fn length(body: &Body, seed: u64, ticket: Ticket) -> (u32, &'static str) {
    let limit = body.limit();
    if body.ignore_eos == Some(true) {
        return (limit.unwrap_or(UNLIMITED), "length");
    }
    let most = limit.unwrap_or(UNLIMITED);
    let least = body.min_tokens.unwrap_or(1).clamp(1, most);
    let stops = limit.is_none() || uniform(seed, 0x5709, ticket.0) < EARLY_STOPS;
    if !stops || least == most {
        return (most, "length");
    }
    let from = least.max(most / 4);
    let span = f64::from(most - from);
    let at = from + (span * uniform(seed, 0x570A, ticket.0)) as u32;
    (at.max(1), if at == most { "length" } else { "stop" })
}

async fn generate(
    state: &State,
    connection: &mut Connection,
    request: &Request,
    received: Ns,
    chat: bool,
) -> std::io::Result<Then> {
    let config = &state.config;
    let Prepared {
        ticket,
        body,
        struck,
        shape,
        job,
        trace,
    } = match prepare(state, request, received, chat) {
        Ok(prepared) => prepared,
        Err(reply) => return send(connection, request, &reply).await,
    };
    let finish = trace.finish_reason;
    let tokens = if struck.has(FaultKind::Empty) {
        0
    } else {
        job.tokens
    };
    if body.stream != Some(true) || struck.has(FaultKind::NotStream) {
        let (end, mut ended) = oneshot::channel();
        let submission = Submission {
            ticket,
            job,
            sink: Sink::Whole(end),
            trace,
        };
        if let Err(overloaded) = state.engine.submit(submission) {
            return send(
                connection,
                request,
                &unavailable(config, &overloaded.to_string()),
            )
            .await;
        }
        let over = tokio::select! {
            over = &mut ended => over.is_ok(),
            () = connection.closed() => false,
        };
        if !over || struck.has(FaultKind::Cut) {
            state.engine.cancel(ticket);
            return Ok(Then::Close);
        }
        if struck.has(FaultKind::Stall) {
            return stall(connection).await;
        }
        let usage = !struck.has(FaultKind::NoUsage);
        let reply = Reply::json(200, &shape.whole(tokens, finish, usage));
        return send(connection, request, &reply).await;
    }

    http::write_all(&connection.stream, &http::stream_head()).await?;
    let (end, mut ended) = oneshot::channel();
    let sink = StreamSink {
        stream: Arc::clone(&connection.stream),
        encoder: Encoder::new(shape),
        end: Some(end),
        interval: config.stream_interval,
        finish,
        mishap: mishap(struck, job.tokens),
        held: 0,
        written: 0,
        pending: Vec::new(),
    };
    let submission = Submission {
        ticket,
        job,
        sink: Sink::Stream(Box::new(sink)),
        trace,
    };
    if state.engine.submit(submission).is_err() {
        return Ok(Then::Close);
    }
    let end = tokio::select! {
        end = &mut ended => end,
        () = connection.closed() => {
            state.engine.cancel(ticket);
            return Ok(Then::Close);
        }
    };
    match end {
        Ok(StreamEnd::Complete(rest)) => {
            http::write_all(&connection.stream, &rest).await?;
            Ok(if request.keep_alive {
                Then::Next
            } else {
                Then::Close
            })
        }
        Ok(StreamEnd::Stalled) => stall(connection).await,
        Ok(StreamEnd::Cut) | Err(_) => Ok(Then::Close),
    }
}

/// A request that was understood, before it is known where its tokens go.
struct Prepared {
    ticket: Ticket,
    body: Body,
    struck: Struck,
    shape: Shape,
    job: Job,
    trace: Trace,
}

/// Understands a request, or says what is wrong with it.
fn prepare(state: &State, request: &Request, received: Ns, chat: bool) -> Result<Prepared, Reply> {
    let config = &state.config;
    let refuse = |message: &str| bad_request(config, message);
    let body: Body = serde_json::from_slice(&request.body)
        .map_err(|error| refuse(&format!("The body is not a usable JSON object: {error}.")))?;
    let name = body.model.as_deref().unwrap_or(config.name());
    // SGLang serves any name.
    if config.engine == Engine::Vllm && !config.served_names.iter().any(|served| served == name) {
        let aliases = config.served_names.join(", ");
        let message = format!("The model `{name}` does not exist. Valid aliases: {aliases}.");
        let body = openai::error(config.engine, 404, "NotFoundError", Some("model"), &message);
        return Err(Reply::json(404, &body));
    }
    let (prompt, prompt_tokens) = body.prompt(chat).map_err(|message| refuse(&message))?;
    if body.limit() == Some(0) {
        return Err(refuse("`max_tokens` must be at least 1."));
    }
    let ticket = state.ticket();
    let struck = Struck::draw(&config.sim.faults, config.sim.seed, ticket.0);
    if struck.has(FaultKind::Error500) {
        let message = "The stand-in was told to fail.";
        let body = openai::error(config.engine, 500, "InternalServerError", None, message);
        return Err(Reply::json(500, &body));
    }
    if struck.has(FaultKind::RefuseContinuousUsage) && body.asks_running_usage() {
        return Err(refuse(
            "Unknown field `continuous_usage_stats` in `stream_options`.",
        ));
    }
    let asked = body.limit();
    let (tokens, finish_reason) = length(&body, config.sim.seed, ticket);
    let total = u64::from(prompt_tokens) + u64::from(asked.unwrap_or(1));
    if total > u64::from(config.max_model_len) {
        return Err(refuse(&format!(
            "The model's context is {} tokens, but prompt and answer together ask for {total}. Shorten one of them.",
            config.max_model_len
        )));
    }
    let cached = state.cached_tokens(&prompt, prompt_tokens);
    state.engine.count_prompt(prompt_tokens, cached);
    let (last_usage, running_usage) = body.usage(config.engine, config.force_usage);
    let no_usage = struck.has(FaultKind::NoUsage);
    let id = format!(
        "{:016x}",
        mix(config.sim.seed, state.clock.unix_ns, ticket.0)
    );
    let id = match (config.engine, chat) {
        (Engine::Vllm, false) => format!("cmpl-{id}"),
        (Engine::Vllm, true) => format!("chatcmpl-{id}"),
        (Engine::Sglang, _) => format!("{id}{:016x}", ticket.0),
    };
    let thinks = chat && config.reasoning && !body.instant();
    let shape = Shape {
        engine: config.engine,
        chat,
        id: id.clone(),
        created: state.unix_seconds() as u64,
        model: name.to_owned(),
        seed: config.sim.seed,
        ticket: ticket.0,
        prompt_tokens,
        cached: config.cache_report.then_some(cached),
        reasoning: if thinks { tokens * 3 / 4 } else { 0 },
        last_usage: last_usage && !no_usage,
        running_usage: running_usage && !no_usage && !struck.has(FaultKind::NoRunningUsage),
        done: !struck.has(FaultKind::NoDone),
    };
    let delay_ns = if struck.has(FaultKind::SlowFirstToken) {
        (SLOW_NS / config.sim.speed) as Ns
    } else {
        0
    };
    Ok(Prepared {
        ticket,
        shape,
        job: Job {
            prefill_tokens: prompt_tokens - cached.min(prompt_tokens),
            tokens,
            delay_ns,
        },
        trace: Trace {
            id,
            stream: body.stream == Some(true) && !struck.has(FaultKind::NotStream),
            received,
            prompt_tokens,
            finish_reason,
            faults: struck.words(),
            ..Default::default()
        },
        struck,
        body,
    })
}

fn mishap(struck: Struck, tokens: u32) -> Option<(Mishap, u32)> {
    let middle = (tokens / 4).max(1);
    [
        (FaultKind::Empty, Mishap::Empty, 0),
        (FaultKind::ErrorInStream, Mishap::Error, middle),
        (FaultKind::Stall, Mishap::Stall, middle),
        (FaultKind::Cut, Mishap::Cut, middle),
        (FaultKind::BadJson, Mishap::BadJson, middle),
    ]
    .into_iter()
    .find(|(kind, _, _)| struck.has(*kind))
    .map(|(_, mishap, after)| (mishap, after))
}

async fn stall(connection: &mut Connection) -> std::io::Result<Then> {
    let _ = tokio::time::timeout(LONGEST_WAIT, connection.closed()).await;
    Ok(Then::Close)
}

fn unavailable(config: &SimConfig, message: &str) -> Reply {
    let body = openai::error(config.engine, 503, "ServiceUnavailableError", None, message);
    Reply::json(503, &body)
}
