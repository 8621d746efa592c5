//! REST: `/api/v1/…`, for scripts. Described in `docs/rest-api.md`.

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequestParts, Path, RawQuery, State, rejection::BytesRejection},
    response::IntoResponse,
};
use http::{HeaderValue, StatusCode, header::LOCATION, request::Parts};
use tokdyno_domain::{
    chart::ChartSpec,
    ids::RunId,
    views::{
        measure::NewRun,
        run::{RunPage, RunView},
    },
};

use super::{Problem, Site, query};

/// The run that the path names.
pub(crate) struct RunPath(RunId);

impl<S: Send + Sync> FromRequestParts<S> for RunPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found())?;
        text.parse().map(Self).map_err(|_| {
            let shown: String = text.chars().take(40).collect();
            Problem::new(
                StatusCode::NOT_FOUND,
                format!("`{shown}` is not a run's number. GET /api/v1/runs lists the runs."),
            )
        })
    }
}

/// Stores a result file.
pub(crate) async fn import(
    State(site): State<Site>,
    body: Result<Bytes, BytesRejection>,
) -> Result<impl IntoResponse, Problem> {
    let imported = site.lab.import(&site.actor, &bytes(body)?).await?;
    let status = if imported.already_there {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((status, Json(imported)))
}

/// Lists runs, newest first.
pub(crate) async fn runs(
    State(site): State<Site>,
    RawQuery(query): RawQuery,
) -> Result<Json<RunPage>, Problem> {
    let filter = query::runs(&query.unwrap_or_default())?;
    Ok(Json(site.lab.runs(&site.actor, &filter).await?))
}

/// A run with its stages, levels and charts.
pub(crate) async fn run(
    State(site): State<Site>,
    RunPath(run): RunPath,
) -> Result<Json<RunView<ChartSpec>>, Problem> {
    Ok(Json(site.lab.run(&site.actor, run).await?))
}

/// Queues a measurement.
pub(crate) async fn queue(
    State(site): State<Site>,
    body: Result<Bytes, BytesRejection>,
) -> Result<impl IntoResponse, Problem> {
    let new: NewRun = serde_json::from_slice(&bytes(body)?).map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            format!(
                "The body is not the JSON of a measurement ({error}). docs/rest-api.md shows one."
            ),
        )
    })?;
    let run = site.lab.queue_run(&site.actor, &new).await?;
    let mut response =
        (StatusCode::CREATED, Json(serde_json::json!({ "run": run }))).into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/api/v1/runs/{run}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Asks a run to stop.
pub(crate) async fn cancel(
    State(site): State<Site>,
    RunPath(run): RunPath,
) -> Result<impl IntoResponse, Problem> {
    site.lab.cancel_run(&site.actor, run).await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(serde_json::json!({ "run": run })),
    ))
}

fn bytes(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|rejection| {
        let status = rejection.status();
        Problem::new(
            status,
            if status == StatusCode::PAYLOAD_TOO_LARGE {
                "The body is larger than what is taken here. Bring a smaller file."
            } else {
                "The body did not arrive completely. Send it again."
            },
        )
    })
}
