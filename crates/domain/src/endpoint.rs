//! An address to benchmark, and how far its certificate is trusted.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use url::Url;

/// The base address of an OpenAI-compatible server, normalised: scheme, host,
/// port and an optional path, without `/v1`, without a trailing slash. Two
/// spellings of one server are equal, which is what *one measurement at a time
/// per endpoint* rests on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointUrl(Url);

/// Why an address cannot be used. Each says the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointUrlError {
    /// Nothing was typed.
    #[error("No address was given. Type the server's base address, such as http://127.0.0.1:8000.")]
    Empty,
    /// It is no URL at all.
    #[error("`{text}` is not an address ({reason}). Type one such as http://127.0.0.1:8000.")]
    Malformed {
        /// What was typed.
        text: String,
        /// What the parser said.
        reason: String,
    },
    /// Neither http nor https.
    #[error("The scheme `{0}` cannot be measured. Use http:// or https://.")]
    Scheme(String),
    /// Credentials inside the URL would end up in logs.
    #[error(
        "The address holds a user name or password. Leave them out and give the key in its own field, where it is kept encrypted."
    )]
    Credentials,
    /// Query or fragment.
    #[error(
        "The address ends in `{0}`, which a base address cannot have. Remove everything from the `?` or `#` on."
    )]
    Trailing(String),
}

impl EndpointUrl {
    /// The address of a route below the base, such as `/v1/models`.
    #[must_use]
    pub fn route(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
        url
    }

    /// The whole base address.
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// Is the connection encrypted?
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Host and port, for labels.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.0.authority()
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for EndpointUrl {
    type Err = EndpointUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err(EndpointUrlError::Empty);
        }
        // People paste `localhost:8000`; a scheme is then understood.
        let spelled = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let mut url = Url::parse(&spelled).map_err(|error| EndpointUrlError::Malformed {
            text: text.to_owned(),
            reason: error.to_string(),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EndpointUrlError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointUrlError::Credentials);
        }
        if let Some(query) = url.query() {
            return Err(EndpointUrlError::Trailing(format!("?{query}")));
        }
        if let Some(fragment) = url.fragment() {
            return Err(EndpointUrlError::Trailing(format!("#{fragment}")));
        }
        let mut path = url.path().trim_end_matches('/');
        for known in [
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/models",
            "/v1",
        ] {
            if let Some(shorter) = path.strip_suffix(known) {
                path = shorter;
                break;
            }
        }
        let path = path.to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }
}

impl Serialize for EndpointUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EndpointUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "trust")]
pub enum TlsTrust {
    /// The certificate authorities of the machine.
    #[default]
    System,
    /// These authorities (PEM text) besides the machine's.
    Ca {
        /// One or more certificates in PEM form.
        pem: String,
    },
    /// Any certificate: encrypted, but nobody knows with whom.
    AcceptAny,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        text.parse::<EndpointUrl>().expect(text).to_string()
    }

    #[test]
    fn spellings_of_one_server_are_one() {
        for text in [
            "http://gpu1:8000",
            "http://gpu1:8000/",
            "gpu1:8000",
            " http://GPU1:8000/v1 ",
            "http://gpu1:8000/v1/chat/completions",
        ] {
            assert_eq!(parsed(text), "http://gpu1:8000", "{text}");
        }
        assert_eq!(parsed("https://gpu1:443/"), "https://gpu1");
        assert_eq!(parsed("http://gw/team/a/v1/"), "http://gw/team/a");
    }

    #[test]
    fn routes_keep_the_base_path() {
        let base: EndpointUrl = "http://gw/team/a".parse().expect("an address");
        assert_eq!(
            base.route("/v1/models").as_str(),
            "http://gw/team/a/v1/models"
        );
        let bare: EndpointUrl = "http://gw".parse().expect("an address");
        assert_eq!(bare.route("/v1/models").as_str(), "http://gw/v1/models");
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_reason() {
        let error = |text: &str| text.parse::<EndpointUrl>().expect_err(text);
        assert_eq!(error("  "), EndpointUrlError::Empty);
        assert_eq!(
            error("ftp://gpu1"),
            EndpointUrlError::Scheme("ftp".to_owned())
        );
        assert_eq!(error("http://me:pw@gpu1"), EndpointUrlError::Credentials);
        assert_eq!(
            error("http://gpu1/?a=1"),
            EndpointUrlError::Trailing("?a=1".to_owned())
        );
        assert!(matches!(
            error("http://"),
            EndpointUrlError::Malformed { .. }
        ));
        assert!(matches!(
            error("not an address"),
            EndpointUrlError::Malformed { .. }
        ));
    }
}
