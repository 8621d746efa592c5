//! Header and footer.

use leptos::prelude::*;
use leptos_router::components::A;

use super::{
    icon::{Glyph, Icon},
    theme::ThemeSwitch,
    who::Account,
};
use crate::Surface;

/// Logo, navigation, theme. A shared page leads nowhere into the tool.
#[component]
pub fn Header(
    /// Which part of the program this is.
    surface: Surface,
) -> impl IntoView {
    let navigation = (surface == Surface::Full).then(|| {
        view! {
            <nav class="site-nav" aria-label="Main">
                <A href="/" exact=true>
                    "Board"
                </A>
                <A href="/servers">"Servers"</A>
                <A href="/profiles">"Profiles"</A>
                <A href="/hosts">"Hosts"</A>
                <A href="/runs" exact=true>
                    "Runs"
                </A>
                <A href="/compare">"Compare"</A>
                <A href="/experiments">"Experiments"</A>
            </nav>
            <A href="/runs/new" attr:class="button button-primary new-run">
                <Icon glyph=Glyph::Plus/>
                <span>"New measurement"</span>
            </A>
        }
    });
    let account = (surface == Surface::Full).then(|| view! { <Account/> });
    let brand = if surface == Surface::Full {
        view! {
            <a class="wordmark" href="/">
                <Wordmark/>
            </a>
        }
        .into_any()
    } else {
        view! {
            <span class="wordmark">
                <Wordmark/>
            </span>
        }
        .into_any()
    };
    view! {
        <header class="site-header">
            <div class="site-header-inner">
                {brand} {navigation} {account} <ThemeSwitch/>
            </div>
        </header>
    }
}

/// A needle over a scale, and the name.
#[component]
fn Wordmark() -> impl IntoView {
    view! {
        <svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
            <path class="logo-scale" d="M5 23a12 12 0 1 1 22 0"></path>
            <path class="logo-ticks" d="M16 7.500v3M7.2 12.800l2.5 1.600M24.8 12.800l-2.5 1.6"></path>
            <path class="logo-needle" d="M16 20.500L22.5 12"></path>
            <circle class="logo-hub" cx="16" cy="20.5" r="2.2"></circle>
        </svg>
        <span>"Tokdyno"</span>
    }
}

/// Program and version, and who did what.
#[component]
pub fn Footer(
    /// Which part of the program this is.
    surface: Surface,
) -> impl IntoView {
    let audit = (surface == Surface::Full).then(|| {
        view! { <a href="/audit">"Audit log"</a> }
    });
    view! {
        <footer class="site-footer">
            <p>
                <span>"Tokdyno " {env!("CARGO_PKG_VERSION")}</span>
                <span class="muted">
                    "What a serving engine really delivers: measured, with its spread and its source."
                </span>
                {audit}
            </p>
        </footer>
    }
}
