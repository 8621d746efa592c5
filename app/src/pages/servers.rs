//! What runs where, since when, by whom; and what ran before.

use std::time::Duration;

use leptos::prelude::*;
use leptos_meta::Title;
use tokdyno_domain::{
    launch::LaunchState,
    source::Source,
    text,
    views::servers::{LaunchSummary, ServerList},
};

use super::hosts::gpus;
use crate::{
    api,
    components::{
        ClockTime, EmptyState, ErrorBanner, LaunchBadge, LaunchTable, OperatorNote, RelativeTime,
        Skeleton, SourceBadge, StampBadge, launches::origin,
    },
    live,
};

/// Shortest time between two refreshes that events ask for.
const REFRESH: Duration = Duration::from_millis(900);

/// The page.
#[component]
pub fn ServersPage() -> impl IntoView {
    let servers = Resource::new_blocking(|| (), |()| async { api::servers().await });
    let due = StoredValue::new(false);
    let refresh = move || {
        if due.try_get_value().unwrap_or(true) {
            return;
        }
        due.set_value(true);
        set_timeout(
            move || {
                if due.try_set_value(false).is_none() {
                    servers.refetch();
                }
            },
            REFRESH,
        );
    };
    live::follow_launches(
        None,
        Signal::from(true),
        move |event| {
            // Growing logs are told as well, and are no news here.
            if event.log_size.is_none() {
                refresh();
            }
        },
        refresh,
    );
    view! {
        <Title text="Servers"/>
        <div class="page-head">
            <h1>"Servers"</h1>
            <a class="button button-primary" href="/servers/new">
                "Launch a profile"
            </a>
        </div>
        <Transition fallback=|| view! { <Skeleton lines=8/> }>
            {move || Suspend::new(async move {
                match servers.await {
                    Ok(list) => view! { <Lists list=list/> }.into_any(),
                    Err(error) => {
                        view! {
                            <ErrorBanner error=error retry=Callback::new(move |()| servers.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn Lists(list: ServerList) -> impl IntoView {
    let note = (!list.may_operate).then(|| view! { <OperatorNote what="Launching and stopping"/> });
    if list.alive.is_empty() && list.over.is_empty() {
        return view! {
            {note}
            <EmptyState title="Nothing was launched yet">
                <p>
                    "A server is a launch that lives: a profile, started on a host. Choose a profile and press Launch, or Launch & measure, which also brings figures to the Board."
                </p>
                <p class="cluster">
                    <a class="button button-primary" href="/profiles">
                        "Choose a profile"
                    </a>
                    <a class="button" href="/hosts">
                        "Adopt what runs on a host"
                    </a>
                </p>
            </EmptyState>
        }
        .into_any();
    }
    let alive = if list.alive.is_empty() {
        view! { <p class="muted">"Nothing runs that was launched or adopted from here."</p> }
            .into_any()
    } else {
        view! {
            <ul class="servers">
                {list.alive.into_iter().map(|launch| view! { <Alive launch=launch/> }).collect_view()}
            </ul>
        }
        .into_any()
    };
    let over = (!list.over.is_empty()).then(|| {
        view! {
            <section class="section">
                <h2>"Before"</h2>
                <LaunchTable launches=list.over label="Launches that are over"/>
            </section>
        }
    });
    view! {
        {note}
        <section class="section">
            <h2>"Running"</h2>
            {alive}
        </section>
        {over}
    }
    .into_any()
}

/// A launch that lives.
#[component]
fn Alive(launch: LaunchSummary) -> impl IntoView {
    let id = launch.id;
    let (_, profile, number, _) = launch.profile.clone();
    let mut facts = vec![
        launch.engine_version.as_ref().map_or_else(
            || launch.engine.name().to_owned(),
            |version| format!("{} {version}", launch.engine.name()),
        ),
        format!("port {}", launch.port),
        gpus(launch.gpus.as_deref()),
        format!("by {}", launch.by),
    ];
    facts.retain(|fact| !fact.is_empty());
    let waits = (launch.state == LaunchState::Queued).then(|| {
        let what = launch
            .waits_for
            .clone()
            .unwrap_or_else(|| "a worker, which takes it in a moment".to_owned());
        view! { <p>"Waits for " {what} "."</p> }
    });
    let loads = matches!(launch.state, LaunchState::Starting | LaunchState::Loading);
    let progress = loads.then(|| {
        let (share, said) = loading(&launch);
        view! {
            <progress class="run-bar" max="1" value=share.to_string() aria-label="Loading"></progress>
            <p class="muted server-step">{said}</p>
        }
    });
    let step = (!loads && !launch.step.is_empty() && launch.state != LaunchState::Queued)
        .then(|| view! { <p class="muted server-step">{launch.step.clone()}</p> });
    view! {
        <li class="panel server">
            <div class="server-head">
                <h3>
                    <a href=format!("/servers/{id}")>{profile}</a>
                    <span class="muted">
                        {format!(" launch {id}, revision {number}{}", origin(launch.origin))}
                    </span>
                </h3>
                <p class="cluster">
                    <LaunchBadge state=launch.state stop_requested=launch.stop_requested/>
                    {launch.stamp.map(|stamp| view! { <StampBadge stamp=stamp launch=id/> })}
                    {launch.simulated.then(|| view! { <SourceBadge source=Source::Simulated/> })}
                </p>
            </div>
            <p>
                "On " <a href=format!("/hosts/{}", launch.host.0)>{launch.host.1}</a> ", "
                {match (launch.ready_at, launch.started_at) {
                    (Some(at), _) => view! { "ready since " <RelativeTime at=at/> }.into_any(),
                    (None, Some(at)) => view! { "started " <RelativeTime at=at/> }.into_any(),
                    (None, None) => view! { "asked for " <RelativeTime at=launch.created_at/> }.into_any(),
                }}
                {launch
                    .give_back_at
                    .map(|at| view! { ". The host is given back by " <strong><ClockTime at=at/></strong> })}
            </p>
            <p class="muted">{facts.join(" · ")}</p>
            {waits}
            {progress}
            {step}
            {launch
                .unreachable_since
                .map(|at| {
                    view! { <p class="caution">"The host has not answered since " <RelativeTime at=at/> "."</p> }
                })}
        </li>
    }
}

/// How far loading is, from 0 to 1, and in words.
pub(super) fn loading(launch: &LaunchSummary) -> (f64, String) {
    use tokdyno_domain::launch::LoadStage;

    let last = f64::from(LoadStage::Ready.place());
    match launch.stage {
        Some(stage) => (
            f64::from(stage.place()) / last,
            format!(
                "{} ({} of {})",
                stage.text(),
                stage.place() + 1,
                text::count(LoadStage::ALL.len() as u64)
            ),
        ),
        None if launch.step.is_empty() => (0.0, "looking at the host".to_owned()),
        None => (0.0, launch.step.clone()),
    }
}
