//! The few things a page asks of the browser. On the server each of them does
//! nothing: event handlers and effects, which call them, never run there.

use leptos::web_sys;
use tokdyno_domain::timestamp::Timestamp;

use crate::Surface;

/// Milliseconds since 1970, by the browser's clock. Only for *how long ago*.
#[must_use]
pub fn now_ms() -> f64 {
    #[cfg(feature = "hydrate")]
    {
        js_sys::Date::now()
    }
    #[cfg(not(feature = "hydrate"))]
    {
        0.0
    }
}

/// The moment by the browser's clock.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds since 1970 fit for 290 million years"
    )]
    Timestamp((now_ms() * 1000.0) as i64)
}

/// How many minutes the browser's clock is ahead of UTC just now.
#[must_use]
pub fn utc_offset_min() -> i32 {
    #[cfg(feature = "hydrate")]
    {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "clocks are at most 14 hours ahead"
        )]
        let behind = js_sys::Date::new_0().get_timezone_offset() as i32;
        -behind
    }
    #[cfg(not(feature = "hydrate"))]
    {
        0
    }
}

/// Scheme, host and port under which the page was opened, such as
/// `http://127.0.0.1:4000`: what a link for others begins with.
#[must_use]
pub fn origin() -> String {
    #[cfg(feature = "hydrate")]
    {
        leptos::prelude::window()
            .location()
            .origin()
            .unwrap_or_default()
    }
    #[cfg(feature = "ssr")]
    {
        request_origin().unwrap_or_default()
    }
    #[cfg(not(any(feature = "hydrate", feature = "ssr")))]
    {
        String::new()
    }
}

#[cfg(feature = "ssr")]
fn request_origin() -> Option<String> {
    let parts = leptos::prelude::use_context::<http::request::Parts>()?;
    let header = |name: &str| parts.headers.get(name)?.to_str().ok();
    let host = header("host")?;
    let scheme = match header("x-forwarded-proto") {
        Some("https") => "https",
        _ => "http",
    };
    Some(format!("{scheme}://{host}"))
}

/// Which part of the program this page belongs to. The server knows by its
/// listener and writes it on the document, where the browser finds it again.
#[must_use]
pub fn surface() -> Surface {
    #[cfg(feature = "hydrate")]
    {
        match root().and_then(|root| root.get_attribute("data-surface")) {
            Some(word) if word == "shared" => Surface::Shared,
            _ => Surface::Full,
        }
    }
    #[cfg(not(feature = "hydrate"))]
    {
        leptos::prelude::use_context::<Surface>().unwrap_or_default()
    }
}

/// The document's root element.
#[must_use]
pub fn root() -> Option<web_sys::Element> {
    leptos::prelude::document().document_element()
}

/// Puts a text on the clipboard; whether that was allowed.
pub async fn copy(text: &str) -> bool {
    #[cfg(feature = "hydrate")]
    {
        let clipboard = leptos::prelude::window().navigator().clipboard();
        wasm_bindgen_futures::JsFuture::from(clipboard.write_text(text))
            .await
            .is_ok()
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = text;
        std::future::ready(false).await
    }
}

/// The value kept in this browser under a key.
#[must_use]
pub fn stored(key: &str) -> Option<String> {
    #[cfg(feature = "hydrate")]
    {
        let storage = leptos::prelude::window().local_storage().ok().flatten()?;
        storage.get_item(key).ok().flatten()
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = key;
        None
    }
}

/// Keeps a value in this browser under a key, where the browser allows it.
pub fn store(key: &str, value: &str) {
    #[cfg(feature = "hydrate")]
    {
        if let Ok(Some(storage)) = leptos::prelude::window().local_storage() {
            // A full or forbidden storage costs a preference, nothing more.
            let _ = storage.set_item(key, value);
        }
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = (key, value);
    }
}

/// Opens a dialog in front of the page.
pub fn open_dialog(id: &str) {
    #[cfg(feature = "hydrate")]
    {
        if let Some(dialog) = dialog(id)
            && !dialog.open()
        {
            // Refused only while the dialog is not in the document.
            let _ = dialog.show_modal();
        }
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = id;
    }
}

/// Leads to an element, where it is there and can take the focus.
pub fn focus(id: &str) {
    use leptos::wasm_bindgen::JsCast;

    if let Some(element) = leptos::prelude::document()
        .get_element_by_id(id)
        .and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok())
    {
        // Refused only where the element cannot take it.
        let _ = element.focus();
    }
}

/// Closes a dialog.
pub fn close_dialog(id: &str) {
    #[cfg(feature = "hydrate")]
    {
        if let Some(dialog) = dialog(id) {
            dialog.close();
        }
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = id;
    }
}

#[cfg(feature = "hydrate")]
fn dialog(id: &str) -> Option<web_sys::HtmlDialogElement> {
    use wasm_bindgen::JsCast;
    leptos::prelude::document()
        .get_element_by_id(id)?
        .dyn_into()
        .ok()
}

/// Lets the browser save an address as a file of this name.
pub fn save_as(address: &str, name: &str) {
    #[cfg(feature = "hydrate")]
    {
        use wasm_bindgen::JsCast;
        let link = leptos::prelude::document()
            .create_element("a")
            .ok()
            .and_then(|link| link.dyn_into::<web_sys::HtmlAnchorElement>().ok());
        if let Some(link) = link {
            link.set_href(address);
            link.set_download(name);
            link.click();
        }
    }
    #[cfg(not(feature = "hydrate"))]
    {
        let _ = (address, name);
    }
}
