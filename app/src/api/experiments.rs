//! Experiments: what one would cost, planning, the list, one of them, and what can be
//! done to it.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::{
    ids::ExperimentId,
    views::{
        ChartView,
        experiments::{ExperimentForm, ExperimentList, ExperimentPreview, ExperimentView},
    },
};

use crate::AppError;

/// What an experiment would do and cost. Nothing is started.
///
/// # Errors
/// It cannot be planned, the database is away, or this actor may not launch.
#[server(prefix = "/api/fn", endpoint = "preview_experiment", input = Json)]
pub async fn preview_experiment(form: ExperimentForm) -> Result<ExperimentPreview, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.preview_experiment(&actor, &form)
        .await
        .map_err(super::context::answer)
}

/// Plans an experiment and puts it into the queue.
///
/// # Errors
/// As for [`preview_experiment`].
#[server(prefix = "/api/fn", endpoint = "queue_experiment", input = Json)]
pub async fn queue_experiment(form: ExperimentForm) -> Result<ExperimentId, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.queue_experiment(&actor, &form)
        .await
        .map_err(super::context::answer)
}

/// The newest experiments.
///
/// # Errors
/// The database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "experiments", input = Json)]
pub async fn experiments() -> Result<ExperimentList, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.experiments(&actor)
        .await
        .map_err(super::context::answer)
}

/// An experiment with what it found so far.
///
/// # Errors
/// No such experiment, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "experiment", input = Json)]
pub async fn experiment(experiment: ExperimentId) -> Result<ExperimentView<ChartView>, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.experiment(&actor, experiment)
        .await
        .map(|view| view.map_charts(crate::draw::chart_view))
        .map_err(super::context::answer)
}

/// Asks an experiment to pause. The launch under way is stopped and planned again.
///
/// URL-encoded, as the next two: the buttons work as plain forms before WASM has loaded.
///
/// # Errors
/// No such experiment, it is over or paused, the database is away, or this actor may
/// not launch.
#[server(prefix = "/api/fn", endpoint = "pause_experiment")]
pub async fn pause_experiment(experiment: ExperimentId) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.pause_experiment(&actor, experiment)
        .await
        .map_err(super::context::answer)
}

/// Puts a paused experiment back into the queue.
///
/// # Errors
/// No such experiment, it is not paused, the database is away, or this actor may not
/// launch.
#[server(prefix = "/api/fn", endpoint = "resume_experiment")]
pub async fn resume_experiment(experiment: ExperimentId) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.resume_experiment(&actor, experiment)
        .await
        .map_err(super::context::answer)
}

/// Ends an experiment; what was measured is kept.
///
/// # Errors
/// No such experiment, it is over, the database is away, or this actor may not launch.
#[server(prefix = "/api/fn", endpoint = "cancel_experiment")]
pub async fn cancel_experiment(experiment: ExperimentId) -> Result<(), AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.cancel_experiment(&actor, experiment)
        .await
        .map_err(super::context::answer)
}
