//! Comparisons: live from an address, frozen for good.

use leptos::{prelude::*, server_fn::codec::Json};
use tokdyno_domain::{
    ids::ComparisonSlug,
    views::compare::{CompareQuery, CompareView, FrozenView},
};

#[cfg(feature = "ssr")]
use tokdyno_domain::views::compare::OverrideForm;

use crate::AppError;

/// Two to twelve runs side by side, as they are now.
///
/// # Errors
/// Too few or too many runs, one that does not exist, the database is away, or this
/// actor may not read.
#[server(prefix = "/api/fn", endpoint = "compare", input = Json)]
pub async fn compare(query: CompareQuery) -> Result<CompareView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    lab.compare(&actor, &query)
        .await
        .map(|view| view.map_charts(crate::draw::chart_view))
        .map_err(super::context::answer)
}

/// Freezes a comparison under an address that nobody can guess.
///
/// URL-encoded, so that the form works before WASM has loaded; it is then sent on
/// to the frozen page. With a `reason`, whoever shares signs that a confounded or
/// invalid comparison is to be read all the same.
///
/// # Errors
/// As [`compare`], or this actor may not share.
#[server(prefix = "/api/fn", endpoint = "share")]
pub async fn share(
    query: CompareQuery,
    title: String,
    #[server(default)] reason: String,
    #[server(default)] name: String,
) -> Result<ComparisonSlug, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let signed = OverrideForm { reason, name };
    let slug = lab
        .freeze(&actor, &query, &title, &signed, super::artefacts::artefacts)
        .await
        .map_err(super::context::answer)?;
    if is_plain_form() {
        leptos_axum::redirect(&format!("/c/{slug}"));
    }
    Ok(slug)
}

/// A frozen comparison.
///
/// # Errors
/// No such comparison, or the database is away.
#[server(prefix = "/api/fn", endpoint = "frozen", input = Json)]
pub async fn frozen(slug: ComparisonSlug) -> Result<FrozenView, AppError> {
    let (lab, actor) = super::context::lab_and_actor()?;
    let stored = lab
        .frozen(&actor, slug)
        .await
        .map_err(super::context::answer)?;
    let comparison = stored.comparison;
    let today = lab
        .frozen_today(&actor, &comparison)
        .await
        .map_err(super::context::answer)?;
    Ok(FrozenView {
        slug: stored.slug,
        hash: stored.hash.0,
        title: comparison.title,
        frozen_at: comparison.frozen_at,
        analysis_version: comparison.analysis_version,
        metric_version: comparison.metric_version,
        overridden: comparison.overridden,
        today: today.map(|today| Box::new(today.map_charts(crate::draw::chart_view))),
        view: comparison.view.map_charts(crate::draw::chart_view),
    })
}

/// Did a browser's own form send this, without WASM?
#[cfg(feature = "ssr")]
fn is_plain_form() -> bool {
    use_context::<http::request::Parts>().is_some_and(|parts| {
        parts
            .headers
            .get(http::header::ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/html"))
    })
}
