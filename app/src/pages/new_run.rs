//! *New measurement*: an address, a workload, and off it goes.
//!
//! The form lives in the browser: it asks the address while one types and checks the
//! workload with the very code the server uses. Without WASM the page says what to do
//! instead.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod endpoint;
mod field;
mod file;
mod form;
mod input;
mod load;
mod more;
mod note;
mod plan;
mod probe;
mod prompts;
mod workload;

use leptos::{prelude::*, task::spawn_local};
use leptos_meta::Title;
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
};
use tokdyno_domain::views::measure::ProbeView;

use self::{
    endpoint::EndpointFields,
    probe::{Check, Probe},
};
pub(super) use self::{
    field::{Field, Wrong, decimal, field_of, number, required},
    form::Form,
    input::{Fold, Kind, choice, field as input},
    note::{Note, invalid, note_id},
    workload::WorkloadFields,
};
use crate::{AppError, api, browser, components::feedback::ErrorNote};

/// The page.
#[component]
pub fn NewRunPage() -> impl IntoView {
    let query = use_query_map();
    let form = query.with_untracked(Form::from_query);
    let probe = Probe::new(form);
    let workload = Memo::new(move |_| form.workload().map(|(_, workload)| workload));
    // What only the server or the button found wrong; typing takes it back.
    let found = RwSignal::new(None::<Wrong>);
    Effect::new(move |_| {
        form.url.track();
        form.name.track();
        form.hardware.track();
        workload.track();
        found.set(None);
    });
    let wrong = Signal::derive(move || {
        found
            .get()
            .or_else(|| workload.with(|workload| workload.as_ref().err().cloned()))
    });
    let refused = RwSignal::new(None::<AppError>);
    let busy = RwSignal::new(false);
    // Nothing typed before WASM is there could be lost if nothing can be typed.
    let ready = RwSignal::new(false);
    Effect::new(move |_| ready.set(true));

    let navigate = use_navigate();
    let start = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        refused.set(None);
        let run = match untrack(|| form.new_run()) {
            Ok(run) => run,
            Err(wrong) => {
                focus(wrong.field);
                found.set(Some(wrong));
                return;
            }
        };
        busy.set(true);
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::queue_run(run).await {
                Ok(id) => {
                    // The key has served its purpose here.
                    form.key.try_set(String::new());
                    navigate(&format!("/runs/{id}"), NavigateOptions::default());
                }
                Err(error) => {
                    refused.try_set(Some(error));
                    busy.try_set(false);
                }
            }
        });
    };
    let unreachable = Memo::new(move |_| {
        probe
            .check
            .with(|check| matches!(check, Check::Answer(ProbeView::Unreachable { .. })))
    });

    view! {
        <Title text="New measurement"/>
        <h1>"New measurement"</h1>
        <noscript>
            <div class="banner banner-warn">
                <p>
                    "This form needs JavaScript and WebAssembly, which are off in this browser. Switch them on for this address, or measure from the command line: "
                    <code>"tokdyno bench --url URL --json FILE"</code> ", then "
                    <code>"tokdyno import FILE"</code> "."
                </p>
            </div>
        </noscript>
        <form class="measure" on:submit=start novalidate>
            <fieldset class="measure-all" disabled=move || !ready.get()>
                <div class="measure-columns">
                    <div class="stack">
                        <EndpointFields form probe wrong/>
                    </div>
                    <div class="stack">
                        <WorkloadFields form speeds=probe.speeds.into() wrong workload/>
                    </div>
                </div>
                <div class="measure-start">
                    <ErrorNote error=refused/>
                    <p class="caution" role="status">
                        {move || {
                            unreachable
                                .get()
                                .then_some(
                                    "The address cannot be measured at the moment. A run that starts now will fail with the reason above.",
                                )
                        }}
                    </p>
                    <button
                        type="submit"
                        class="button button-primary button-large"
                        disabled=move || busy.get()
                    >
                        {move || if busy.get() { "Starting …" } else { "Start measuring" }}
                    </button>
                </div>
            </fieldset>
        </form>
    }
}

/// Leads to the field that is wrong.
pub(super) fn focus(field: Field) {
    browser::focus(field.id());
}
