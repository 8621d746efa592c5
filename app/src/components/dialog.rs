//! Dialogs: native ones. `command` and `commandfor` open and close them without
//! scripts where the browser knows these attributes; the handlers do elsewhere.

use leptos::prelude::*;

use crate::browser;

/// A dialog in front of the page, closed until it is opened.
#[component]
pub fn Dialog(
    /// Its element id.
    #[prop(into)]
    id: String,
    /// What it is about.
    #[prop(into)]
    title: String,
    /// What it holds.
    children: Children,
) -> impl IntoView {
    let heading = format!("{id}-title");
    let label = heading.clone();
    view! {
        <dialog id=id class="dialog" aria-labelledby=label>
            <h2 id=heading>{title}</h2>
            {children()}
        </dialog>
    }
}

/// Opens a dialog.
#[component]
pub fn DialogButton(
    /// Element id of the dialog.
    #[prop(into)]
    dialog: String,
    /// Classes of the button.
    #[prop(optional, into)]
    class: Option<String>,
    /// What it says.
    children: Children,
) -> impl IntoView {
    let id = dialog.clone();
    view! {
        <button
            type="button"
            class=class.unwrap_or_else(|| "button".to_owned())
            command="show-modal"
            commandfor=dialog
            on:click=move |event| {
                // What the attributes do, the handler has done.
                event.prevent_default();
                browser::open_dialog(&id);
            }
        >
            {children()}
        </button>
    }
}

/// Closes a dialog.
#[component]
pub fn CloseButton(
    /// Element id of the dialog.
    #[prop(into)]
    dialog: String,
    /// What it says.
    children: Children,
) -> impl IntoView {
    let id = dialog.clone();
    view! {
        <button
            type="button"
            class="button"
            command="close"
            commandfor=dialog
            on:click=move |event| {
                event.prevent_default();
                browser::close_dialog(&id);
            }
        >
            {children()}
        </button>
    }
}

/// Asks before something is destroyed.
#[component]
pub fn ConfirmDialog(
    /// Its element id.
    #[prop(into)]
    id: String,
    /// The question.
    #[prop(into)]
    title: String,
    /// What the button says that does it.
    #[prop(into)]
    confirm: String,
    /// Does it.
    #[prop(into)]
    on_confirm: Callback<()>,
    /// What it means, in a sentence.
    children: Children,
) -> impl IntoView {
    let own = id.clone();
    view! {
        <Dialog id=id.clone() title=title>
            <div class="dialog-text">{children()}</div>
            <div class="dialog-buttons">
                <CloseButton dialog=id>"Cancel"</CloseButton>
                <button
                    type="button"
                    class="button button-danger"
                    on:click=move |_| {
                        browser::close_dialog(&own);
                        on_confirm.run(());
                    }
                >
                    {confirm}
                </button>
            </div>
        </Dialog>
    }
}
