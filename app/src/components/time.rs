//! Moments: exact from the server, relative in the browser.

use std::time::Duration;

use leptos::prelude::*;
use tokdyno_domain::timestamp::Timestamp;

use crate::{browser, clock};

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
        let tick = move || {
            let _ = now.try_set(Some(browser::now()));
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

/// A time of the day to come. The server writes it in UTC; the browser then shows it
/// on its own clock.
#[component]
pub fn ClockTime(
    /// The moment.
    at: Timestamp,
) -> impl IntoView {
    let offset = RwSignal::new(None::<i32>);
    Effect::new(move |_| offset.set(Some(browser::utc_offset_min())));
    let text = move || match offset.get() {
        Some(offset) => clock::face(at, offset),
        None => format!("{} UTC", clock::face(at, 0)),
    };
    view! {
        <time datetime=at.to_string() title=at.exact()>
            {text}
        </time>
    }
}
