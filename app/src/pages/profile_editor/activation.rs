//! What is prepared before the program starts.

use leptos::prelude::*;

use super::{
    fields::text,
    state::{Editor, Kind},
};

/// The choice, and the fields of what is chosen.
#[component]
pub(super) fn ActivationFields(editor: Editor) -> impl IntoView {
    let choice = move |kind: Kind, id: &'static str, label: &'static str| {
        view! {
            <p class="choice">
                <input
                    id=id
                    type="radio"
                    name="activation"
                    checked=editor.kind.get_untracked() == kind
                    prop:checked=move || editor.kind.get() == kind
                    on:change=move |_| editor.kind.set(kind)
                />
                <label for=id>{label}</label>
            </p>
        }
    };
    view! {
        <fieldset class="panel stack">
            <legend>"Activation"</legend>
            <div class="activation-kinds">
                {choice(Kind::None, "activation-none", "None")}
                {choice(Kind::VirtualEnvironment, "activation-venv", "Virtual environment")}
                {choice(Kind::Container, "activation-container", "Container")}
                {choice(Kind::Script, "activation-script", "Script")}
            </div>
            {move || match editor.kind.get() {
                Kind::None => {
                    view! { <p class="field-help">"The program is started as it is."</p> }.into_any()
                }
                Kind::VirtualEnvironment => {
                    text(
                            editor,
                            "profile-venv",
                            "Folder of the virtual environment",
                            "Its programs come first: python3 becomes FOLDER/bin/python3.",
                            editor.environment_path,
                        )
                        .into_any()
                }
                Kind::Container => view! { <ContainerFields editor/> }.into_any(),
                Kind::Script => {
                    view! {
                        <p class="field">
                            <label for="profile-script">"Lines that bash reads before it becomes the program"</label>
                            <textarea
                                id="profile-script"
                                class="mono"
                                rows="4"
                                spellcheck="false"
                                prop:value=editor.script
                                on:input=move |event| editor.script.set(event_target_value(&event))
                            ></textarea>
                            <span class="field-help">
                                "Such as module load cuda. They run on the host, exactly as they stand here."
                            </span>
                        </p>
                    }
                        .into_any()
                }
            }}
        </fieldset>
    }
}

#[component]
fn ContainerFields(editor: Editor) -> impl IntoView {
    view! {
        <div class="measure-fields">
            <p class="field">
                <label for="profile-runtime">"Runtime"</label>
                <select
                    id="profile-runtime"
                    prop:value=editor.runtime
                    on:change=move |event| editor.runtime.set(event_target_value(&event))
                >
                    <option value="docker" selected=editor.runtime.get_untracked() == "docker">
                        "docker"
                    </option>
                    <option value="podman" selected=editor.runtime.get_untracked() == "podman">
                        "podman"
                    </option>
                </select>
            </p>
            {text(
                editor,
                "profile-image",
                "Image",
                "With its tag, so that the revision stays the same.",
                editor.image,
            )}
        </div>
        <p class="field">
            <label for="profile-container-arguments">"Arguments of run, a word on each line"</label>
            <textarea
                id="profile-container-arguments"
                class="mono"
                rows="4"
                spellcheck="false"
                placeholder="--gpus\nall\n--ipc=host"
                prop:value=editor.container_arguments
                on:input=move |event| editor.container_arguments.set(event_target_value(&event))
            ></textarea>
            <span class="field-help">
                "They stand before the image. Variables of the profile are handed over by name."
            </span>
        </p>
    }
}
