//! Stopping a launch, and starting again what was stopped for it.

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::{launch::LaunchOrigin, text, views::servers::StopQuestion};

use super::data::LaunchData;
use crate::{
    AppError, api, browser,
    components::{CloseButton, Dialog, ErrorNote, OperatorNote, Skeleton},
};

/// Element id of the question before a launch is stopped.
const DIALOG: &str = "stop-launch";

/// The buttons, or why there are none.
#[component]
pub(super) fn Actions(data: LaunchData) -> impl IntoView {
    let may_operate = data.part(|view| view.may_operate);
    let over = data.summary(|summary| summary.state.is_over());
    let may_restore = data.part(|view| {
        view.summary.state.is_over()
            && view.summary.origin != LaunchOrigin::Launched
            && view.restored_by.is_none()
    });
    let again = data.view.with_untracked(|view| {
        format!(
            "/servers/new?profile={}&host={}",
            view.summary.profile.1, view.summary.host.0
        )
    });
    let again = StoredValue::new(again);
    view! {
        <section aria-labelledby="actions-title">
            <h2 id="actions-title" class="visually-hidden">"What can be done"</h2>
            <Show
                when=move || may_operate.get()
                fallback=|| view! { <OperatorNote what="Stopping, restoring and launching"/> }
            >
                <div class="cluster">
                    <Show when=move || !over.get()>
                        <Stop data/>
                    </Show>
                    <Show when=move || may_restore.get()>
                        <Restore data/>
                    </Show>
                    <Show when=move || over.get()>
                        <a class="button" href=again.get_value()>
                            "Launch again"
                        </a>
                    </Show>
                </div>
            </Show>
        </section>
    }
}

/// The button that stops it. A plain form until WASM has loaded, then it asks first.
#[component]
fn Stop(data: LaunchData) -> impl IntoView {
    let asked = data.summary(|summary| summary.stop_requested);
    let question = RwSignal::new(None::<Result<StopQuestion, AppError>>);
    let error = RwSignal::new(None::<AppError>);
    let busy = RwSignal::new(false);
    let ask = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        question.set(None);
        browser::open_dialog(DIALOG);
        spawn_local(async move {
            let answer = api::stop_question(data.id).await;
            question.try_set(Some(answer));
        });
    };
    let stop = move |_| {
        busy.set(true);
        error.set(None);
        spawn_local(async move {
            let outcome = api::stop_launch(data.id).await;
            busy.try_set(false);
            browser::close_dialog(DIALOG);
            match outcome {
                Ok(()) => data.refresh(),
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <form method="post" action=api::StopLaunch::url() on:submit=ask>
            <input type="hidden" name="launch" value=data.id.to_string()/>
            <button type="submit" class="button button-danger" disabled=move || asked.get()>
                {move || if asked.get() { "Stopping …" } else { "Stop" }}
            </button>
        </form>
        <Dialog id=DIALOG title="Stop this server?">
            <div class="dialog-text" aria-live="polite">
                {move || match question.get() {
                    None => view! { <Skeleton lines=2/> }.into_any(),
                    Some(Ok(question)) => answer(question).into_any(),
                    Some(Err(why)) => {
                        view! {
                            <p>{format!("Whether it is working cannot be told: {}", why.sentence)}</p>
                        }
                            .into_any()
                    }
                }}
            </div>
            <div class="dialog-buttons">
                <CloseButton dialog=DIALOG>"Let it run"</CloseButton>
                <button
                    type="button"
                    class="button button-danger"
                    disabled=move || busy.get() || question.with(Option::is_none)
                    on:click=stop
                >
                    "Stop it"
                </button>
            </div>
        </Dialog>
        <ErrorNote error=error/>
    }
}

fn answer(question: StopQuestion) -> impl IntoView {
    let works = match question.in_flight {
        Some(0) => "It is working on no request.".to_owned(),
        Some(number) => format!(
            "It is working on {} just now; whoever sent them gets no answer.",
            text::plural(number, "request", "requests")
        ),
        None => "Whether it is working on requests is not known.".to_owned(),
    };
    view! {
        <p>
            <strong>{works}</strong>
        </p>
        {question.note.map(|note| view! { <p class="muted">{note}</p> })}
        <p>{question.how}</p>
        <p>"Measurements of it are cancelled; what they finished is kept."</p>
    }
}

/// Starts a stopped adopted server again.
#[component]
fn Restore(data: LaunchData) -> impl IntoView {
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let navigate = use_navigate();
    let restore = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        error.set(None);
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::restore_launch(data.id).await {
                Ok(launch) => navigate(&format!("/servers/{launch}"), NavigateOptions::default()),
                Err(why) => {
                    busy.try_set(false);
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <form method="post" action=api::RestoreLaunch::url() on:submit=restore>
            <input type="hidden" name="launch" value=data.id.to_string()/>
            <button type="submit" class="button button-primary" disabled=move || busy.get()>
                {move || if busy.get() { "Restoring …" } else { "Restore" }}
            </button>
        </form>
        <ErrorNote error=error/>
    }
}
