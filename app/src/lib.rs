//! What people see: Leptos, compiled to WebAssembly for the browser (feature
//! `hydrate`) and natively for the first paint (feature `ssr`).
//!
//! Pages read their data through the server functions in [`api`]; nothing here
//! computes a figure. Routes and contexts are listed in `docs/ARCHITECTURE.md`.
#![recursion_limit = "256"]

pub mod api;
pub mod app;
pub mod assets;
pub mod browser;
pub mod components;
#[cfg(feature = "ssr")]
pub mod draw;
pub mod error;
pub mod live;
pub mod pages;
#[cfg(feature = "hydrate")]
pub mod plot;
pub mod query;
#[cfg(feature = "ssr")]
pub mod shell;

pub use app::App;
pub use assets::{Assets, Surface};
pub use error::AppError;
#[cfg(feature = "ssr")]
pub use shell::shell;

/// Makes the server's page live; called by the page's own script.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    leptos::mount::hydrate_body(App);
    // Controls that are only needed without scripts step back from here on.
    if let Some(root) = browser::root() {
        // Setting an attribute of this name cannot fail.
        let _ = root.set_attribute("data-live", "");
    }
}
