//! What a path names.

use axum::extract::{FromRequestParts, Path};
use http::{StatusCode, request::Parts};
use tokdyno_domain::ids::{ExperimentId, GateId, LaunchId, RunId};

use super::{super::Problem, named::Named};

async fn text<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    Path::<String>::from_request_parts(parts, state)
        .await
        .map(|Path(text)| text)
        .map_err(|_| Problem::not_found())
}

fn no_number(text: &str, what: &str, list: &str) -> Problem {
    let shown: String = text.chars().take(40).collect();
    Problem::new(
        StatusCode::NOT_FOUND,
        format!("`{shown}` is not a {what}'s number. GET /api/v1/{list} lists them."),
    )
}

/// The run that the path names.
pub(super) struct RunPath(pub(super) RunId);

impl<S: Send + Sync> FromRequestParts<S> for RunPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = text(parts, state).await?;
        let run = text.parse().map_err(|_| no_number(&text, "run", "runs"))?;
        Ok(Self(run))
    }
}

/// The gate that the path names.
pub(super) struct GatePath(pub(super) GateId);

impl<S: Send + Sync> FromRequestParts<S> for GatePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = text(parts, state).await?;
        let gate = text
            .parse()
            .map_err(|_| no_number(&text, "gate", "gates"))?;
        Ok(Self(gate))
    }
}

/// The launch that the path names.
pub(super) struct LaunchPath(pub(super) LaunchId);

impl<S: Send + Sync> FromRequestParts<S> for LaunchPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = text(parts, state).await?;
        let launch = text
            .parse()
            .map_err(|_| no_number(&text, "launch", "launches"))?;
        Ok(Self(launch))
    }
}

/// The experiment that the path names.
pub(super) struct ExperimentPath(pub(super) ExperimentId);

impl<S: Send + Sync> FromRequestParts<S> for ExperimentPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = text(parts, state).await?;
        let experiment = text
            .parse()
            .map_err(|_| no_number(&text, "experiment", "experiments"))?;
        Ok(Self(experiment))
    }
}

/// The host or profile that the path names, by number or name.
pub(super) struct NamedPath(pub(super) Named);

impl<S: Send + Sync> FromRequestParts<S> for NamedPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(Named::of_text(&text(parts, state).await?)))
    }
}
