//! The fields of a launch.

use leptos::prelude::*;
use tokdyno_domain::{
    ids::{HostId, LaunchId, ProfileId},
    launch::{LaunchOrigin, LaunchState},
    views::{
        profiles::ProfileCard,
        servers::{LaunchSummary, ServerList},
    },
};

use super::form::LaunchFields;

/// Which profile.
#[component]
pub(in crate::pages) fn ProfileChoice(
    /// Element id.
    id: &'static str,
    /// Name of the field, where the form may be sent as it is.
    #[prop(optional)]
    name: Option<&'static str>,
    /// What it is called.
    label: &'static str,
    chosen: RwSignal<Option<ProfileId>>,
    profiles: Vec<ProfileCard>,
) -> impl IntoView {
    let first = chosen.get_untracked();
    let nothing = first.is_none().then(|| {
        view! {
            <option value="" selected=true>
                "choose one"
            </option>
        }
    });
    view! {
        <p class="field">
            <label for=id>{label}</label>
            <select
                id=id
                name=name
                on:change=move |event| chosen.set(event_target_value(&event).parse().ok())
            >
                {nothing}
                {profiles
                    .into_iter()
                    .filter(|card| !card.archived || Some(card.id) == first)
                    .map(|card| {
                        view! {
                            <option value=card.id.to_string() selected=Some(card.id) == first>
                                {format!("{} · {} · revision {}", card.name, card.spec.engine.name(), card.number)}
                            </option>
                        }
                    })
                    .collect_view()}
            </select>
        </p>
    }
}

/// On which host.
#[component]
pub(in crate::pages) fn HostChoice(
    /// Element id.
    id: &'static str,
    chosen: RwSignal<Option<HostId>>,
    hosts: Vec<(HostId, String, String)>,
) -> impl IntoView {
    let first = chosen.get_untracked();
    view! {
        <p class="field">
            <label for=id>"Host"</label>
            <select
                id=id
                name="host"
                on:change=move |event| chosen.set(event_target_value(&event).parse().ok())
            >
                {hosts
                    .into_iter()
                    .map(|(id, name, hardware)| {
                        let shown = if hardware.is_empty() {
                            name
                        } else {
                            format!("{name} · {hardware}")
                        };
                        view! {
                            <option value=id.to_string() selected=Some(id) == first>
                                {shown}
                            </option>
                        }
                    })
                    .collect_view()}
            </select>
        </p>
    }
}

/// NCCL's own word for it.
#[component]
pub(super) fn Proof(fields: LaunchFields) -> impl IntoView {
    view! {
        <p class="choice">
            <input
                id="launch-nccl"
                type="checkbox"
                name="verify_nccl"
                value="true"
                aria-describedby="launch-nccl-help"
                checked=fields.verify_nccl.get_untracked()
                prop:checked=fields.verify_nccl
                on:change=move |event| fields.verify_nccl.set(event_target_checked(&event))
            />
            <label for="launch-nccl">"Let NCCL confirm its variables"</label>
        </p>
        <p id="launch-nccl-help" class="field-help">
            "NCCL then writes its start-up log to a file that is read: variables become confirmed rather than passed. It slows the start a little, and a measurement says so."
        </p>
    }
}

/// The adopted server that makes room before, and is brought back afterwards.
#[component]
pub(in crate::pages) fn RestoreChoice(
    /// Element id.
    id: &'static str,
    chosen: RwSignal<Option<LaunchId>>,
    /// Only what runs there can make room there.
    host: RwSignal<Option<HostId>>,
    servers: ServerList,
    /// What becomes of it.
    help: &'static str,
) -> impl IntoView {
    let adopted: Vec<LaunchSummary> = servers
        .alive
        .into_iter()
        .filter(|launch| {
            launch.origin != LaunchOrigin::Launched && launch.state == LaunchState::Ready
        })
        .collect();
    let adopted = StoredValue::new(adopted);
    let here = Memo::new(move |_| {
        let host = host.get();
        adopted.with_value(|all| {
            all.iter()
                .filter(|launch| Some(launch.host.0) == host)
                .cloned()
                .collect::<Vec<_>>()
        })
    });
    Effect::new(move |_| {
        let gone = chosen
            .get_untracked()
            .is_some_and(|wanted| here.with(|here| here.iter().all(|launch| launch.id != wanted)));
        here.track();
        if gone {
            chosen.set(None);
        }
    });
    let help_id = format!("{id}-help");
    view! {
        <p class="field">
            <label for=id>"Stop before, and restore afterwards"</label>
            <select
                id=id
                name="restore"
                aria-describedby=help_id.clone()
                on:change=move |event| chosen.set(event_target_value(&event).parse().ok())
            >
                <option value="" selected=move || chosen.get().is_none()>
                    "nothing"
                </option>
                {move || {
                    here.get()
                        .into_iter()
                        .map(|launch| {
                            let id = launch.id;
                            view! {
                                <option
                                    value=id.to_string()
                                    selected=move || chosen.get() == Some(id)
                                >
                                    {format!("{} · launch {id}", launch.profile.1)}
                                </option>
                            }
                        })
                        .collect_view()
                }}
            </select>
            <span id=help_id class="field-help">
                {move || {
                    if here.with(Vec::is_empty) {
                        "Servers that were adopted on this host can be named here; there is none. Adopt one on the host's page."
                    } else {
                        help
                    }
                }}
            </span>
        </p>
    }
}

/// What becomes of it afterwards.
#[component]
pub(super) fn After(fields: LaunchFields) -> impl IntoView {
    let choice = move |value: bool, id: &'static str, label: Signal<&'static str>| {
        view! {
            <p class="choice">
                <input
                    id=id
                    type="radio"
                    name="stop"
                    value=value.to_string()
                    checked=fields.stop.get_untracked() == value
                    prop:checked=move || fields.stop.get() == value
                    on:change=move |_| fields.stop.set(value)
                />
                <label for=id>{move || label.get()}</label>
            </p>
        }
    };
    let measure = fields.measure;
    view! {
        <fieldset class="choices">
            <legend>"Afterwards"</legend>
            {choice(false, "launch-keep", Signal::derive(|| "Keep it running"))}
            {choice(
                true,
                "launch-stop",
                Signal::derive(move || {
                    if measure.get() {
                        "Stop it after the measurement"
                    } else {
                        "Stop it once it is verified"
                    }
                }),
            )}
        </fieldset>
    }
}

/// Until when the host is wanted back.
#[component]
pub(in crate::pages) fn GiveBack(
    /// Element id.
    id: &'static str,
    /// `HH:MM` by the browser's clock; blank for no agreement.
    chosen: RwSignal<String>,
    /// Whether WASM has loaded: until then the clock is not known.
    ready: Signal<bool>,
    /// What happens then.
    help: &'static str,
) -> impl IntoView {
    let help_id = format!("{id}-help");
    view! {
        <p class="field">
            <label for=id>
                {move || {
                    if ready.get() {
                        "Give the host back by (your clock)"
                    } else {
                        "Give the host back by (UTC)"
                    }
                }}
            </label>
            <input
                id=id
                name="give_back"
                type="time"
                class="time-input"
                aria-describedby=help_id.clone()
                prop:value=chosen
                on:input=move |event| chosen.set(event_target_value(&event))
            />
            <span id=help_id class="field-help">
                {help} " Blank for no agreement."
            </span>
        </p>
    }
}
