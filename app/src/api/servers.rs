//! Servers: what runs where, a launch, its log, and what can be done with it.
#![expect(
    clippy::too_many_arguments,
    reason = "the fields of a plain form arrive as arguments, by their names"
)]

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::{
    ids::{HostId, LaunchId, ProfileId, RunId},
    views::servers::{LaunchForm, LaunchView, LogPage, MeasureForm, ServerList, StopQuestion},
};

use crate::AppError;

/// Launches that live, and those that are over.
///
/// # Errors
/// The database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "servers", input = Json)]
pub async fn servers() -> Result<ServerList, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::readable(&actor, lab.servers(&actor).await)
}

/// A launch.
///
/// # Errors
/// No such launch, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "launch", input = Json)]
pub async fn launch(launch: LaunchId) -> Result<LaunchView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::readable(&actor, lab.launch(&actor, launch).await)
}

/// A piece of a launch's log from a byte on, and the lines that hold `find`. For
/// whoever may launch: engines write what they like into their logs.
///
/// # Errors
/// No such launch, the database is away, or this actor may not launch.
#[server(prefix = "/api/fn", endpoint = "launch_log", input = Json)]
pub async fn launch_log(
    launch: LaunchId,
    start: u64,
    most: u64,
    find: String,
) -> Result<LogPage, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    super::context::may(&actor, tokdyno_domain::access::Capability::Launch)?;
    lab.launch_log(&actor, launch, start, most, &find)
        .await
        .map_err(super::context::answer)
}

/// Puts a launch into the queue.
///
/// # Errors
/// Something asked for cannot be had, the database is away, or this actor may not
/// launch.
#[server(prefix = "/api/fn", endpoint = "queue_launch", input = Json)]
pub async fn queue_launch(form: LaunchForm) -> Result<LaunchId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.queue_launch(&actor, &form)
        .await
        .map_err(super::context::answer)
}

/// The same from a plain form, before WASM has loaded; leads to the launch's page.
/// `give_back` is `HH:MM` in UTC or blank, `preset` the workload's word where
/// something is to be measured.
///
/// # Errors
/// As for [`queue_launch`], or a field that does not read.
#[server(prefix = "/api/fn", endpoint = "launch_by_form")]
pub async fn launch_by_form(
    profile: ProfileId,
    host: HostId,
    #[server(default)] measure: bool,
    #[server(default)] preset: String,
    #[server(default)] configuration: String,
    #[server(default)] through_forward: bool,
    #[server(default)] verify_nccl: bool,
    #[server(default)] stop: bool,
    #[server(default)] restore: String,
    #[server(default)] give_back: String,
) -> Result<LaunchId, AppError> {
    use super::plain_form;

    let form = LaunchForm {
        profile,
        host,
        measure: measure.then(|| plain_form::workload(&preset)).transpose()?,
        configuration,
        through_forward,
        verify_nccl,
        afterwards: plain_form::afterwards(stop),
        restore: plain_form::number(&restore)?,
        give_back_at: plain_form::moment(&give_back)?,
        give_back_lead_s: None,
    };
    let launch = queue_launch(form).await?;
    leptos_axum::redirect(&format!("/servers/{launch}"));
    Ok(launch)
}

/// Queues a measurement of a ready launch.
///
/// # Errors
/// The launch is not ready, a workload that cannot be run, the database is away, or
/// this actor may not measure.
#[server(prefix = "/api/fn", endpoint = "measure_launch", input = Json)]
pub async fn measure_launch(form: MeasureForm) -> Result<RunId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.measure_launch(&actor, &form)
        .await
        .map_err(super::context::answer)
}

/// The same from a plain form, before WASM has loaded; leads to the run's page.
///
/// # Errors
/// As for [`measure_launch`], or a field that does not read.
#[server(prefix = "/api/fn", endpoint = "measure_by_form")]
pub async fn measure_by_form(
    launch: LaunchId,
    #[server(default)] preset: String,
    #[server(default)] configuration: String,
    #[server(default)] through_forward: bool,
) -> Result<RunId, AppError> {
    let run = measure_launch(MeasureForm {
        launch,
        workload: super::plain_form::workload(&preset)?,
        configuration,
        through_forward,
    })
    .await?;
    leptos_axum::redirect(&format!("/runs/{run}"));
    Ok(run)
}

/// What is to be known before a launch is stopped.
///
/// # Errors
/// No such launch, the database is away, or this actor may not launch.
#[server(prefix = "/api/fn", endpoint = "stop_question", name = AskStop, input = Json)]
pub async fn stop_question(launch: LaunchId) -> Result<StopQuestion, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.stop_question(&actor, launch)
        .await
        .map_err(super::context::answer)
}

/// Asks a launch to stop.
///
/// URL-encoded, so that the button works as a plain form before WASM has loaded.
///
/// # Errors
/// No such launch, it is over already, the database is away, or this actor may not
/// launch.
#[server(prefix = "/api/fn", endpoint = "stop_launch")]
pub async fn stop_launch(launch: LaunchId) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.stop_launch(&actor, launch)
        .await
        .map_err(super::context::answer)
}

/// Starts a stopped adopted server again, its own way; leads to the new launch.
///
/// URL-encoded, so that the button works as a plain form before WASM has loaded.
///
/// # Errors
/// It was not adopted or still runs, the database is away, or this actor may not
/// launch.
#[server(prefix = "/api/fn", endpoint = "restore_launch")]
pub async fn restore_launch(launch: LaunchId) -> Result<LaunchId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let restored = lab
        .restore_launch(&actor, launch)
        .await
        .map_err(super::context::answer)?;
    leptos_axum::redirect(&format!("/servers/{restored}"));
    Ok(restored)
}
