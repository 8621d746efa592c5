//! Parameters, program, directory, time-out, notes.

use leptos::prelude::*;
use tokdyno_domain::engine::EngineKind;

use super::state::Editor;

/// What differs from use to use.
#[component]
pub(super) fn Parameters(editor: Editor) -> impl IntoView {
    view! {
        <fieldset class="panel stack">
            <legend>"Parameters"</legend>
            <p class="field-help">
                "They stand for " <code>"{MODEL}"</code> ", " <code>"{DRAFTER}"</code> ", "
                <code>"{TP}"</code> ", " <code>"{PORT}"</code> " and " <code>"{NAME}"</code>
                " in arguments, variables and activation."
            </p>
            <div class="measure-fields">
                {text(editor, "profile-model", "Model", "Path on the host, or name on a hub.", editor.model)}
                {text(
                    editor,
                    "profile-drafter",
                    "Drafter",
                    "Draft model of speculative decoding; blank for none.",
                    editor.drafter,
                )}
                {text(
                    editor,
                    "profile-tp",
                    "Tensor parallelism",
                    "Ranks, one to a GPU.",
                    editor.tensor_parallel,
                )}
                {text(editor, "profile-port", "Port", "On the host's loopback.", editor.port)}
                {text(
                    editor,
                    "profile-served",
                    "Served name",
                    "Blank serves it under the model's own name.",
                    editor.served_name,
                )}
            </div>
        </fieldset>
    }
}

/// Engine and program.
#[component]
pub(super) fn Basics(editor: Editor) -> impl IntoView {
    let engines = [EngineKind::Sglang, EngineKind::Vllm, EngineKind::Other];
    view! {
        <fieldset class="panel stack">
            <legend>"Program"</legend>
            <div class="measure-fields">
                <p class="field">
                    <label for="profile-engine">"Engine"</label>
                    <select
                        id="profile-engine"
                        prop:value=move || editor.engine.get().word()
                        on:change=move |event| {
                            if let Some(engine) = EngineKind::from_word(&event_target_value(&event)) {
                                editor.engine.set(engine);
                            }
                        }
                    >
                        {engines
                            .map(|engine| {
                                view! {
                                    <option
                                        value=engine.word()
                                        selected=editor.engine.get_untracked() == engine
                                    >
                                        {engine.name()}
                                    </option>
                                }
                            })}
                    </select>
                    <span class="field-help">"Says which flags are known, and how its log reads."</span>
                </p>
                {text(
                    editor,
                    "profile-program",
                    "Program",
                    "A path, or a name that is looked up on the host.",
                    editor.program,
                )}
                {text(
                    editor,
                    "profile-directory",
                    "Working directory",
                    "Blank for the home.",
                    editor.directory,
                )}
            </div>
        </fieldset>
    }
}

/// Time-out and notes.
#[component]
pub(super) fn Rest(editor: Editor) -> impl IntoView {
    view! {
        <fieldset class="panel stack">
            <legend>"Patience and notes"</legend>
            {text(
                editor,
                "profile-timeout",
                "Ready time-out, in seconds",
                "A large model on a cold disk takes tens of minutes.",
                editor.timeout,
            )}
            <p class="field">
                <label for="profile-notes">"Notes"</label>
                <textarea
                    id="profile-notes"
                    rows="3"
                    prop:value=editor.notes
                    on:input=move |event| editor.notes.set(event_target_value(&event))
                ></textarea>
                <span class="field-help">"For people; they change nothing that runs."</span>
            </p>
        </fieldset>
    }
}

/// A field for a line of text.
pub(super) fn text(
    editor: Editor,
    id: &'static str,
    label: &'static str,
    help: &'static str,
    value: RwSignal<String>,
) -> impl IntoView {
    let wrong = move || {
        editor
            .spec()
            .err()
            .filter(|wrong| wrong.field == id)
            .map(|wrong| wrong.sentence)
    };
    let help_id = format!("{id}-help");
    let error_id = format!("{id}-error");
    view! {
        <p class="field">
            <label for=id>{label}</label>
            <input
                id=id
                type="text"
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
                aria-describedby=format!("{help_id} {error_id}")
                aria-invalid=move || wrong().map(|_| "true")
                value=value.get_untracked()
                prop:value=value
                on:input=move |event| value.set(event_target_value(&event))
            />
            <span id=help_id class="field-help">
                {help}
            </span>
            <span id=error_id class="field-error" role="alert">
                {wrong}
            </span>
        </p>
    }
}
