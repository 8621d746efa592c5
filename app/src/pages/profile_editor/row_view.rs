//! Rows of arguments and of variables. Every field is one word, exactly as the program
//! gets it: no quoting, and blanks stay.

use leptos::{ev::KeyboardEvent, prelude::*};
use tokdyno_domain::views::profiles::{Caution, CautionOf, Known};

use super::{
    rows::{Row, Way},
    state::{Editor, focus_soon, move_row, word_id},
};
use crate::components::{Badge, CautionBadge, Glyph, Icon};

/// Arguments: a flag with its values to a row.
#[component]
pub(super) fn ArgumentRows(editor: Editor) -> impl IntoView {
    let rows = editor.arguments;
    view! {
        <fieldset class="panel stack">
            <legend>"Arguments"</legend>
            <p class="field-help">
                "Each field is one word, taken as it stands: no quotes are needed. Enter adds a row, Alt with the arrow keys moves one, Shift with Enter breaks a line."
            </p>
            <ol class="edit-rows">
                <For each=move || rows.get() key=|row| row.id let:row>
                    <ArgumentRow editor id=row.id/>
                </For>
            </ol>
            <div>
                <button
                    type="button"
                    class="button button-small"
                    on:click=move |_| editor.add(rows, None, vec![String::new()])
                >
                    <Icon glyph=Glyph::Plus/>
                    "Add an argument"
                </button>
            </div>
        </fieldset>
    }
}

/// Variables: name and value to a row.
#[component]
pub(super) fn VariableRows(editor: Editor) -> impl IntoView {
    let rows = editor.variables;
    view! {
        <fieldset class="panel stack">
            <legend>"Variables"</legend>
            <p class="field-help">"Laid over the host's environment. Secrets do not belong here: profiles can be read by everybody."</p>
            <ol class="edit-rows">
                <For each=move || rows.get() key=|row| row.id let:row>
                    <VariableRow editor id=row.id/>
                </For>
            </ol>
            <div>
                <button
                    type="button"
                    class="button button-small"
                    on:click=move |_| editor.add(rows, None, vec![String::new(), String::new()])
                >
                    <Icon glyph=Glyph::Plus/>
                    "Add a variable"
                </button>
            </div>
        </fieldset>
    }
}

#[component]
fn ArgumentRow(editor: Editor, id: u32) -> impl IntoView {
    let rows = editor.arguments;
    let count = Memo::new(move |_| with_row(rows, id, |row| row.words.len()).unwrap_or_default());
    let first = Memo::new(move |_| with_row(rows, id, |row| row.words.first().cloned()).flatten());
    let known = Memo::new(move |_| {
        let flag = with_row(rows, id, |row| row.flag().map(str::to_owned)).flatten()?;
        // Not the engine's, but Python's own: there is nothing to be said of it.
        if flag == "-m" {
            return None;
        }
        Some(look_up(editor, &flag).unwrap_or_else(|| blank(&flag)))
    });
    let cautions = Memo::new(move |_| {
        let (Some(from), count) = (editor.first_word(id), count.get()) else {
            return Vec::new();
        };
        editor.draft.with(|draft| {
            draft
                .cautions
                .iter()
                .filter(|caution| match caution.of {
                    CautionOf::Argument { index } => {
                        (from..from + count).contains(&(index as usize))
                    }
                    _ => false,
                })
                .cloned()
                .collect::<Vec<_>>()
        })
    });
    let words = Memo::new(move |_| (0..count.get()).collect::<Vec<_>>());
    view! {
        <li class="edit-row">
            <div class="edit-words">
                <For each=move || words.get() key=|place| *place let:place>
                    <Word
                        editor
                        rows
                        id
                        place
                        label=if place == 0 { "Flag or word" } else { "Value" }
                    />
                </For>
                <button
                    type="button"
                    class="button button-small button-quiet"
                    title="Add a value to this flag"
                    on:click=move |_| {
                        update_row(rows, id, |row| row.words.push(String::new()));
                        focus_soon(word_id(id, count.get_untracked().saturating_sub(1)));
                    }
                >
                    <Icon glyph=Glyph::Plus/>
                    "value"
                </button>
            </div>
            <RowButtons rows id name=first.into()/>
            <Beside known cautions/>
        </li>
    }
}

#[component]
fn VariableRow(editor: Editor, id: u32) -> impl IntoView {
    let rows = editor.variables;
    let name = Memo::new(move |_| with_row(rows, id, |row| row.words.first().cloned()).flatten());
    let known = Memo::new(move |_| {
        let name = name.get().filter(|name| !name.is_empty())?;
        Some(look_up(editor, &name).unwrap_or_else(|| blank(&name)))
    });
    let cautions = Memo::new(move |_| {
        let name = name.get();
        editor.draft.with(|draft| {
            draft
                .cautions
                .iter()
                .filter(|caution| match &caution.of {
                    CautionOf::Variable { name: about } => name.as_ref() == Some(about),
                    _ => false,
                })
                .cloned()
                .collect::<Vec<_>>()
        })
    });
    view! {
        <li class="edit-row">
            <div class="edit-words">
                <Word editor rows id place=0 label="Name of the variable"/>
                <span class="edit-equals" aria-hidden="true">
                    "="
                </span>
                <Word editor rows id place=1 label="Its value"/>
            </div>
            <RowButtons rows id name=name.into()/>
            <Beside known cautions/>
        </li>
    }
}

