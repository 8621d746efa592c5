//! The editor of a profile: a row for each argument and variable, in free order, with
//! what is known of it beside it, and the command as it will run.
//!
//! It lives in the browser: without WASM nothing can be typed into it.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod activation;
mod fields;
mod preview;
mod row_view;
mod rows;
mod state;

use leptos::prelude::*;

use self::{
    activation::ActivationFields,
    fields::{Basics, Parameters, Rest},
    row_view::{ArgumentRows, VariableRows},
};
pub(super) use self::{preview::Preview, state::Editor};

/// All fields, the parameters first.
#[component]
pub(super) fn EditorFields(
    /// What is typed.
    editor: Editor,
) -> impl IntoView {
    // Nothing typed before WASM is there could be lost if nothing can be typed.
    let ready = RwSignal::new(false);
    Effect::new(move |_| ready.set(true));
    view! {
        <noscript>
            <div class="banner banner-wait">
                <p>
                    "The editor needs JavaScript and WebAssembly, which are off in this browser. On the command line: "
                    <code>"tokdyno profiles paste --name NAME FILE"</code> "."
                </p>
            </div>
        </noscript>
        <fieldset class="editor stack" disabled=move || !ready.get()>
            <Parameters editor/>
            <Basics editor/>
            <ArgumentRows editor/>
            <VariableRows editor/>
            <ActivationFields editor/>
            <Rest editor/>
        </fieldset>
    }
}
