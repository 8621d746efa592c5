//! Probing servers of every kind, all on loopback and on ports the kernel chose.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rcgen::{CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokdyno_domain::{
    endpoint::{EndpointUrl, TlsTrust},
    engine::{EngineKind, SIMULATED_MARKER},
    meter::ApiKey,
};
use tokdyno_engines::{ProbeError, ProbeReport, probe, title_of_configuration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const SGLANG_INFO: &str = include_str!("fixtures/sglang-0.5.23-server_info.json");
const VLLM_MODELS: &str = include_str!("fixtures/vllm-0.32-models.json");
const VLLM_VERSION: &str = include_str!("fixtures/vllm-0.32-version.json");
const SGLANG_MODELS: &str =
    r#"{"object":"list","data":[{"id":"tiny","owned_by":"sglang","max_model_len":4096}]}"#;

type Seen = Arc<Mutex<Vec<String>>>;

/// A server that answers by path, and notes which paths were asked for.
async fn server<F>(answer: F) -> (EndpointUrl, Seen)
where
    F: Fn(&Request) -> Response + Clone + Send + Sync + 'static,
{
    let seen = Seen::default();
    let noted = seen.clone();
    let router = Router::new().fallback(move |request: Request| {
        noted
            .lock()
            .expect("not poisoned")
            .push(request.uri().to_string());
        let response = answer(&request);
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

fn json(text: &str) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        text.to_owned(),
    )
        .into_response()
}

fn missing() -> Response {
    StatusCode::NOT_FOUND.into_response()
}

async fn ask(endpoint: &EndpointUrl) -> Result<ProbeReport, ProbeError> {
    probe(endpoint, None, &TlsTrust::System).await
}

/// The error of a server that answers everything with this.
async fn refused_with(status: u16, body: &'static str, key: Option<&str>) -> ProbeError {
    let (endpoint, _) =
        server(move |_| (StatusCode::from_u16(status).expect("a status"), body).into_response())
            .await;
    let key = key.and_then(ApiKey::new);
    probe(&endpoint, key.as_ref(), &TlsTrust::System)
        .await
        .expect_err("no engine")
}

#[tokio::test]
async fn sglang_tells_all_about_itself() {
    let (endpoint, seen) = server(|request| match request.uri().path() {
        "/v1/models" => json(SGLANG_MODELS),
        "/server_info" => json(SGLANG_INFO),
        _ => missing(),
    })
    .await;
    let report = ask(&endpoint).await.expect("SGLang");
    let info = &report.info;
    assert_eq!(info.kind, EngineKind::Sglang);
    assert_eq!(info.version.as_deref(), Some("0.5.23"));
    assert_eq!(info.models, ["tiny"]);
    assert_eq!(info.max_model_len, Some(4096));
    assert_eq!(info.max_running_requests, Some(2048));
    assert_eq!(info.settings["attention_backend"], "torch_native");
    assert_eq!(info.settings["tp_size"], "1");
    assert!(info.settings.len() <= 400);
    assert!(!info.simulated);
    assert_eq!(report.notes, Vec::<String>::new());
    assert!(report.round_trip_ms > 0.0);
    assert_eq!(title_of_configuration(info), "SGLang 0.5.23 tiny");
    // Nothing that makes an engine generate was called.
    assert_eq!(
        *seen.lock().expect("not poisoned"),
        ["/v1/models", "/version", "/server_info"]
    );
}

#[tokio::test]
async fn an_older_sglang_is_asked_by_its_older_route() {
    let (endpoint, _) = server(|request| match request.uri().path() {
        "/v1/models" => json(r#"{"data":[{"id":"m"}]}"#),
        "/get_server_info" => json(
            r#"{"model_path":"m","tp_size":8,"version":"0.5.8","max_running_requests":48,"internal_states":[{}],"api_key":"hidden","x-tokdyno-simulated":true}"#,
        ),
        _ => missing(),
    })
    .await;
    let info = ask(&endpoint).await.expect("SGLang").info;
    assert_eq!(info.kind, EngineKind::Sglang);
    assert_eq!(info.title(), "SGLang 0.5.8");
    assert_eq!(info.max_running_requests, Some(48));
    assert_eq!(info.settings["api_key"], "•••");
    assert!(info.simulated, "the marker stands in the server info");
}

#[tokio::test]
async fn vllm_without_developer_mode_tells_version_and_models() {
    let (endpoint, seen) = server(|request| match request.uri().path() {
        "/v1/models" => json(VLLM_MODELS),
        "/version" => json(VLLM_VERSION),
        _ => missing(),
    })
    .await;
    let report = ask(&endpoint).await.expect("vLLM");
    assert_eq!(report.info.kind, EngineKind::Vllm);
    assert_eq!(report.info.title(), "vLLM 0.32.0");
    assert_eq!(report.info.max_model_len, Some(4096));
    assert!(report.info.settings.is_empty());
    assert_eq!(report.notes.len(), 1);
    assert!(report.notes[0].contains("VLLM_SERVER_DEV_MODE"));
    assert!(
        seen.lock()
            .expect("not poisoned")
            .contains(&"/server_info?config_format=json".to_owned())
    );
}

#[tokio::test]
async fn vllm_in_developer_mode_tells_its_configuration() {
    let (endpoint, _) = server(|request| match request.uri().path() {
        "/v1/models" => json(VLLM_MODELS),
        "/version" => json(VLLM_VERSION),
        "/server_info" => json(
            r#"{"vllm_config":{"scheduler_config":{"max_num_seqs":256},"speculative_config":{"method":"eagle3"}},
                "vllm_env":{"VLLM_API_KEY":"k"},"system_env":{"env_vars":"NCCL_PROTO=LL"}}"#,
        ),
        _ => missing(),
    })
    .await;
    let info = ask(&endpoint).await.expect("vLLM").info;
    assert_eq!(info.max_running_requests, Some(256));
    assert_eq!(info.settings["env.VLLM_API_KEY"], "•••");
    assert_eq!(
        title_of_configuration(&info),
        "vLLM 0.32.0 tiny · eagle3 · NCCL tuned"
    );
}

#[tokio::test]
async fn another_engine_is_measured_as_what_it_is() {
    let (endpoint, seen) = server(|request| match request.uri().path() {
        "/v1/models" => json(r#"{"data":[{"id":"a","owned_by":"acme"},{"id":"b"}]}"#),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    })
    .await;
    let report = ask(&endpoint).await.expect("an engine");
    assert_eq!(report.info.kind, EngineKind::Other);
    assert_eq!(report.info.models, ["a", "b"]);
    assert!(report.notes.iter().any(|note| note.contains("HTTP 500")));
    assert!(report.notes.iter().any(|note| note.contains("2 models")));
    assert!(seen.lock().expect("not poisoned").len() == 2);
}

#[tokio::test]
async fn the_stand_in_is_recognised_by_its_header() {
    let (endpoint, _) = server(|request| match request.uri().path() {
        "/v1/models" => ([(SIMULATED_MARKER, "1")], SGLANG_MODELS).into_response(),
        _ => missing(),
    })
    .await;
    assert!(ask(&endpoint).await.expect("the stand-in").info.simulated);
}

#[tokio::test]
async fn the_key_goes_along_and_is_masked_where_it_comes_back() {
    let (endpoint, _) = server(|request| {
        let authorised = request
            .headers()
            .get(header::AUTHORIZATION)
            .is_some_and(|value| value == "Bearer my-own-key-123");
        match request.uri().path() {
            _ if !authorised => StatusCode::UNAUTHORIZED.into_response(),
            "/v1/models" => json(SGLANG_MODELS),
            "/server_info" => json(
                r#"{"internal_states":[],"launch_command":"serve --api-key my-own-key-123 --tp 8","odd":"my-own-key-123"}"#,
            ),
            _ => missing(),
        }
    })
    .await;
    let key = ApiKey::new("my-own-key-123");
    let report = probe(&endpoint, key.as_ref(), &TlsTrust::System)
        .await
        .expect("SGLang");
    assert_eq!(
        report.info.settings["launch_command"],
        "serve --api-key ••• --tp 8"
    );
    assert!(!format!("{report:?}").contains("my-own-key"));

    let error = ask(&endpoint).await.expect_err("a key is needed");
    assert_eq!(error.word(), "key_missing");
    let wrong = ApiKey::new("wrong");
    let error = probe(&endpoint, wrong.as_ref(), &TlsTrust::System)
        .await
        .expect_err("another key is needed");
    assert_eq!(error.word(), "key_refused");
    let unsendable = ApiKey::new("a\nb");
    let error = probe(&endpoint, unsendable.as_ref(), &TlsTrust::System)
        .await
        .expect_err("no header can carry it");
    assert_eq!(error.word(), "key_unsendable");
}

#[tokio::test]
async fn every_refusal_has_its_word_and_its_remedy() {
    for (status, body, key, word, says) in [
        (401, "", None, "key_missing", "Give the key"),
        (403, "", Some("k"), "key_refused", "refused the key"),
        (404, "", None, "not_openai", "/v1/models"),
        (503, "", None, "loading", "still loading"),
        (500, "out of\nmemory", None, "status", "out of memory"),
        (200, "<html>\n<p>hello", None, "not_json", "<html> <p>hello"),
        (200, "", None, "not_json", "nothing at all"),
        (200, r#"{"error":"no"}"#, None, "not_models", "no"),
        (200, r#"{"data":[]}"#, None, "no_models", "Load a model"),
        (
            400,
            "The plain HTTP request was sent to HTTPS port",
            None,
            "speaks_tls",
            "https://",
        ),
    ] {
        let error = refused_with(status, body, key).await;
        assert_eq!(error.word(), word, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn the_first_characters_of_a_strange_reply_are_shown_and_no_more() {
    let page = Box::leak("é".repeat(5000).into_boxed_str());
    let ProbeError::NotJson { start, .. } = refused_with(200, page, None).await else {
        panic!("not JSON");
    };
    assert_eq!(start.chars().count(), 80);
}

#[tokio::test]
async fn redirects_are_told_and_not_followed() {
    let (endpoint, seen) = server(|_| {
        (
            StatusCode::FOUND,
            [(header::LOCATION, "https://elsewhere.test/v1/models")],
        )
            .into_response()
    })
    .await;
    let error = ask(&endpoint).await.expect_err("a redirect");
    assert_eq!(error.word(), "redirected");
    assert!(error.to_string().contains("elsewhere.test"), "{error}");
    assert_eq!(seen.lock().expect("not poisoned").len(), 1);
}

#[tokio::test]
async fn endless_replies_are_cut_off() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let (endpoint, _) = server(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Response::new(Body::from(vec![b' '; 5 * 1024 * 1024]))
    })
    .await;
    let error = ask(&endpoint).await.expect_err("too much");
    assert_eq!(error.word(), "too_large");
    assert_eq!(sent.load(Ordering::Relaxed), 1, "nothing is asked twice");
}

#[tokio::test]
async fn an_empty_port_and_an_unknown_name_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let error = ask(&at(port)).await.expect_err("nobody listens");
    assert_eq!(error.word(), "refused", "{error}");
    assert!(error.to_string().contains(&port.to_string()));

    // A label of 64 letters is no name, so that no resolver is asked on the network.
    let endpoint: EndpointUrl = format!("http://{}.invalid:1", "a".repeat(64))
        .parse()
        .expect("an address");
    let error = ask(&endpoint).await.expect_err("no such name");
    assert_eq!(error.word(), "name_not_found", "{error}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let held = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    let endpoint = at(port);
    // Far above the bound of 10 s, so that a loaded machine does not fail it.
    let error = tokio::time::timeout(Duration::from_secs(60), ask(&endpoint))
        .await
        .expect("bounded")
        .expect_err("no answer");
    held.abort();
    assert_eq!(error.word(), "timed_out", "{error}");
    assert!(
        error.to_string().contains("waiting for the reply"),
        "{error}"
    );
}

#[tokio::test]
async fn slow_extras_become_notes_and_do_not_fail_the_probe() {
    let router = Router::new()
        .route("/v1/models", axum::routing::get(|| async { VLLM_MODELS }))
        .fallback(|| async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            "late"
        });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let endpoint = at(port);
    let report = tokio::time::timeout(Duration::from_secs(60), ask(&endpoint))
        .await
        .expect("bounded")
        .expect("vLLM");
    assert_eq!(report.info.models, ["tiny"]);
    assert_eq!(report.info.version, None);
    assert!(report.notes.iter().any(|note| note.starts_with("/version")));
}

/// A server that sends `reply` on every connection, through TLS if a certificate is
/// given.
async fn raw(certificate: Option<(CertificateDer<'static>, KeyPair)>, reply: String) -> u16 {
    let acceptor = certificate.map(|(certificate, key)| {
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate");
        tokio_rustls::TlsAcceptor::from(Arc::new(config))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (acceptor, reply) = (acceptor.clone(), reply.clone());
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                match acceptor {
                    Some(acceptor) => {
                        if let Ok(mut stream) = acceptor.accept(stream).await {
                            let _ = stream.read(&mut buffer).await;
                            let _ = stream.write_all(reply.as_bytes()).await;
                            let _ = stream.shutdown().await;
                        }
                    }
                    None => {
                        let _ = stream.read(&mut buffer).await;
                        let _ = stream.write_all(reply.as_bytes()).await;
                        let _ = stream.shutdown().await;
                    }
                }
            });
        }
    });
    port
}

fn http(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn tls_at(port: u16, host: &str) -> EndpointUrl {
    format!("https://{host}:{port}")
        .parse()
        .expect("an address")
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).expect("a name")
}

#[tokio::test]
async fn a_self_signed_certificate_is_a_choice() {
    for authority in [false, true] {
        let key = KeyPair::generate().expect("a key");
        let mut params = params("gpu-box");
        if authority {
            // As `openssl req -x509` makes it.
            params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        let certificate = params.self_signed(&key).expect("a certificate");
        let pem = certificate.pem();
        let port = raw(Some((certificate.der().clone(), key)), http(SGLANG_MODELS)).await;
        let endpoint = tls_at(port, "127.0.0.1");

        let error = ask(&endpoint).await.expect_err("nobody vouches for it");
        assert_eq!(error.word(), "tls_untrusted", "{error}");
        assert!(error.to_string().contains("CA file"), "{error}");

        for trust in [TlsTrust::Ca { pem }, TlsTrust::AcceptAny] {
            let report = probe(&endpoint, None, &trust).await.expect("trusted");
            assert_eq!(report.info.kind, EngineKind::Sglang);
        }
    }
}

#[tokio::test]
async fn an_authority_vouches_for_its_names_only() {
    let authority_key = KeyPair::generate().expect("a key");
    let mut authority = params("an authority");
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key).expect("signed").pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().expect("a key");
    let certificate = params("localhost")
        .signed_by(&key, &issuer)
        .expect("signed");
    let port = raw(Some((certificate.der().clone(), key)), http(SGLANG_MODELS)).await;
    let trust = TlsTrust::Ca { pem };

    let report = probe(&tls_at(port, "localhost"), None, &trust).await;
    assert_eq!(report.expect("vouched for").info.models, ["tiny"]);
    let error = probe(&tls_at(port, "127.0.0.1"), None, &trust)
        .await
        .expect_err("another name");
    assert_eq!(error.word(), "tls_name", "{error}");
}

#[tokio::test]
async fn http_and_https_taken_for_each_other_are_told() {
    let plain = raw(None, http(SGLANG_MODELS)).await;
    let error = ask(&tls_at(plain, "127.0.0.1")).await.expect_err("no TLS");
    assert_eq!(error.word(), "speaks_plain_http", "{error}");

    let key = KeyPair::generate().expect("a key");
    let certificate = params("gpu-box").self_signed(&key).expect("signed");
    let port = raw(Some((certificate.der().clone(), key)), http(SGLANG_MODELS)).await;
    let error = ask(&at(port)).await.expect_err("no plain HTTP");
    assert_eq!(error.word(), "speaks_tls", "{error}");
}

#[tokio::test]
async fn what_is_not_http_is_called_broken() {
    let port = raw(None, "SSH-2.0-OpenSSH_9.9\r\n".to_owned()).await;
    let error = ask(&at(port)).await.expect_err("not HTTP");
    assert_eq!(error.word(), "broken", "{error}");
}

#[tokio::test]
async fn a_bad_ca_file_is_told_before_anything_is_sent() {
    let trust = TlsTrust::Ca {
        pem: "no certificate".to_owned(),
    };
    let error = probe(&at(1), None, &trust).await.expect_err("a bad file");
    assert_eq!(error.word(), "bad_ca_pem");
}
