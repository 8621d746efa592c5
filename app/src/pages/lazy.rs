//! The pages as the router knows them. Their code lies in parts of the bundle that
//! the browser loads when it first shows such a page.

use leptos::prelude::*;
use leptos_router::{LazyRoute, hooks::use_url};

/// A page's code did not come, say because the server is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCode;

/// Defines a route, and a module with the function at which the code is cut.
macro_rules! lazy_page {
    ($text:literal, $route:ident, $module:ident, $page:path, $part:ident) => {
        #[doc = $text]
        #[derive(Debug, Clone, Copy)]
        pub struct $route;

        impl LazyRoute for $route {
            fn data() -> Self {
                Self
            }

            async fn view(_: Self) -> AnyView {
                match $module::view().await {
                    Ok(view) => view,
                    Err(_) => leave().await,
                }
            }
        }

        mod $module {
            #[cfg(debug_assertions)]
            use std::{
                convert::Infallible,
                future::{Ready, ready},
            };

            use leptos::prelude::*;
            #[cfg(not(debug_assertions))]
            use leptos::wasm_split;
            use $page as Page;

            #[cfg(not(debug_assertions))]
            #[wasm_split::wasm_split($part, fallible, preload(code), wasm_split_path = wasm_split)]
            pub(super) fn view() -> Result<AnyView, wasm_split::SplitLoaderError> {
                Ok(view! { <Page/> }.into_any())
            }

            // The quick build is not cut: what an incremental build leaves behind
            // confuses the tool that cuts.
            #[cfg(debug_assertions)]
            pub(super) fn view() -> Ready<Result<AnyView, Infallible>> {
                ready(Ok(view! { <Page/> }.into_any()))
            }

            #[cfg(debug_assertions)]
            pub(super) fn code() -> Ready<Result<(), Infallible>> {
                ready(Ok(()))
            }
        }
    };
}

// Pages that people go to from one another share a part. What several parts need
// goes to further files, up to one for each combination of parts: keep parts few.
// Hosts, profiles, servers and experiments therefore share one, although each is large.
lazy_page!("`/`", Board, board, crate::pages::board::BoardPage, board);
lazy_page!("`/runs`", Runs, runs, crate::pages::runs::RunsPage, runs);
lazy_page!(
    "`/runs/new`",
    NewRun,
    new_run,
    crate::pages::new_run::NewRunPage,
    runs
);
lazy_page!("`/runs/:id`", Run, run, crate::pages::run::RunPage, run);
lazy_page!(
    "`/compare`",
    Compare,
    compare,
    crate::pages::compare::ComparePage,
    compare
);
lazy_page!(
    "`/c/:slug`",
    Frozen,
    frozen,
    crate::pages::frozen::FrozenPage,
    compare
);
lazy_page!(
    "`/servers`",
    Servers,
    servers,
    crate::pages::servers::ServersPage,
    operate
);
lazy_page!(
    "`/servers/new`",
    NewLaunch,
    new_launch,
    crate::pages::new_launch::NewLaunchPage,
    operate
);
lazy_page!(
    "`/servers/:id`",
    Server,
    server,
    crate::pages::server::ServerPage,
    operate
);
lazy_page!(
    "`/profiles`",
    Profiles,
    profiles,
    crate::pages::profiles::ProfilesPage,
    operate
);
lazy_page!(
    "`/profiles/new`",
    NewProfile,
    new_profile,
    crate::pages::new_profile::NewProfilePage,
    operate
);
lazy_page!(
    "`/profiles/:name`",
    Profile,
    profile,
    crate::pages::profile::ProfilePage,
    operate
);
lazy_page!(
    "`/hosts`",
    Hosts,
    hosts,
    crate::pages::hosts::HostsPage,
    operate
);
lazy_page!(
    "`/hosts/:id`",
    Host,
    host,
    crate::pages::host::HostPage,
    operate
);
lazy_page!(
    "`/experiments`",
    Experiments,
    experiments,
    crate::pages::experiments::ExperimentsPage,
    operate
);
lazy_page!(
    "`/experiments/new`",
    NewExperiment,
    new_experiment,
    crate::pages::new_experiment::NewExperimentPage,
    operate
);
lazy_page!(
    "`/experiments/:id`",
    Experiment,
    experiment,
    crate::pages::experiment::ExperimentPage,
    operate
);
lazy_page!(
    "`/audit`",
    Audit,
    audit,
    crate::pages::audit::AuditPage,
    operate
);
lazy_page!(
    "`/sign-in`",
    SignIn,
    sign_in,
    crate::pages::sign_in::SignInPage,
    operate
);

/// Loads the code of the page at a path, so that the page can be made live at once.
/// Paths are those of [`crate::App`]; another one has nothing to load.
///
/// # Errors
/// The code cannot be loaded.
pub async fn preload(path: &str) -> Result<(), NoCode> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [] => board::code().await.map_err(|_| NoCode),
        ["runs"] => runs::code().await.map_err(|_| NoCode),
        ["runs", "new"] => new_run::code().await.map_err(|_| NoCode),
        ["runs", _] => run::code().await.map_err(|_| NoCode),
        ["compare"] => compare::code().await.map_err(|_| NoCode),
        ["c", _] => frozen::code().await.map_err(|_| NoCode),
        ["servers"] => servers::code().await.map_err(|_| NoCode),
        ["servers", "new"] => new_launch::code().await.map_err(|_| NoCode),
        ["servers", _] => server::code().await.map_err(|_| NoCode),
        ["profiles"] => profiles::code().await.map_err(|_| NoCode),
        ["profiles", "new"] => new_profile::code().await.map_err(|_| NoCode),
        ["profiles", _] => profile::code().await.map_err(|_| NoCode),
        ["hosts"] => hosts::code().await.map_err(|_| NoCode),
        ["hosts", _] => host::code().await.map_err(|_| NoCode),
        ["experiments"] => experiments::code().await.map_err(|_| NoCode),
        ["experiments", "new"] => new_experiment::code().await.map_err(|_| NoCode),
        ["experiments", _] => experiment::code().await.map_err(|_| NoCode),
        ["audit"] => audit::code().await.map_err(|_| NoCode),
        ["sign-in"] => sign_in::code().await.map_err(|_| NoCode),
        _ => Ok(()),
    }
}

/// Where the code of the page to show does not come, the browser asks the server for
/// the whole page: after an update of the program it then gets the new code.
async fn leave() -> AnyView {
    let url = use_url().get_untracked();
    let address = format!("{}{}", url.path(), search(url.search()));
    // Refused only where the browser is leaving already.
    let _ = window().location().set_href(&address);
    std::future::pending().await
}

fn search(query: &str) -> String {
    if query.is_empty() {
        String::new()
    } else {
        format!("?{query}")
    }
}
