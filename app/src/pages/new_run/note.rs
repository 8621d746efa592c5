//! The sentence beside a field that is wrong.

use leptos::prelude::*;

use super::field::{Field, Wrong};

/// Its place is always there, so that screen readers notice when something enters it.
#[component]
pub(in crate::pages) fn Note(
    /// Which field.
    field: Field,
    /// What is wrong, if anything.
    wrong: Signal<Option<Wrong>>,
) -> impl IntoView {
    let sentence = move || {
        wrong.with(|wrong| {
            wrong
                .as_ref()
                .filter(|wrong| wrong.field == field)
                .map(|wrong| wrong.sentence.clone())
        })
    };
    view! {
        <span id=note_id(field) class="field-error" role="alert">
            {sentence}
        </span>
    }
}

/// Element id of a field's note.
pub(in crate::pages) fn note_id(field: Field) -> String {
    format!("{}-error", field.id())
}

/// `true` for the field that is wrong: its `aria-invalid`.
pub(in crate::pages) fn invalid(
    field: Field,
    wrong: Signal<Option<Wrong>>,
) -> impl Fn() -> Option<&'static str> {
    move || {
        wrong
            .with(|wrong| wrong.as_ref().is_some_and(|wrong| wrong.field == field))
            .then_some("true")
    }
}
