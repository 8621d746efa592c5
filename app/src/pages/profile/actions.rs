//! Another name, a copy, the archive.

use leptos::{prelude::*, server_fn::ServerFn, task::spawn_local};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::{profile::MAX_PROFILE_NAME, views::profiles::ProfileCard};

use crate::{
    AppError, api, browser,
    components::{CloseButton, Dialog, DialogButton, ErrorNote},
};

const RENAME: &str = "rename-profile";
const DUPLICATE: &str = "duplicate-profile";

/// What is done with the name that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Rename,
    Duplicate,
}

/// The buttons.
#[component]
pub(super) fn Actions(
    /// The profile.
    card: ProfileCard,
    /// Fetches the page's data again.
    again: Callback<()>,
) -> impl IntoView {
    let profile = card.id;
    let archived = card.archived;
    let error = RwSignal::new(None::<AppError>);
    let archive = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        error.set(None);
        spawn_local(async move {
            match api::archive_profile(profile, !archived).await {
                Ok(()) => {
                    again.try_run(());
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    view! {
        <div class="cluster">
            <DialogButton dialog=RENAME class="button script-only">
                "Rename"
            </DialogButton>
            <DialogButton dialog=DUPLICATE class="button script-only">
                "Duplicate"
            </DialogButton>
            <form method="post" action=api::ArchiveProfile::url() on:submit=archive>
                <input type="hidden" name="profile" value=profile.to_string()/>
                <input type="hidden" name="archived" value=(!archived).to_string()/>
                <button type="submit" class="button">
                    {if archived { "Bring back" } else { "Archive" }}
                </button>
            </form>
            <ErrorNote error=error/>
        </div>
        <NameDialog
            id=RENAME
            title="Rename the profile"
            confirm="Rename"
            act=Act::Rename
            card=card.clone()
        />
        <NameDialog
            id=DUPLICATE
            title="Duplicate the profile"
            confirm="Duplicate"
            act=Act::Duplicate
            card=card
        />
    }
}

#[component]
fn NameDialog(
    id: &'static str,
    title: &'static str,
    confirm: &'static str,
    act: Act,
    card: ProfileCard,
) -> impl IntoView {
    let profile = card.id;
    let name = RwSignal::new(match act {
        Act::Rename => card.name,
        Act::Duplicate => format!("{}-copy", card.name),
    });
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let navigate = use_navigate();
    let go = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        error.set(None);
        let wanted = name.get_untracked().trim().to_owned();
        let navigate = navigate.clone();
        spawn_local(async move {
            let outcome = match act {
                Act::Rename => api::rename_profile(profile, wanted.clone()).await,
                Act::Duplicate => api::duplicate_profile(profile, wanted.clone())
                    .await
                    .map(|_| ()),
            };
            busy.try_set(false);
            match outcome {
                Ok(()) => {
                    browser::close_dialog(id);
                    navigate(&format!("/profiles/{wanted}"), NavigateOptions::default());
                }
                Err(why) => {
                    error.try_set(Some(why));
                }
            }
        });
    };
    let field = format!("{id}-name");
    view! {
        <Dialog id=id title=title>
            <form class="stack" on:submit=go>
                <p class="field">
                    <label for=field.clone()>"Name"</label>
                    <input
                        id=field
                        type="text"
                        required
                        autocomplete="off"
                        spellcheck="false"
                        maxlength=MAX_PROFILE_NAME.to_string()
                        prop:value=name
                        on:input=move |event| name.set(event_target_value(&event))
                    />
                </p>
                <ErrorNote error=error/>
                <div class="dialog-buttons">
                    <CloseButton dialog=id>"Cancel"</CloseButton>
                    <button type="submit" class="button button-primary" disabled=move || busy.get()>
                        {confirm}
                    </button>
                </div>
            </form>
        </Dialog>
    }
}
