//! An experiment: how far it is, the board of its launches, and what it found.
//!
//! The page is put together once. What the server tells later flows through
//! [`ExperimentData`] into the parts that show it.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod actions;
mod attribution;
mod board;
mod data;
mod effects;
mod head;
mod heat;
mod number;
mod results;
#[cfg(all(test, feature = "ssr"))]
mod samples;
#[cfg(all(test, feature = "ssr"))]
mod tests;
mod traces;

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
use tokdyno_domain::{
    ids::ExperimentId,
    views::{ChartView, experiments::ExperimentView},
};

use self::{actions::Actions, board::Board, data::ExperimentData, head::Head, results::Results};
use crate::{
    AppError, api,
    components::{MissingPage, Skeleton},
};

/// The page of an experiment.
#[component]
pub fn ExperimentPage() -> impl IntoView {
    let params = use_params_map();
    let typed = Memo::new(move |_| params.with(|params| params.get("id").unwrap_or_default()));
    let first = Resource::new_blocking(move || typed.get(), load);
    view! {
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match first.await {
                    Ok(view) => view! { <Body view/> }.into_any(),
                    Err(error) => {
                        view! { <MissingPage error again=Callback::new(move |()| first.refetch()) what="experiment" list="/experiments" to_list="To the list of experiments"/> }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

/// What is behind the number in the address.
async fn load(typed: String) -> Result<ExperimentView<ChartView>, AppError> {
    if let Ok(experiment) = typed.parse::<ExperimentId>() {
        return api::experiment(experiment).await;
    }
    Err(AppError::no_number(&typed, "experiment", "experiments"))
}

#[component]
fn Body(view: ExperimentView<ChartView>) -> impl IntoView {
    let data = ExperimentData::new(view);
    data.follow();
    view! {
        <article class="run experiment">
            <Head data/>
            <Actions data/>
            <Results data/>
            <Board data/>
        </article>
    }
}
