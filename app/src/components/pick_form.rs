//! A form whose ticked boxes lead to a comparison.

use leptos::{ev::SubmitEvent, prelude::*};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::ids::RunId;

use crate::query;

/// Boxes named `runs` in it lead to `/compare?runs=…`; without scripts the browser
/// sends the form by itself.
#[component]
pub fn PickForm(
    /// The boxes and the button.
    children: Children,
) -> impl IntoView {
    let navigate = use_navigate();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let address = format!("/compare?{}", query::compare_text(&ticked(&event)));
        navigate(&address, NavigateOptions::default());
    };
    view! {
        <form method="get" action="/compare" on:submit=submit>
            {children()}
        </form>
    }
}

/// The ticked runs, in the order in which they stand.
#[cfg(feature = "hydrate")]
fn ticked(event: &SubmitEvent) -> Vec<RunId> {
    use wasm_bindgen::JsCast;
    let form = event
        .target()
        .and_then(|target| target.dyn_into::<leptos::web_sys::HtmlFormElement>().ok());
    let Some(data) = form.and_then(|form| web_sys::FormData::new_with_form(&form).ok()) else {
        return Vec::new();
    };
    data.get_all("runs")
        .iter()
        .filter_map(|value| value.as_string()?.parse().ok())
        .collect()
}

#[cfg(not(feature = "hydrate"))]
fn ticked(_event: &SubmitEvent) -> Vec<RunId> {
    Vec::new()
}
