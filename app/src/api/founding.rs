//! The founding figures, by button.

use leptos::prelude::*;

use crate::AppError;

/// Stores the founding figures that are not there yet, and says how many were new.
///
/// URL-encoded, so that the button works as a plain form before WASM has loaded.
///
/// # Errors
/// The database is away, or this actor may not import.
#[server(prefix = "/api/fn", endpoint = "load_founding")]
pub async fn load_founding() -> Result<u32, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.load_founding(&actor)
        .await
        .map_err(super::context::answer)
}
