//! All profiles as cards, and the built-in ones.

use leptos::prelude::*;
use leptos_meta::Title;
use tokdyno_domain::{
    profile::ProfileSpec,
    text,
    views::profiles::{BuiltinView, ProfileCard, ProfileList},
};

use crate::{
    api,
    components::{
        Badge, CautionBadges, CautionList, CopyButton, EmptyState, EngineName, ErrorBanner, Glyph,
        Icon, OperatorNote, Skeleton, Tone,
    },
};

/// The page.
#[component]
pub fn ProfilesPage() -> impl IntoView {
    let profiles = Resource::new_blocking(|| (), |()| async { api::profiles().await });
    view! {
        <Title text="Profiles"/>
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match profiles.await {
                    Ok(list) => view! { <Lists list=list/> }.into_any(),
                    Err(error) => {
                        view! {
                            <h1>"Profiles"</h1>
                            <ErrorBanner error=error retry=Callback::new(move |()| profiles.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn Lists(list: ProfileList) -> impl IntoView {
    let may_operate = list.may_operate;
    let (archived, shown): (Vec<_>, Vec<_>) =
        list.profiles.into_iter().partition(|card| card.archived);
    let buttons = may_operate.then(|| {
        view! {
            <p class="cluster">
                <a class="button button-primary" href="/profiles/new">
                    "Paste a command"
                </a>
                <a class="button" href="/profiles/new?blank=1">
                    "Start from nothing"
                </a>
            </p>
        }
    });
    let note = (!may_operate).then(|| {
        view! { <OperatorNote what="Adding, editing and launching profiles"/> }
    });
    let cards = if shown.is_empty() {
        view! {
            <EmptyState title="No profile yet">
                <p>
                    "A profile is a named way to start an engine: program, arguments, variables, model. Every change makes a new revision, so that a figure always says what was running."
                </p>
                <p>
                    "Paste the command that you start your server with, take over one that runs on a host, or add one of the built-in profiles below."
                </p>
            </EmptyState>
        }
        .into_any()
    } else {
        view! {
            <ul class="profile-cards">
                {shown
                    .into_iter()
                    .map(|card| view! { <Card card=card may_operate=may_operate/> })
                    .collect_view()}
            </ul>
        }
        .into_any()
    };
    let archived = (!archived.is_empty()).then(|| {
        let number = text::plural(archived.len() as u64, "archived profile", "archived profiles");
        view! {
            <details class="fold">
                <summary>{number}</summary>
                <ul>
                    {archived
                        .into_iter()
                        .map(|card| {
                            view! {
                                <li>
                                    <a href=format!("/profiles/{}", card.name)>{card.name.clone()}</a>
                                </li>
                            }
                        })
                        .collect_view()}
                </ul>
            </details>
        }
    });
    view! {
        <div class="page-head">
            <h1>"Profiles"</h1>
            {buttons}
        </div>
        {note}
        {cards}
        {archived}
        <section class="section">
            <h2>"Built-in profiles"</h2>
            <p class="muted">
                "Starting points for large models on PCIe boxes, with what is known about their flags. Model, drafter, parallelism and port are asked for when one is added."
            </p>
            <ul class="builtins">
                {list
                    .builtins
                    .into_iter()
                    .map(|builtin| view! { <Builtin builtin=builtin may_operate=may_operate/> })
                    .collect_view()}
            </ul>
        </section>
    }
}

/// A profile.
#[component]
fn Card(card: ProfileCard, may_operate: bool) -> impl IntoView {
    let alive = (card.alive > 0).then(|| {
        let text = text::plural(card.alive.into(), "server", "servers");
        view! {
            <a class="badge-link" href="/servers">
                <Badge tone=Tone::Info glyph=Glyph::Pulse text=text/>
            </a>
        }
    });
    let buttons = may_operate.then(|| launch_buttons(&card.name));
    view! {
        <li class="panel profile-card">
            <div class="server-head">
                <h2>
                    <a href=format!("/profiles/{}", card.name)>{card.name.clone()}</a>
                </h2>
                <p class="cluster">
                    <EngineName engine=card.spec.engine/>
                    <span class="muted">{format!("revision {}", card.number)}</span>
                    {alive}
                </p>
            </div>
            <ParameterFacts spec=card.spec.clone()/>
            <div class="command">
                <pre class="verbatim" tabindex="0" aria-label=format!("Command of {}", card.name)>
                    {card.command.clone()}
                </pre>
                <CopyButton text=Signal::stored(card.command) label="Copy"/>
            </div>
            <CautionList cautions=card.cautions arguments=card.spec.arguments/>
            {buttons}
        </li>
    }
}

/// *Launch* and *Launch & measure*.
pub(super) fn launch_buttons(name: &str) -> impl IntoView + use<> {
    view! {
        <p class="cluster">
            <a
                class="button button-primary"
                href=format!("/servers/new?profile={name}&measure=1")
                aria-label=format!("Launch & measure {name}")
            >
                "Launch & measure"
            </a>
            <a
                class="button"
                href=format!("/servers/new?profile={name}")
                aria-label=format!("Launch {name}")
            >
                "Launch"
            </a>
        </p>
    }
}

/// Model and what else differs from use to use.
#[component]
pub(super) fn ParameterFacts(
    /// The profile.
    spec: ProfileSpec,
) -> impl IntoView {
    let parameters = spec.parameters;
    let mut facts = vec![("Model", parameters.model)];
    if let Some(drafter) = parameters.drafter {
        facts.push(("Drafter", drafter));
    }
    facts.push(("Tensor parallelism", parameters.tensor_parallel.to_string()));
    facts.push(("Port", parameters.port.to_string()));
    if !parameters.served_name.is_empty() {
        facts.push(("Served as", parameters.served_name));
    }
    facts.push(("Activation", spec.activation.word().to_owned()));
    view! {
        <dl class="facts">
            {facts
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(label, value)| {
                    view! {
                        <div>
                            <dt>{label}</dt>
                            <dd>{value}</dd>
                        </div>
                    }
                })
                .collect_view()}
        </dl>
    }
}

/// A built-in profile.
#[component]
fn Builtin(builtin: BuiltinView, may_operate: bool) -> impl IntoView {
    let add = may_operate.then(|| {
        view! {
            <a
                class="button button-small"
                href=format!("/profiles/new?builtin={}", builtin.id)
                aria-label=format!("Add {}", builtin.id)
            >
                <Icon glyph=Glyph::Plus/>
                "Add"
            </a>
        }
    });
    view! {
        <li class="builtin">
            <div class="builtin-head">
                <p>
                    <strong>{builtin.id.clone()}</strong>
                    " "
                    <EngineName engine=builtin.engine/>
                </p>
                {add}
            </div>
            <p>{builtin.text}</p>
            <p class="cluster">
                <CautionBadges cautions=builtin.cautions.clone()/>
            </p>
            <details class="fold">
                <summary>"Command and cautions"</summary>
                <pre class="verbatim" tabindex="0">{builtin.command}</pre>
                <CautionList cautions=builtin.cautions arguments=builtin.spec.arguments/>
            </details>
        </li>
    }
}
