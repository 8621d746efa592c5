//! *Launch* and *Launch & measure*: which profile, on which host, and what comes
//! before and after. A plain form until WASM has loaded.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod fields;
mod form;

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use leptos_meta::Title;
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
};
use tokdyno_domain::views::{
    profiles::{ProfileCard, ProfileList},
    servers::ServerList,
};

use self::{
    fields::{After, Proof},
    form::LaunchFields,
};
pub(super) use self::{
    fields::{GiveBack, HostChoice, ProfileChoice, RestoreChoice},
    form::{chosen_host, chosen_restore, first_profile, give_back_at, named_profile},
};
use super::{
    new_run::{Form as WorkloadForm, WorkloadFields, Wrong, focus},
    server::Place,
};
use crate::{
    AppError, api,
    components::{
        CautionList, CopyButton, EmptyState, ErrorBanner, ErrorNote, OperatorNote, Skeleton,
    },
};

/// The page.
#[component]
pub fn NewLaunchPage() -> impl IntoView {
    let choices = Resource::new_blocking(|| (), |()| choices());
    view! {
        <Title text="Launch"/>
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match choices.await {
                    Ok((profiles, servers)) => {
                        view! { <Choices profiles=profiles servers=servers/> }.into_any()
                    }
                    Err(error) => {
                        view! {
                            <h1>"Launch"</h1>
                            <ErrorBanner error=error retry=Callback::new(move |()| choices.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

/// What can be launched where, and what can be put aside for it.
pub(super) async fn choices() -> Result<(ProfileList, ServerList), AppError> {
    let profiles = api::profiles().await?;
    // Without the list, nothing can be named to be restored.
    let servers = api::servers().await?;
    Ok((profiles, servers))
}

/// The form, or what is missing for it.
#[component]
fn Choices(profiles: ProfileList, servers: ServerList) -> impl IntoView {
    if let Some(missing) = missing(&profiles, "Launching") {
        return view! {
            <h1>"Launch"</h1>
            {missing}
        }
        .into_any();
    }
    view! { <LaunchPanel profiles=profiles servers=servers/> }.into_any()
}

/// What there must be before anything can be launched, if it is not there.
pub(super) fn missing(profiles: &ProfileList, what: &'static str) -> Option<AnyView> {
    if !profiles.may_operate {
        return Some(view! { <OperatorNote what=what/> }.into_any());
    }
    if profiles.profiles.iter().all(|profile| profile.archived) {
        return Some(
            view! {
                <EmptyState title="There is no profile to launch">
                    <p>"A profile is a named way to start an engine. Add a built-in one, or paste the command that you start your server with."</p>
                    <p>
                        <a class="button button-primary" href="/profiles">
                            "To the profiles"
                        </a>
                    </p>
                </EmptyState>
            }
            .into_any(),
        );
    }
    if profiles.hosts.is_empty() {
        return Some(
            view! {
                <EmptyState title="There is no host to launch on">
                    <p>"Add the machine that Tokdyno runs on, or one that SSH reaches."</p>
                    <p>
                        <a class="button button-primary" href="/hosts">
                            "Add a host"
                        </a>
                    </p>
                </EmptyState>
            }
            .into_any(),
        );
    }
    None
}

#[component]
fn LaunchPanel(profiles: ProfileList, servers: ServerList) -> impl IntoView {
    let query = use_query_map();
    let fields = query.with_untracked(|query| LaunchFields::from_query(query, &profiles, &servers));
    let form = query.with_untracked(WorkloadForm::from_query);
    let workload = Memo::new(move |_| form.workload().map(|(_, workload)| workload));
    let wrong = Signal::derive(move || workload.with(|found| found.as_ref().err().cloned()));
    let busy = RwSignal::new(false);
    let refused = RwSignal::new(None::<AppError>);
    let ready = RwSignal::new(false);
    Effect::new(move |_| ready.set(true));
    let measure = fields.measure;
    let title = move || {
        if measure.get() {
            "Launch & measure"
        } else {
            "Launch"
        }
    };

    let navigate = use_navigate();
    let start = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        let asked = if measure.get_untracked() {
            match untrack(|| form.workload()) {
                Ok((workload, _)) => Some(workload),
                Err(Wrong { field, .. }) => {
                    focus(field);
                    return;
                }
            }
        } else {
            None
        };
        let asked = match untrack(|| fields.launch(asked)) {
            Ok(asked) => asked,
            Err(sentence) => {
                refused.set(Some(AppError::new(422, sentence)));
                return;
            }
        };
        busy.set(true);
        refused.set(None);
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::queue_launch(asked).await {
                Ok(launch) => navigate(&format!("/servers/{launch}"), NavigateOptions::default()),
                Err(why) => {
                    busy.try_set(false);
                    refused.try_set(Some(why));
                }
            }
        });
    };
    let cards = StoredValue::new(profiles.profiles.clone());
    let chosen = Memo::new(move |_| {
        let id = fields.profile.get();
        cards.with_value(|cards| cards.iter().find(|card| Some(card.id) == id).cloned())
    });
    view! {
        <h1>{title}</h1>
        <form
            class="measure launch-form"
            method="post"
            action=api::LaunchByForm::url()
            on:submit=start
        >
            <div class="measure-columns">
                <div class="stack">
                    <fieldset class="panel">
                        <legend>"What and where"</legend>
                        <ProfileChoice
                            id="launch-profile"
                            name="profile"
                            label="Profile"
                            chosen=fields.profile
                            profiles=profiles.profiles
                        />
                        <HostChoice id="launch-host" chosen=fields.host hosts=profiles.hosts/>
                        <p class="choice">
                            <input
                                id="launch-measure"
                                type="checkbox"
                                name="measure"
                                value="true"
                                checked=measure.get_untracked()
                                prop:checked=measure
                                on:change=move |event| measure.set(event_target_checked(&event))
                            />
                            <label for="launch-measure">"Measure once it is ready and verified"</label>
                        </p>
                        <Proof fields/>
                    </fieldset>
                    <fieldset class="panel">
                        <legend>"Before and after"</legend>
                        <RestoreChoice
                            id="launch-restore"
                            chosen=fields.restore
                            host=fields.host
                            servers=servers
                            help="It is stopped its own way to make room, and started again when this launch is over, however it ends."
                        />
                        <After fields/>
                        <GiveBack
                            id="launch-back"
                            chosen=fields.give_back
                            ready=ready.into()
                            help="Whatever runs then is ended in time, and what is to be restored is started again."
                        />
                    </fieldset>
                </div>
                <div class="stack">
                    <Show when=move || measure.get()>
                        <WorkloadFields form speeds=Signal::from(None) wrong workload/>
                        <fieldset class="panel">
                            <legend>"Measurement"</legend>
                            <Place through_forward=fields.through_forward/>
                            <p class="field">
                                <label for="launch-configuration">
                                    "Name of the configuration on the Board"
                                </label>
                                <input
                                    id="launch-configuration"
                                    name="configuration"
                                    type="text"
                                    autocomplete="off"
                                    placeholder=move || {
                                        chosen.with(|card| card.as_ref().map(|card| card.name.clone()))
                                    }
                                    prop:value=fields.configuration
                                    on:input=move |event| {
                                        fields.configuration.set(event_target_value(&event));
                                    }
                                />
                            </p>
                        </fieldset>
                    </Show>
                    <Preview chosen/>
                </div>
            </div>
            <div class="measure-start">
                <ErrorNote error=refused/>
                <button
                    type="submit"
                    class="button button-primary button-large"
                    disabled=move || busy.get()
                >
                    {move || if busy.get() { "Launching …" } else { title() }}
                </button>
            </div>
        </form>
    }
}

/// The command of the chosen profile, and what to know of it.
#[component]
fn Preview(chosen: Memo<Option<ProfileCard>>) -> impl IntoView {
    let command = Memo::new(move |_| {
        chosen.with(|card| {
            card.as_ref()
                .map(|card| card.command.clone())
                .unwrap_or_default()
        })
    });
    view! {
        <section class="panel stack" aria-labelledby="preview-title">
            <div class="section-head">
                <h2 id="preview-title">"What will run"</h2>
                <CopyButton text=command label="Copy"/>
            </div>
            <pre class="verbatim" tabindex="0">{move || command.get()}</pre>
            {move || {
                chosen
                    .get()
                    .map(|card| {
                        view! { <CautionList cautions=card.cautions arguments=card.spec.arguments/> }
                    })
            }}
        </section>
    }
}
