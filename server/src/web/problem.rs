//! How an error reaches people: a status and a sentence, as JSON for programs and
//! as a page for browsers.

use std::{panic::AssertUnwindSafe, time::Duration};

use axum::{
    Json,
    extract::{Request, State},
    middleware::Next,
    response::{Html, IntoResponse, Response},
};
use futures::FutureExt;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use tokdyno_lab::LabError;

use super::{Ending, Site};

/// How long an answer may take to begin. Imports of large files take longest.
const TIME_OUT: Duration = Duration::from_secs(60);
/// After how many seconds a page tries again by itself.
const RETRY_SECONDS: u16 = 2;

/// Something that cannot be done, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    sentence: String,
}

impl Problem {
    /// What people read.
    #[cfg(test)]
    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
    }

    /// A problem with its status and its sentence (cause and remedy).
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        Self {
            status,
            sentence: sentence.into(),
        }
    }

    /// Nothing is at this address.
    pub(crate) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "There is nothing at this address. Check it, or start from the first page.",
        )
    }

    fn page(&self, style_sheet: &str, shared: bool) -> String {
        let temporary = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let refresh = if temporary {
            format!("<meta http-equiv=\"refresh\" content=\"{RETRY_SECONDS}\">")
        } else {
            String::new()
        };
        let heading = match self.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::SERVICE_UNAVAILABLE => "Not available at the moment",
            StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST => "Refused",
            status if status.is_client_error() => "That cannot be done",
            _ => "Something went wrong",
        };
        let way_on = match (temporary, shared) {
            (true, _) => "<p>This page tries again by itself.</p>",
            (false, true) => "",
            (false, false) => "<p><a href=\"/\">Go to the Board</a></p>",
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">{refresh}\
             <title>{heading} · Tokdyno</title>\
             <link rel=\"stylesheet\" href=\"{css}\"></head>\
             <body><main class=\"page problem\"><h1>{heading}</h1><p>{sentence}</p>{way_on}</main></body></html>\n",
            css = escaped(style_sheet),
            sentence = escaped(&self.sentence),
        )
    }
}

impl From<LabError> for Problem {
    fn from(error: LabError) -> Self {
        Self::new(
            StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error.to_string(),
        )
    }
}

impl From<tokdyno_domain::access::Forbidden> for Problem {
    fn from(error: tokdyno_domain::access::Forbidden) -> Self {
        LabError::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.sentence });
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        }
        // What the layer below makes a page of, where a browser asked.
        response.extensions_mut().insert(self);
        response
    }
}

/// Makes a page of a [`Problem`] where a browser navigated to it.
pub(crate) async fn pages_for_people(
    State(site): State<Site>,
    request: Request,
    next: Next,
) -> Response {
    let wants_page = wants_page(request.headers());
    let mut response = next.run(request).await;
    if !wants_page {
        return response;
    }
    let Some(problem) = problem_of(&mut response) else {
        return response;
    };
    let page = Html(problem.page(&site.assets().css, site.is_shared())).into_response();
    let (parts, body) = page.into_parts();
    let headers = response.headers_mut();
    if problem.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    headers.remove(CONTENT_LENGTH);
    if let Some(content_type) = parts.headers.get(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, content_type.clone());
    }
    *response.body_mut() = body;
    response
}

/// What a response is about, if it is about a problem.
fn problem_of(response: &mut Response) -> Option<Problem> {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return Some(problem);
    }
    // A page that was under way when the database went away says so by its status alone,
    // and would not try again.
    (response.status() == StatusCode::SERVICE_UNAVAILABLE)
        .then(|| Problem::from(LabError::DatabaseUnavailable))
}

fn wants_page(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|accept| accept.to_str().ok())
        .any(|accept| accept.contains("text/html"))
}

/// Text that means itself inside HTML, also inside a quoted attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// Says 503 instead of starting a page whose data cannot be had.
pub(crate) async fn database_first(
    State(site): State<Site>,
    request: Request,
    next: Next,
) -> Response {
    if wants_page(request.headers())
        && let Err(error) = site.lab.ready().await
    {
        return Problem::from(error).into_response();
    }
    next.run(request).await
}

