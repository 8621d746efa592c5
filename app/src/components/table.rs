//! Tables in a box of their own, which scrolls on small screens.

use leptos::prelude::*;

/// A box around a table. Reachable by keyboard, so that it can be scrolled.
#[component]
pub fn TableBox(
    /// What the table shows.
    #[prop(into)]
    label: String,
    /// The table.
    children: Children,
) -> impl IntoView {
    view! {
        <div class="table-box" role="region" aria-label=label tabindex="0">
            {children()}
        </div>
    }
}
