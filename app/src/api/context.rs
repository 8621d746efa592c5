//! What every server function needs: the laboratory, who asks, and how its
//! errors become answers.

use leptos::prelude::*;
use tokdyno_domain::access::{Actor, Capability, authorise};
use tokdyno_engines::{HoldsSecrets, readable_by};
use tokdyno_lab::{Lab, LabError};

use crate::AppError;

/// The laboratory and whoever asks, both provided by the server.
///
/// # Errors
/// A context is missing: the server was put together wrongly.
pub(super) fn lab_and_actor() -> Result<(Lab, Actor), AppError> {
    Ok((expect(use_context::<Lab>())?, actor()?))
}

/// Whoever asks.
///
/// # Errors
/// The context is missing: the server was put together wrongly.
pub(super) fn actor() -> Result<Actor, AppError> {
    expect(use_context::<Actor>())
}

fn expect<T>(context: Option<T>) -> Result<T, AppError> {
    context.ok_or_else(|| {
        tracing::error!(
            what = std::any::type_name::<T>(),
            "the server provides no such context"
        );
        AppError::new(
            500,
            "The server is not set up completely. Restart it; if that does not help, its log says what is missing.",
        )
        .with_status()
    })
}

/// Asks whether this actor may do this.
///
/// # Errors
/// 403 with what it takes.
pub(super) fn may(actor: &Actor, capability: Capability) -> Result<(), AppError> {
    authorise(actor, capability).map_err(|forbidden| answer(forbidden.into()))
}

/// A view as this actor may read it, or why there is none.
pub(super) fn readable<T: HoldsSecrets>(
    actor: &Actor,
    answered: Result<T, LabError>,
) -> Result<T, AppError> {
    answered
        .map(|view| readable_by(actor, view))
        .map_err(answer)
}

/// A laboratory's error as the answer to this request. Its source was logged where
/// it came up and goes no further.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a function for map_err, which gives the error away"
)]
pub(super) fn answer(error: LabError) -> AppError {
    AppError::new(error.status(), error.to_string()).with_status()
}
