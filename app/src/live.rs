//! Events from the server while a page is open: one stream, followed by polling
//! where streams are blocked. Everything here is idle in the server's own rendering.

use leptos::prelude::*;
use serde::de::DeserializeOwned;
use tokdyno_domain::{
    ids::{LaunchId, RunId},
    live::{LaunchEvent, LiveEvent},
};

#[cfg(feature = "hydrate")]
mod stream;

/// How the page hears of news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Link {
    /// The stream has not opened yet, or nothing needs to be followed.
    #[default]
    Waiting,
    /// Events arrive.
    Open,
    /// The stream broke; the browser tries again, and the page asks now and then.
    Paused,
}

/// Follows the events of a run (or, without one, the changes of state of all runs)
/// for as long as the calling component lives and `wanted` says so.
///
/// `on_event` gets every event. `on_tick` is called when news may have been missed:
/// after the stream has opened again, when the page becomes visible again, and every
/// five seconds while there is no stream.
///
/// Nobody looks at a hidden page, so its stream is closed until it is shown again: a
/// browser opens only six connections to a server, over all its tabs.
pub fn follow(
    run: Option<RunId>,
    wanted: Signal<bool>,
    on_event: impl Fn(LiveEvent) + Clone + 'static,
    on_tick: impl Fn() + Clone + 'static,
) -> ReadSignal<Link> {
    let address = match run {
        Some(run) => format!("/events?run={run}"),
        None => "/events".to_owned(),
    };
    listen(address, wanted, on_event, on_tick)
}

/// The same for a launch, or without one for all of them. Events of launches are not
/// kept: whoever comes back fetches the launch again.
pub fn follow_launches(
    launch: Option<LaunchId>,
    wanted: Signal<bool>,
    on_event: impl Fn(LaunchEvent) + Clone + 'static,
    on_tick: impl Fn() + Clone + 'static,
) -> ReadSignal<Link> {
    let address = match launch {
        Some(launch) => format!("/events?launch={launch}"),
        None => "/events?launches=all".to_owned(),
    };
    listen(address, wanted, on_event, on_tick)
}

fn listen<T: DeserializeOwned + 'static>(
    address: String,
    wanted: Signal<bool>,
    on_event: impl Fn(T) + Clone + 'static,
    on_tick: impl Fn() + Clone + 'static,
) -> ReadSignal<Link> {
    let (link, set_link) = signal(Link::default());
    #[cfg(feature = "hydrate")]
    stream::follow(address, wanted, on_event, on_tick, link, set_link);
    #[cfg(not(feature = "hydrate"))]
    {
        // Rendering on the server shows what is; following begins in the browser.
        let _ = (address, wanted, on_event, on_tick, set_link);
    }
    link
}
