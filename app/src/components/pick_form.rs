//! A form whose ticked boxes lead to a comparison.

use leptos::{ev::SubmitEvent, html, prelude::*};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::{comparison::RUNS, ids::RunId};

use crate::query;

/// How many boxes are ticked; not known before WASM has loaded.
#[derive(Clone, Copy)]
struct Ticked(RwSignal<Option<usize>>);

/// Boxes named `runs` in it lead to `/compare?runs=…`; without scripts the browser
/// sends the form by itself.
#[component]
pub fn PickForm(
    /// The boxes and the [`PickBar`].
    children: Children,
) -> impl IntoView {
    let navigate = use_navigate();
    let form = NodeRef::<html::Form>::new();
    let count = RwSignal::new(None);
    provide_context(Ticked(count));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let runs = ticked(form);
        if RUNS.contains(&runs.len()) {
            let address = format!("/compare?{}", query::compare_text(&runs));
            navigate(&address, NavigateOptions::default());
        }
    };
    // A browser that comes back to the page ticks again what was ticked.
    Effect::new(move |_| count.set(Some(ticked(form).len())));
    view! {
        <form
            method="get"
            action="/compare"
            node_ref=form
            on:submit=submit
            on:change=move |_| count.set(Some(ticked(form).len()))
        >
            {children()}
        </form>
    }
}

/// The button of a [`PickForm`], and why it cannot be pressed yet.
#[component]
pub fn PickBar() -> impl IntoView {
    let count = use_context::<Ticked>().map(|ticked| ticked.0);
    let count = Signal::derive(move || count.and_then(|count| count.get()));
    view! {
        <p class="cluster compare-bar">
            <button
                type="submit"
                class="button"
                disabled=move || count.get().is_some_and(|count| !RUNS.contains(&count))
                aria-describedby="pick-hint"
            >
                "Compare the ticked ones"
            </button>
            <span id="pick-hint" class="muted" role="status">
                {move || hint(count.get().unwrap_or_default())}
            </span>
        </p>
    }
}

fn hint(count: usize) -> String {
    if RUNS.contains(&count) {
        format!("{count} ticked; the first is the baseline.")
    } else if count > *RUNS.end() {
        format!("{count} ticked; at most {} can be compared.", RUNS.end())
    } else if count == 1 {
        "1 ticked. Tick at least one more.".to_owned()
    } else {
        format!(
            "Tick {} to {}; the first is the baseline.",
            RUNS.start(),
            RUNS.end()
        )
    }
}

/// The ticked runs, in the order in which they stand.
fn ticked(form: NodeRef<html::Form>) -> Vec<RunId> {
    #[cfg(feature = "hydrate")]
    {
        let Some(data) = form
            .get_untracked()
            .and_then(|form| web_sys::FormData::new_with_form(&form).ok())
        else {
            return Vec::new();
        };
        data.get_all("runs")
            .iter()
            .filter_map(|value| value.as_string()?.parse().ok())
            .collect()
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = form;
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_says_why_not() {
        assert!(hint(0).starts_with("Tick 2 to 12"));
        assert!(hint(1).contains("at least one more"));
        assert!(hint(2).contains("baseline"));
        assert!(hint(13).contains("at most 12"));
    }
}
