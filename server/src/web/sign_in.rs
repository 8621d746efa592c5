//! Signing in and out: plain forms, so that they work without scripts.

use std::sync::Arc;

use axum::{
    Form,
    body::Body,
    extract::{Extension, Request, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, HOST, LOCATION, RETRY_AFTER, SET_COOKIE},
};
use leptos::prelude::provide_context;
use serde::Deserialize;
use tokdyno_app::{SignInTrouble, shell};
use tokdyno_lab::{LabError, SESSION};
use url::form_urlencoded;

use super::{Problem, Site, contexts};
use crate::safety::{
    hosts::OwnNames,
    who::{self, COOKIE_NAME, Who},
};

/// When guessing may go on, in seconds: the length of the window in which failures
/// are counted.
const WAIT_S: u16 = 15 * 60;

/// The form.
#[derive(Deserialize)]
pub(crate) struct SignIn {
    password: String,
    /// Where to go on.
    #[serde(default)]
    next: String,
}

/// Signs in, sets the cookie, and goes on to where the reader wanted to be.
pub(crate) async fn sign_in(
    State(site): State<Site>,
    Extension(names): Extension<Arc<OwnNames>>,
    who: Who,
    headers: HeaderMap,
    form: Result<Form<SignIn>, FormRejection>,
) -> Result<Response, Problem> {
    let Form(form) = form.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "The form did not arrive completely. Open /sign-in and send it again.",
        )
    })?;
    let next = local_path(&form.next);
    match site.lab.sign_in(&who.address, &form.password).await {
        Ok(token) => {
            let cookie = cookie(
                token.reveal(),
                SESSION.as_secs(),
                is_encrypted(&names, &headers),
            );
            Ok(gone_on(next, &cookie))
        }
        Err(error) if is_refusal(&error) => Ok(refused(&site, &who, &error, next).await),
        Err(error) => Err(error.into()),
    }
}

/// Ends the session and goes to the first page.
pub(crate) async fn sign_out(
    State(site): State<Site>,
    Extension(names): Extension<Arc<OwnNames>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(token) = who::token(&headers) {
        site.lab.sign_out(token).await?;
    }
    let cookie = cookie("", 0, is_encrypted(&names, &headers));
    Ok(gone_on("/", &cookie))
}

/// Is it the reader's own affair, to be shown above the form?
const fn is_refusal(error: &LabError) -> bool {
    matches!(
        error,
        LabError::WrongPassword
            | LabError::TooMany(_)
            | LabError::Conflict(_)
            | LabError::Invalid(_)
    )
}

/// Only an address within this program: a link must not lead through the sign-in
/// to another site. Browsers read `//x` and `/\x` as other sites.
fn local_path(next: &str) -> &str {
    let local = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && next.bytes().all(|byte| byte.is_ascii_graphic());
    if local { next } else { "/" }
}

/// Was the page opened as https://…, as a proxy's public address says?
fn is_encrypted(names: &OwnNames, headers: &HeaderMap) -> bool {
    headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .and_then(|host| names.origin_of(host))
        .is_some_and(|origin| origin.starts_with("https://"))
}

fn cookie(token: &str, life_s: u64, encrypted: bool) -> String {
    let secure = if encrypted { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={token}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Strict{secure}")
}

/// 303, so that reloading does not send the form again.
fn gone_on(to: &str, cookie: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    for (name, value) in [(LOCATION, to), (SET_COOKIE, cookie)] {
        // Both hold printable ASCII alone.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The page again, with the sentence above its form.
async fn refused(site: &Site, who: &Who, error: &LabError, next: &str) -> Response {
    let mut sentence = error.to_string();
    if matches!(error, LabError::Conflict(_)) {
        sentence.push_str(" The command is `tokdyno set-password`.");
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("next", next)
        .finish();
    let mut request = Request::new(Body::empty());
    // A path and a query in percent encoding always make an address.
    if let Ok(address) = format!("/sign-in?{query}").parse() {
        *request.uri_mut() = address;
    }
    request.extensions_mut().insert(who.actor);
    let (with, options) = (site.clone(), site.options.clone());
    let page = leptos_axum::render_app_async_with_context(
        move || {
            contexts::provide(&with);
            provide_context(SignInTrouble(sentence.clone()));
        },
        move || shell(options.clone()),
    );
    let mut response = page(request).await;
    *response.status_mut() =
        StatusCode::from_u16(error.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(WAIT_S));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_on_stays_within_the_program() {
        for (next, expected) in [
            ("/servers/7?x=1", "/servers/7?x=1"),
            ("", "/"),
            ("servers", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example/", "/"),
            ("/a\r\nset-cookie: x", "/"),
            ("/a\tb", "/"),
        ] {
            assert_eq!(local_path(next), expected, "{next:?}");
        }
    }

    #[test]
    fn the_cookie_is_for_this_program_alone_and_marked_where_encrypted() {
        let plain = cookie("abc", 60, false);
        assert_eq!(
            plain,
            "tokdyno_session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Strict"
        );
        assert!(cookie("abc", 60, true).ends_with("; Secure"));
        let public = "https://tok.example.org".parse().expect("a URL");
        let names = OwnNames::new(4000, Some(&public), None).expect("names");
        let under = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            is_encrypted(&names, &headers)
        };
        assert!(under("tok.example.org"));
        assert!(!under("127.0.0.1:4000"));
    }
}
