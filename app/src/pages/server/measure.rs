//! Measuring a ready launch.

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use leptos_router::{NavigateOptions, hooks::use_navigate, params::ParamsMap};
use tokdyno_domain::{launch::LaunchState, views::servers::MeasureForm};

use super::data::LaunchData;
use crate::{
    AppError, api,
    components::ErrorNote,
    pages::new_run::{Form, WorkloadFields, Wrong, focus},
};

/// The form, while there is something to measure.
#[component]
pub(super) fn Measure(data: LaunchData) -> impl IntoView {
    let state = data.state();
    let leaving = data.summary(|summary| summary.stop_requested);
    view! {
        <Show when=move || state.get() == LaunchState::Ready && !leaving.get()>
            <details class="section-fold">
                <summary>
                    <h2>"Measure this server"</h2>
                </summary>
                <MeasureFields data/>
            </details>
        </Show>
    }
}

#[component]
fn MeasureFields(data: LaunchData) -> impl IntoView {
    let form = Form::from_query(&ParamsMap::new());
    let workload = Memo::new(move |_| form.workload().map(|(_, workload)| workload));
    let wrong = Signal::derive(move || workload.with(|found| found.as_ref().err().cloned()));
    let configuration = RwSignal::new(String::new());
    let through_forward = RwSignal::new(false);
    let busy = RwSignal::new(false);
    let refused = RwSignal::new(None::<AppError>);
    let profile = data
        .view
        .with_untracked(|view| view.summary.profile.1.clone());
    let navigate = use_navigate();
    let start = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        let workload = match untrack(|| form.workload()) {
            Ok((workload, _)) => workload,
            Err(Wrong { field, .. }) => {
                focus(field);
                return;
            }
        };
        busy.set(true);
        refused.set(None);
        let asked = MeasureForm {
            launch: data.id,
            workload,
            configuration: configuration.get_untracked(),
            through_forward: through_forward.get_untracked(),
        };
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::measure_launch(asked).await {
                Ok(run) => navigate(&format!("/runs/{run}"), NavigateOptions::default()),
                Err(why) => {
                    busy.try_set(false);
                    refused.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <form class="measure stack" method="post" action=api::MeasureByForm::url() on:submit=start>
            <input type="hidden" name="launch" value=data.id.to_string()/>
            <WorkloadFields form speeds=Signal::from(None) wrong workload/>
            <Place through_forward/>
            <p class="field">
                <label for="measure-name">"Name of the configuration on the Board"</label>
                <input
                    id="measure-name"
                    name="configuration"
                    type="text"
                    autocomplete="off"
                    placeholder=profile
                    prop:value=configuration
                    on:input=move |event| configuration.set(event_target_value(&event))
                />
            </p>
            <div>
                <button type="submit" class="button button-primary" disabled=move || busy.get()>
                    {move || if busy.get() { "Starting …" } else { "Measure" }}
                </button>
                <ErrorNote error=refused/>
            </div>
        </form>
    }
}

/// Where the client stands.
#[component]
pub(in crate::pages) fn Place(
    /// Through a port forward rather than on the host.
    through_forward: RwSignal<bool>,
) -> impl IntoView {
    let choice = move |value: bool, id: &'static str, label: &'static str| {
        view! {
            <p class="choice">
                <input
                    id=id
                    type="radio"
                    name="through_forward"
                    value=value.to_string()
                    checked=through_forward.get_untracked() == value
                    prop:checked=move || through_forward.get() == value
                    on:change=move |_| through_forward.set(value)
                />
                <label for=id>{label}</label>
            </p>
        }
    };
    view! {
        <fieldset class="choices">
            <legend>"Where the client stands"</legend>
            {choice(false, "place-host", "On the host itself: no network is in the figures")}
            {choice(true, "place-forward", "On this machine, through an SSH port forward")}
        </fieldset>
    }
}
