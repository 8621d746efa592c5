//! The routes.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::{
    SsrMode,
    components::{Route, Router, Routes},
    path,
};

use crate::{
    browser,
    components::layout::{Footer, Header},
    pages::{
        board::BoardPage, compare::ComparePage, frozen::FrozenPage, new_run::NewRunPage,
        not_found::NotFoundPage, run::RunPage, runs::RunsPage,
    },
};

/// The whole program as people see it.
///
/// Every route renders `Async`: the first paint has the figures in it, works
/// without scripts, and carries the true HTTP status.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    let surface = browser::surface();
    // In the browser the server's context is found on the document.
    provide_context(surface);
    #[cfg(feature = "hydrate")]
    crate::plot::provide_palette();
    view! {
        <Title formatter=|title: String| {
            if title.is_empty() { "Tokdyno".to_owned() } else { format!("{title} · Tokdyno") }
        }/>
        <Router>
            // Left to the browser, which moves the focus as well.
            <a class="skip-link" href="#main" rel="external">
                "Skip to content"
            </a>
            <Header surface=surface/>
            <main id="main" class="page" tabindex="-1">
                <Routes fallback=NotFoundPage>
                    <Route path=path!("/") view=BoardPage ssr=SsrMode::Async/>
                    <Route path=path!("/runs") view=RunsPage ssr=SsrMode::Async/>
                    <Route path=path!("/runs/new") view=NewRunPage ssr=SsrMode::Async/>
                    <Route path=path!("/runs/:id") view=RunPage ssr=SsrMode::Async/>
                    <Route path=path!("/compare") view=ComparePage ssr=SsrMode::Async/>
                    <Route path=path!("/c/:slug") view=FrozenPage ssr=SsrMode::Async/>
                </Routes>
            </main>
            <Footer/>
        </Router>
    }
}
