//! Bringing in a result file: dropped anywhere on the page, or chosen.

use leptos::{ev, html::Input, prelude::*, task::spawn_local, web_sys};
use leptos_router::{NavigateOptions, hooks::use_navigate};

use super::{
    feedback::ErrorNote,
    icon::{Glyph, Icon},
};
use crate::AppError;

/// A file that somebody picked; there are none on the server.
#[cfg(feature = "hydrate")]
type Picked = web_sys::File;
#[cfg(not(feature = "hydrate"))]
type Picked = std::convert::Infallible;

/// A file input, and the whole page as a place to drop on. What was stored is
/// opened; what could not be read is said in a sentence.
#[component]
pub fn ImportDrop() -> impl IntoView {
    let hovering = RwSignal::new(false);
    let busy = RwSignal::new(false);
    let error = RwSignal::new(None::<AppError>);
    let input = NodeRef::<Input>::new();
    let navigate = use_navigate();
    let send = StoredValue::new(move |file: Picked| {
        let navigate = navigate.clone();
        busy.set(true);
        error.set(None);
        spawn_local(async move {
            let outcome = upload(file).await;
            let _ = busy.try_set(false);
            match outcome {
                Ok(address) => navigate(&address, NavigateOptions::default()),
                Err(sentence) => {
                    let _ = error.try_set(Some(sentence));
                }
            }
        });
    });
    let send = move |file| send.with_value(|send| send(file));

    Effect::new(move |_| {
        let over = window_event_listener(ev::dragover, move |event| {
            if carries_files(&event) {
                event.prevent_default();
                hovering.set(true);
            }
        });
        let leave = window_event_listener(ev::dragleave, move |event| {
            // Leaving the window, not merely an element in it.
            if event.related_target().is_none() {
                hovering.set(false);
            }
        });
        let dropped = window_event_listener(ev::drop, move |event| {
            if !carries_files(&event) {
                return;
            }
            event.prevent_default();
            hovering.set(false);
            if let Some(file) = dropped_file(&event) {
                send(file);
            }
        });
        on_cleanup(move || {
            over.remove();
            leave.remove();
            dropped.remove();
        });
    });
    let chosen = move |_| {
        let Some(element) = input.get_untracked() else {
            return;
        };
        if let Some(file) = chosen_file(&element) {
            send(file);
        }
        // The same file may be chosen again.
        element.set_value("");
    };

    view! {
        <div class="import script-only">
            <label class="import-label">
                <Icon glyph=Glyph::File/>
                <span>
                    {move || if busy.get() { "Reading the file …" } else { "Import a result file" }}
                </span>
                <input
                    class="visually-hidden"
                    type="file"
                    accept=".json,application/json"
                    node_ref=input
                    prop:disabled=busy
                    on:change=chosen
                />
            </label>
            <span class="muted import-hint">"or drop it on this page"</span>
            <ErrorNote error=error/>
        </div>
        <div class="drop-veil" class:is-over=hovering aria-hidden="true">
            <p>"Drop the result file to import it"</p>
        </div>
    }
}

#[cfg(feature = "hydrate")]
fn carries_files(event: &web_sys::DragEvent) -> bool {
    event
        .data_transfer()
        .is_some_and(|data| data.types().includes(&"Files".into(), 0))
}

#[cfg(feature = "hydrate")]
fn dropped_file(event: &web_sys::DragEvent) -> Option<Picked> {
    event.data_transfer()?.files()?.get(0)
}

#[cfg(feature = "hydrate")]
fn chosen_file(input: &web_sys::HtmlInputElement) -> Option<Picked> {
    input.files()?.get(0)
}

#[cfg(not(feature = "hydrate"))]
fn carries_files(_event: &web_sys::DragEvent) -> bool {
    false
}

#[cfg(not(feature = "hydrate"))]
fn dropped_file(_event: &web_sys::DragEvent) -> Option<Picked> {
    None
}

#[cfg(not(feature = "hydrate"))]
fn chosen_file(_input: &web_sys::HtmlInputElement) -> Option<Picked> {
    None
}

/// Sends a file to be stored; the address of the run that it became.
async fn upload(file: Picked) -> Result<String, AppError> {
    #[cfg(feature = "hydrate")]
    {
        send(&file).await
    }
    #[cfg(not(feature = "hydrate"))]
    match std::future::ready(file).await {}
}

#[cfg(feature = "hydrate")]
async fn send(file: &web_sys::File) -> Result<String, AppError> {
    use wasm_bindgen::JsCast;
    use wasm_bindgen_futures::JsFuture;

    let away = || {
        AppError::new(
            503,
            "The server does not answer. Check that Tokdyno is running, then drop the file again.",
        )
    };
    let unreadable = || {
        AppError::new(
            500,
            "The server's answer could not be read. Look at Runs whether the file is there.",
        )
    };
    let request = web_sys::RequestInit::new();
    request.set_method("POST");
    request.set_body(file);
    let reply = JsFuture::from(window().fetch_with_str_and_init("/api/v1/import", &request))
        .await
        .map_err(|_| away())?;
    let reply: web_sys::Response = reply.dyn_into().map_err(|_| unreadable())?;
    let text = JsFuture::from(reply.text().map_err(|_| unreadable())?)
        .await
        .map_err(|_| unreadable())?
        .as_string()
        .unwrap_or_default();
    if reply.ok() {
        let imported: Imported = serde_json::from_str(&text).map_err(|_| unreadable())?;
        Ok(format!("/runs/{}", imported.run))
    } else {
        let sentence = serde_json::from_str::<Refused>(&text).map_or_else(
            |_| "The file was refused without a reason. The server's log has it.".to_owned(),
            |refused| refused.error,
        );
        Err(AppError::new(reply.status(), sentence))
    }
}

/// What the import answers.
#[cfg(feature = "hydrate")]
#[derive(serde::Deserialize)]
struct Imported {
    run: tokdyno_domain::ids::RunId,
}

/// What it answers when it cannot.
#[cfg(feature = "hydrate")]
#[derive(serde::Deserialize)]
struct Refused {
    error: String,
}
