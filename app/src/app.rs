//! The routes.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::{
    Lazy, SsrMode,
    components::{FlatRoutes, Route, Router},
    path,
};

use crate::{
    browser,
    components::layout::{Footer, Header},
    pages::{
        lazy::{Board, Compare, Frozen, NewRun, Run, Runs},
        not_found::NotFoundPage,
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
                <FlatRoutes fallback=NotFoundPage>
                    <Route path=path!("/") view={Lazy::<Board>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/runs") view={Lazy::<Runs>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/runs/new") view={Lazy::<NewRun>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/runs/:id") view={Lazy::<Run>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/compare") view={Lazy::<Compare>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/c/:slug") view={Lazy::<Frozen>::new()} ssr=SsrMode::Async/>
                </FlatRoutes>
            </main>
            <Footer/>
        </Router>
    }
}
