//! Who did what.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use http::StatusCode;
use serde::Deserialize;
use tokdyno_domain::views::servers::AuditPage;

use super::super::{Problem, Site};
use crate::safety::who::Who;

/// Where the page begins.
#[derive(Debug, Deserialize)]
pub(super) struct Before {
    before: Option<i64>,
}

/// A page of the audit log, newest first.
pub(super) async fn list(
    State(site): State<Site>,
    who: Who,
    before: Result<Query<Before>, QueryRejection>,
) -> Result<Json<AuditPage>, Problem> {
    let Query(Before { before }) = before.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "`before` is the number of an entry. Correct the address, or leave it out for the newest.",
        )
    })?;
    Ok(Json(site.lab.audit(&who.actor, before).await?))
}