/// Says 503 where an answer does not begin in time.
pub(crate) async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(TIME_OUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The answer took too long and was given up. Try again; if it lasts, look into the program's log and at the machine's load.",
        )
        .into_response(),
    }
}

/// Says 500 where a handler broke down; without this the line would go dead.
pub(crate) async fn despite_panics(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!(path, "a handler broke down; the reason stands above");
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong inside the program. Look into its log, and report it with what stands there.",
            )
            .into_response()
        }
    }
}

/// Puts a sentence into the empty answer to a method that an address does not know.
/// The header `Allow` stays.
pub(crate) async fn methods_explained(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if response.status() != StatusCode::METHOD_NOT_ALLOWED
        || response.extensions().get::<Problem>().is_some()
    {
        return response;
    }
    let mut explained = Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "This address does not take this method. The header Allow names those it takes.",
    )
    .into_response();
    if let Some(allow) = response.headers().get(ALLOW) {
        explained.headers_mut().insert(ALLOW, allow.clone());
    }
    explained
}

/// Turns people away while the program is stopping.
pub(crate) async fn not_while_stopping(
    State(ending): State<Ending>,
    request: Request,
    next: Next,
) -> Response {
    if ending.has_come() {
        return Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Tokdyno is stopping. Try again once it has been started anew.",
        )
        .into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_cannot_break_out_of_the_page() {
        let problem = Problem::new(StatusCode::BAD_REQUEST, "`<script>` & \"x\"");
        let page = problem.page("/pkg/a.css", false);
        assert!(
            page.contains("`&lt;script&gt;` &amp; &quot;x&quot;"),
            "{page}"
        );
        assert!(!page.contains("<script") && !page.contains("refresh"));
    }

    #[test]
    fn an_outage_reloads_itself() {
        let problem = Problem::from(LabError::DatabaseUnavailable);
        assert!(
            problem
                .page("/pkg/a.css", true)
                .contains("http-equiv=\"refresh\"")
        );
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn an_outage_in_the_middle_of_a_page_reloads_itself_too() {
        let mut page = (StatusCode::SERVICE_UNAVAILABLE, Html("<p>half a page")).into_response();
        let problem = problem_of(&mut page).expect("a problem");
        assert_eq!(problem, Problem::from(LabError::DatabaseUnavailable));
        let mut slow =
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "It took too long.").into_response();
        let said = problem_of(&mut slow).expect("a problem");
        assert_eq!(said.sentence(), "It took too long.");
        let mut whole = Html("<p>a page").into_response();
        assert_eq!(problem_of(&mut whole), None);
    }

    #[tokio::test]
    async fn a_broken_handler_is_answered_for() {
        use tower::ServiceExt;

        async fn broken() -> &'static str {
            panic!("as this test wants");
        }
        let router: axum::Router = axum::Router::new()
            .route("/", axum::routing::get(broken))
            .layer(axum::middleware::from_fn(despite_panics));
        let request = http::Request::get("/")
            .body(axum::body::Body::empty())
            .expect("a request");
        let response = router.oneshot(request).await.expect("a reply");
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(response.extensions().get::<Problem>().is_some());
    }

    #[tokio::test]
    async fn a_wrong_method_is_explained() {
        use tower::ServiceExt;

        let router: axum::Router = axum::Router::new()
            .route("/", axum::routing::get(async || "here"))
            .layer(axum::middleware::from_fn(methods_explained));
        let request = http::Request::delete("/")
            .body(axum::body::Body::empty())
            .expect("a request");
        let response = router.oneshot(request).await.expect("a reply");
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[ALLOW], "GET,HEAD");
        assert!(response.extensions().get::<Problem>().is_some());
    }

    #[test]
    fn browsers_ask_for_html() {
        let mut headers = HeaderMap::new();
        assert!(!wants_page(&headers));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        assert!(!wants_page(&headers));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8"),
        );
        assert!(wants_page(&headers));
    }
}
