//! Who the reader is to the program.
#![cfg_attr(
    feature = "ssr",
    expect(
        clippy::unused_async,
        reason = "server functions are async, also where nothing is waited for"
    )
)]

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::views::servers::Me;

use crate::AppError;

/// Who the reader is, and what a page may offer.
///
/// # Errors
/// The database is away.
#[server(prefix = "/api/fn", endpoint = "me", name = AskMe, input = Json)]
pub async fn me() -> Result<Me, AppError> {
    // The header asks on every page, also while the routes are listed at the start,
    // when there is nobody to ask about.
    if use_context::<tokdyno_domain::access::Actor>().is_none() {
        return Err(AppError::new(500, "Nobody is asking."));
    }
    let (lab, actor) = super::context::lab_and_actor()?;
    // Without its status: this is the header's question, and a page that is whole must
    // not be answered with an error because of it.
    lab.me(&actor)
        .await
        .map_err(|error| AppError::new(error.status(), error.to_string()))
}

/// Why the last attempt to sign in did not work, if the server says so with the page.
///
/// # Errors
/// None of its own.
#[server(prefix = "/api/fn", endpoint = "sign_in_refusal", input = Json)]
pub async fn sign_in_refusal() -> Result<Option<String>, AppError> {
    Ok(use_context::<crate::SignInTrouble>().map(|trouble| trouble.0))
}
