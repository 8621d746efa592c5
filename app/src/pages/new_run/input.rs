//! An input with its label, its help and its note; and a choice of several.

use std::borrow::Cow;

use leptos::{html, prelude::*};

use super::{
    field::{Field, Wrong},
    note::{Note, invalid, note_id},
};

/// What is typed into it: which keys a telephone shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pages) enum Kind {
    Text,
    Whole,
    Decimal,
}

pub(in crate::pages) fn field(
    field: Field,
    label: &'static str,
    help: impl Into<Cow<'static, str>>,
    value: RwSignal<String>,
    kind: Kind,
    wrong: Signal<Option<Wrong>>,
) -> impl IntoView {
    let help_id = format!("{}-help", field.id());
    let help: Cow<'static, str> = help.into();
    view! {
        <div class="field">
            <label for=field.id()>{label}</label>
            <input
                id=field.id()
                type="text"
                inputmode=match kind {
                    Kind::Text => None,
                    Kind::Whole => Some("numeric"),
                    Kind::Decimal => Some("decimal"),
                }
                autocomplete="off"
                aria-describedby=format!("{help_id} {}", note_id(field))
                aria-invalid=invalid(field, wrong)
                value=value.get_untracked()
                prop:value=value
                on:input=move |event| value.set(event_target_value(&event))
            />
            <span id=help_id class="muted">
                {help}
            </span>
            <Note field wrong/>
        </div>
    }
}

/// One of several, of which one holds.
pub(in crate::pages) fn choice<T: Copy + PartialEq + Send + Sync + 'static>(
    group: &'static str,
    id: &'static str,
    chosen: RwSignal<T>,
    this: T,
    label: impl IntoView + 'static,
) -> impl IntoView {
    view! {
        <p class="choice">
            <input
                id=id
                type="radio"
                name=group
                checked=chosen.get_untracked() == this
                prop:checked=move || chosen.get() == this
                on:change=move |_| chosen.set(this)
            />
            <label for=id>{label}</label>
        </p>
    }
}

/// Fields that are rarely needed, folded away until one of them is wrong.
#[component]
pub(in crate::pages) fn Fold(
    title: &'static str,
    /// Something in it is filled in already.
    open: bool,
    /// The fields within.
    fields: &'static [Field],
    wrong: Signal<Option<Wrong>>,
    children: Children,
) -> impl IntoView {
    let details = NodeRef::<html::Details>::new();
    let is_wrong = Memo::new(move |_| {
        wrong.with(|wrong| {
            wrong
                .as_ref()
                .is_some_and(|wrong| fields.contains(&wrong.field))
        })
    });
    // It is only ever opened: whoever closes or opens it by hand has it that way.
    Effect::new(move |_| {
        if is_wrong.get()
            && let Some(details) = details.get()
        {
            let _ = details.set_attribute("open", "");
        }
    });
    view! {
        <details class="measure-more" open=open node_ref=details>
            <summary>{title}</summary>
            {children()}
        </details>
    }
}
