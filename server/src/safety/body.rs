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
/// Most bytes of a profile or a found engine: command lines and environments.
pub(crate) const SPECIFICATION: usize = 2 << 20;
/// Most bytes of everything else.
pub(crate) const USUAL: usize = 64 << 10;

/// Most bytes that a request to this path may bring.
pub(crate) fn limit(path: &str) -> usize {
    if path == "/api/v1/import" {
        IMPORT
    } else if path.starts_with("/api/fn/")
        || path == "/api/v1/runs"
        || path.starts_with("/api/v1/launches")
        || path.starts_with("/api/v1/experiments")
    {
        FORM
    } else if path.starts_with("/api/v1/profiles") || path.starts_with("/api/v1/hosts") {
        SPECIFICATION
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
        return too_long(request.uri().path(), most).into_response();
    }
    let request =
        request.map(|body| axum::body::Body::new(http_body_util::Limited::new(body, most)));
    next.run(request).await
}

fn too_long(path: &str, most: usize) -> Problem {
    let shown = if most >= 1 << 20 {
        format!("{} MiB", most >> 20)
    } else {
        format!("{} KiB", most >> 10)
    };
    let what = match most {
        IMPORT => (
            "The result file is longer",
            "One with fewer requests or repeats is shorter.",
        ),
        FORM => ("The form is longer", "Send a smaller prompt file with it."),
        SPECIFICATION if path.starts_with("/api/v1/profiles") => (
            "The profile is longer",
            "Send the command that starts the server alone, and put long texts into files on the host.",
        ),
        SPECIFICATION => (
            "The host or engine as sent is longer",
            "Name a found engine by its process number, `pid`.",
        ),
        _ => (
            "The request brings more",
            "Nothing that is asked here needs that much; look at what is sent.",
        ),
    };
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "{} than the {shown} that are taken here. {}",
            what.0, what.1
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sends_too_much_is_told_of_what() {
        for (path, expected) in [
            (
                "/api/v1/import",
                "The result file is longer than the 64 MiB",
            ),
            ("/api/v1/launches", "The form is longer than the 20 MiB"),
            (
                "/api/v1/profiles/paste",
                "The profile is longer than the 2 MiB",
            ),
            (
                "/api/v1/hosts/1/adopt",
                "The host or engine as sent is longer",
            ),
            ("/sign-in", "The request brings more than the 64 KiB"),
        ] {
            let said = too_long(path, limit(path)).sentence().to_owned();
            assert!(said.starts_with(expected), "{path}: {said}");
        }
    }

    #[test]
    fn files_may_be_larger_than_the_rest() {
        assert_eq!(limit("/api/v1/import"), IMPORT);
        assert_eq!(limit("/api/fn/queue_run123"), FORM);
        assert_eq!(limit("/api/v1/runs"), FORM);
        assert_eq!(limit("/api/v1/launches/3/measure"), FORM);
        assert_eq!(limit("/api/v1/profiles/paste"), SPECIFICATION);
        assert_eq!(limit("/api/v1/runs/3/cancel"), USUAL);
        assert_eq!(limit("/sign-in"), USUAL);
    }
}
