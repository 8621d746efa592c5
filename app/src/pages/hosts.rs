//! All hosts, and how to add one.

use leptos::{form::ActionForm, prelude::*};
use leptos_meta::Title;
use tokdyno_domain::views::hosts::HostSummary;

use crate::{
    api::{self, AddHost},
    components::{
        Badge, ClockTime, EmptyState, ErrorBanner, ErrorNote, Glyph, OperatorNote, RelativeTime,
        Skeleton, TableBox, Tone, Who,
    },
};

/// The page.
#[component]
pub fn HostsPage() -> impl IntoView {
    let hosts = Resource::new_blocking(|| (), |()| async { api::hosts().await });
    view! {
        <Title text="Hosts"/>
        <div class="page-head">
            <h1>"Hosts"</h1>
        </div>
        <Transition fallback=|| view! { <Skeleton lines=6/> }>
            {move || Suspend::new(async move {
                let may_operate = Who::may_operate().await;
                match hosts.await {
                    Ok(hosts) => view! { <Found hosts=hosts may_operate=may_operate/> }.into_any(),
                    Err(error) => {
                        view! {
                            <ErrorBanner error=error retry=Callback::new(move |()| hosts.refetch())/>
                        }
                            .into_any()
                    }
                }
            })}
        </Transition>
    }
}

#[component]
fn Found(hosts: Vec<HostSummary>, may_operate: bool) -> impl IntoView {
    let list = if hosts.is_empty() {
        view! {
            <EmptyState title="No host yet">
                <p>
                    "A host is a machine that engines run on: this one, or one that SSH reaches. Add it, and its GPUs, drivers and hidden settings are read; then a profile can be launched on it."
                </p>
            </EmptyState>
        }
        .into_any()
    } else {
        view! { <HostTable hosts=hosts/> }.into_any()
    };
    view! {
        {list}
        {if may_operate {
            view! { <AddHostForm/> }.into_any()
        } else {
            view! { <OperatorNote what="Adding a host"/> }.into_any()
        }}
    }
}

#[component]
fn HostTable(hosts: Vec<HostSummary>) -> impl IntoView {
    view! {
        <TableBox label="Hosts">
            <table class="data hosts">
                <thead>
                    <tr>
                        <th scope="col">"Host"</th>
                        <th scope="col">"Connection"</th>
                        <th scope="col">"Hardware"</th>
                        <th scope="col">"Who owns the GPUs"</th>
                        <th scope="col" class="num">"Waiting"</th>
                    </tr>
                </thead>
                <tbody>{hosts.iter().map(row).collect_view()}</tbody>
            </table>
        </TableBox>
    }
}

fn row(host: &HostSummary) -> impl IntoView + use<> {
    let hardware = if host.hardware.is_empty() {
        view! { <span class="muted">"not read yet"</span> }.into_any()
    } else {
        host.hardware.clone().into_any()
    };
    let owners = if host.owners.is_empty() {
        view! { <span class="muted">"nobody"</span> }.into_any()
    } else {
        host.owners
            .iter()
            .cloned()
            .map(|owner| {
                view! {
                    <div>
                        <a href=format!("/servers/{}", owner.launch)>{owner.profile}</a>
                        <span class="row-note">
                            {gpus(owner.gpus.as_deref())} ", " {owner.by} ", "
                            <RelativeTime at=owner.since/>
                            {owner.until.map(|at| view! { ", until " <ClockTime at=at/> })}
                        </span>
                    </div>
                }
            })
            .collect_view()
            .into_any()
    };
    view! {
        <tr>
            <th scope="row">
                <a href=format!("/hosts/{}", host.id)>{host.name.clone()}</a>
                <span class="row-note">{host.reach.label().to_owned()}</span>
            </th>
            <td>
                <Connection host=host.clone()/>
            </td>
            <td>{hardware}</td>
            <td>{owners}</td>
            <td class="num">{host.waiting}</td>
        </tr>
    }
}

/// How the last test of the connection went, and when that was.
#[component]
pub(super) fn Connection(
    /// The host.
    host: HostSummary,
) -> impl IntoView {
    let HostSummary {
        checked_at,
        check_error,
        ..
    } = host;
    let badge = match (checked_at, check_error) {
        (None, _) => view! { <Badge glyph=Glyph::Question text="not tested"/> }.into_any(),
        (Some(_), None) => {
            view! { <Badge tone=Tone::Ok glyph=Glyph::Check text="answers"/> }.into_any()
        }
        (Some(_), Some(why)) => view! {
            <Badge tone=Tone::Bad glyph=Glyph::Cross text="does not answer" title=why/>
        }
        .into_any(),
    };
    view! {
        {badge}
        {checked_at
            .map(|at| view! { <span class="row-note">"tested " <RelativeTime at=at/></span> })}
    }
}

/// `all GPUs`, `GPU 3`, `GPUs 0, 1`.
pub(super) fn gpus(gpus: Option<&[u32]>) -> String {
    match gpus {
        None => "all GPUs".to_owned(),
        Some([one]) => format!("GPU {one}"),
        Some(some) => {
            let numbers: Vec<String> = some.iter().map(ToString::to_string).collect();
            format!("GPUs {}", numbers.join(", "))
        }
    }
}

/// Three steps to a host. An ordinary form before WASM has loaded.
#[component]
fn AddHostForm() -> impl IntoView {
    let add = ServerAction::<AddHost>::new();
    let error = Signal::derive(move || add.value().get().and_then(Result::err));
    view! {
        <section class="section" aria-labelledby="add-host">
            <h2 id="add-host">"Add a host"</h2>
            <div class="panel host-add">
                <ol class="steps-in-words">
                    <li>
                        "On the machine that runs Tokdyno, as the user that runs it, make "
                        <code>"ssh NAME"</code>
                        " work without a question: key, known host, and whatever else belongs into "
                        <code>"~/.ssh/config"</code> "."
                    </li>
                    <li>
                        "Type that " <code>"NAME"</code>
                        " here. Blank means the machine that Tokdyno runs on."
                    </li>
                    <li>"Test the connection on the page that opens."</li>
                </ol>
                <ActionForm action=add attr:class="stack">
                    <p class="field">
                        <label for="host-destination">"SSH destination"</label>
                        <input
                            id="host-destination"
                            name="form[destination]"
                            type="text"
                            autocomplete="off"
                            autocapitalize="off"
                            spellcheck="false"
                            placeholder="gpu1 or root@gpu1"
                            aria-describedby="host-destination-help"
                        />
                        <span id="host-destination-help" class="field-help">
                            "As typed after ssh. Ports, keys and jump hosts belong into ~/.ssh/config."
                        </span>
                    </p>
                    <p class="field">
                        <label for="host-name">"Name"</label>
                        <input
                            id="host-name"
                            name="form[name]"
                            type="text"
                            autocomplete="off"
                            placeholder="the destination"
                        />
                    </p>
                    <p class="field">
                        <label for="host-notes">"Notes"</label>
                        <input id="host-notes" name="form[notes]" type="text" autocomplete="off"/>
                    </p>
                    <div>
                        <button
                            type="submit"
                            class="button button-primary"
                            prop:disabled=add.pending()
                        >
                            {move || if add.pending().get() { "Adding …" } else { "Add host" }}
                        </button>
                        <ErrorNote error=error/>
                    </div>
                </ActionForm>
            </div>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_named() {
        assert_eq!(gpus(None), "all GPUs");
        assert_eq!(gpus(Some(&[3])), "GPU 3");
        assert_eq!(gpus(Some(&[0, 1])), "GPUs 0, 1");
    }
}
