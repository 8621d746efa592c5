//! The failures of a run, those alike taken together.

use leptos::{prelude::*, server_fn::codec::Json};
use serde::{Deserialize, Serialize};
use tokdyno_domain::{ids::RunId, record::FailureKind};

use crate::AppError;

/// Requests that failed alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    /// Which kind.
    pub kind: FailureKind,
    /// What was said; alike in all of them.
    pub message: String,
    /// How many.
    pub count: u64,
    /// Stages in which it came up, in order.
    pub stages: Vec<u32>,
}

/// The failures of a run by kind and message, commonest first, at most fifty groups.
///
/// # Errors
/// No such run, the database is away, or this actor may not read.
#[server(prefix = "/api/fn", endpoint = "failures", input = Json)]
pub async fn failures(run: RunId) -> Result<Vec<FailureGroup>, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let groups = lab
        .failures(&actor, run)
        .await
        .map_err(super::context::answer)?;
    Ok(groups
        .into_iter()
        .map(|group| FailureGroup {
            kind: group.kind,
            message: group.message,
            count: group.count,
            stages: group.stages,
        })
        .collect())
}
