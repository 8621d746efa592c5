//! Runs: the list, a run, its records, and what can be done to it.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::{
    ids::RunId,
    views::run::{RecordPage, RunFilter, RunPage, RunView},
};

use crate::AppError;

/// A page of the list, newest first.
///
/// # Errors
/// The database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "runs", input = Json)]
pub async fn runs(filter: RunFilter) -> Result<RunPage, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.runs(&actor, &filter)
        .await
        .map_err(super::context::answer)
}

/// A run with its figures and charts.
///
/// # Errors
/// No such run, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "run", input = Json)]
pub async fn run(run: RunId) -> Result<RunView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.run(&actor, run)
        .await
        .map(|view| view.map_charts(crate::draw::chart_view))
        .map_err(super::context::answer)
}

/// A page of a run's request records, from 0; of these stages only, if any are named.
///
/// # Errors
/// No such run, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "records", input = Json)]
pub async fn records(run: RunId, page: u32, stages: Vec<u32>) -> Result<RecordPage, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.records(&actor, run, page, &stages)
        .await
        .map_err(super::context::answer)
}

/// Stops a run, queued or running; what was finished is kept.
///
/// URL-encoded, so that the button works as a plain form before WASM has loaded.
///
/// # Errors
/// No such run, it is over already, the database is away, or this actor may not measure.
#[server(prefix = "/api/fn", endpoint = "cancel_run")]
pub async fn cancel_run(run: RunId) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.cancel_run(&actor, run)
        .await
        .map_err(super::context::answer)
}

/// Gives a run's configuration another name and its hardware another description.
///
/// # Errors
/// No such run, a text beyond what is kept, the database is away, or this actor may
/// not measure.
#[server(prefix = "/api/fn", endpoint = "rename_run", input = Json)]
pub async fn rename_run(
    run: RunId,
    configuration: String,
    hardware: String,
) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.rename_run(&actor, run, &configuration, &hardware)
        .await
        .map_err(super::context::answer)
}

/// Takes a run out of lists and Board. Frozen comparisons keep what they show of it.
///
/// # Errors
/// No such run, it is still running, the database is away, or this actor may not delete.
#[server(prefix = "/api/fn", endpoint = "delete_run", input = Json)]
pub async fn delete_run(run: RunId) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.delete_run(&actor, run)
        .await
        .map_err(super::context::answer)
}
