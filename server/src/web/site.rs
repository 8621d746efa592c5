//! What every handler knows.

use std::sync::Arc;

use axum::extract::FromRef;
use leptos::config::LeptosOptions;
use tokdyno_app::{Assets, Surface};
use tokdyno_lab::Lab;
use tokio::sync::watch;

use super::AssetStore;

/// Tells streams that the program is stopping.
#[derive(Debug, Clone)]
pub(crate) struct Ending(watch::Receiver<bool>);

impl Ending {
    /// The end, and what brings it about.
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Has it come?
    pub(crate) fn has_come(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for it.
    pub(crate) async fn come(mut self) {
        // An error means that the sender is gone, which is the end as well.
        let _ = self.0.wait_for(|ending| *ending).await;
    }
}

/// What every handler knows. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Site {
    /// The laboratory.
    pub(crate) lab: Lab,
    /// Which part of the program this listener serves.
    pub(crate) surface: Surface,
    /// Built files.
    pub(crate) store: Arc<AssetStore>,
    /// A proxy stands in front (`--public-url`), so that a connection from this machine
    /// says nothing about who made it.
    pub(crate) behind_proxy: bool,
    /// Comes when the program stops.
    pub(crate) ending: Ending,
    /// Leptos wants to know; only its names are used.
    pub(crate) options: LeptosOptions,
}

impl Site {
    /// Addresses of the built files.
    pub(crate) fn assets(&self) -> Assets {
        self.store.current()
    }

    /// Is this the listener for shared links?
    pub(crate) fn is_shared(&self) -> bool {
        self.surface == Surface::Shared
    }

    /// The same for the listener of shared links.
    pub(crate) fn for_shared(&self) -> Self {
        Self {
            surface: Surface::Shared,
            ..self.clone()
        }
    }
}

impl FromRef<Site> for LeptosOptions {
    fn from_ref(site: &Site) -> Self {
        site.options.clone()
    }
}

impl FromRef<Site> for Ending {
    fn from_ref(site: &Site) -> Self {
        site.ending.clone()
    }
}
