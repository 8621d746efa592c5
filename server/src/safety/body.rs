//! How much a request may bring.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::CONTENT_LENGTH};

use crate::web::Problem;

/// Most bytes of a result file.
pub(crate) const IMPORT: usize = 64 << 20;
/// Most bytes of a form: prompt files of up to 16 MiB travel in it.
pub(crate) const FORM: usize = 20 << 20;
/// Most bytes of everything else.
pub(crate) const USUAL: usize = 64 << 10;

/// Most bytes that a request to this path may bring.
pub(crate) fn limit(path: &str) -> usize {
    if path == "/api/v1/import" {
        IMPORT
    } else if path.starts_with("/api/fn/") || path == "/api/v1/runs" {
        FORM
    } else {
        USUAL
    }
}

/// Refuses a body that is announced as too long with 413, and cuts off one that
/// was not announced.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let most = limit(request.uri().path());
    let announced = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most as u64) {
        return too_long(most).into_response();
    }
    let request =
        request.map(|body| axum::body::Body::new(http_body_util::Limited::new(body, most)));
    next.run(request).await
}

fn too_long(most: usize) -> Problem {
    let shown = if most >= 1 << 20 {
        format!("{} MiB", most >> 20)
    } else {
        format!("{} KiB", most >> 10)
    };
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "That is more than the {shown} that are taken here. Bring a smaller file; a result file can be written with fewer requests or repeats."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_be_larger_than_the_rest() {
        assert_eq!(limit("/api/v1/import"), IMPORT);
        assert_eq!(limit("/api/fn/queue_run123"), FORM);
        assert_eq!(limit("/api/v1/runs"), FORM);
        assert_eq!(limit("/api/v1/runs/3/cancel"), USUAL);
    }
}
