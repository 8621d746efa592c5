//! A host: connection, what is on it, what runs there, who owns it.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod edit;
mod found;
mod inventory;

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use leptos_meta::Title;
use leptos_router::hooks::use_params_map;
use tokdyno_domain::{
    ids::HostId,
    text,
    views::hosts::{GpuOwner, HostCheck, HostSummary, HostView},
};

use self::{edit::Edit, found::Found, inventory::InventoryView};
use super::hosts::{Connection, gpus};
use crate::{
    AppError, api,
    components::{
        ClockTime, ErrorNote, LaunchTable, MissingPage, OperatorNote, RelativeTime, Skeleton,
        TableBox,
    },
};

/// The page of a host.
#[component]
pub fn HostPage() -> impl IntoView {
    let params = use_params_map();
    let typed = Memo::new(move |_| params.with(|params| params.get("id").unwrap_or_default()));
    let host = Resource::new_blocking(move || typed.get(), load);
    let again = Callback::new(move |()| host.refetch());
    // Kept here: the rest is put together anew with what the test found.
    let answer = RwSignal::new(None::<HostCheck>);
    view! {
        <Transition fallback=|| view! { <Skeleton lines=8/> }>
            {move || Suspend::new(async move {
                match host.await {
                    Ok(view) => view! { <Body view=view again=again answer=answer/> }.into_any(),
                    Err(error) => view! { <MissingPage error again=again what="host" list="/hosts" to_list="To the list of hosts"/> }.into_any(),
                }
            })}
        </Transition>
    }
}

async fn load(typed: String) -> Result<HostView, AppError> {
    if let Ok(host) = typed.parse::<HostId>() {
        return api::host(host).await;
    }
    Err(AppError::no_number(&typed, "host", "hosts"))
}

#[component]
fn Body(view: HostView, again: Callback<()>, answer: RwSignal<Option<HostCheck>>) -> impl IntoView {
    let summary = view.summary;
    let id = summary.id;
    let may_operate = view.may_operate;
    let inventory = match view.inventory {
        Some(inventory) => view! { <InventoryView inventory=inventory/> }.into_any(),
        None => view! {
            <section class="section">
                <h2>"What is on it"</h2>
                <p class="muted">"Nothing is known yet. Test the connection: it reads GPUs, drivers, topology and settings."</p>
            </section>
        }
        .into_any(),
    };
    let history = if view.launches.is_empty() {
        view! {
            <p class="muted">
                "Nothing was launched here yet. " <a href="/profiles">"Choose a profile"</a> "."
            </p>
        }
        .into_any()
    } else {
        view! { <LaunchTable launches=view.launches label="Launches on this host"/> }.into_any()
    };
    view! {
        <Title text=summary.name.clone()/>
        <header class="run-head">
            <nav aria-label="Breadcrumb" class="breadcrumb">
                <a href="/hosts">"Hosts"</a>
                <span aria-hidden="true">" / "</span>
                <span>{summary.reach.label().to_owned()}</span>
            </nav>
            <div class="run-title">
                <h1>{summary.name.clone()}</h1>
                {may_operate.then(|| view! { <Edit host=summary.clone() again=again/> })}
            </div>
            {(!summary.notes.is_empty()).then(|| view! { <p>{summary.notes.clone()}</p> })}
        </header>
        <Check host=summary.clone() may_operate=may_operate again=again answer=answer/>
        <Owners owners=summary.owners.clone() waiting=summary.waiting/>
        {may_operate.then(|| view! { <Found host=id again=again/> })}
        {inventory}
        <section class="section">
            <h2>"Launches"</h2>
            {history}
        </section>
    }
}

/// The button that tests the connection, and how it went.
#[component]
fn Check(
    host: HostSummary,
    may_operate: bool,
    again: Callback<()>,
    answer: RwSignal<Option<HostCheck>>,
) -> impl IntoView {
    let id = host.id;
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let check = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        busy.set(true);
        error.set(None);
        spawn_local(async move {
            let outcome = api::check_host(id).await;
            busy.try_set(false);
            match outcome {
                Ok(found) => {
                    answer.try_set(Some(found));
                    again.try_run(());
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    let trouble = host.check_error.clone();
    let button = may_operate.then(|| {
        view! {
            <form method="post" action=api::CheckHost::url() on:submit=check>
                <input type="hidden" name="host" value=id.to_string()/>
                <button type="submit" class="button" disabled=move || busy.get()>
                    {move || if busy.get() { "Connecting …" } else { "Test connection" }}
                </button>
            </form>
        }
    });
    view! {
        <section class="section" aria-labelledby="connection-title">
            <h2 id="connection-title">"Connection"</h2>
            <div class="connection">
                <div class="connection-state">
                    <Connection host=host/>
                </div>
                {button}
            </div>
            <div role="status">
                {move || {
                    answer
                        .get()
                        .map(|answer| match answer {
                            HostCheck::Reachable { round_trip_ms, inventory } => {
                                let gpus = text::plural(inventory.gpus.len() as u64, "GPU", "GPUs");
                                view! {
                                    <p class="probe-line">
                                        {format!(
                                            "A question and its answer take {} ms. {gpus} found.",
                                            text::figure(round_trip_ms),
                                        )}
                                    </p>
                                }
                                    .into_any()
                            }
                            HostCheck::Unreachable { .. } => ().into_any(),
                        })
                }}
            </div>
            {trouble
                .map(|why| {
                    view! {
                        <div class="banner banner-bad" role="alert">
                            <p>{why}</p>
                        </div>
                    }
                })}
            <ErrorNote error=error/>
            {(!may_operate).then(|| view! { <OperatorNote what="Testing, launching and adopting"/> })}
        </section>
    }
}

/// Who owns the GPUs.
#[component]
fn Owners(owners: Vec<GpuOwner>, waiting: u32) -> impl IntoView {
    let queue = (waiting > 0).then(|| {
        let waiting = text::plural(waiting.into(), "launch waits", "launches wait");
        view! {
            <p>
                <a href="/servers">{waiting}</a>
                " for this host."
            </p>
        }
    });
    let owners = if owners.is_empty() {
        view! { <p class="muted">"Nobody: no launch lives here."</p> }.into_any()
    } else {
        view! {
            <TableBox label="Who owns the GPUs">
                <table class="data">
                    <thead>
                        <tr>
                            <th scope="col">"Launch"</th>
                            <th scope="col">"GPUs"</th>
                            <th scope="col">"By"</th>
                            <th scope="col">"Since"</th>
                            <th scope="col">"Until"</th>
                        </tr>
                    </thead>
                    <tbody>{owners.into_iter().map(owner).collect_view()}</tbody>
                </table>
            </TableBox>
        }
        .into_any()
    };
    view! {
        <section class="section">
            <h2>"Who owns the GPUs"</h2>
            {owners}
            {queue}
        </section>
    }
}

fn owner(owner: GpuOwner) -> impl IntoView {
    view! {
        <tr>
            <th scope="row">
                <a href=format!("/servers/{}", owner.launch)>{owner.profile}</a>
                <span class="row-note">{format!("launch {}", owner.launch)}</span>
            </th>
            <td>{gpus(owner.gpus.as_deref())}</td>
            <td>{owner.by}</td>
            <td>
                <RelativeTime at=owner.since/>
            </td>
            <td>
                {match owner.until {
                    Some(at) => view! { <ClockTime at=at/> }.into_any(),
                    None => view! { <span class="muted">"not agreed"</span> }.into_any(),
                }}
            </td>
        </tr>
    }
}
