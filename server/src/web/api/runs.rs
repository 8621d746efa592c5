//! Runs: the list, a run, and what can be done to it.

use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::json;
use tokdyno_domain::{
    chart::ChartSpec,
    views::{
        measure::NewRun,
        run::{RunPage, RunView},
    },
};

use super::{
    super::{Problem, Site, query},
    body::{self, Body},
    created,
    forms::NewRunBody,
    path::RunPath,
};
use crate::safety::who::Who;

/// Stores a result file.
pub(super) async fn import(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<impl IntoResponse, Problem> {
    let imported = site.lab.import(&who.actor, &body::bytes(body)?).await?;
    let status = if imported.already_there {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((status, Json(imported)))
}

/// Lists runs, newest first.
pub(super) async fn list(
    State(site): State<Site>,
    who: Who,
    RawQuery(query): RawQuery,
) -> Result<Json<RunPage>, Problem> {
    let filter = query::runs(&query.unwrap_or_default())?;
    Ok(Json(site.lab.runs(&who.actor, &filter).await?))
}

/// A run with its stages, levels and charts.
pub(super) async fn one(
    State(site): State<Site>,
    who: Who,
    RunPath(run): RunPath,
) -> Result<Json<RunView<ChartSpec>>, Problem> {
    Ok(Json(site.lab.run(&who.actor, run).await?))
}

/// Queues a measurement.
pub(super) async fn queue(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Response, Problem> {
    let new: NewRunBody = body::read(body, "a measurement")?;
    let run = site.lab.queue_run(&who.actor, &NewRun::from(new)).await?;
    Ok(created(
        &format!("/api/v1/runs/{run}"),
        json!({ "run": run }),
    ))
}

/// Asks a run to stop.
pub(super) async fn cancel(
    State(site): State<Site>,
    who: Who,
    RunPath(run): RunPath,
) -> Result<impl IntoResponse, Problem> {
    site.lab.cancel_run(&who.actor, run).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "run": run }))))
}
