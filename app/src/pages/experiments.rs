//! Experiments: what was planned, how far each is, and how to plan one.

use std::time::Duration;

use leptos::prelude::*;
use leptos_meta::Title;
use tokdyno_domain::{
    text,
    views::experiments::{ExperimentList, ExperimentSummary},
};

use crate::{
    api,
    components::{
        EmptyState, ErrorBanner, ExperimentBadge, OperatorNote, RelativeTime, Skeleton, TableBox,
    },
    refresh::every,
};

/// How often the list is asked for again while something in it is not over.
const REFRESH: Duration = Duration::from_secs(5);

/// The page.
#[component]
pub fn ExperimentsPage() -> impl IntoView {
    let found = Resource::new_blocking(|| (), |()| async { api::experiments().await });
    let lives = RwSignal::new(false);
    every(REFRESH, lives.into(), move || found.refetch());
    view! {
        <Title text="Experiments"/>
        <div class="page-head">
            <h1>"Experiments"</h1>
            <a class="button button-primary" href="/experiments/new">
                "Plan an experiment"
            </a>
        </div>
        <Transition fallback=|| view! { <Skeleton lines=8/> }>
            {move || Suspend::new(async move {
                match found.await {
                    Ok(list) => view! { <List list lives/> }.into_any(),
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
fn List(
    list: ExperimentList,
    /// Whether something in the list is not over.
    lives: RwSignal<bool>,
) -> impl IntoView {
    let alive = list
        .experiments
        .iter()
        .any(|experiment| !experiment.state.is_over());
    Effect::new(move |_| lives.set(alive));
    let note = (!list.may_operate)
        .then(|| view! { <OperatorNote what="Planning, pausing and cancelling"/> });
    if list.experiments.is_empty() {
        return view! {
            {note}
            <EmptyState title="No experiment was planned yet">
                <p>
                    "An experiment answers which setting is faster, and how sure that is. It launches every configuration several times, in an order that a drift of the machine cannot turn into a result, measures each launch, and says which differences are established, which are not, and what would settle them."
                </p>
                <p>
                    "Vary NCCL's protocol and algorithm on a grid, switch a drafter off and on, or take the difference between two profiles apart, step by step. It runs by itself, keeps to a budget, survives restarts, and gives the host back as it was."
                </p>
                <p class="cluster">
                    <a class="button button-primary" href="/experiments/new">
                        "Plan an experiment"
                    </a>
                    <a
                        class="button"
                        href="/experiments/new?design=full_grid&NCCL_PROTO=&NCCL_ALGO="
                    >
                        "Plan an NCCL grid"
                    </a>
                </p>
            </EmptyState>
        }
        .into_any();
    }
    view! {
        {note}
        <TableBox label="Experiments">
            <table class="data experiments">
                <thead>
                    <tr>
                        <th scope="col">"Experiment"</th>
                        <th scope="col">"State"</th>
                        <th scope="col">"Launches"</th>
                        <th scope="col">"Design"</th>
                        <th scope="col">"Host"</th>
                        <th scope="col">"By"</th>
                        <th scope="col">"Asked for"</th>
                    </tr>
                </thead>
                <tbody>{list.experiments.iter().map(row).collect_view()}</tbody>
            </table>
        </TableBox>
    }
    .into_any()
}

fn row(experiment: &ExperimentSummary) -> impl IntoView + use<> {
    let bar = (!experiment.state.is_over())
        .then(|| view! { <Progress over=experiment.over launches=experiment.launches/> });
    let reason = (!experiment.reason.is_empty())
        .then(|| view! { <span class="row-note">{experiment.reason.clone()}</span> });
    view! {
        <tr>
            <th scope="row">
                <a href=format!("/experiments/{}", experiment.id)>{experiment.name.clone()}</a>
                <span class="row-note">{format!("experiment {}", experiment.id)}</span>
            </th>
            <td>
                <ExperimentBadge state=experiment.state/>
                {reason}
            </td>
            <td>
                {launches(experiment)}
                {bar}
            </td>
            <td>
                {experiment.design.clone()}
                <span class="row-note">
                    {text::plural(experiment.cells.into(), "configuration", "configurations")}
                </span>
            </td>
            <td>
                <a href=format!("/hosts/{}", experiment.host.0)>{experiment.host.1.clone()}</a>
            </td>
            <td>{experiment.by.clone()}</td>
            <td>
                <RelativeTime at=experiment.created_at/>
            </td>
        </tr>
    }
}

/// `12 of 27`.
pub(super) fn launches(experiment: &ExperimentSummary) -> String {
    format!(
        "{} of {}",
        text::count(experiment.over.into()),
        text::plural(experiment.launches.into(), "launch", "launches")
    )
}

/// How many of the launches are over.
#[component]
pub(super) fn Progress(over: u32, launches: u32) -> impl IntoView {
    view! {
        <progress
            class="run-bar"
            max=launches.max(1).to_string()
            value=over.to_string()
            aria-label="Launches that are over"
        ></progress>
    }
}
