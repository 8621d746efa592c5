//! One bounded request after another: no redirects, no proxies, no retries.

use std::time::Duration;

use reqwest::{
    Client, RequestBuilder,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
    redirect, retry,
};
use serde_json::Value;
use tokdyno_domain::{
    endpoint::{EndpointUrl, TlsTrust},
    engine::SIMULATED_MARKER,
    meter::ApiKey,
};
use tokdyno_trust::client_config;
use tokio::time::Instant;
use url::Url;

use crate::{error::ProbeError, line::one_line};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// Longest wait for one reply, connecting included.
const CALL: Duration = Duration::from_secs(5);
/// Longest probe.
const WHOLE: Duration = Duration::from_secs(10);
/// Largest reply, in MiB.
const LARGEST_MIB: usize = 4;

/// Asks one endpoint, within one deadline.
pub(crate) struct Fetcher {
    client: Client,
    endpoint: EndpointUrl,
    deadline: Instant,
}

/// A reply, read to its end.
pub(crate) struct Reply {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// Where a redirect points.
    pub(crate) location: Option<String>,
    /// The stand-in's header was there.
    pub(crate) simulated: bool,
    /// From asking to the reply's head, in milliseconds.
    pub(crate) head_ms: f64,
}

impl Reply {
    /// The first 80 characters of the body, on one line.
    pub(crate) fn start(&self) -> String {
        let head = &self.body[..self.body.len().min(800)];
        let start = one_line(&String::from_utf8_lossy(head), 80);
        if start.is_empty() {
            "nothing at all".to_owned()
        } else {
            start
        }
    }
}

impl Fetcher {
    /// Prepares for an endpoint; the clock of the whole probe starts here.
    pub(crate) async fn new(
        endpoint: &EndpointUrl,
        key: Option<&ApiKey>,
        trust: &TlsTrust,
    ) -> Result<Self, ProbeError> {
        let deadline = Instant::now() + WHOLE;
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
                .map_err(|_| ProbeError::KeyUnsendable)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let fetcher = Self {
            client: client(trust.clone(), headers).await?,
            endpoint: endpoint.clone(),
            deadline,
        };
        fetcher.resolve().await?;
        Ok(fetcher)
    }

    /// Asks for a route below the base address.
    pub(crate) async fn get(&self, path: &str, query: Option<&str>) -> Result<Reply, ProbeError> {
        let mut url = self.endpoint.route(path);
        url.set_query(query);
        self.get_url(&self.client, url).await
    }

    /// Sends JSON to a route below the base address and waits for the reply within
    /// `allowed`, whatever the deadline of a probe: an engine's first token may take
    /// long.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        allowed: Duration,
    ) -> Result<Reply, ProbeError> {
        let request = self
            .client
            .post(self.endpoint.route(path))
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        self.send(request, allowed).await
    }

    /// Host and port, as errors name them.
    pub(crate) fn at(&self) -> &str {
        self.endpoint.authority()
    }

    /// Does the same port speak the other of http and https?
    pub(crate) async fn speaks_other_scheme(&self) -> bool {
        let mut url = self.endpoint.route("/v1/models");
        let other = if self.endpoint.is_tls() {
            "http"
        } else {
            "https"
        };
        let port = url.port_or_known_default();
        if url.set_scheme(other).is_err() || url.set_port(port).is_err() {
            return false;
        }
        // Without the key: this address is not the one it was given for.
        match client(TlsTrust::AcceptAny, HeaderMap::new()).await {
            Ok(client) => self.get_url(&client, url).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Looks the name up first, so that a typing error is told from a dead server.
    async fn resolve(&self) -> Result<(), ProbeError> {
        let url = self.endpoint.as_url();
        let (Some(url::Host::Domain(host)), Some(port)) = (url.host(), url.port_or_known_default())
        else {
            return Ok(());
        };
        let looked_up = tokio::time::timeout(CONNECT, tokio::net::lookup_host((host, port)))
            .await
            .map(|found| found.map(|mut addresses| addresses.next()));
        match looked_up {
            Ok(Ok(Some(_))) => Ok(()),
            Ok(Ok(None)) => Err(ProbeError::NameNotFound {
                at: self.at().to_owned(),
                detail: "it has no address".to_owned(),
            }),
            Ok(Err(error)) => Err(ProbeError::NameNotFound {
                at: self.at().to_owned(),
                detail: one_line(&error.to_string(), 120),
            }),
            Err(_) => Err(ProbeError::TimedOut {
                at: self.at().to_owned(),
                seconds: CONNECT.as_secs(),
                stage: "while looking up its name",
            }),
        }
    }

    async fn get_url(&self, client: &Client, url: Url) -> Result<Reply, ProbeError> {
        let allowed = CALL.min(self.deadline.saturating_duration_since(Instant::now()));
        self.send(client.get(url), allowed).await
    }

    async fn send(&self, request: RequestBuilder, allowed: Duration) -> Result<Reply, ProbeError> {
        let started = Instant::now();
        let broken = |error: &reqwest::Error| {
            let seconds = if error.is_connect() {
                CONNECT.min(allowed)
            } else {
                allowed
            };
            ProbeError::of_transport(error, self.at(), seconds.as_secs().max(1))
        };
        let mut response = request
            .timeout(allowed)
            .send()
            .await
            .map_err(|error| broken(&error))?;
        let head_ms = started.elapsed().as_secs_f64() * 1000.0;
        let location = response
            .headers()
            .get(LOCATION)
            .map(|value| one_line(&String::from_utf8_lossy(value.as_bytes()), 200));
        let simulated = response.headers().contains_key(SIMULATED_MARKER);
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| broken(&error))? {
            if body.len() + chunk.len() > LARGEST_MIB * 1024 * 1024 {
                return Err(ProbeError::TooLarge {
                    at: self.at().to_owned(),
                    mebibytes: LARGEST_MIB,
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Reply {
            status,
            body,
            location,
            simulated,
            head_ms,
        })
    }
}

async fn client(trust: TlsTrust, headers: HeaderMap) -> Result<Client, ProbeError> {
    let setup = |detail: String| ProbeError::Setup { detail };
    // Reads the machine's certificates from disk.
    let tls = tokio::task::spawn_blocking(move || client_config(&trust))
        .await
        .map_err(|error| setup(error.to_string()))??;
    Client::builder()
        .tls_backend_preconfigured(tls)
        .default_headers(headers)
        .user_agent(concat!("tokdyno/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        // The meter goes straight to the server; so does the question before it.
        .no_proxy()
        .build()
        .map_err(|error| setup(one_line(&error.to_string(), 160)))
}
