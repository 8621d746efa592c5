//! A run: how far it is while it lives, and what came of it.
//!
//! The page is put together once. What the server tells later flows through
//! [`RunData`] into the parts that show it, so that a refresh moves no scroll bar,
//! closes no details and resets no zoom.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod actions;
mod again;
mod data;
mod environment;
mod failures;
mod figures;
mod head;
mod host;
mod levels;
mod meanwhile;
mod progress;
mod rates;
mod records;
mod skipped;
mod stages;

pub(super) use self::{head::engine_title, progress::fraction, records::pages};

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
use tokdyno_domain::{ids::RunId, views::run::RunView};

use self::{
    actions::Actions,
    data::RunData,
    environment::Environment,
    failures::Failures,
    figures::Figures,
    head::Head,
    host::Host,
    levels::Levels,
    meanwhile::{EngineMeanwhile, MeasuringMachine},
    progress::Live,
    rates::Rates,
    records::Records,
    skipped::Skipped,
    stages::Stages,
};
use crate::{
    AppError, api,
    components::{GateSection, chart::Charts, feedback::Skeleton, missing::MissingPage},
};

/// The page of a run.
#[component]
pub fn RunPage() -> impl IntoView {
    let params = use_params_map();
    let typed = Memo::new(move |_| params.with(|params| params.get("id").unwrap_or_default()));
    let first = Resource::new_blocking(move || typed.get(), load);
    view! {
        <Transition fallback=|| {
            view! { <Skeleton lines=8/> }
        }>
            {move || Suspend::new(async move {
                match first.await {
                    Ok(view) => view! { <RunBody view/> }.into_any(),
                    Err(error) => {
                        view! { <MissingPage error again=Callback::new(move |()| first.refetch()) what="run" list="/runs" to_list="To the list of runs"/> }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

/// What is behind the number in the address.
async fn load(typed: String) -> Result<RunView, AppError> {
    if let Ok(run) = typed.parse::<RunId>() {
        return api::run(run).await;
    }
    Err(AppError::no_number(&typed, "run", "runs"))
}

/// The page of a run that exists.
#[component]
fn RunBody(view: RunView) -> impl IntoView {
    let data = RunData::new(view);
    data.follow();
    let charts = Signal::from(data.part(|view| {
        view.charts
            .iter()
            .filter(|chart| !chart.spec.is_empty())
            .cloned()
            .collect::<Vec<_>>()
    }));
    let base = Some(format!("/runs/{}/charts", data.id));
    let state = data.state();
    view! {
        <article class="run">
            <Head data/>
            <Live data/>
            <Figures data/>
            <Charts views=charts base/>
            <Host data/>
            <Levels data/>
            <Rates data/>
            <Skipped data/>
            <EngineMeanwhile data/>
            <MeasuringMachine data/>
            <Stages data/>
            <Failures data/>
            <Records data/>
            <Show when=move || state.get().is_over()>
                <GateSection runs=vec![data.id]/>
            </Show>
            <Environment data/>
            <Actions data/>
        </article>
    }
}
