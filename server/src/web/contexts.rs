//! What pages and server functions find in their context.

use http::{HeaderValue, header::CACHE_CONTROL, request::Parts};
use leptos::prelude::{provide_context, use_context};
use leptos_axum::ResponseOptions;
use tokdyno_domain::access::Actor;

use super::Site;

/// Provides the contexts; runs for every page and every server function. A page
/// sends its own content-security policy, because it knows its nonce.
pub(crate) fn provide(site: &Site) {
    provide_context(site.lab.clone());
    provide_context(actor());
    provide_context(site.assets());
    provide_context(site.surface);
    if let Some(response) = use_context::<ResponseOptions>() {
        response.insert_header(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// Who acts, as `safety::who` found out for this request. Where that did not run
/// nobody may do anything.
fn actor() -> Actor {
    use_context::<Parts>()
        .and_then(|parts| parts.extensions.get::<Actor>().copied())
        .unwrap_or(Actor::GUEST)
}
