//! Asking a server over REST.

use std::time::Duration;

use reqwest::{
    Client, Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, COOKIE, SET_COOKIE},
    redirect,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokdyno_domain::endpoint::TlsTrust;
use tokio::sync::OnceCell;
use url::{Url, form_urlencoded};

use super::ClientError;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for an answer: a host may be slow to connect to.
const CALL: Duration = Duration::from_secs(90);

/// The operator's password, for a server that asks for it.
const PASSWORD: &str = "TOKDYNO_PASSWORD";

/// A server.
pub(crate) struct Connection {
    client: Client,
    server: Url,
    password: Option<String>,
    /// The session's cookie, once signed in.
    session: OnceCell<String>,
}

impl Connection {
    /// To the server at this address. Nothing is asked yet.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn new(server: &Url) -> Result<Self, ClientError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tokdyno_trust::client_config(&TlsTrust::System)?)
            .user_agent(concat!("tokdyno/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .timeout(CALL)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| ClientError::Setup(error.to_string()))?;
        Ok(Self {
            client,
            server: server.clone(),
            password: std::env::var(PASSWORD)
                .ok()
                .filter(|password| !password.is_empty()),
            session: OnceCell::new(),
        })
    }

    /// Reads.
    ///
    /// # Errors
    /// [`ClientError`] with its remedy.
    pub(crate) async fn get(&self, path: &[&str]) -> Result<Value, ClientError> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`ClientError`] with its remedy.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, ClientError> {
        self.parsed(self.get(path).await?)
    }

    /// Asks for something to be done.
    ///
    /// # Errors
    /// [`ClientError`] with its remedy.
    pub(crate) async fn post(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<Value, ClientError> {
        self.answer(self.request(Method::POST, path).json(body))
            .await
    }

    /// A value of an answer.
    ///
    /// # Errors
    /// It is another one than this program knows.
    pub(crate) fn parsed<T: DeserializeOwned>(&self, value: Value) -> Result<T, ClientError> {
        serde_json::from_value(value).map_err(|error| self.strange(&error))
    }

    /// The number under a key of an answer, such as the launch that was made.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn number(&self, answer: &Value, key: &str) -> Result<i64, ClientError> {
        answer[key]
            .as_i64()
            .ok_or_else(|| self.strange(&format!("its answer has no `{key}`")))
    }

    /// The address of a page, for people.
    pub(crate) fn page(&self, path: &str) -> String {
        format!("{}{path}", self.server.as_str().trim_end_matches('/'))
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.server.clone();
        // Fails only for addresses that cannot have a path, which have no host either.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        self.client.request(method, url)
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Value, ClientError> {
        let request = match &self.password {
            Some(password) => {
                let session = self
                    .session
                    .get_or_try_init(|| self.sign_in(password))
                    .await?;
                request.header(COOKIE, session)
            }
            None => request,
        };
        let reply = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let status = reply.status();
        let body = reply
            .bytes()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let value: Option<Value> = serde_json::from_slice(&body).ok();
        if status.is_success() {
            return value.ok_or_else(|| self.strange(&"its answer is no JSON"));
        }
        match value.as_ref().and_then(|value| value["error"].as_str()) {
            Some(sentence) => Err(ClientError::Refused {
                status: status.as_u16(),
                sentence: sentence.to_owned(),
            }),
            None => Err(self.strange(&format!("it answers with status {status}"))),
        }
    }

    /// Gives the password for a session's cookie.
    async fn sign_in(&self, password: &str) -> Result<String, ClientError> {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("sign-in");
        }
        let reply = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(
                form_urlencoded::Serializer::new(String::new())
                    .append_pair("password", password)
                    .finish(),
            )
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let cookie = reply
            .headers()
            .get(SET_COOKIE)
            .and_then(|cookie| cookie.to_str().ok())
            .and_then(|cookie| cookie.split(';').next())
            .map(str::to_owned);
        match (reply.status(), cookie) {
            (StatusCode::SEE_OTHER, Some(cookie)) => Ok(cookie),
            (status, _) => Err(ClientError::Refused {
                status: status.as_u16(),
                sentence: format!(
                    "The server refuses the password in {PASSWORD} (status {status}). Correct it, or wait a quarter of an hour if it was wrong too often."
                ),
            }),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        // The innermost cause says what happened; the outer ones repeat the address.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        ClientError::Unreachable {
            server: self.server.to_string(),
            reason: cause.to_string(),
        }
    }

    fn strange(&self, reason: &dyn std::fmt::Display) -> ClientError {
        ClientError::Strange {
            server: self.server.to_string(),
            reason: reason.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_of(server: &str, path: &[&str]) -> String {
        let connection = Connection::new(&server.parse().expect("a URL")).expect("a client");
        let request = connection.request(Method::GET, path).build();
        request.expect("a request").url().to_string()
    }

    #[test]
    fn names_travel_as_one_part_of_the_path() {
        for server in ["http://127.0.0.1:4000", "http://127.0.0.1:4000/"] {
            assert_eq!(
                url_of(server, &["profiles", "a b/c?d"]),
                "http://127.0.0.1:4000/api/v1/profiles/a%20b%2Fc%3Fd"
            );
        }
        assert_eq!(
            url_of("https://tok.example.org/x/", &["hosts"]),
            "https://tok.example.org/x/api/v1/hosts"
        );
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named_with_the_remedy() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = format!("http://{}/", listener.local_addr().expect("an address"));
        drop(listener);
        let connection = Connection::new(&server.parse().expect("a URL")).expect("a client");
        let error = connection.get(&["hosts"]).await.expect_err("nobody there");
        assert!(error.may_pass());
        let text = error.to_string();
        assert!(
            text.contains(&server) && text.contains("tokdyno serve"),
            "{text}"
        );
    }
}
