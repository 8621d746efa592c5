//! REST: `/api/v1/…`, for scripts. Described in `docs/rest-api.md`.

mod audit;
mod body;
mod experiments;
mod forms;
mod gates;
mod hosts;
mod launches;
mod named;
mod path;
mod profiles;
mod runs;

use axum::{
    Json, Router,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, StatusCode, header::LOCATION};
use serde::Serialize;

use super::Site;

/// Everything below `/api/v1/`.
pub(super) fn routes() -> Router<Site> {
    Router::new()
        .route("/api/v1/import", post(runs::import))
        .route("/api/v1/runs", get(runs::list).post(runs::queue))
        .route("/api/v1/runs/{id}", get(runs::one))
        .route("/api/v1/runs/{id}/cancel", post(runs::cancel))
        .route("/api/v1/gates", get(gates::list).post(gates::judge))
        .route("/api/v1/gates/{id}", get(gates::one))
        .route("/api/v1/gates/{id}/decision", post(gates::decide))
        .route("/api/v1/hosts", get(hosts::list).post(hosts::add))
        .route("/api/v1/hosts/{id}", get(hosts::one))
        .route("/api/v1/hosts/{id}/check", post(hosts::check))
        .route("/api/v1/hosts/{id}/running", get(hosts::running))
        .route("/api/v1/hosts/{id}/adopt", post(hosts::adopt))
        .route("/api/v1/profiles", get(profiles::list).post(profiles::add))
        .route("/api/v1/profiles/paste", post(profiles::paste))
        .route("/api/v1/profiles/{name}", get(profiles::one))
        .route(
            "/api/v1/launches",
            get(launches::list).post(launches::launch),
        )
        .route("/api/v1/launches/{id}", get(launches::one))
        .route("/api/v1/launches/{id}/stop", post(launches::stop))
        .route("/api/v1/launches/{id}/measure", post(launches::measure))
        .route("/api/v1/launches/{id}/restore", post(launches::restore))
        .route("/api/v1/launches/{id}/log", get(launches::log))
        .route(
            "/api/v1/experiments",
            get(experiments::list).post(experiments::plan),
        )
        .route("/api/v1/experiments/preview", post(experiments::preview))
        .route("/api/v1/experiments/{id}", get(experiments::one))
        .route("/api/v1/experiments/{id}/pause", post(experiments::pause))
        .route("/api/v1/experiments/{id}/resume", post(experiments::resume))
        .route("/api/v1/experiments/{id}/cancel", post(experiments::cancel))
        .route("/api/v1/audit", get(audit::list))
}

/// 201 with where the new thing is.
fn created(location: &str, body: impl Serialize) -> Response {
    let mut response = (StatusCode::CREATED, Json(body)).into_response();
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
