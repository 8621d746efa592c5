//! Moments: exact from the server, relative in the browser.

use std::time::Duration;

use leptos::prelude::*;
use tokdyno_domain::timestamp::Timestamp;

use crate::browser;

/// How often *2 minutes ago* is looked at again.
const REFRESH: Duration = Duration::from_secs(30);

/// A moment. The server writes the exact one, so that both sides agree on the
/// first paint; the browser then says how long ago that was.
#[component]
pub fn RelativeTime(
    /// The moment.
    at: Timestamp,
) -> impl IntoView {
    let now = RwSignal::new(None::<Timestamp>);
    Effect::new(move |_| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "milliseconds since 1970 fit for 290 million years"
        )]
        let tick = move || {
            let _ = now.try_set(Some(Timestamp((browser::now_ms() * 1000.0) as i64)));
        };
        tick();
        if let Ok(handle) = set_interval_with_handle(tick, REFRESH) {
            on_cleanup(move || handle.clear());
        }
    });
    let text = move || {
        now.get()
            .map_or_else(|| at.exact(), |now| at.relative_to(now))
    };
    view! {
        <time datetime=at.to_string() title=at.exact()>
            {text}
        </time>
    }
}
