//! Copying a text.

use std::time::Duration;

use leptos::{prelude::*, task::spawn_local};

use super::icon::{Glyph, Icon};
use crate::browser;

/// How long *Copied* stands there.
const SHOWN: Duration = Duration::from_secs(3);

/// A button that copies a text and says so.
#[component]
pub fn CopyButton(
    /// What is copied.
    #[prop(into)]
    text: Signal<String>,
    /// What the button says.
    #[prop(into)]
    label: String,
) -> impl IntoView {
    let said = RwSignal::new("");
    let copy = move |_| {
        spawn_local(async move {
            let done = browser::copy(&text.get_untracked()).await;
            let _ = said.try_set(if done {
                "Copied"
            } else {
                "The browser does not allow it: select the text and copy it by hand."
            });
            set_timeout(
                move || {
                    let _ = said.try_set("");
                },
                SHOWN,
            );
        });
    };
    view! {
        <span class="copy">
            <button type="button" class="button script-only" on:click=copy>
                <Icon glyph=Glyph::Copy/>
                {label}
            </button>
            <span class="copy-said" role="status">
                {said}
            </span>
        </span>
    }
}
