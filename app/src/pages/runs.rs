//! All runs, newest first, as the address filters them.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod address;
mod filter;
mod list;

use std::{collections::HashMap, time::Duration};

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;
use tokdyno_domain::{
    ids::RunId,
    live::LiveKind,
    run::RunState,
    views::run::{RunFilter, RunPage},
};

use self::{
    filter::FilterForm,
    list::{RunTable, Shared},
};
use crate::{
    AppError, api,
    components::{
        feedback::{EmptyState, ErrorBanner, Skeleton},
        import_drop::ImportDrop,
    },
    live,
    pages::run::fraction,
};

/// Shortest time between two refreshes that events ask for.
const REFRESH: Duration = Duration::from_millis(700);

/// Running runs whose progress is followed. Each takes one of the six connections
/// that a browser opens to a server.
const FOLLOWED: usize = 2;

/// The page of all runs.
#[component]
pub fn RunsPage() -> impl IntoView {
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(address::read));
    let page = Resource::new_blocking(move || filter.get(), api::runs);
    let preset = query.with_untracked(|query| query.get("with"));
    let shared = Shared {
        chosen: RwSignal::new(preset.and_then(|id| id.parse().ok()).into_iter().collect()),
        progress: RwSignal::new(HashMap::new()),
    };
    let running = RwSignal::new(Vec::<RunId>::new());

    let due = StoredValue::new(false);
    let refresh = move || {
        if due.try_get_value().unwrap_or(true) {
            return;
        }
        due.set_value(true);
        set_timeout(
            move || {
                if due.try_set_value(false).is_none() {
                    page.refetch();
                }
            },
            REFRESH,
        );
    };
    live::follow(
        None,
        Signal::from(true),
        move |event| {
            if matches!(event.kind, LiveKind::State { .. }) {
                refresh();
            }
        },
        refresh,
    );

    view! {
        <Title text="Runs"/>
        <div class="page-head">
            <h1>"Runs"</h1>
            <ImportDrop/>
        </div>
        <FilterForm filter/>
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match page.await {
                    Ok(page) => {
                        view! { <Found page filter=filter.get_untracked() shared running/> }
                            .into_any()
                    }
                    Err(error) => {
                        view! { <NotFound error again=Callback::new(move |()| page.refetch())/> }
                            .into_any()
                    }
                }
            })}
        </Transition>
        <For each=move || running.get() key=|id| *id let:id>
            <Feed id shared/>
        </For>
    }
}

#[component]
fn NotFound(error: AppError, again: Callback<()>) -> impl IntoView {
    view! { <ErrorBanner error retry=again/> }
}

/// The list, or what to do where it is empty.
#[component]
fn Found(
    page: RunPage,
    filter: RunFilter,
    shared: Shared,
    running: RwSignal<Vec<RunId>>,
) -> impl IntoView {
    let now: Vec<RunId> = page
        .runs
        .iter()
        .filter(|run| run.state == RunState::Running)
        .map(|run| run.id)
        .take(FOLLOWED)
        .collect();
    Effect::new(move |_| running.set(now.clone()));
    if page.total > 0 {
        return view! { <RunTable page filter shared/> }.into_any();
    }
    if filter == RunFilter::default() {
        return view! {
            <EmptyState title="No runs yet">
                <p>
                    "Measure a server that speaks the OpenAI protocol: give its address, choose a workload, watch the numbers come."
                </p>
                <p>
                    <a class="button button-primary" href="/runs/new">
                        "New measurement"
                    </a>
                </p>
                <p class="muted">
                    "On a machine without a browser: " <code>"tokdyno bench --url URL --json FILE"</code>
                    ", then bring the file in above."
                </p>
            </EmptyState>
        }
        .into_any();
    }
    view! {
        <EmptyState title="No run matches">
            <p>
                "Change the filter, or " <a href="/runs">"show all runs"</a> "."
            </p>
        </EmptyState>
    }
    .into_any()
}

/// Shows nothing: listens to how far a running run is.
#[component]
fn Feed(id: RunId, shared: Shared) -> impl IntoView {
    live::follow(
        Some(id),
        Signal::from(true),
        move |event| {
            if let LiveKind::Progress(progress) = &event.kind {
                let done = fraction(progress);
                shared.progress.try_update(|all| all.insert(id, done));
            }
        },
        || {},
    );
}
