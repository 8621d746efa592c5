//! What a page shows and asks the server for again, so that a refresh moves no scroll
//! bar, closes no details and resets no zoom; and what it asks while one types.

use std::{future::Future, time::Duration};

use leptos::{leptos_dom::helpers::TimeoutHandle, prelude::*, task::spawn_local};

use crate::AppError;

/// How long a question stands still before it is asked.
const PAUSE: Duration = Duration::from_millis(400);

/// A view as the server told it last.
pub struct Refreshed<V: Send + Sync + 'static> {
    /// What the server told last.
    pub view: RwSignal<V>,
    /// Why the last refresh did not work.
    pub trouble: RwSignal<Option<AppError>>,
    busy: StoredValue<bool>,
    once_more: StoredValue<bool>,
}

// Derived, these would ask the same of the view.
impl<V: Send + Sync + 'static> Clone for Refreshed<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Send + Sync + 'static> Copy for Refreshed<V> {}

impl<V: Send + Sync + 'static> Refreshed<V> {
    /// Begins with what the server told at first.
    #[must_use]
    pub fn new(view: V) -> Self {
        Self {
            view: RwSignal::new(view),
            trouble: RwSignal::new(None),
            busy: StoredValue::new(false),
            once_more: StoredValue::new(false),
        }
    }

    /// A part of the view that changes only when its value does.
    pub fn part<T: PartialEq + Send + Sync + 'static>(
        self,
        of: impl Fn(&V) -> T + Send + Sync + 'static,
    ) -> Memo<T> {
        Memo::new(move |_| self.view.with(&of))
    }

    /// Asks the server again. Several requests in short order become one or two.
    /// `before` sees each answer before it is shown.
    pub fn refresh<A>(self, ask: impl Fn() -> A + 'static, before: impl Fn(&V) + 'static)
    where
        A: Future<Output = Result<V, AppError>> + 'static,
    {
        if self.busy.try_get_value().unwrap_or(true) {
            self.once_more.try_set_value(true);
            return;
        }
        self.busy.try_set_value(true);
        spawn_local(async move {
            loop {
                self.once_more.try_set_value(false);
                let answer = ask().await;
                // Whoever has left the page meanwhile has taken its signals away.
                if self.view.is_disposed() {
                    return;
                }
                match answer {
                    Ok(view) => {
                        before(&view);
                        self.view.try_set(view);
                        self.trouble.try_set(None);
                    }
                    Err(error) => {
                        self.trouble.try_set(Some(error));
                    }
                }
                if self.once_more.try_get_value() != Some(true) {
                    break;
                }
            }
            self.busy.try_set_value(false);
        });
    }
}

/// Does something again and again while `wanted` says so and the page is looked at, for
/// as long as the calling component lives. Idle in the server's own rendering.
pub fn every(pause: Duration, wanted: Signal<bool>, act: impl Fn() + Clone + 'static) {
    Effect::new(move |_| {
        if !wanted.get() {
            return;
        }
        let act = act.clone();
        let handle = set_interval_with_handle(
            move || {
                if !document().hidden() {
                    act();
                }
            },
            pause,
        );
        if let Ok(handle) = handle {
            on_cleanup(move || handle.clear());
        }
    });
}

/// What the server says to something that is being typed.
pub struct Asked<A: Send + Sync + 'static> {
    /// What it said last.
    pub answer: RwSignal<Option<A>>,
    /// It has not answered the newest question yet.
    pub waiting: RwSignal<bool>,
    /// Why the newest question has no answer.
    pub trouble: RwSignal<Option<AppError>>,
}

impl<A: Send + Sync + 'static> Clone for Asked<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Send + Sync + 'static> Copy for Asked<A> {}

impl<A: Send + Sync + 'static> Asked<A> {
    /// Asks whenever the question has changed and then stood still for a moment. While
    /// there is none, the last answer stays.
    pub fn when_still<Q, F>(
        question: Memo<Option<Q>>,
        ask: impl Fn(Q) -> F + Clone + 'static,
    ) -> Self
    where
        Q: Clone + PartialEq + Send + Sync + 'static,
        F: Future<Output = Result<A, AppError>> + 'static,
    {
        let asked = Self {
            answer: RwSignal::new(None),
            waiting: RwSignal::new(false),
            trouble: RwSignal::new(None),
        };
        let timer = StoredValue::new(None::<TimeoutHandle>);
        let forget = move || {
            if let Some(handle) = timer.try_update_value(Option::take).flatten() {
                handle.clear();
            }
        };
        Effect::new(move |_| {
            forget();
            asked.trouble.set(None);
            let Some(now) = question.get() else {
                asked.waiting.set(false);
                return;
            };
            asked.waiting.set(true);
            let ask = ask.clone();
            let send = move || {
                spawn_local(async move {
                    let answer = ask(now.clone()).await;
                    // An answer to an older question comes too late.
                    if question.try_get_untracked().flatten() == Some(now) {
                        asked.take(answer);
                    }
                });
            };
            timer.set_value(set_timeout_with_handle(send, PAUSE).ok());
        });
        on_cleanup(forget);
        asked
    }

    fn take(self, answer: Result<A, AppError>) {
        self.waiting.try_set(false);
        match answer {
            Ok(answer) => {
                self.answer.try_set(Some(answer));
            }
            Err(error) => {
                self.trouble.try_set(Some(error));
            }
        }
    }
}
