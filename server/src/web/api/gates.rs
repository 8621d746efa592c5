//! Gates: held to rules, recorded, decided.

use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::Deserialize;
use tokdyno_domain::{
    ids::RunId,
    views::gates::{DecisionKind, GateForm, GateView},
};

use super::{
    super::{Problem, Site, query},
    body::{self, Body},
    path::GatePath,
};
use crate::safety::who::Who;

/// `POST /api/v1/gates`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GateBody {
    runs: Vec<RunId>,
    rules: Vec<String>,
    #[serde(default)]
    record: bool,
}

/// `POST /api/v1/gates/ID/decision`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    decision: DecisionKind,
    reason: String,
}

/// Lists gates, newest first: all, or those about the runs that are named.
pub(super) async fn list(
    State(site): State<Site>,
    who: Who,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<GateView>>, Problem> {
    let runs = query::runs_named(&query.unwrap_or_default())?;
    Ok(Json(site.lab.gates(&who.actor, &runs).await?))
}

/// A gate.
pub(super) async fn one(
    State(site): State<Site>,
    who: Who,
    GatePath(gate): GatePath,
) -> Result<Json<GateView>, Problem> {
    Ok(Json(site.lab.gate(&who.actor, gate).await?))
}

/// Judges; keeps what it came to where that is asked for.
pub(super) async fn judge(
    State(site): State<Site>,
    who: Who,
    body: Body,
) -> Result<Response, Problem> {
    let sent: GateBody = body::read(body, "a gate")?;
    let form = GateForm {
        runs: sent.runs,
        rules: sent.rules.join("\n"),
    };
    if !sent.record {
        let outcome = site.lab.try_gate(&who.actor, &form).await?;
        return Ok(Json(outcome).into_response());
    }
    let gate = site.lab.record_gate(&who.actor, &form).await?;
    let location = format!("/api/v1/gates/{}", gate.id);
    Ok(super::created(&location, gate))
}

/// Accepts or rejects what it was about.
pub(super) async fn decide(
    State(site): State<Site>,
    who: Who,
    GatePath(gate): GatePath,
    body: Body,
) -> Result<(StatusCode, Json<GateView>), Problem> {
    let sent: DecisionBody = body::read(body, "a decision")?;
    let gate = site
        .lab
        .decide_gate(&who.actor, gate, sent.decision, &sent.reason)
        .await?;
    Ok((StatusCode::OK, Json(gate)))
}