/// A field for one word.
#[component]
fn Word(
    editor: Editor,
    rows: RwSignal<Vec<Row>>,
    id: u32,
    place: usize,
    label: &'static str,
) -> impl IntoView {
    let text = move || {
        with_row(rows, id, |row| row.words.get(place).cloned())
            .flatten()
            .unwrap_or_default()
    };
    let is_variable = rows == editor.variables;
    let keys = move |event: KeyboardEvent| match event.key().as_str() {
        "Enter" if !event.shift_key() => {
            event.prevent_default();
            let words = if is_variable { 2 } else { 1 };
            editor.add(rows, Some(id), vec![String::new(); words]);
        }
        "ArrowUp" if event.alt_key() => {
            event.prevent_default();
            move_row(rows, id, Way::Up, word_id(id, place));
        }
        "ArrowDown" if event.alt_key() => {
            event.prevent_default();
            move_row(rows, id, Way::Down, word_id(id, place));
        }
        // An emptied value goes away with one more stroke.
        "Backspace" if !is_variable && place > 0 && text().is_empty() => {
            event.prevent_default();
            update_row(rows, id, |row| {
                if place < row.words.len() {
                    row.words.remove(place);
                }
            });
            focus_soon(word_id(id, place - 1));
        }
        _ => {}
    };
    view! {
        <textarea
            id=word_id(id, place)
            class="word mono"
            class:word-first=move || place == 0
            rows="1"
            aria-label=label
            autocomplete="off"
            autocapitalize="off"
            spellcheck="false"
            prop:value=text
            on:input=move |event| {
                let typed = event_target_value(&event);
                update_row(
                    rows,
                    id,
                    |row| {
                        if let Some(word) = row.words.get_mut(place) {
                            *word = typed;
                        }
                    },
                );
            }
            on:keydown=keys
        ></textarea>
    }
}

/// Up, down, away.
#[component]
fn RowButtons(rows: RwSignal<Vec<Row>>, id: u32, name: Signal<Option<String>>) -> impl IntoView {
    let called = move || {
        name.get()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "the empty row".to_owned())
    };
    let mover = move |way: Way, glyph: Glyph, word: &'static str| {
        let own = format!("move-{word}-{id}");
        let focus = own.clone();
        view! {
            <button
                type="button"
                id=own
                class="icon-button"
                title=format!("Move {word}")
                aria-label=move || format!("Move {} {word}", called())
                on:click=move |_| move_row(rows, id, way, focus.clone())
            >
                <Icon glyph=glyph/>
            </button>
        }
    };
    view! {
        <div class="edit-buttons">
            {mover(Way::Up, Glyph::Up, "up")}
            {mover(Way::Down, Glyph::Down, "down")}
            <button
                type="button"
                class="icon-button"
                title="Remove"
                aria-label=move || format!("Remove {}", called())
                on:click=move |_| rows.update(|rows| rows.retain(|row| row.id != id))
            >
                <Icon glyph=Glyph::Cross/>
            </button>
        </div>
    }
}

/// What is known of it, and what to beware of.
#[component]
fn Beside(known: Memo<Option<Known>>, cautions: Memo<Vec<Caution>>) -> impl IntoView {
    view! {
        <div class="edit-beside">
            {move || {
                known
                    .get()
                    .map(|known| match known.meaning {
                        Some(meaning) => {
                            let more = [
                                known.values.map(|values| format!("Values: {values}.")),
                                known.default.map(|usual| format!("Left out: {usual}.")),
                            ];
                            view! {
                                <p class="muted">
                                    {meaning} " "
                                    {more.into_iter().flatten().collect::<Vec<_>>().join(" ")}
                                </p>
                            }
                                .into_any()
                        }
                        None => {
                            view! {
                                <Badge
                                    glyph=Glyph::Question
                                    text="not known here"
                                    title="It is passed on as it is; nothing is known of it here."
                                />
                            }
                                .into_any()
                        }
                    })
            }}
            {move || {
                cautions
                    .get()
                    .into_iter()
                    .map(|caution| {
                        let text = caution.text.clone();
                        view! {
                            <p class="edit-caution">
                                <CautionBadge caution=caution/>
                                " "
                                {text}
                            </p>
                        }
                    })
                    .collect_view()
            }}
        </div>
    }
}

fn with_row<T>(rows: RwSignal<Vec<Row>>, id: u32, of: impl FnOnce(&Row) -> T) -> Option<T> {
    rows.with(|rows| rows.iter().find(|row| row.id == id).map(of))
}

fn update_row(rows: RwSignal<Vec<Row>>, id: u32, change: impl FnOnce(&mut Row)) {
    rows.update(|rows| {
        if let Some(row) = rows.iter_mut().find(|row| row.id == id) {
            change(row);
        }
    });
}

fn look_up(editor: Editor, name: &str) -> Option<Known> {
    editor
        .draft
        .with(|draft| draft.known.iter().find(|known| known.name == name).cloned())
}

/// Nothing is known of a name.
fn blank(name: &str) -> Known {
    Known {
        name: name.to_owned(),
        meaning: None,
        values: None,
        default: None,
    }
}
