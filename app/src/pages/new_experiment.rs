//! *Plan an experiment*: a base profile, a host, what is varied, how often, and what it
//! may cost. What all of it comes to stands beside the form while one types.
//!
//! The address fills the form, so that other pages can lead to a planned experiment:
//!
//! | key | value |
//! |---|---|
//! | `base`, `to` | a profile, by name or number |
//! | `profiles` | profiles with commas, which the base is compared with |
//! | `host` | a host's number |
//! | `design` | `one_at_a_time`, `full_grid`, `ablation` or `profiles`; left out, `to` means an ablation and `profiles` means profiles |
//! | a name in capitals, or with a dash before it | a factor over this variable or argument; the value has its levels, with commas: `NCCL_PROTO=LL,Simple`, `--num-continuous-decode-steps=as it is,4`. A blank value takes the usual levels of a ready-made factor (`NCCL_PROTO`, `NCCL_ALGO`) |
//! | `channels`, `drafter` | the ready-made factors of these names: levels as above; the drafter's model |
//! | `name`, `launches`, `looks`, `effect`, `seed`, `gpu_minutes`, `give_back` | what stands in the field; `effect` in percent, `give_back` as `HH:MM` |
//! | `restore` | the number of the launch that is stopped before and restored afterwards |
//! | `skip_measured`, `forward` | `1` for yes |
//! | those of *New measurement* | the workload: `preset`, `c`, `single`, `tokens`, … |
//!
//! For instance `/experiments/new?base=tuned&host=1&design=full_grid&NCCL_PROTO=&NCCL_ALGO=`.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod address;
mod check;
mod cost;
mod factors;
mod form;
mod levels;
mod preview;
#[cfg(test)]
pub(crate) mod samples;
mod varied;

use leptos::{prelude::*, task::spawn_local};
use leptos_meta::Title;
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
};
use tokdyno_domain::views::{
    experiments::ExperimentForm, profiles::ProfileList, servers::ServerList,
};

pub(super) use self::preview::Cost;
use self::{
    cost::{Limits, Repeats},
    form::Fields,
    preview::Preview,
    varied::Varied,
};
use super::{
    new_launch::{HostChoice, ProfileChoice, choices, missing},
    new_run::{Field, Form as WorkloadForm, Note, WorkloadFields, Wrong, focus, invalid, note_id},
};
use crate::{
    AppError, api,
    components::{ErrorBanner, ErrorNote, Skeleton},
    refresh::Asked,
};

/// The page.
#[component]
pub fn NewExperimentPage() -> impl IntoView {
    let found = Resource::new_blocking(|| (), |()| choices());
    view! {
        <Title text="Plan an experiment"/>
        <h1>"Plan an experiment"</h1>
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match found.await {
                    Ok((profiles, servers)) => {
                        match missing(&profiles, "Planning an experiment") {
                            Some(missing) => missing,
                            None => view! { <Panel profiles servers/> }.into_any(),
                        }
                    }
                    Err(error) => {
                        view! {
                            <ErrorBanner error=error retry=Callback::new(move |()| found.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn Panel(profiles: ProfileList, servers: ServerList) -> impl IntoView {
    let query = use_query_map();
    let fields = query.with_untracked(|query| Fields::from_query(query, &profiles, &servers));
    let workload_form = query.with_untracked(WorkloadForm::from_query);
    let workload = Memo::new(move |_| workload_form.workload().map(|(_, workload)| workload));
    let planned = Memo::new(move |_| workload_form.workload().and_then(|both| fields.form(both)));
    let question = Memo::new(move |_| planned.get().ok());
    let asked = Asked::when_still(question, api::preview_experiment);
    let wrong = Signal::derive(move || {
        planned
            .with(|planned| planned.as_ref().err().cloned())
            .or_else(|| asked.trouble.get().as_ref().and_then(misplanned))
    });
    let incomplete = Memo::new(move |_| planned.with(Result::is_err));
    let refused = Memo::new(move |_| !incomplete.get() && wrong.get().is_some());
    let trouble = RwSignal::new(None::<AppError>);
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
        trouble.set(None);
        // Anew, since the time of the day may have moved on.
        let form: Result<ExperimentForm, Wrong> =
            untrack(|| workload_form.workload().and_then(|both| fields.form(both)));
        let form = match form {
            Ok(form) => form,
            Err(wrong) => {
                focus(wrong.field);
                return;
            }
        };
        busy.set(true);
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::queue_experiment(form).await {
                Ok(id) => navigate(&format!("/experiments/{id}"), NavigateOptions::default()),
                Err(error) => {
                    trouble.try_set(Some(error));
                    busy.try_set(false);
                }
            }
        });
    };
    let cards = profiles.profiles.clone();
    view! {
        <noscript>
            <div class="banner banner-warn">
                <p>
                    "This form needs JavaScript and WebAssembly, which are off in this browser. Switch them on for this address, or plan from a script: "
                    <code>"POST /api/v1/experiments"</code> "."
                </p>
            </div>
        </noscript>
        <form class="measure experiment-form" on:submit=start novalidate>
            <fieldset class="measure-all" disabled=move || !ready.get()>
                <div class="measure-columns">
                    <div class="stack">
                        <fieldset class="panel">
                            <legend>"What and where"</legend>
                            <Name fields wrong/>
                            <ProfileChoice
                                id="experiment-base"
                                label="Base profile"
                                chosen=fields.base
                                profiles=profiles.profiles
                            />
                            <HostChoice
                                id="experiment-host"
                                chosen=fields.host
                                hosts=profiles.hosts
                            />
                        </fieldset>
                        <Varied fields profiles=cards wrong/>
                        <Repeats fields wrong/>
                    </div>
                    <div class="stack">
                        <Preview asked incomplete=incomplete.into() refused=refused.into()/>
                        <WorkloadFields
                            form=workload_form
                            speeds=Signal::from(None)
                            wrong
                            workload
                        />
                        <Limits fields servers ready=ready.into() wrong/>
                    </div>
                </div>
                <div class="measure-start">
                    <ErrorNote error=trouble/>
                    <button
                        type="submit"
                        class="button button-primary button-large"
                        disabled=move || busy.get()
                    >
                        {move || if busy.get() { "Starting …" } else { "Start the experiment" }}
                    </button>
                </div>
            </fieldset>
        </form>
    }
}

/// What the server refuses about a plan that reads is about what is varied: it alone
/// knows the profiles.
fn misplanned(error: &AppError) -> Option<Wrong> {
    (error.status == 422).then(|| Wrong {
        field: Field::Varied,
        sentence: error.sentence.clone(),
    })
}

#[component]
fn Name(fields: Fields, wrong: Signal<Option<Wrong>>) -> impl IntoView {
    view! {
        <div class="field">
            <label for=Field::ExperimentName.id()>"Name"</label>
            <input
                id=Field::ExperimentName.id()
                type="text"
                autocomplete="off"
                placeholder=move || fields.suggested_name()
                aria-describedby=format!("experiment-name-help {}", note_id(Field::ExperimentName))
                aria-invalid=invalid(Field::ExperimentName, wrong)
                value=fields.name.get_untracked()
                prop:value=fields.name
                on:input=move |event| fields.name.set(event_target_value(&event))
            />
            <span id="experiment-name-help" class="muted">
                "Blank takes the suggestion."
            </span>
            <Note field=Field::ExperimentName wrong/>
        </div>
    }
}
