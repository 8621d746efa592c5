//! Asking launched engines, on loopback and on ports the kernel chose.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::Request,
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use tokdyno_domain::{endpoint::EndpointUrl, engine::EngineKind, meter::ApiKey};
use tokdyno_engines::{Health, health, in_flight, one_token};
use tokio::net::TcpListener;

const LOADS: &str = r#"{"loads":[{"num_running_reqs":2,"num_waiting_reqs":1}]}"#;
const METRICS: &str =
    "vllm:num_requests_running{engine=\"0\"} 3.0\nvllm:num_requests_waiting{engine=\"0\"} 1.0\n";

/// Method and path, status, body.
type Answers = &'static [(&'static str, u16, &'static str)];
type Seen = Arc<Mutex<Vec<String>>>;

/// A server that answers with status and body by method and path, and notes what it
/// was asked.
async fn server(answers: Answers) -> (EndpointUrl, Seen) {
    let seen = Seen::default();
    let noted = seen.clone();
    let router = Router::new().fallback(move |request: Request| {
        let method = if request.method() == Method::POST {
            "POST "
        } else {
            ""
        };
        let asked = format!("{method}{}", request.uri().path());
        noted.lock().expect("not poisoned").push(asked.clone());
        let answer = answers.iter().find(|(path, _, _)| *path == asked);
        let response: Response = match answer {
            Some((_, status, body)) => (
                StatusCode::from_u16(*status).expect("a status"),
                (*body).to_owned(),
            )
                .into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        };
        async move { response }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (at(port), seen)
}

fn at(port: u16) -> EndpointUrl {
    format!("http://127.0.0.1:{port}")
        .parse()
        .expect("an address")
}

/// A port on which nobody listens.
async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn health_follows_each_engines_own_routes_and_never_generates() {
    let (sglang, vllm) = (EngineKind::Sglang, EngineKind::Vllm);
    let cases: [(EngineKind, Answers, Health); 8] = [
        (vllm, &[("/health", 200, "")], Health::Ok),
        (sglang, &[("/ready", 200, "")], Health::Ok),
        (sglang, &[("/ready", 503, "")], Health::Starting),
        (sglang, &[("/model_info", 200, "{}")], Health::Ok),
        (sglang, &[("/get_model_info", 200, "{}")], Health::Ok),
        (EngineKind::Other, &[("/v1/models", 200, "{}")], Health::Ok),
        (
            EngineKind::Other,
            &[("/v1/models", 503, "{}")],
            Health::Starting,
        ),
        (
            vllm,
            &[("/health", 503, "")],
            Health::Dead(
                "/health answers HTTP 503: the engine behind the web server is dead.".to_owned(),
            ),
        ),
    ];
    for (engine, answers, expected) in cases {
        let (endpoint, seen) = server(answers).await;
        assert_eq!(
            health(engine, &endpoint, None).await,
            expected,
            "{answers:?}"
        );
        let seen = seen.lock().expect("not poisoned").clone();
        assert!(
            engine == vllm || !seen.iter().any(|path| path.starts_with("/health")),
            "{seen:?}"
        );
        assert!(
            !seen.iter().any(|path| path.starts_with("POST")),
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn a_refused_connection_is_an_engine_that_starts() {
    let endpoint = at(closed_port().await);
    for engine in [EngineKind::Vllm, EngineKind::Sglang] {
        assert_eq!(health(engine, &endpoint, None).await, Health::Starting);
    }
}

#[tokio::test]
async fn a_forward_that_closes_at_once_is_an_engine_that_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            drop(connection);
        }
    });
    assert_eq!(
        health(EngineKind::Vllm, &at(port), None).await,
        Health::Starting
    );
}

#[tokio::test]
async fn what_cannot_be_asked_is_told() {
    let (endpoint, _) = server(&[("/ready", 401, "")]).await;
    let Health::Unreachable(why) = health(EngineKind::Sglang, &endpoint, None).await else {
        panic!("it asks for a key");
    };
    assert!(why.contains("401"), "{why}");
    let (nothing, _) = server(&[]).await;
    assert!(matches!(
        health(EngineKind::Sglang, &nothing, None).await,
        Health::Unreachable(_)
    ));
}

#[tokio::test]
async fn one_token_is_counted_and_its_absence_is_explained() {
    let good: [Answers; 3] = [
        &[(
            "POST /v1/completions",
            200,
            r#"{"choices":[{"text":""}],"usage":{"completion_tokens":1}}"#,
        )],
        &[("POST /v1/completions", 200, r#"{"choices":[{"text":"a"}]}"#)],
        &[(
            "POST /v1/chat/completions",
            200,
            r#"{"choices":[{"message":{"content":"a"}}]}"#,
        )],
    ];
    for answers in good {
        let (endpoint, _) = server(answers).await;
        let key = ApiKey::new("k");
        assert_eq!(
            one_token(&endpoint, key.as_ref(), "m").await,
            Ok(()),
            "{answers:?}"
        );
    }
    let bad: [(Answers, &str); 6] = [
        (
            &[(
                "POST /v1/completions",
                500,
                r#"{"error":{"message":"it broke."}}"#,
            )],
            "HTTP 500: it broke.",
        ),
        (
            &[(
                "POST /v1/completions",
                200,
                r#"{"choices":[],"usage":{"completion_tokens":0}}"#,
            )],
            "no token",
        ),
        (
            &[("POST /v1/completions", 200, r#"{"choices":[]}"#)],
            "no choice",
        ),
        (
            &[("POST /v1/completions", 200, r#"{"error":{"message":"no"}}"#)],
            "with an error: no",
        ),
        (
            &[("POST /v1/completions", 200, "hello")],
            "not in JSON: hello",
        ),
        (&[], "HTTP 404"),
    ];
    for (answers, said) in bad {
        let (endpoint, _) = server(answers).await;
        let error = one_token(&endpoint, None, "m").await.expect_err(said);
        assert!(error.contains(said), "{error}");
    }
    let refused = one_token(&at(closed_port().await), None, "m").await;
    assert!(refused.expect_err("nobody").contains("Nothing listens"));
}

#[tokio::test]
async fn requests_in_flight_are_asked_without_making_it_generate() {
    let (sglang, vllm) = (EngineKind::Sglang, EngineKind::Vllm);
    let cases: [(EngineKind, Answers, Option<u64>); 6] = [
        (sglang, &[("/v1/loads", 200, LOADS)], Some(3)),
        (
            sglang,
            &[("/metrics", 200, "sglang:num_running_reqs 5\n")],
            Some(5),
        ),
        (
            vllm,
            &[
                ("/metrics", 200, METRICS),
                ("/load", 200, r#"{"server_load":0}"#),
            ],
            Some(4),
        ),
        (
            vllm,
            &[
                ("/metrics", 200, "x 1\n"),
                ("/load", 200, r#"{"server_load":7}"#),
            ],
            Some(7),
        ),
        (vllm, &[], None),
        (EngineKind::Other, &[("/metrics", 200, METRICS)], Some(4)),
    ];
    for (engine, answers, expected) in cases {
        let (endpoint, seen) = server(answers).await;
        assert_eq!(
            in_flight(engine, &endpoint, None).await,
            Ok(expected),
            "{answers:?}"
        );
        let seen = seen.lock().expect("not poisoned").clone();
        assert!(
            seen.iter()
                .all(|path| matches!(path.as_str(), "/v1/loads" | "/metrics" | "/load")),
            "{seen:?}"
        );
    }
    let dead = in_flight(vllm, &at(closed_port().await), None).await;
    assert!(dead.expect_err("nobody").contains("Nothing listens"));
}
