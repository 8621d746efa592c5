//! Which profile on which host, where it stands, and why it failed.

use leptos::prelude::*;
use leptos_meta::Title;
use tokdyno_domain::{
    host::Keeper, launch::LaunchOrigin, source::Source, text, views::servers::LaunchView,
};

use super::data::LaunchData;
use crate::{
    components::{
        ClockTime, ErrorNote, Glyph, Icon, InertBadges, LaunchBadge, RelativeTime, SourceBadge,
        StampBadge,
    },
    pages::hosts::gpus,
};

/// Name, badges, facts, failure.
#[component]
pub(super) fn Head(data: LaunchData) -> impl IntoView {
    let id = data.id;
    let (_, profile, number, hash) = data
        .view
        .with_untracked(|view| view.summary.profile.clone());
    let host = data.view.with_untracked(|view| view.summary.host.clone());
    let title = format!("{profile} on {}", host.1);
    let state = data.summary(|summary| (summary.state, summary.stop_requested));
    let stamp = data.summary(|summary| summary.stamp.clone());
    let simulated = data.summary(|summary| summary.simulated);
    let engine = data.summary(|summary| {
        summary.engine_version.as_ref().map_or_else(
            || summary.engine.name().to_owned(),
            |version| format!("{} {version}", summary.engine.name()),
        )
    });
    let effective = data.part(|view| view.effective.clone());
    let lost_sight = data.summary(|summary| summary.unreachable_since);
    let waits = data.summary(|summary| summary.waits_for.clone());
    view! {
        <Title text=format!("{title} · launch {id}")/>
        <header class="run-head">
            <nav aria-label="Breadcrumb" class="breadcrumb">
                <a href="/servers">"Servers"</a>
                <span aria-hidden="true">" / "</span>
                <span>{format!("launch {id}")}</span>
            </nav>
            <h1>
                <a class="quiet-link" href=format!("/profiles/{profile}")>{profile.clone()}</a>
                " on "
                <a class="quiet-link" href=format!("/hosts/{}", host.0)>{host.1.clone()}</a>
            </h1>
            <p class="run-badges">
                {move || {
                    let (state, stop_requested) = state.get();
                    view! { <LaunchBadge state=state stop_requested=stop_requested/> }
                }}
                {move || stamp.get().map(|stamp| view! { <StampBadge stamp=stamp/> })}
                {move || simulated.get().then(|| view! { <SourceBadge source=Source::Simulated/> })}
                {move || effective.get().map(|effective| view! { <InertBadges effective=effective/> })}
                <span class="run-engine">{move || engine.get()}</span>
                <span class="muted">
                    {format!("revision {number} ")}
                    <code title="First digits of the revision's hash: equal digits, equal profile.">
                        {hash.short().to_owned()}
                    </code>
                </span>
            </p>
            {move || {
                waits
                    .get()
                    .filter(|_| !state.get().0.holds_gpus() && !state.get().0.is_over())
                    .map(|what| {
                        view! {
                            <div class="banner banner-wait">
                                <Icon glyph=Glyph::Clock/>
                                <p class="banner-text">"Waits for " {what} "."</p>
                            </div>
                        }
                    })
            }}
            {move || {
                lost_sight
                    .get()
                    .map(|at| {
                        view! {
                            <div class="banner banner-wait">
                                <Icon glyph=Glyph::Broken/>
                                <p class="banner-text">
                                    "The host has not answered since " <RelativeTime at=at/>
                                    ". The connection is tried again and again; the server itself may well go on running."
                                </p>
                            </div>
                        }
                    })
            }}
            <Failure data/>
            <Facts data/>
            <ErrorNote error=data.trouble/>
        </header>
    }
}

/// Why it failed, the line that says so, and what to do.
#[component]
fn Failure(data: LaunchData) -> impl IntoView {
    let failure = data.summary(|summary| summary.failure.clone());
    view! {
        {move || {
            failure
                .get()
                .map(|failure| {
                    let detail = (!failure.detail.trim().is_empty())
                        .then(|| view! { <pre class="verbatim" tabindex="0">{failure.detail.clone()}</pre> });
                    view! {
                        <div class="banner banner-bad" role="alert">
                            <Icon glyph=Glyph::Cross/>
                            <div class="banner-text">
                                <p class="banner-title">{failure.kind.sentence()}</p>
                                {detail}
                                <p>{failure.kind.remedy()}</p>
                            </div>
                        </div>
                    }
                })
        }}
    }
}

#[component]
fn Facts(data: LaunchData) -> impl IntoView {
    let facts = data.part(facts);
    let times = data.summary(|summary| {
        (
            summary.created_at,
            summary.started_at,
            summary.ready_at,
            summary.ended_at,
            summary.give_back_at,
        )
    });
    view! {
        <dl class="facts">
            {move || {
                facts
                    .get()
                    .into_iter()
                    .map(|(label, value)| {
                        view! {
                            <div>
                                <dt>{label}</dt>
                                <dd>{value}</dd>
                            </div>
                        }
                    })
                    .collect_view()
            }}
            {move || {
                let (created, started, ready, ended, _) = times.get();
                [
                    ("Asked for", Some(created)),
                    ("Started", started),
                    ("Ready", ready),
                    ("Ended", ended),
                ]
                    .into_iter()
                    .filter_map(|(label, at)| Some((label, at?)))
                    .map(|(label, at)| {
                        view! {
                            <div>
                                <dt>{label}</dt>
                                <dd>
                                    <RelativeTime at=at/>
                                </dd>
                            </div>
                        }
                    })
                    .collect_view()
            }}
            {move || {
                times
                    .get()
                    .4
                    .map(|at| {
                        view! {
                            <div>
                                <dt>"Host given back by"</dt>
                                <dd>
                                    <ClockTime at=at/>
                                </dd>
                            </div>
                        }
                    })
            }}
        </dl>
    }
}

fn facts(view: &LaunchView) -> Vec<(&'static str, String)> {
    let summary = &view.summary;
    let mut facts = vec![
        ("By", summary.by.clone()),
        ("Port", summary.port.to_string()),
        ("GPUs", gpus(summary.gpus.as_deref())),
    ];
    if let Some(pid) = view.pid {
        facts.push(("Process", pid.to_string()));
    }
    match &view.keeper {
        Keeper::Process => {}
        Keeper::Unit { name, .. } => facts.push(("systemd unit", name.clone())),
        Keeper::Container { runtime, name, .. } => {
            facts.push(("Container", format!("{name} ({runtime})")));
        }
    }
    match summary.origin {
        LaunchOrigin::Launched => {}
        LaunchOrigin::Adopted => facts.push(("Origin", "found running, adopted".to_owned())),
        LaunchOrigin::Restored => facts.push(("Origin", "restored".to_owned())),
    }
    if let (Some(from), Some(to)) = (summary.started_at, summary.ready_at)
        && summary.origin != LaunchOrigin::Adopted
    {
        let seconds = to.0.saturating_sub(from.0) as f64 / 1e6;
        facts.push(("Took to load", text::duration(seconds)));
    }
    facts
}
