//! Hosts: the list, a host, what is on it and what runs there.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::{
    ids::{HostId, LaunchId},
    views::{
        hosts::{HostCheck, HostForm, HostSummary, HostView, Leftover, RunningNow},
        servers::AdoptForm,
    },
};

use crate::AppError;

/// All hosts.
///
/// # Errors
/// The database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "hosts", input = Json)]
pub async fn hosts() -> Result<Vec<HostSummary>, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.hosts(&actor).await.map_err(super::context::answer)
}

/// A host with its newest inventory and its launches.
///
/// # Errors
/// No such host, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "host", input = Json)]
pub async fn host(host: HostId) -> Result<HostView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::readable(&actor, lab.host(&actor, host).await)
}

/// Adds a host and leads to its page.
///
/// URL-encoded, so that the form works before WASM has loaded.
///
/// # Errors
/// A destination that `ssh` could not take, a name that is taken, the database is
/// away, or this actor may not edit hosts.
#[server(prefix = "/api/fn", endpoint = "add_host")]
pub async fn add_host(form: HostForm) -> Result<HostId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let host = lab
        .add_host(&actor, &form)
        .await
        .map_err(super::context::answer)?;
    leptos_axum::redirect(&format!("/hosts/{host}"));
    Ok(host)
}

/// Changes a host's name, destination and notes.
///
/// URL-encoded, so that the form works before WASM has loaded.
///
/// # Errors
/// As for [`add_host`], or no such host.
#[server(prefix = "/api/fn", endpoint = "edit_host")]
pub async fn edit_host(host: HostId, form: HostForm) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.edit_host(&actor, host, &form)
        .await
        .map_err(super::context::answer)
}

/// Takes a host out of the lists. Its launches and runs stay.
///
/// # Errors
/// Launches live on it, no such host, the database is away, or this actor may not
/// edit hosts.
#[server(prefix = "/api/fn", endpoint = "remove_host", input = Json)]
pub async fn remove_host(host: HostId) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.remove_host(&actor, host)
        .await
        .map_err(super::context::answer)
}

/// Connects to a host and looks at what is on it. That it cannot be reached is an
/// answer, not an error.
///
/// URL-encoded, so that the button works as a plain form before WASM has loaded: the
/// host's page then shows how it went.
///
/// # Errors
/// No such host, the database is away, or this actor may not look into hosts.
#[server(prefix = "/api/fn", endpoint = "check_host")]
pub async fn check_host(host: HostId) -> Result<HostCheck, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.check_host(&actor, host)
        .await
        .map_err(super::context::answer)
}

/// Looks on a host for engines that nobody launched from here, and for processes
/// that launches left behind.
///
/// # Errors
/// The host cannot be reached, no such host, or this actor may not look into hosts.
#[server(prefix = "/api/fn", endpoint = "running_on", input = Json)]
pub async fn running_on(host: HostId) -> Result<RunningNow, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.running_on(&actor, host)
        .await
        .map_err(super::context::answer)
}

/// Adopts a running engine.
///
/// # Errors
/// It is gone, the host cannot be reached, a name that cannot be used, or this actor
/// may not launch.
#[server(prefix = "/api/fn", endpoint = "adopt", input = Json)]
pub async fn adopt(form: AdoptForm) -> Result<LaunchId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.adopt(&actor, &form)
        .await
        .map_err(super::context::answer)
}

/// Ends what a launch left behind on a host.
///
/// # Errors
/// It is not ours, the host cannot be reached, or this actor may not launch.
#[server(prefix = "/api/fn", endpoint = "clean_up", input = Json)]
pub async fn clean_up(host: HostId, leftover: Leftover) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.clean_up(&actor, host, &leftover)
        .await
        .map_err(super::context::answer)
}
