//! Who acts: told from where a request comes and from the session it carries.
//!
//! Whoever sits at this machine is its operator, as before. From any other address
//! one measures, and launches only with the operator's password. A proxy on this
//! machine makes every request look as if it came from here. With `--public-url` one is
//! expected, so everybody signs in. One that nobody told us of is recognised by the name
//! that people type, by the headers that proxies add, by HTTP/1.0 (which some speak to
//! what is behind them), and by a page's origin that is not this machine.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{ConnectInfo, FromRequestParts, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderName, Version,
    header::{COOKIE, FORWARDED, ORIGIN, VIA},
    request::Parts,
    uri::Authority,
};
use tokdyno_domain::access::Actor;
use url::Url;

use super::hosts::host_of;
use crate::web::{Problem, Site};

/// The cookie that holds a session's token.
pub(crate) const COOKIE_NAME: &str = "tokdyno_session";

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Headers that say that somebody passes the request on.
const PASSED_ON: [HeaderName; 5] = [
    FORWARDED,
    X_FORWARDED_FOR,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-real-ip"),
    VIA,
];

/// Who acts, and from where. Every handler may take it.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    /// Who.
    pub(crate) actor: Actor,
    /// The address it comes from; behind a proxy on this machine the one that the
    /// proxy names.
    pub(crate) address: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // `identify` stands before every route. Without it nobody may do anything.
        Ok(parts.extensions.get().cloned().unwrap_or(Self {
            actor: Actor::GUEST,
            address: String::new(),
        }))
    }
}

/// Finds out who acts, for everything behind it.
pub(crate) async fn identify(
    State(site): State<Site>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(peer)| peer.ip().to_canonical());
    let actor = if site.is_shared() {
        Actor::GUEST
    } else if !site.behind_proxy
        && peer.is_some_and(|peer| peer.is_loopback())
        && is_local(&request)
    {
        Actor::LOCAL
    } else {
        match token(request.headers()) {
            None => Actor::NETWORK,
            Some(token) => match site.lab.actor_of(token).await {
                Ok(actor) => actor.unwrap_or(Actor::NETWORK),
                Err(error) => return Problem::from(error).into_response(),
            },
        }
    };
    let address = address(peer, request.headers());
    let extensions = request.extensions_mut();
    // The pages find the actor alone.
    extensions.insert(actor);
    extensions.insert(Who {
        actor,
        address: address.clone(),
    });
    tokdyno_lab::acting_from(address, next.run(request)).await
}

/// Was the request made on this machine, as far as it tells?
fn is_local(request: &Request) -> bool {
    let headers = request.headers();
    let named = host_of(request)
        .and_then(|host| host.parse::<Authority>().ok())
        .is_some_and(|authority| is_loopback_name(authority.host()));
    let from_elsewhere = headers.get(ORIGIN).is_some_and(|origin| {
        let origin = origin
            .to_str()
            .ok()
            .and_then(|text| text.parse::<Url>().ok());
        !origin.is_some_and(|url| url.host_str().is_some_and(is_loopback_name))
    });
    named
        && !from_elsewhere
        && request.version() != Version::HTTP_10
        && !PASSED_ON.iter().any(|name| headers.contains_key(name))
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || matches!(name, "127.0.0.1" | "[::1]")
}

/// The session's token.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE_NAME).then_some(value))
        .filter(|token| !token.is_empty())
}

/// Where the request comes from. The last entry of `X-Forwarded-For` is the one that
/// the proxy on this machine wrote; those before it are the sender's own words.
fn address(peer: Option<IpAddr>, headers: &HeaderMap) -> String {
    let Some(peer) = peer else {
        return String::new();
    };
    let named = headers
        .get_all(X_FORWARDED_FOR)
        .iter()
        .next_back()
        .and_then(|list| list.to_str().ok())
        .and_then(|list| list.rsplit(',').next())
        .and_then(|last| last.trim().parse::<IpAddr>().ok());
    match named {
        Some(named) if peer.is_loopback() => named.to_canonical().to_string(),
        _ => peer.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::header::HOST;

    use super::*;

    fn request(headers: &[(&'static str, &'static str)]) -> Request {
        let mut request = Request::builder().body(Body::empty()).expect("a request");
        for (name, value) in headers {
            request
                .headers_mut()
                .append(*name, value.parse().expect("a value"));
        }
        request
    }

    #[test]
    fn only_a_plain_request_to_a_loopback_name_is_local() {
        for host in ["127.0.0.1:4000", "LOCALHOST:4000", "[::1]:4000"] {
            assert!(is_local(&request(&[("host", host)])), "{host}");
        }
        for headers in [
            &[][..],
            &[("host", "tok.example.org")],
            &[("host", "localhost.evil.example:4000")],
            &[("host", "10.0.0.5:4000")],
            &[("host", "127.0.0.1:4000"), ("x-forwarded-for", "10.0.0.5")],
            &[("host", "127.0.0.1:4000"), ("x-forwarded-for", "")],
            &[("host", "127.0.0.1:4000"), ("forwarded", "for=10.0.0.5")],
            &[("host", "127.0.0.1:4000"), ("via", "1.1 proxy")],
            &[("host", "127.0.0.1:4000"), ("x-real-ip", "10.0.0.5")],
            &[
                ("host", "127.0.0.1:4000"),
                ("origin", "https://tok.example.org"),
            ],
            &[("host", "127.0.0.1:4000"), ("origin", "null")],
        ] {
            assert!(!is_local(&request(headers)), "{headers:?}");
        }
        let own = [("host", "127.0.0.1:4000"), ("origin", "http://[::1]:4000")];
        assert!(is_local(&request(&own)));
        let mut old = request(&[("host", "127.0.0.1:4000")]);
        *old.version_mut() = Version::HTTP_10;
        assert!(!is_local(&old), "as some proxies speak");
        assert!(old.headers().contains_key(HOST));
    }

    #[test]
    fn the_token_is_found_among_other_cookies() {
        let of = |cookies: &[&'static str]| {
            let pairs: Vec<_> = cookies.iter().map(|value| ("cookie", *value)).collect();
            token(request(&pairs).headers()).map(str::to_owned)
        };
        assert_eq!(of(&["a=1; tokdyno_session=abc"]), Some("abc".to_owned()));
        assert_eq!(of(&["a=1", "tokdyno_session=abc"]), Some("abc".to_owned()));
        assert_eq!(of(&["xtokdyno_session=abc"]), None);
        assert_eq!(of(&["tokdyno_session="]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_proxy_is_believed_only_on_this_machine() {
        let own: IpAddr = "127.0.0.1".parse().expect("an address");
        let other: IpAddr = "10.0.0.9".parse().expect("an address");
        let listed = request(&[("x-forwarded-for", "1.2.3.4, 10.0.0.5")]);
        assert_eq!(address(Some(own), listed.headers()), "10.0.0.5");
        assert_eq!(address(Some(other), listed.headers()), "10.0.0.9");
        let nonsense = request(&[("x-forwarded-for", "somebody")]);
        assert_eq!(address(Some(own), nonsense.headers()), "127.0.0.1");
    }
}
