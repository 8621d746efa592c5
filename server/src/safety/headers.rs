//! What a page may load, and who may look into it.

use axum::{extract::Request, middleware::Next, response::Response};
use http::{
    HeaderName, HeaderValue,
    header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS},
};

/// Headers that every reply gets unless it has its own.
const USUAL: [(HeaderName, HeaderValue); 6] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // Not `no-referrer`: forms that are posted before the page's program has
    // loaded are answered by a redirect to where they came from.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];

/// What a reply may load that does not send a policy of its own: pages around
/// errors need the style sheet, files and data nothing. Pages with scripts name
/// their nonce in a policy of their own (`tokdyno_app::shell`).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
);

/// Adds [`USUAL`] and [`POLICY`] where there is none yet.
pub(crate) async fn add(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in USUAL {
        headers.entry(name).or_insert(value);
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
    response
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware::from_fn, routing::get};
    use tower::ServiceExt;

    use super::*;

    async fn headers_of(path: &str) -> http::HeaderMap {
        let own = [(CONTENT_SECURITY_POLICY, "default-src 'self'")];
        let router: Router = Router::new()
            .route("/plain", get(|| async { "x" }))
            .route("/page", get(move || async move { (own, "x") }))
            .layer(from_fn(add));
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let response = router.oneshot(request).await.expect("a reply");
        response.headers().clone()
    }

    #[tokio::test]
    async fn every_reply_is_guarded_and_a_page_keeps_its_own_policy() {
        let plain = headers_of("/plain").await;
        assert_eq!(plain[CONTENT_SECURITY_POLICY], POLICY);
        assert_eq!(plain[X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(plain["cross-origin-opener-policy"], "same-origin");
        let page = headers_of("/page").await;
        assert_eq!(page[CONTENT_SECURITY_POLICY], "default-src 'self'");
        assert_eq!(page[X_FRAME_OPTIONS], "DENY");
        let policy = POLICY.to_str().expect("text").to_owned();
        assert!(!policy.contains("script") && !policy.contains("unsafe"));
    }
}
