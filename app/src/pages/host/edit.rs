//! Another name or destination for a host, and taking it out of the list.

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::{
    host::Reach,
    views::hosts::{HostForm, HostSummary},
};

use crate::{
    AppError, api, browser,
    components::{CloseButton, ConfirmDialog, Dialog, DialogButton, ErrorNote},
};

const EDIT: &str = "edit-host";
const REMOVE: &str = "remove-host";

/// The buttons, each with its dialog.
#[component]
pub(super) fn Edit(
    /// The host.
    host: HostSummary,
    /// Fetches the page's data again.
    again: Callback<()>,
) -> impl IntoView {
    let HostSummary {
        id,
        name,
        reach,
        notes,
        ..
    } = host;
    let error = RwSignal::new(None::<AppError>);
    let busy = RwSignal::new(false);
    let name = RwSignal::new(name);
    let destination = RwSignal::new(match reach {
        Reach::Local => String::new(),
        Reach::Ssh { destination } => destination,
    });
    let notes = RwSignal::new(notes);
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        busy.set(true);
        error.set(None);
        let form = HostForm {
            name: name.get_untracked(),
            destination: destination.get_untracked(),
            notes: notes.get_untracked(),
        };
        spawn_local(async move {
            let outcome = api::edit_host(id, form).await;
            busy.try_set(false);
            match outcome {
                Ok(()) => {
                    browser::close_dialog(EDIT);
                    again.try_run(());
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    let refused = RwSignal::new(None::<AppError>);
    let navigate = use_navigate();
    let remove = Callback::new(move |()| {
        let navigate = navigate.clone();
        spawn_local(async move {
            match api::remove_host(id).await {
                Ok(()) => navigate("/hosts", NavigateOptions::default()),
                Err(why) => {
                    refused.try_set(Some(why));
                }
            }
        });
    });
    view! {
        <DialogButton dialog=EDIT>"Edit"</DialogButton>
        <DialogButton dialog=REMOVE class="button button-danger script-only">"Remove"</DialogButton>
        <ErrorNote error=refused/>
        <Dialog id=EDIT title="Edit the host">
            <form method="post" action=api::EditHost::url() class="stack" on:submit=save>
                <input type="hidden" name="host" value=id.to_string()/>
                {field("edit-host-name", "form[name]", "Name", name)}
                {field(
                    "edit-host-destination",
                    "form[destination]",
                    "SSH destination; blank for the machine that Tokdyno runs on",
                    destination,
                )}
                {field("edit-host-notes", "form[notes]", "Notes", notes)}
                <ErrorNote error=error/>
                <div class="dialog-buttons">
                    <CloseButton dialog=EDIT>"Leave as it is"</CloseButton>
                    <button type="submit" class="button button-primary" disabled=move || busy.get()>
                        "Save"
                    </button>
                </div>
            </form>
        </Dialog>
        <ConfirmDialog id=REMOVE title="Remove this host?" confirm="Remove host" on_confirm=remove>
            <p>
                "It leaves the list and nothing can be launched on it any more. Its launches and runs stay. On the machine itself nothing changes."
            </p>
        </ConfirmDialog>
    }
}

fn field(
    id: &'static str,
    name: &'static str,
    label: &'static str,
    value: RwSignal<String>,
) -> impl IntoView {
    view! {
        <p class="field">
            <label for=id>{label}</label>
            <input
                id=id
                name=name
                type="text"
                autocomplete="off"
                spellcheck="false"
                value=value.get_untracked()
                prop:value=value
                on:input=move |event| value.set(event_target_value(&event))
            />
        </p>
    }
}
