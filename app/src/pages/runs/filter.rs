//! The form above the list. A plain GET form until WASM has loaded; then it is
//! applied as one types, and the address follows.

use std::time::Duration;

use leptos::{html, leptos_dom::helpers::TimeoutHandle, prelude::*};
use leptos_router::{NavigateOptions, hooks::use_navigate};
use tokdyno_domain::{run::RunState, source::Source, views::run::RunFilter};

use super::address;

/// How long after the last keystroke the list is asked for.
const PAUSE: Duration = Duration::from_millis(300);

/// Text, state, source.
#[component]
pub(super) fn FilterForm(
    /// What the address asks for.
    filter: Memo<RunFilter>,
) -> impl IntoView {
    let first = filter.get_untracked();
    let text = RwSignal::new(first.text.clone());
    let state = RwSignal::new(word(first.state.map(RunState::word)));
    let source = RwSignal::new(word(first.source.map(Source::word)));
    let field = NodeRef::<html::Input>::new();
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let navigate = StoredValue::new(use_navigate());

    let apply = move || {
        let wanted = RunFilter {
            text: text.get_untracked().trim().to_owned(),
            state: RunState::from_word(&state.get_untracked()),
            source: Source::from_word(&source.get_untracked()),
            page: 0,
        };
        let shown = filter.get_untracked();
        // The same choice on a later page stays there.
        if (RunFilter { page: 0, ..shown }) == wanted {
            return;
        }
        navigate.with_value(|navigate| {
            navigate(
                &address::write(&wanted),
                NavigateOptions {
                    replace: true,
                    scroll: false,
                    ..Default::default()
                },
            );
        });
    };
    let forget = move || {
        if let Some(handle) = waiting.try_update_value(Option::take).flatten() {
            handle.clear();
        }
    };
    let later = move || {
        forget();
        waiting.set_value(set_timeout_with_handle(apply, PAUSE).ok());
    };
    on_cleanup(forget);

    // Back and forward change the address: the fields follow, but never under the
    // fingers of somebody who types.
    Effect::new(move |_| {
        let shown = filter.get();
        let typing = field.get_untracked().is_some_and(|field| {
            document()
                .active_element()
                .is_some_and(|active| active.is_same_node(Some(&field)))
        });
        if !typing {
            text.set(shown.text);
        }
        state.set(word(shown.state.map(RunState::word)));
        source.set(word(shown.source.map(Source::word)));
    });

    view! {
        <form
            method="get"
            action="/runs"
            class="run-filter"
            role="search"
            aria-label="Filter the runs"
            on:submit=move |event| {
                event.prevent_default();
                forget();
                apply();
            }
        >
            <p class="field">
                <label for="filter-text">"Text"</label>
                <input
                    id="filter-text"
                    name="text"
                    type="search"
                    autocomplete="off"
                    placeholder="Configuration, model, endpoint, hardware"
                    node_ref=field
                    value=first.text
                    prop:value=text
                    on:input=move |event| {
                        text.set(event_target_value(&event));
                        later();
                    }
                />
            </p>
            <p class="field">
                <label for="filter-state">"State"</label>
                <select
                    id="filter-state"
                    name="state"
                    prop:value=state
                    on:change=move |event| {
                        state.set(event_target_value(&event));
                        apply();
                    }
                >
                    <option value="" selected=first.state.is_none()>
                        "any"
                    </option>
                    {RunState::ALL
                        .map(|state| {
                            view! {
                                <option value=state.word() selected=first.state == Some(state)>
                                    {state.word()}
                                </option>
                            }
                        })}
                </select>
            </p>
            <p class="field">
                <label for="filter-source">"Source"</label>
                <select
                    id="filter-source"
                    name="source"
                    prop:value=source
                    on:change=move |event| {
                        source.set(event_target_value(&event));
                        apply();
                    }
                >
                    <option value="" selected=first.source.is_none()>
                        "any"
                    </option>
                    {Source::ALL
                        .map(|source| {
                            view! {
                                <option value=source.word() selected=first.source == Some(source)>
                                    {source.word()}
                                </option>
                            }
                        })}
                </select>
            </p>
            <button type="submit" class="button until-live">
                "Show"
            </button>
        </form>
    }
}

fn word(word: Option<&'static str>) -> String {
    word.unwrap_or_default().to_owned()
}
