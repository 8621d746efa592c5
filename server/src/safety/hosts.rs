//! Which names the program answers to.
//!
//! A page elsewhere can point its own name at 127.0.0.1 (DNS rebinding) and then
//! counts as the same origin as this program. It cannot choose the `Host` header:
//! that carries its own name, which is refused here.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::HOST, uri::Authority};
use url::Url;

use crate::web::Problem;

/// The names that are ours.
#[derive(Debug, Clone)]
pub(crate) struct OwnNames {
    port: u16,
    /// Host and port of the public address.
    public: Option<(String, u16)>,
    /// Its origin, as browsers write it.
    public_origin: Option<String>,
    /// On a trusted network: this machine's name. IP addresses are then ours too,
    /// since no name server can make a browser send one.
    trusted_name: Option<String>,
}

/// The public address cannot be one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be the public address. Give the scheme and host people type, such as https://tokdyno.example.org."
)]
pub(crate) struct BadPublicUrl(String);

impl OwnNames {
    /// Is there a public address, and so a proxy in front?
    pub(crate) const fn has_public(&self) -> bool {
        self.public.is_some()
    }

    /// The names of a program that listens on this port.
    ///
    /// # Errors
    /// [`BadPublicUrl`] when that address has no host or is not http(s).
    pub(crate) fn new(
        port: u16,
        public: Option<&Url>,
        trusted_name: Option<String>,
    ) -> Result<Self, BadPublicUrl> {
        let host_and_port = public
            .map(|url| {
                let host = url
                    .host_str()
                    .filter(|_| matches!(url.scheme(), "http" | "https"));
                match (host, url.port_or_known_default()) {
                    (Some(host), Some(port)) => Ok((host.to_ascii_lowercase(), port)),
                    _ => Err(BadPublicUrl(url.to_string())),
                }
            })
            .transpose()?;
        Ok(Self {
            port,
            public: host_and_port,
            public_origin: public.map(|url| url.origin().ascii_serialization()),
            trusted_name: trusted_name.map(|name| name.to_ascii_lowercase()),
        })
    }

    /// The origin of a request with this `Host`, as a browser would write it in
    /// `Origin`; none if the host is not ours.
    pub(crate) fn origin_of(&self, host: &str) -> Option<String> {
        let authority: Authority = host.parse().ok()?;
        if authority.as_str().contains('@') {
            return None;
        }
        let name = authority.host().to_ascii_lowercase();
        let port = authority.port_u16();
        if let Some((public, public_port)) = &self.public
            && name == *public
            // Proxies pass the default port on or leave it out.
            && port.is_none_or(|port| port == *public_port)
        {
            return self.public_origin.clone();
        }
        let ours = match &*name {
            "localhost" | "127.0.0.1" | "[::1]" => true,
            _ => self.trusted_name.as_deref().is_some_and(|own| {
                own == name
                    || name
                        .trim_start_matches('[')
                        .trim_end_matches(']')
                        .parse::<IpAddr>()
                        .is_ok()
            }),
        };
        if !ours || port.unwrap_or(80) != self.port {
            return None;
        }
        Some(if self.port == 80 {
            format!("http://{name}")
        } else {
            format!("http://{name}:{}", self.port)
        })
    }
}

/// The `Host` of a request: the header, or in HTTP/2 the authority.
pub(crate) fn host_of(request: &Request) -> Option<&str> {
    request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| request.uri().authority().map(Authority::as_str))
}

/// Refuses requests whose `Host` is not ours with 421.
pub(crate) async fn guard(
    State(names): State<Arc<OwnNames>>,
    request: Request,
    next: Next,
) -> Response {
    let host = host_of(&request).unwrap_or_default();
    if names.origin_of(host).is_some() {
        return next.run(request).await;
    }
    let shown: String = host.chars().take(100).collect();
    Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "This Tokdyno does not answer to the name `{shown}`. Open it as http://127.0.0.1:{port}, or start it with --public-url if it is reached by another name.",
            port = names.port
        ),
    )
    .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(public: Option<&str>, trusted: Option<&str>) -> OwnNames {
        let public = public.map(|url| url.parse().expect("a URL"));
        OwnNames::new(4000, public.as_ref(), trusted.map(str::to_owned)).expect("names")
    }

    #[test]
    fn loopback_names_with_our_port() {
        let names = names(None, None);
        for (host, origin) in [
            ("127.0.0.1:4000", Some("http://127.0.0.1:4000")),
            ("LOCALHOST:4000", Some("http://localhost:4000")),
            ("[::1]:4000", Some("http://[::1]:4000")),
            ("127.0.0.1:4001", None),
            ("127.0.0.1", None),
            ("evil.example:4000", None),
            ("localhost.evil.example:4000", None),
            ("127.0.0.1:4000@evil.example", None),
            ("10.0.0.5:4000", None),
            ("", None),
        ] {
            assert_eq!(names.origin_of(host).as_deref(), origin, "{host}");
        }
    }

    #[test]
    fn the_public_address_is_ours_with_its_own_scheme_and_port() {
        let names = names(Some("https://Tok.example.org"), None);
        for host in ["tok.example.org", "tok.example.org:443"] {
            assert_eq!(
                names.origin_of(host).as_deref(),
                Some("https://tok.example.org")
            );
        }
        assert_eq!(names.origin_of("tok.example.org:4000"), None);
        assert!(names.origin_of("127.0.0.1:4000").is_some());
    }

    #[test]
    fn a_trusted_network_adds_addresses_and_the_machine_name_alone() {
        let names = names(None, Some("GPU1"));
        for host in ["10.0.0.5:4000", "[fe80::1]:4000", "gpu1:4000"] {
            assert!(names.origin_of(host).is_some(), "{host}");
        }
        assert_eq!(names.origin_of("evil.example:4000"), None);
    }

    #[test]
    fn an_address_without_a_host_is_refused() {
        let url: Url = "data:text/plain,x".parse().expect("a URL");
        assert!(OwnNames::new(1, Some(&url), None).is_err());
    }
}
