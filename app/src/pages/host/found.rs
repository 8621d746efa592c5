//! Engines that nobody launched from here, to be adopted, and what launches left
//! behind, to be cleaned up. Looking takes a connection to the host, so the page asks
//! when it is shown, and the first paint does not wait for it.

use leptos::{prelude::*, task::spawn_local};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::{
    host::{FoundEngine, Keeper},
    ids::HostId,
    text,
    views::{
        hosts::{Leftover, RunningNow},
        servers::AdoptForm,
    },
};

use crate::{
    AppError, api,
    components::{ConfirmDialog, DialogButton, EngineName, ErrorNote, Skeleton},
};

/// What runs there now.
#[component]
pub(super) fn Found(
    /// The host.
    host: HostId,
    /// Fetches the page's data again.
    again: Callback<()>,
) -> impl IntoView {
    let found = RwSignal::new(None::<RunningNow>);
    let error = RwSignal::new(None::<AppError>);
    let busy = RwSignal::new(false);
    let look = move || {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        error.set(None);
        spawn_local(async move {
            let outcome = api::running_on(host).await;
            busy.try_set(false);
            match outcome {
                Ok(now) => {
                    found.try_set(Some(now));
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    Effect::new(move |_| look());
    let looked = Callback::new(move |()| {
        again.run(());
        look();
    });
    view! {
        <section class="section host-found" aria-labelledby="found-title">
            <div class="section-head">
                <h2 id="found-title">"Engines that run there now"</h2>
                <button
                    type="button"
                    class="button button-small script-only"
                    disabled=move || busy.get()
                    on:click=move |_| look()
                >
                    {move || if busy.get() { "Looking …" } else { "Look again" }}
                </button>
            </div>
            <ErrorNote error=error/>
            {move || match found.get() {
                Some(now) => view! { <Now host=host now=now again=looked/> }.into_any(),
                None if error.with(Option::is_some) => ().into_any(),
                None => view! { <Skeleton lines=3/> }.into_any(),
            }}
        </section>
    }
}

#[component]
fn Now(host: HostId, now: RunningNow, again: Callback<()>) -> impl IntoView {
    let nothing = now.found.is_empty();
    let leftovers = (!now.leftovers.is_empty()).then(|| {
        view! {
            <h3>"Left behind by launches that are over"</h3>
            <ul class="found-list">
                {now.leftovers
                    .into_iter()
                    .map(|leftover| view! { <Left host=host leftover=leftover again=again/> })
                    .collect_view()}
            </ul>
        }
    });
    view! {
        {nothing
            .then(|| {
                view! {
                    <p class="muted">"No engine runs there that was not launched from here."</p>
                }
            })}
        <ul class="found-list">
            {now.found
                .into_iter()
                .map(|engine| view! { <Engine host=host engine=engine/> })
                .collect_view()}
        </ul>
        {leftovers}
    }
}

/// A found engine: what it is, its command, and *Adopt*.
#[component]
fn Engine(host: HostId, engine: FoundEngine) -> impl IntoView {
    let process = engine.process.clone();
    let pid = process.identity.pid;
    let name = RwSignal::new(String::new());
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let navigate = use_navigate();
    let wanted = engine.clone();
    let adopt = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        error.set(None);
        let form = AdoptForm {
            host,
            engine: wanted.clone(),
            profile_name: name.get_untracked(),
        };
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::adopt(form).await {
                Ok(launch) => navigate(&format!("/servers/{launch}"), NavigateOptions::default()),
                Err(why) => {
                    busy.try_set(false);
                    error.try_set(Some(why));
                }
            }
        });
    };
    let mut facts = vec![format!("process {pid}"), format!("user {}", process.user)];
    if let Some(port) = engine.port {
        facts.push(format!("port {port}"));
    }
    if process.gpu_mib > 0 {
        facts.push(format!(
            "{} MiB of GPU memory",
            text::count(process.gpu_mib)
        ));
    }
    if !process.gpus.is_empty() {
        facts.push(super::gpus(Some(&process.gpus)));
    }
    facts.push(keeper(&process.keeper));
    let environment = match process.environment {
        None => view! { <p class="muted">"Its environment cannot be read."</p> }.into_any(),
        Some(variables) if variables.is_empty() => {
            view! { <p class="muted">"It sets no variable that matters to an engine."</p> }
                .into_any()
        }
        Some(variables) => view! {
            <pre class="verbatim" tabindex="0">
                {variables
                    .into_iter()
                    .map(|(name, value)| format!("{name}={value}\n"))
                    .collect::<String>()}
            </pre>
        }
        .into_any(),
    };
    let withheld = (!process.withheld.is_empty()).then(|| {
        view! {
            <p class="muted">
                {format!(
                    "Left on the host, as they may be secrets or do not matter: {}.",
                    process.withheld.join(", "),
                )}
            </p>
        }
    });
    let field = format!("adopt-{pid}");
    view! {
        <li class="panel found">
            <p class="found-head">
                <strong>
                    {engine.model.clone().unwrap_or_else(|| "unnamed model".to_owned())}
                </strong>
                <EngineName engine=engine.engine/>
            </p>
            <p class="muted">{facts.join(" · ")}</p>
            <pre class="verbatim" tabindex="0">{process.command.join(" ")}</pre>
            <details class="fold">
                <summary>"Environment"</summary>
                {environment}
                {withheld}
            </details>
            <form class="adopt" on:submit=adopt>
                <p class="field">
                    <label for=field.clone()>"Profile to make of it"</label>
                    <input
                        id=field
                        type="text"
                        autocomplete="off"
                        spellcheck="false"
                        placeholder="a name is suggested"
                        prop:value=name
                        on:input=move |event| name.set(event_target_value(&event))
                    />
                </p>
                <button type="submit" class="button button-primary" disabled=move || busy.get()>
                    {move || if busy.get() { "Adopting …" } else { "Adopt" }}
                </button>
                <a class="button" href=format!("/profiles/new?host={host}&pid={pid}")>
                    "Only make a profile"
                </a>
            </form>
            <p class="field-help">
                "Adopting changes nothing on the host: it goes on running, is shown among the servers, and can be stopped and restored its own way."
            </p>
            <ErrorNote error=error/>
        </li>
    }
}

/// Who keeps a process, in words.
fn keeper(keeper: &Keeper) -> String {
    match keeper {
        Keeper::Process => "kept by nobody".to_owned(),
        Keeper::Unit { name, user: false } => format!("systemd unit {name}"),
        Keeper::Unit { name, user: true } => format!("systemd user unit {name}"),
        Keeper::Container { runtime, name, .. } => format!("{runtime} container {name}"),
    }
}

/// A leftover, and *Clean up*.
#[component]
fn Left(host: HostId, leftover: Leftover, again: Callback<()>) -> impl IntoView {
    let pid = leftover.identity.pid;
    let dialog = format!("clean-{pid}");
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let target = leftover.clone();
    let clean = Callback::new(move |()| {
        let target = target.clone();
        busy.set(true);
        error.set(None);
        spawn_local(async move {
            let outcome = api::clean_up(host, target).await;
            busy.try_set(false);
            match outcome {
                Ok(()) => {
                    again.try_run(());
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    });
    let of = match leftover.launch {
        Some(launch) => {
            view! { <a href=format!("/servers/{launch}")>{format!("launch {launch}")}</a> }
                .into_any()
        }
        None => "a launch that is not known here any more".into_any(),
    };
    view! {
        <li class="panel found">
            <p class="found-head">
                <strong>{format!("process {pid}")}</strong>
                <span>"of " {of}</span>
            </p>
            <p class="muted">
                {format!("{} MiB of GPU memory · {}", text::count(leftover.gpu_mib), leftover.folder)}
            </p>
            <pre class="verbatim" tabindex="0">{leftover.command}</pre>
            <div>
                <DialogButton dialog=dialog.clone() class="button button-danger">
                    {move || if busy.get() { "Cleaning up …" } else { "Clean up" }}
                </DialogButton>
            </div>
            <ErrorNote error=error/>
            <ConfirmDialog
                id=dialog
                title="End what was left behind?"
                confirm="Clean up"
                on_confirm=clean
            >
                <p>
                    "The process and its group are told to end, and are killed if they do not. Only what was started from here is touched."
                </p>
            </ConfirmDialog>
        </li>
    }
}
