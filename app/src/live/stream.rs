//! The browser's side: an `EventSource`, opened and closed as needed.

use std::time::Duration;

use leptos::{leptos_dom::helpers::IntervalHandle, prelude::*};
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, closure::Closure};
use web_sys::{EventSource, MessageEvent};

use super::Link;

/// How often the page asks while there is no stream.
const POLL: Duration = Duration::from_secs(5);

/// An open stream. Dropping it closes it, and the closures it calls with it.
struct Stream {
    source: EventSource,
    _open: Closure<dyn FnMut()>,
    _error: Closure<dyn FnMut()>,
    _message: Closure<dyn FnMut(MessageEvent)>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.source.set_onopen(None);
        self.source.set_onerror(None);
        self.source.set_onmessage(None);
        self.source.close();
    }
}

impl Stream {
    /// Opens it; none where the browser refuses.
    fn open<T: DeserializeOwned>(
        address: &str,
        on_event: impl Fn(T) + 'static,
        on_tick: impl Fn() + 'static,
        link: ReadSignal<Link>,
        set_link: WriteSignal<Link>,
    ) -> Option<Self> {
        let source = EventSource::new(address).ok()?;
        let open = Closure::<dyn FnMut()>::new(move || {
            let was = link.get_untracked();
            set_link.set(Link::Open);
            if was == Link::Paused {
                on_tick();
            }
        });
        let error = Closure::<dyn FnMut()>::new(move || set_link.set(Link::Paused));
        let message = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            // What this page does not understand comes from a newer server; the next
            // refetch shows it anyway.
            if let Some(text) = message.data().as_string()
                && let Ok(event) = serde_json::from_str(&text)
            {
                on_event(event);
            }
        });
        source.set_onopen(Some(open.as_ref().unchecked_ref()));
        source.set_onerror(Some(error.as_ref().unchecked_ref()));
        source.set_onmessage(Some(message.as_ref().unchecked_ref()));
        Some(Self {
            source,
            _open: open,
            _error: error,
            _message: message,
        })
    }

    /// Has the browser given up (a refusal, not a broken line)?
    fn is_dead(&self) -> bool {
        self.source.ready_state() == EventSource::CLOSED
    }
}

/// See [`super::follow`]; `address` is the stream's.
pub(super) fn follow<T: DeserializeOwned + 'static>(
    address: String,
    wanted: Signal<bool>,
    on_event: impl Fn(T) + Clone + 'static,
    on_tick: impl Fn() + Clone + 'static,
    link: ReadSignal<Link>,
    set_link: WriteSignal<Link>,
) {
    let stream = StoredValue::new_local(None::<Stream>);
    let visible = RwSignal::new(true);
    let timer = StoredValue::new(None::<IntervalHandle>);

    let open = {
        let on_tick = on_tick.clone();
        move || {
            stream.set_value(Stream::open(
                &address,
                on_event.clone(),
                on_tick.clone(),
                link,
                set_link,
            ));
        }
    };

    Effect::new({
        let (open, on_tick) = (open.clone(), on_tick.clone());
        move |before: Option<bool>| {
            let now = wanted.get() && visible.get();
            if now == before.unwrap_or(false) {
                return now;
            }
            if now {
                open();
                // Shown again: catch up with what happened meanwhile.
                if before.is_some() {
                    on_tick();
                }
            } else {
                stream.set_value(None);
                set_link.set(Link::Waiting);
            }
            now
        }
    });

    // Both belong to the window, so they are taken away with the component.
    Effect::new(move |_| {
        visible.set(!document().hidden());
        let listener = window_event_listener_untyped("visibilitychange", move |_| {
            visible.set(!document().hidden());
        });
        on_cleanup(move || listener.remove());

        let (open, on_tick) = (open.clone(), on_tick.clone());
        let handle = set_interval_with_handle(
            move || {
                if !(wanted.get_untracked() && visible.get_untracked())
                    || link.get_untracked() == Link::Open
                {
                    return;
                }
                on_tick();
                if stream.with_value(|stream| stream.as_ref().is_none_or(Stream::is_dead)) {
                    open();
                }
            },
            POLL,
        );
        timer.set_value(handle.ok());
    });
    on_cleanup(move || {
        if let Some(handle) = timer.try_get_value().flatten() {
            handle.clear();
        }
        let _ = stream.try_update_value(|stream| *stream = None);
    });
}
