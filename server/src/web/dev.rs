//! For `make dev`: a stream that names the build, so that an open page can load
//! itself anew when it changes.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, stream};

use super::Site;

const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Is the program run by `make dev`?
pub(crate) fn is_on() -> bool {
    std::env::var_os("TOKDYNO_DEV").is_some_and(|value| value == "1")
}

/// The build's id at once, and again whenever it changes.
pub(crate) async fn reload(
    State(site): State<Site>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let ending = site.ending.clone();
    let builds = stream::unfold((site, None::<String>), |(site, sent)| async move {
        loop {
            let build_id = site.assets().build_id;
            if sent.as_ref() != Some(&build_id) {
                let event = Event::default().event("build").data(&build_id);
                return Some((Ok(event), (site, Some(build_id))));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    Sse::new(builds.take_until(ending.come())).keep_alive(KeepAlive::default())
}
