//! What the experiment is about, where it stands, and how far it is.

use leptos::prelude::*;
use leptos_meta::Title;
use tokdyno_domain::{
    experiment::ExperimentState,
    source::Source,
    text,
    views::{ChartView, experiments::ExperimentView},
};

use super::{
    super::{
        experiments::{Progress, launches},
        new_experiment::Cost,
    },
    data::ExperimentData,
};
use crate::components::{
    ClockTime, ErrorNote, ExperimentBadge, Glyph, Icon, RelativeTime, SourceBadge,
};

/// Name, state, reason, progress, facts.
#[component]
pub(super) fn Head(data: ExperimentData) -> impl IntoView {
    let id = data.id;
    let name = data.summary(|summary| summary.name.clone());
    let design = data.summary(|summary| summary.design.clone());
    let state = data.state();
    let source = data.part(|view| view.source);
    let reason = data.summary(|summary| summary.reason.clone());
    let progress = data.summary(|summary| (summary.over, summary.launches));
    let said = data.summary(launches);
    // Without a figure nothing is simulated or measured yet.
    let has_figures = data.part(|view| view.results.is_some());
    view! {
        <Title text=move || format!("{} · experiment {id}", name.get())/>
        <header class="run-head">
            <nav aria-label="Breadcrumb" class="breadcrumb">
                <a href="/experiments">"Experiments"</a>
                <span aria-hidden="true">" / "</span>
                <span>{format!("experiment {id}")}</span>
            </nav>
            <h1>{move || name.get()}</h1>
            <p class="run-badges">
                {move || view! { <ExperimentBadge state=state.get()/> }}
                {move || {
                    (has_figures.get() || source.get() == Source::Simulated)
                        .then(|| view! { <SourceBadge source=source.get()/> })
                }}
                <span class="run-engine">{move || design.get()}</span>
            </p>
            {move || {
                let reason = reason.get();
                (!reason.is_empty()).then(|| why(state.get(), reason))
            }}
            <div class="experiment-progress" role="status">
                <p>{move || format!("{} over.", said.get())}</p>
                {move || {
                    let (over, launches) = progress.get();
                    view! { <Progress over launches/> }
                }}
            </div>
            <ToCome data/>
            <Facts data/>
            <ErrorNote error=data.fresh.trouble/>
        </header>
    }
}

fn why(state: ExperimentState, reason: String) -> impl IntoView {
    let (class, glyph) = match state {
        ExperimentState::Failed => ("banner banner-bad", Glyph::Cross),
        ExperimentState::Paused | ExperimentState::Cancelled => {
            ("banner banner-warn", Glyph::Warning)
        }
        _ => ("banner banner-wait", Glyph::Clock),
    };
    view! {
        <div class=class>
            <Icon glyph=glyph/>
            <p class="banner-text">{reason}</p>
        </div>
    }
}

/// What is still to come, from what launches took so far.
#[component]
fn ToCome(data: ExperimentData) -> impl IntoView {
    let estimate = data.part(|view| view.estimate.clone().filter(|estimate| estimate.loads > 0));
    view! {
        {move || {
            estimate
                .get()
                .map(|estimate| {
                    view! {
                        <section class="experiment-to-come" aria-labelledby="to-come-title">
                            <h2 id="to-come-title">"Still to come"</h2>
                            <Cost limited={estimate.left_out > 0.0} estimate/>
                        </section>
                    }
                })
        }}
    }
}

#[component]
fn Facts(data: ExperimentData) -> impl IntoView {
    let host = data.summary(|summary| summary.host.clone());
    let base = data.summary(|summary| summary.base.clone());
    let restore = data.part(|view| view.restore);
    let give_back = data.part(|view| view.give_back_at);
    let times = data.summary(|summary| (summary.created_at, summary.started_at, summary.ended_at));
    let facts = data.part(facts);
    view! {
        <dl class="facts">
            <div>
                <dt>"Base profile"</dt>
                <dd>
                    {move || {
                        let (_, name) = base.get();
                        view! { <a href=format!("/profiles/{name}")>{name.clone()}</a> }
                    }}
                </dd>
            </div>
            <div>
                <dt>"Host"</dt>
                <dd>
                    {move || {
                        let (id, name) = host.get();
                        view! { <a href=format!("/hosts/{id}")>{name}</a> }
                    }}
                </dd>
            </div>
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
                restore
                    .get()
                    .map(|launch| {
                        view! {
                            <div>
                                <dt>"Restored at the end"</dt>
                                <dd>
                                    <a href=format!("/servers/{launch}")>
                                        {format!("launch {launch}")}
                                    </a>
                                </dd>
                            </div>
                        }
                    })
            }}
            {move || {
                give_back
                    .get()
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
            {move || {
                let (created, started, ended) = times.get();
                [("Asked for", Some(created)), ("Began", started), ("Ended", ended)]
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
        </dl>
    }
}

fn facts(view: &ExperimentView<ChartView>) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("By", view.summary.by.clone()),
        ("Workload", view.workload.clone()),
        (
            "Launches of each",
            text::count(view.launches_per_cell.into()),
        ),
        (
            "Looks",
            if view.looks.is_empty() {
                "at the end only".to_owned()
            } else {
                let looks: Vec<String> = view.looks.iter().map(ToString::to_string).collect();
                format!(
                    "after {} launches of each, and at the end",
                    looks.join(", ")
                )
            },
        ),
        ("Smallest effect", text::percent(view.relevant_effect)),
        ("Seed of the order", view.seed.to_string()),
    ];
    let spent = text::figure(view.spent_gpu_minutes);
    facts.push((
        "GPU minutes used",
        match view.gpu_minutes {
            Some(budget) => format!("{spent} of {}", text::figure(budget)),
            None => spent,
        },
    ));
    facts
}
