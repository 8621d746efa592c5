//! Gates: rules that a run or a comparison is held to.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::{
    ids::{GateId, RunId},
    views::gates::{DecisionKind, GateForm, GateView},
};

use crate::AppError;

/// The gates of a run, or of a comparison, newest first.
///
/// # Errors
/// The database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "gates", input = Json)]
pub async fn gates(runs: Vec<RunId>) -> Result<Vec<GateView>, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.gates(&actor, &runs)
        .await
        .map_err(super::context::answer)
}

/// Holds runs to rules and keeps what it came to.
///
/// URL-encoded, so that the form works before WASM has loaded.
///
/// # Errors
/// A line that is no rule, runs that cannot be judged together, the database is away,
/// or this actor may not measure.
#[server(prefix = "/api/fn", endpoint = "record_gate")]
pub async fn record_gate(form: GateForm) -> Result<GateView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.record_gate(&actor, &form)
        .await
        .map_err(super::context::answer)
}

/// Accepts or rejects what a gate was about, with a reason.
///
/// URL-encoded, so that the form works before WASM has loaded.
///
/// # Errors
/// No reason, it was decided already, the database is away, or this actor may not
/// decide.
#[server(prefix = "/api/fn", endpoint = "decide_gate")]
pub async fn decide_gate(
    gate: GateId,
    decision: DecisionKind,
    reason: String,
) -> Result<GateView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.decide_gate(&actor, gate, decision, &reason)
        .await
        .map_err(super::context::answer)
}
