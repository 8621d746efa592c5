//! Who did what.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::views::servers::AuditPage;

use crate::AppError;

/// A page of the audit log, newest first: entries before a number.
///
/// # Errors
/// The database is away, or this actor may not read it.
#[server(prefix = "/api/fn", endpoint = "audit", input = Json)]
pub async fn audit(before: Option<i64>) -> Result<AuditPage, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.audit(&actor, before)
        .await
        .map_err(super::context::answer)
}
