//! Where changes may come from.
//!
//! Every request that may change something must come from a page of this program
//! or from no page at all. Browsers put `Origin` on every cross-site request
//! other than GET and HEAD, and most put `Sec-Fetch-Site` on all; scripts can set
//! neither. A request with none of the two therefore comes from a program such as
//! curl, which acts for the person who started it, and is let through.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode, header::ORIGIN};

use super::hosts::{OwnNames, host_of};
use crate::web::Problem;

/// Refuses changes that another site's page asks for with 403.
pub(crate) async fn guard(
    State(names): State<Arc<OwnNames>>,
    request: Request,
    next: Next,
) -> Response {
    let own = host_of(&request).and_then(|host| names.origin_of(host));
    if may_change(request.method(), request.headers(), own.as_deref()) {
        return next.run(request).await;
    }
    Problem::new(
        StatusCode::FORBIDDEN,
        "This change was asked for by a page of another site and was not made. Open Tokdyno itself and try again there.",
    )
    .into_response()
}

fn may_change(method: &Method, headers: &HeaderMap, own_origin: Option<&str>) -> bool {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return true;
    }
    let site = headers.get("sec-fetch-site");
    let origin = headers.get(ORIGIN);
    match (site, origin) {
        // The browser itself says which: nothing else is needed, nothing else counts.
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => own_origin.is_some_and(|own| origin == own),
        (None, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(method: &Method, set: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in set {
            headers.insert(*name, value.parse().expect("a value"));
        }
        may_change(method, &headers, Some("http://127.0.0.1:4000"))
    }

    #[test]
    fn changes_come_from_our_pages_or_from_no_page() {
        for (set, expected) in [
            (&[][..], true),
            (&[("origin", "http://127.0.0.1:4000")], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (
                &[("sec-fetch-site", "same-origin"), ("origin", "null")],
                true,
            ),
            (&[("origin", "http://evil.example")], false),
            (&[("origin", "http://127.0.0.1:5000")], false),
            (&[("origin", "https://127.0.0.1:4000")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("origin", "http://127.0.0.1:4000"),
                ],
                false,
            ),
        ] {
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                assert_eq!(allowed(&method, set), expected, "{set:?}");
            }
        }
    }

    #[test]
    fn reading_is_free() {
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(allowed(&method, &[("origin", "http://evil.example")]));
        }
    }

    #[test]
    fn an_unknown_own_origin_matches_nothing() {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, "http://a".parse().expect("a value"));
        assert!(!may_change(&Method::POST, &headers, None));
    }
}
