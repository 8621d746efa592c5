//! Launches: the list, a launch, and what can be done to it.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tokdyno_domain::{
    access::{Capability, authorise},
    views::servers::{LaunchForm, LaunchView, LogPage, MeasureForm, ServerList},
};
use tokdyno_engines::readable_by;

use super::{
    super::{Problem, Site},
    body::{self, Body},
    created,
    forms::{LaunchBody, MeasureBody},
    path::LaunchPath,
};
use crate::safety::who::Who;

/// Most bytes of a log in one answer, and the usual number.
const MOST_LOG: u64 = 1 << 20;
const USUAL_LOG: u64 = 64 << 10;

/// Lists what lives and what is over.
pub(super) async fn list(State(site): State<Site>, who: Who) -> Result<Json<ServerList>, Problem> {
    let list = site.lab.servers(&who.actor).await?;
    Ok(Json(readable_by(&who.actor, list)))
}

/// A launch with its steps.
pub(super) async fn one(
    State(site): State<Site>,
    who: Who,
    LaunchPath(launch): LaunchPath,
) -> Result<Json<LaunchView>, Problem> {
    let view = site.lab.launch(&who.actor, launch).await?;
    Ok(Json(readable_by(&who.actor, view)))
}

/// Queues a launch.
pub(super) async fn launch(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Response, Problem> {
    let sent: LaunchBody = body::read(body, "a launch")?;
    let (profile, _) = sent.profile.profile(&site, &who.actor).await?;
    let form = LaunchForm {
        profile,
        host: sent.host.host(&site, &who.actor).await?,
        measure: sent.measure,
        configuration: sent.configuration,
        through_forward: sent.through_forward,
        verify_nccl: sent.verify_nccl,
        afterwards: sent.afterwards,
        restore: sent.restore,
        give_back_at: sent.give_back_at,
        give_back_lead_s: sent.give_back_lead_s,
    };
    let launch = site.lab.queue_launch(&who.actor, &form).await?;
    Ok(created(
        &format!("/api/v1/launches/{launch}"),
        json!({ "launch": launch }),
    ))
}

/// Asks a launch to stop.
pub(super) async fn stop(
    State(site): State<Site>,
    who: Who,
    LaunchPath(launch): LaunchPath,
) -> Result<impl IntoResponse, Problem> {
    site.lab.stop_launch(&who.actor, launch).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "launch": launch }))))
}

/// Queues a measurement of a ready launch.
pub(super) async fn measure(
    State(site): State<Site>,
    who: Who,
    LaunchPath(launch): LaunchPath,
    body: Body,
) -> Result<Response, Problem> {
    let sent: MeasureBody = body::read(body, "a measurement of a launch")?;
    let form = MeasureForm {
        launch,
        workload: sent.workload.0,
        configuration: sent.configuration,
        through_forward: sent.through_forward,
    };
    let run = site.lab.measure_launch(&who.actor, &form).await?;
    Ok(created(
        &format!("/api/v1/runs/{run}"),
        json!({ "run": run }),
    ))
}

/// Starts a stopped adopted server again, its own way.
pub(super) async fn restore(
    State(site): State<Site>,
    who: Who,
    LaunchPath(launch): LaunchPath,
) -> Result<Response, Problem> {
    let restored = site.lab.restore_launch(&who.actor, launch).await?;
    Ok(created(
        &format!("/api/v1/launches/{restored}"),
        json!({ "launch": restored }),
    ))
}

/// Which part of the log.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    #[serde(default)]
    start: u64,
    #[serde(default = "usual_log")]
    most: u64,
    #[serde(default)]
    find: String,
}

const fn usual_log() -> u64 {
    USUAL_LOG
}

/// A piece of the log, for whoever may launch: engines write what they like into it.
pub(super) async fn log(
    State(site): State<Site>,
    who: Who,
    LaunchPath(launch): LaunchPath,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<LogPage>, Problem> {
    authorise(&who.actor, Capability::Launch)?;
    let Query(part) = part.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "`start` and `most` are whole numbers of bytes. Correct the address, or leave them out.",
        )
    })?;
    let most = part.most.min(MOST_LOG);
    Ok(Json(
        site.lab
            .launch_log(&who.actor, launch, part.start, most, &part.find)
            .await?,
    ))
}
