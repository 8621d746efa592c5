//! What can be done with a run.

use leptos::{prelude::*, task::spawn_local};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::run::RunState;

use super::{again, data::RunData};
use crate::{AppError, api, browser, components::dialog::ConfirmDialog};

/// Element id of the question before a run is deleted.
const DIALOG: &str = "delete-run";

/// Compare, measure again, export, delete.
#[component]
pub(super) fn Actions(data: RunData) -> impl IntoView {
    let id = data.id;
    let state = data.state();
    let again = data.part(again::address);
    let same = data.part(|view| view.again.is_some());
    let external = data.summary(|summary| summary.endpoint.is_some());
    let error = RwSignal::new(None::<AppError>);
    let navigate = use_navigate();
    let delete = move |()| {
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::delete_run(id).await {
                Ok(()) => navigate("/runs", NavigateOptions::default()),
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <section class="run-actions" aria-labelledby="actions-title">
            <h2 id="actions-title">"What next"</h2>
            <div class="cluster">
                <a class="button button-primary" href=format!("/runs?with={id}")>
                    "Compare with …"
                </a>
                <Show when=move || external.get()>
                    <a class="button" href=move || again.get()>
                        {move || if same.get() { "Measure again" } else { "Measure another workload" }}
                    </a>
                </Show>
                <a class="button" href=format!("/runs/{id}.json") download rel="external">
                    "Export JSON"
                </a>
                <a class="button" href=format!("/runs/{id}.csv") download rel="external">
                    "Export CSV"
                </a>
                <button
                    type="button"
                    class="button button-danger script-only"
                    disabled=move || state.get() == RunState::Running
                    on:click=move |_| {
                        error.set(None);
                        browser::open_dialog(DIALOG);
                    }
                >
                    "Delete"
                </button>
            </div>
            <Show when=move || external.get() && !same.get()>
                <p class="muted">
                    "The form cannot say this run's workload: it gets the address, the model and the names, and the workload has to be chosen anew."
                </p>
            </Show>
            {move || {
                (state.get() == RunState::Running)
                    .then(|| {
                        view! {
                            <p class="muted">"A running measurement is cancelled before it can be deleted."</p>
                        }
                    })
            }}
            {move || {
                error
                    .get()
                    .map(|error| view! { <p class="field-error" role="alert">{error.sentence}</p> })
            }}
            <ConfirmDialog
                id=DIALOG
                title="Delete this run?"
                confirm="Delete run"
                on_confirm=Callback::new(delete)
            >
                <p>
                    "It disappears from the lists, the Board and comparisons. Frozen comparisons keep what they show of it."
                </p>
            </ConfirmDialog>
        </section>
    }
}
