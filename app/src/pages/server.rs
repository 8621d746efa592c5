//! A launch: how far it is, what really runs, its log, and what can be done with it.
//!
//! The page is put together once. What the server tells later flows through
//! [`LaunchData`] into the parts that show it, so that a refresh moves no scroll bar
//! and closes no details.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod actions;
mod data;
mod head;
mod log;
mod measure;
mod more;
mod steps;

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;
use tokdyno_domain::{
    ids::LaunchId,
    views::servers::{LaunchView, LogPage},
};

pub(super) use self::measure::Place;
use self::{
    actions::Actions,
    data::LaunchData,
    head::Head,
    log::Log,
    measure::Measure,
    more::{Effective, More, Runs},
    steps::Steps,
};
use crate::{
    AppError, api,
    components::{MissingPage, Skeleton},
};

/// The page of a launch.
#[component]
pub fn ServerPage() -> impl IntoView {
    let params = use_params_map();
    let typed = Memo::new(move |_| params.with(|params| params.get("id").unwrap_or_default()));
    let first = Resource::new_blocking(move || typed.get(), load);
    view! {
        <Transition fallback=|| view! { <Skeleton lines=10/> }>
            {move || Suspend::new(async move {
                match first.await {
                    Ok((view, log)) => view! { <Body view=view log=log/> }.into_any(),
                    Err(error) => {
                        view! { <MissingPage error again=Callback::new(move |()| first.refetch()) what="launch" list="/servers" to_list="To the list of servers"/> }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

/// What is behind the number in the address, and the end of its log, which so stands
/// in the first paint.
async fn load(typed: String) -> Result<(LaunchView, Option<LogPage>), AppError> {
    if let Ok(launch) = typed.parse::<LaunchId>() {
        let view = api::launch(launch).await?;
        let start = view.log_size.saturating_sub(log::TAIL);
        if !view.may_operate {
            return Ok((view, None));
        }
        // A log that cannot be read is asked for again by the browser.
        let page = api::launch_log(launch, start, log::TAIL, String::new())
            .await
            .ok();
        return Ok((view, page));
    }
    Err(AppError::no_number(&typed, "launch", "servers"))
}

#[component]
fn Body(view: LaunchView, log: Option<LogPage>) -> impl IntoView {
    let may_operate = view.may_operate;
    let data = LaunchData::new(view);
    data.follow();
    view! {
        <article class="run launch">
            <Head data/>
            <Steps data/>
            <Actions data/>
            <Effective data/>
            <Runs data/>
            <Measure data/>
            {if may_operate {
                view! { <Log data first=log/> }.into_any()
            } else {
                view! { <log::Withheld/> }.into_any()
            }}
            <More data/>
        </article>
    }
}
