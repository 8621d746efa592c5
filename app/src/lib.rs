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
pub mod clock;
pub mod components;
#[cfg(feature = "ssr")]
pub mod draw;
pub mod error;
pub mod live;
pub mod pages;
#[cfg(feature = "hydrate")]
pub mod plot;
pub mod query;
pub mod refresh;
#[cfg(feature = "ssr")]
pub mod shell;

pub use app::App;
pub use assets::{Assets, Surface};
pub use error::{AppError, SignInTrouble};
#[cfg(feature = "ssr")]
pub use shell::shell;

// rustdoc does not get the flag, and does not need it.
#[cfg(not(any(erase_components, doc, doctest)))]
compile_error!(
    "Server and browser only agree with `--cfg erase_components`, which .cargo/config.toml sets: \
     the variable RUSTFLAGS takes its place and must name it too."
);

/// Makes the server's page live; called by the page's own script.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub async fn hydrate() {
    // Otherwise the console would only say "unreachable".
    std::panic::set_hook(Box::new(|panic| {
        web_sys::console::error_1(&panic.to_string().into());
    }));
    let path = leptos::prelude::window().location().pathname();
    // Without its code the page stays as the server made it: it reads, and links work.
    if pages::lazy::preload(&path.unwrap_or_default())
        .await
        .is_err()
    {
        return;
    }
    leptos::mount::hydrate_body(App);
    // Controls that are only needed without scripts step back from here on.
    if let Some(root) = browser::root() {
        // Setting an attribute of this name cannot fail.
        let _ = root.set_attribute("data-live", "");
    }
}
