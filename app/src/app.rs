//! The routes.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::{
    Lazy, SsrMode,
    components::{FlatRoutes, Route, Router},
    path,
};

use crate::{
    Surface, browser,
    components::{
        layout::{Footer, Header},
        who::Who,
    },
    pages::{
        lazy::{
            Audit, Board, Compare, Experiment, Experiments, Frozen, Host, Hosts, NewExperiment,
            NewLaunch, NewProfile, NewRun, Profile, Profiles, Run, Runs, Server, Servers, SignIn,
        },
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
    // Shared pages lead nowhere into the tool, and nobody can act there.
    if surface == Surface::Full {
        Who::provide();
    }
    #[cfg(feature = "hydrate")]
    crate::plot::provide_palette();
    view! {
        <Title formatter=|title: String| {
            if title.is_empty() {
                "Tokdyno".to_owned()
            } else {
                document_title(&format!("{title} · Tokdyno"))
            }
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
                    <Route path=path!("/servers") view={Lazy::<Servers>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/servers/new") view={Lazy::<NewLaunch>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/servers/:id") view={Lazy::<Server>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/profiles") view={Lazy::<Profiles>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/profiles/new") view={Lazy::<NewProfile>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/profiles/:name") view={Lazy::<Profile>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/hosts") view={Lazy::<Hosts>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/hosts/:id") view={Lazy::<Host>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/experiments") view={Lazy::<Experiments>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/experiments/new") view={Lazy::<NewExperiment>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/experiments/:id") view={Lazy::<Experiment>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/audit") view={Lazy::<Audit>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/sign-in") view={Lazy::<SignIn>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/runs") view={Lazy::<Runs>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/runs/new") view={Lazy::<NewRun>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/runs/:id") view={Lazy::<Run>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/compare") view={Lazy::<Compare>::new()} ssr=SsrMode::Async/>
                    <Route path=path!("/c/:slug") view={Lazy::<Frozen>::new()} ssr=SsrMode::Async/>
                </FlatRoutes>
            </main>
            <Footer surface=surface/>
        </Router>
    }
}

/// A title as the document takes it. In the browser it is set as text. On the server
/// it is written into the document as it is, so that a name with mark-up in it, say of
/// an imported run, would become part of the page.
fn document_title(title: &str) -> String {
    if cfg!(feature = "ssr") {
        title.replace('&', "&amp;").replace('<', "&lt;")
    } else {
        title.to_owned()
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_title_cannot_leave_its_element() {
        assert_eq!(
            document_title("a</title><meta http-equiv=\"refresh\"> & b"),
            "a&lt;/title>&lt;meta http-equiv=\"refresh\"> &amp; b"
        );
    }
}
