//! Is the program up; is it ready.

use axum::extract::State;

use super::{Problem, Site};

/// The process answers.
pub(crate) async fn up() -> &'static str {
    "up\n"
}

/// The database answers too.
pub(crate) async fn ready(State(site): State<Site>) -> Result<&'static str, Problem> {
    site.lab.ready().await?;
    Ok("ready\n")
}
