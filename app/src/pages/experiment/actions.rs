//! Pausing, resuming, cancelling, and planning the next one.

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use tokdyno_domain::experiment::ExperimentState;

use super::data::ExperimentData;
use crate::{
    AppError, api, browser,
    components::{ConfirmDialog, ErrorNote, OperatorNote},
};

/// Element id of the question before an experiment is ended.
const DIALOG: &str = "cancel-experiment";

/// What a button asks of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Pause,
    Resume,
    Cancel,
}

/// The buttons, or why there are none.
#[component]
pub(super) fn Actions(data: ExperimentData) -> impl IntoView {
    let may_operate = data.part(|view| view.may_operate);
    let state = data.state();
    let over = Memo::new(move |_| state.get().is_over());
    let another = data.summary(|summary| {
        let (base, host) = (summary.base.0, summary.host.0);
        format!("/experiments/new?base={base}&host={host}")
    });
    let error = RwSignal::new(None::<AppError>);
    let busy = RwSignal::new(false);
    let wish = Callback::new(move |wish: Wish| {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        error.set(None);
        spawn_local(async move {
            let outcome = match wish {
                Wish::Pause => api::pause_experiment(data.id).await,
                Wish::Resume => api::resume_experiment(data.id).await,
                Wish::Cancel => api::cancel_experiment(data.id).await,
            };
            busy.try_set(false);
            match outcome {
                Ok(()) => data.refresh(),
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    });
    view! {
        <section aria-labelledby="actions-title">
            <h2 id="actions-title" class="visually-hidden">"What can be done"</h2>
            <Show
                when=move || may_operate.get()
                fallback=|| view! { <OperatorNote what="Pausing, resuming and cancelling"/> }
            >
                <div class="cluster">
                    <Show when=move || {
                        matches!(state.get(), ExperimentState::Queued | ExperimentState::Running)
                    }>
                        <Button data label="Pause" action=api::PauseExperiment::url() busy
                            press=Callback::new(move |()| wish.run(Wish::Pause))/>
                    </Show>
                    <Show when=move || state.get() == ExperimentState::Paused>
                        <Button data label="Resume" action=api::ResumeExperiment::url() busy
                            press=Callback::new(move |()| wish.run(Wish::Resume))/>
                    </Show>
                    <Show when=move || !over.get()>
                        <Button data label="Cancel experiment"
                            action=api::CancelExperiment::url() busy
                            press=Callback::new(move |()| browser::open_dialog(DIALOG))/>
                    </Show>
                    <Show when=move || over.get()>
                        <a class="button" href=move || another.get()>
                            "Plan another"
                        </a>
                    </Show>
                </div>
            </Show>
            <ErrorNote error=error/>
            <ConfirmDialog
                id=DIALOG
                title="Cancel this experiment?"
                confirm="Cancel it"
                on_confirm=Callback::new(move |()| wish.run(Wish::Cancel))
            >
                <p>
                    "The launch under way is stopped and those to come are not run. What was measured is kept and judged as it stands, and what was stopped to make room is started again. It cannot be resumed: to go on later, pause it."
                </p>
            </ConfirmDialog>
        </section>
    }
}

/// A plain form until WASM has loaded.
#[component]
fn Button(
    data: ExperimentData,
    label: &'static str,
    /// Where the plain form is sent.
    action: &'static str,
    busy: RwSignal<bool>,
    press: Callback<()>,
) -> impl IntoView {
    let send = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        press.run(());
    };
    view! {
        <form method="post" action=action on:submit=send>
            <input type="hidden" name="experiment" value=data.id.to_string()/>
            <button type="submit" class="button" disabled=move || busy.get()>
                {label}
            </button>
        </form>
    }
}
