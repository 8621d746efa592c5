//! The exact command, live, and what to know of it.

use leptos::prelude::*;
use tokdyno_domain::views::profiles::CautionOf;

use super::state::Editor;
use crate::components::{CautionList, CopyButton, ErrorNote, Glyph, Icon};

/// Command, cautions, and why it cannot be kept yet.
#[component]
pub(in crate::pages) fn Preview(
    /// What is typed.
    editor: Editor,
    /// The buttons below.
    children: Children,
) -> impl IntoView {
    let draft = editor.draft;
    let command = Memo::new(move |_| draft.with(|draft| draft.command.clone()));
    let error = Memo::new(move |_| {
        editor
            .spec()
            .err()
            .map(|wrong| wrong.sentence)
            .or_else(|| draft.with(|draft| draft.error.clone()))
    });
    let left_out = Memo::new(move |_| draft.with(|draft| draft.left_out.clone()));
    // Those of a row stand beside it.
    let general = Memo::new(move |_| {
        draft.with(|draft| {
            draft
                .cautions
                .iter()
                .filter(|caution| caution.of == CautionOf::Profile)
                .cloned()
                .collect::<Vec<_>>()
        })
    });
    view! {
        <section class="panel stack editor-preview" aria-labelledby="preview-title">
            <div class="section-head">
                <h2 id="preview-title">"What will run"</h2>
                <CopyButton text=command label="Copy"/>
            </div>
            <pre class="verbatim" tabindex="0" class:is-stale=editor.waiting>
                {move || command.get()}
            </pre>
            {move || view! { <CautionList cautions=general.get() arguments=Vec::new()/> }}
            {move || {
                let left_out = left_out.get();
                (!left_out.is_empty())
                    .then(|| {
                        view! {
                            <div class="caution">
                                <p>"In the pasted text, and not in the profile:"</p>
                                <ul>
                                    {left_out
                                        .into_iter()
                                        .map(|piece| view! { <li>{piece}</li> })
                                        .collect_view()}
                                </ul>
                            </div>
                        }
                    })
            }}
            <div role="alert" class="error-note-place">
                {move || {
                    error
                        .get()
                        .map(|sentence| {
                            view! {
                                <p class="error-note">
                                    <Icon glyph=Glyph::Warning/>
                                    <span>{sentence}</span>
                                </p>
                            }
                        })
                }}
            </div>
            <ErrorNote error=editor.trouble/>
            {children()}
        </section>
    }
}
