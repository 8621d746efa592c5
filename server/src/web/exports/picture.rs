//! The preview picture of a frozen comparison, which chats show for its link.

use std::sync::{Arc, LazyLock};

use axum::response::{IntoResponse, Response};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, ETAG},
};
use tokdyno_domain::ids::ComparisonSlug;
use tokdyno_figures::{PictureText, Theme, picture};
use tokdyno_lab::StoredComparison;
use tokio::sync::Semaphore;

use super::{Kind, Problem, failed, is_known};

/// Pictures drawn at the same time. Each takes a processor for a good part of a
/// second, and anybody with a link may ask.
static DRAWING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));

/// Draws it, unless the client has it. What it shows never changes, but how a newer
/// program draws it may, so it is kept for a day and not for ever.
pub(super) async fn answer(
    slug: ComparisonSlug,
    stored: StoredComparison,
    theme: Theme,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let shade = if theme == Theme::Dark {
        "dark"
    } else {
        "light"
    };
    let version = env!("CARGO_PKG_VERSION");
    let tag = format!("\"{}-{version}-{shade}\"", stored.hash);
    let mut response = if is_known(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let turn = Arc::clone(&DRAWING).acquire_owned();
        let turn = turn.await.map_err(failed)?;
        let drawn = tokio::task::spawn_blocking(move || {
            // A client that hangs up stops no drawing, so the turn lasts as long as that.
            let _turn = turn;
            let comparison = stored.comparison;
            let text = PictureText::of(&comparison, &format!("/c/{slug}"));
            let chart = comparison
                .view
                .charts
                .iter()
                .find(|chart| !chart.is_empty());
            picture(&text, chart, theme)
        });
        let bytes = drawn.await.map_err(failed)?.map_err(failed)?;
        Kind::Png.file(&format!("tokdyno-{slug}.png"), bytes)
    };
    let headers = response.headers_mut();
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=86400"),
    );
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("cross-origin"),
    );
    Ok(response)
}
