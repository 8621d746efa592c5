//! Experiments: the list, one of them, planning, and what can be done to one.

mod form;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::json;
use tokdyno_domain::views::experiments::{ExperimentList, ExperimentPreview, ExperimentView};

use self::form::ExperimentBody;
use super::{
    super::{Problem, Site},
    body::{self, Body},
    created,
    path::ExperimentPath,
};
use crate::safety::who::Who;

/// Lists the newest experiments.
pub(super) async fn list(
    State(site): State<Site>,
    who: Who,
) -> Result<Json<ExperimentList>, Problem> {
    Ok(Json(site.lab.experiments(&who.actor).await?))
}

/// An experiment with what it found so far.
pub(super) async fn one(
    State(site): State<Site>,
    who: Who,
    ExperimentPath(experiment): ExperimentPath,
) -> Result<Json<ExperimentView>, Problem> {
    Ok(Json(site.lab.experiment(&who.actor, experiment).await?))
}

/// What an experiment would do and cost. Nothing is started.
pub(super) async fn preview(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Json<ExperimentPreview>, Problem> {
    let sent: ExperimentBody = body::read(body, "an experiment")?;
    let form = sent.form(&site, &who.actor).await?;
    Ok(Json(site.lab.preview_experiment(&who.actor, &form).await?))
}

/// Plans an experiment and queues it.
pub(super) async fn plan(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Response, Problem> {
    let sent: ExperimentBody = body::read(body, "an experiment")?;
    let form = sent.form(&site, &who.actor).await?;
    let experiment = site.lab.queue_experiment(&who.actor, &form).await?;
    Ok(created(
        &format!("/api/v1/experiments/{experiment}"),
        json!({ "experiment": experiment }),
    ))
}

/// Asks for a pause.
pub(super) async fn pause(
    State(site): State<Site>,
    who: Who,
    ExperimentPath(experiment): ExperimentPath,
) -> Result<impl IntoResponse, Problem> {
    site.lab.pause_experiment(&who.actor, experiment).await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(json!({ "experiment": experiment })),
    ))
}

/// Queues a paused experiment again.
pub(super) async fn resume(
    State(site): State<Site>,
    who: Who,
    ExperimentPath(experiment): ExperimentPath,
) -> Result<impl IntoResponse, Problem> {
    site.lab.resume_experiment(&who.actor, experiment).await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(json!({ "experiment": experiment })),
    ))
}

/// Ends an experiment.
pub(super) async fn cancel(
    State(site): State<Site>,
    who: Who,
    ExperimentPath(experiment): ExperimentPath,
) -> Result<impl IntoResponse, Problem> {
    site.lab.cancel_experiment(&who.actor, experiment).await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(json!({ "experiment": experiment })),
    ))
}
