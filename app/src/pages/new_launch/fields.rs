//! The fields of a launch.

use leptos::prelude::*;
use tokdyno_domain::{
    ids::HostId,
    launch::{LaunchOrigin, LaunchState},
    views::{
        profiles::ProfileCard,
        servers::{LaunchSummary, ServerList},
    },
};

use super::form::LaunchFields;

/// Which profile.
#[component]
pub(super) fn Profiles(fields: LaunchFields, profiles: Vec<ProfileCard>) -> impl IntoView {
    let first = fields.profile.get_untracked();
    view! {
        <p class="field">
            <label for="launch-profile">"Profile"</label>
            <select
                id="launch-profile"
                name="profile"
                on:change=move |event| {
                    fields.profile.set(event_target_value(&event).parse().ok());
                }
            >
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
pub(super) fn Hosts(fields: LaunchFields, hosts: Vec<(HostId, String, String)>) -> impl IntoView {
    let first = fields.host.get_untracked();
    view! {
        <p class="field">
            <label for="launch-host">"Host"</label>
            <select
                id="launch-host"
                name="host"
                on:change=move |event| {
                    fields.host.set(event_target_value(&event).parse().ok());
                }
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

/// What is stopped before, and what becomes of it afterwards.
#[component]
pub(super) fn After(fields: LaunchFields, servers: ServerList) -> impl IntoView {
    let adopted: Vec<LaunchSummary> = servers
        .alive
        .into_iter()
        .filter(|launch| {
            launch.origin != LaunchOrigin::Launched && launch.state == LaunchState::Ready
        })
        .collect();
    let adopted = StoredValue::new(adopted);
    // Only what runs on the chosen host can make room there.
    let here = Memo::new(move |_| {
        let host = fields.host.get();
        adopted.with_value(|all| {
            all.iter()
                .filter(|launch| Some(launch.host.0) == host)
                .cloned()
                .collect::<Vec<_>>()
        })
    });
    Effect::new(move |_| {
        let gone = fields
            .restore
            .get_untracked()
            .is_some_and(|wanted| here.with(|here| here.iter().all(|launch| launch.id != wanted)));
        here.track();
        if gone {
            fields.restore.set(None);
        }
    });
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
        <p class="field">
            <label for="launch-restore">"Stop before, and restore afterwards"</label>
            <select
                id="launch-restore"
                name="restore"
                aria-describedby="launch-restore-help"
                on:change=move |event| {
                    fields.restore.set(event_target_value(&event).parse().ok());
                }
            >
                <option value="" selected=move || fields.restore.get().is_none()>
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
                                    selected=move || fields.restore.get() == Some(id)
                                >
                                    {format!("{} · launch {id}", launch.profile.1)}
                                </option>
                            }
                        })
                        .collect_view()
                }}
            </select>
            <span id="launch-restore-help" class="field-help">
                {move || {
                    if here.with(Vec::is_empty) {
                        "Servers that were adopted on this host can be named here; there is none. Adopt one on the host's page."
                    } else {
                        "It is stopped its own way to make room, and started again when this launch is over, however it ends."
                    }
                }}
            </span>
        </p>
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
pub(super) fn GiveBack(fields: LaunchFields, ready: Signal<bool>) -> impl IntoView {
    view! {
        <p class="field">
            <label for="launch-back">
                {move || {
                    if ready.get() {
                        "Give the host back by (your clock)"
                    } else {
                        "Give the host back by (UTC)"
                    }
                }}
            </label>
            <input
                id="launch-back"
                name="give_back"
                type="time"
                class="time-input"
                aria-describedby="launch-back-help"
                prop:value=fields.give_back
                on:input=move |event| fields.give_back.set(event_target_value(&event))
            />
            <span id="launch-back-help" class="field-help">
                "Whatever runs then is ended in time, and what is to be restored is started again. Blank for no agreement."
            </span>
        </p>
    }
}
