//! Hosts: the list, a host, and what runs on it.

use axum::{Json, extract::State, response::Response};
use http::StatusCode;
use serde_json::json;
use tokdyno_domain::{
    host::FoundEngine,
    ids::HostId,
    views::{
        hosts::{HostCheck, HostForm, HostSummary, HostView, RunningNow},
        servers::AdoptForm,
    },
};
use tokdyno_engines::readable_by;

use super::{
    super::{Problem, Site},
    body::{self, Body},
    created,
    forms::{AdoptBody, HostBody},
    path::NamedPath,
};
use crate::safety::who::Who;

/// Lists hosts.
pub(super) async fn list(
    State(site): State<Site>,
    who: Who,
) -> Result<Json<Vec<HostSummary>>, Problem> {
    Ok(Json(site.lab.hosts(&who.actor).await?))
}

/// Adds a host.
pub(super) async fn add(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Response, Problem> {
    let HostBody {
        name,
        destination,
        local,
        notes,
    } = body::read(body, "a host")?;
    // A form's blank field means this machine; a script that forgets one does not.
    if local != destination.trim().is_empty() {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "Name the host by `destination`, as typed after `ssh`, or send `\"local\": true` for the machine that this program runs on: one of the two.",
        ));
    }
    let form = HostForm {
        name,
        destination,
        notes,
    };
    let host = site.lab.add_host(&who.actor, &form).await?;
    Ok(created(
        &format!("/api/v1/hosts/{host}"),
        json!({ "host": host }),
    ))
}

/// A host with its newest inventory.
pub(super) async fn one(
    State(site): State<Site>,
    who: Who,
    NamedPath(named): NamedPath,
) -> Result<Json<HostView>, Problem> {
    let host = named.host(&site, &who.actor).await?;
    let view = site.lab.host(&who.actor, host).await?;
    Ok(Json(readable_by(&who.actor, view)))
}

/// Tests the connection and takes the inventory.
pub(super) async fn check(
    State(site): State<Site>,
    who: Who,
    NamedPath(named): NamedPath,
) -> Result<Json<HostCheck>, Problem> {
    let host = named.host(&site, &who.actor).await?;
    Ok(Json(site.lab.check_host(&who.actor, host).await?))
}

/// What runs on it now.
pub(super) async fn running(
    State(site): State<Site>,
    who: Who,
    NamedPath(named): NamedPath,
) -> Result<Json<RunningNow>, Problem> {
    let host = named.host(&site, &who.actor).await?;
    Ok(Json(site.lab.running_on(&who.actor, host).await?))
}

/// Adopts an engine that runs on it.
pub(super) async fn adopt(
    State(site): State<Site>,
    who: Who,
    NamedPath(named): NamedPath,
    body: Body,
) -> Result<Response, Problem> {
    let sent: AdoptBody = body::read(body, "an engine to adopt")?;
    let host = named.host(&site, &who.actor).await?;
    let engine = match (sent.engine, sent.pid) {
        (Some(engine), None) => engine,
        (None, Some(pid)) => found(&site, &who, host, pid).await?,
        _ => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "Name the engine by `pid`, its process number, or by `engine`, as GET …/running lists it: one of the two.",
            ));
        }
    };
    let form = AdoptForm {
        host,
        engine,
        profile_name: sent.profile_name,
    };
    let launch = site.lab.adopt(&who.actor, &form).await?;
    Ok(created(
        &format!("/api/v1/launches/{launch}"),
        json!({ "launch": launch }),
    ))
}

/// The engine with this process number.
async fn found(site: &Site, who: &Who, host: HostId, pid: u32) -> Result<FoundEngine, Problem> {
    let running = site.lab.running_on(&who.actor, host).await?;
    running
        .found
        .into_iter()
        .find(|engine| engine.process.identity.pid == pid)
        .ok_or_else(|| {
            Problem::new(
                StatusCode::NOT_FOUND,
                format!(
                    "No engine with process number {pid} was found there. GET …/running lists what is."
                ),
            )
        })
}
