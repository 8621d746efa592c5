//! Which address leads where.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    middleware::{from_fn, from_fn_with_state},
    routing::{any, get, post},
};
use leptos_axum::{AxumRouteListing, LeptosRoutes, generate_route_list};
use tokdyno_app::{App, shell};

use super::{Problem, Site, api, contexts, dev, events, exports, health, problem, sign_in};
use crate::safety::{body, headers, hosts, origin, who};

/// The whole program.
pub(crate) fn full(site: Site, names: Arc<hosts::OwnNames>) -> Router {
    let bounded = Router::new()
        .merge(api::routes())
        .route("/api/v1/{*rest}", any(not_found))
        .route("/sign-in", post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/healthz", get(health::up))
        .route("/readyz", get(health::ready))
        .merge(pages(&site, generate_route_list(App)))
        .layer(from_fn_with_state(site.clone(), exports::intercept))
        .layer(from_fn(problem::in_time));
    let mut endless = Router::new().route("/events", get(events::events));
    if dev::is_on() {
        endless = endless.route("/dev/reload", get(dev::reload));
    }
    let router = bounded
        .merge(endless)
        .layer(Extension(names.clone()))
        .layer(from_fn_with_state(site.clone(), who::identify))
        .merge(site.store.routes());
    guarded(router, site, Some(names))
}

/// Shared links and what their page loads; nothing else is there.
pub(crate) fn shared(site: Site) -> Router {
    let shared_pages = generate_route_list(App)
        .into_iter()
        .filter(|route| route.path().starts_with("/c/"))
        .collect();
    let page = Router::new()
        .merge(pages_alone(&site, shared_pages))
        .fallback(not_found)
        .layer(from_fn_with_state(site.clone(), exports::intercept))
        .layer(from_fn(problem::in_time))
        .layer(from_fn_with_state(site.clone(), who::identify));
    let router = page.merge(site.store.routes());
    // The links are the secret and whoever has one may read it, so the name by
    // which this listener is reached does not matter.
    guarded(router, site, None)
}

/// The pages, the server functions, and the page for unknown addresses.
fn pages(site: &Site, routes: Vec<AxumRouteListing>) -> Router<Site> {
    let with = site.clone();
    let contexts = move || contexts::provide(&with);
    let options = site.options.clone();
    let document = move || shell(options.clone());
    Router::new()
        .leptos_routes_with_context(site, routes, contexts.clone(), document.clone())
        .fallback(leptos_axum::render_app_async_with_context(
            contexts, document,
        ))
        .layer(from_fn_with_state(site.clone(), problem::database_first))
}

/// The pages without the server functions.
fn pages_alone(site: &Site, routes: Vec<AxumRouteListing>) -> Router<Site> {
    let with = site.clone();
    let options = site.options.clone();
    let handler = leptos_axum::render_app_async_with_context(
        move || contexts::provide(&with),
        move || shell(options.clone()),
    );
    routes
        .into_iter()
        .fold(Router::new(), |router, route| {
            router.route(route.path(), get(handler.clone()))
        })
        .layer(from_fn_with_state(site.clone(), problem::database_first))
}

async fn not_found() -> Problem {
    Problem::not_found()
}

/// Puts the layers around a router that every request passes; the last named is
/// the outermost.
fn guarded(router: Router<Site>, site: Site, names: Option<Arc<hosts::OwnNames>>) -> Router {
    let mut router = router
        .layer(from_fn_with_state(
            site.clone(),
            problem::not_while_stopping,
        ))
        // `body::guard` sets the bounds; axum's own would refuse files of 2 MB.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(body::guard));
    if let Some(names) = names {
        router = router
            .layer(from_fn_with_state(names.clone(), origin::guard))
            .layer(from_fn_with_state(names, hosts::guard));
    }
    router
        .layer(from_fn(problem::methods_explained))
        .layer(from_fn(problem::despite_panics))
        .layer(from_fn_with_state(site.clone(), problem::pages_for_people))
        .layer(from_fn(headers::add))
        .with_state(site)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::{Request, StatusCode, header::CONTENT_TYPE};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn arguments_that_cannot_be_read_are_the_senders_fault() {
        let router: Router = Router::new().fallback(leptos_axum::handle_server_fns);
        for (path, content_type, sent) in [
            ("/api/fn/board", "application/json", "{"),
            ("/api/fn/run", "application/json", "{\"run\":\"abc\"}"),
            (
                "/api/fn/cancel_run",
                "application/x-www-form-urlencoded",
                "run=abc",
            ),
        ] {
            let request = Request::post(path)
                .header(CONTENT_TYPE, content_type)
                .body(Body::from(sent))
                .expect("a request");
            let response = router.clone().oneshot(request).await.expect("a reply");
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
            let body = response.into_body().collect().await.expect("a body");
            let error: serde_json::Value =
                serde_json::from_slice(&body.to_bytes()).expect("an error in JSON");
            assert_eq!(error["status"], 400, "{path}");
            let sentence = error["sentence"].as_str().expect("a sentence");
            assert!(
                sentence.starts_with("The request could not be read"),
                "{path}: {sentence}"
            );
        }
    }
}
