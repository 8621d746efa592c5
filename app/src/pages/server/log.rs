//! The log: its end at once, then followed live. It can be paused, read further back,
//! searched and downloaded; new lines never move what is being read.

use std::time::Duration;

use leptos::{html, leptos_dom::helpers::TimeoutHandle, prelude::*, task::spawn_local};
use tokdyno_domain::{launch::LaunchOrigin, text, views::servers::LogPage};

use super::data::LaunchData;
use crate::{
    AppError, api,
    components::{ErrorNote, Glyph, Icon},
};

/// Bytes of the end that the first paint shows.
pub(super) const TAIL: u64 = 32 * 1024;
/// Bytes fetched at once.
const PIECE: u64 = 64 * 1024;
/// Bytes kept in the page; the file has all.
const MOST: u64 = 1024 * 1024;
/// How long after the last keystroke is searched.
const PAUSE: Duration = Duration::from_millis(350);
/// Bytes shown before a line that was found.
const BEFORE: u64 = 2 * 1024;

/// A piece of the log as it stands in the page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    start: u64,
    next: u64,
    text: String,
}

impl From<LogPage> for Piece {
    fn from(page: LogPage) -> Self {
        Self {
            start: page.start,
            next: page.next,
            text: page.text,
        }
    }
}

/// What the section knows.
#[derive(Clone, Copy)]
struct LogData {
    data: LaunchData,
    pieces: RwSignal<Vec<Piece>>,
    paused: RwSignal<bool>,
    trouble: RwSignal<Option<AppError>>,
    busy: StoredValue<bool>,
    place: NodeRef<html::Pre>,
}

/// The section for who may not launch.
#[component]
pub(super) fn Withheld() -> impl IntoView {
    view! {
        <section class="log" aria-labelledby="log-title">
            <div class="section-head">
                <h2 id="log-title">"Log"</h2>
            </div>
            <p class="muted">
                "Engines may write keys into their logs, so the log is shown to operators alone. Sign in with the operator's password to read it."
            </p>
        </section>
    }
}

/// The section.
#[component]
pub(super) fn Log(
    /// The launch.
    data: LaunchData,
    /// The end of the log, as far as it could be read.
    first: Option<LogPage>,
) -> impl IntoView {
    let log = LogData {
        data,
        pieces: RwSignal::new(first.map(Piece::from).into_iter().collect()),
        paused: RwSignal::new(false),
        trouble: RwSignal::new(None),
        busy: StoredValue::new(false),
        place: NodeRef::new(),
    };
    Effect::new(move |before: Option<()>| {
        if before.is_none() {
            log.to_the_end();
        }
        data.log_size.track();
        if !log.paused.get() {
            log.catch_up();
        }
    });
    let size = data.log_size;
    let adopted = data
        .view
        .with_untracked(|view| view.summary.origin == LaunchOrigin::Adopted);
    let nothing = if adopted {
        "It was not started from here: its log is where it has always been."
    } else {
        "Nothing has been written yet."
    };
    let behind = move || {
        let shown = log
            .pieces
            .with(|pieces| pieces.last().map_or(0, |piece| piece.next));
        size.get().saturating_sub(shown)
    };
    let first_byte = Memo::new(move |_| {
        log.pieces
            .with(|pieces| pieces.first().map(|piece| piece.start))
    });
    let earlier = Memo::new(move |_| first_byte.get().is_some_and(|start| start > 0));
    view! {
        <section class="log" aria-labelledby="log-title">
            <div class="section-head">
                <h2 id="log-title">"Log"</h2>
                <p class="cluster">
                    <button
                        type="button"
                        class="button button-small script-only"
                        aria-pressed=move || log.paused.get().to_string()
                        on:click=move |_| {
                            if log.paused.get_untracked() {
                                log.follow_again();
                            } else {
                                log.paused.set(true);
                            }
                        }
                    >
                        {move || if log.paused.get() { "Follow" } else { "Pause" }}
                    </button>
                    <a
                        class="button button-small"
                        href=format!("/servers/{}/log", data.id)
                        download
                        rel="external"
                    >
                        "Download"
                    </a>
                </p>
            </div>
            <Search log/>
            <p class="muted log-state" role="status">
                {move || {
                    let kept = bytes(size.get());
                    match (log.paused.get(), behind()) {
                        (true, 0) => format!("{kept}. Paused."),
                        (true, more) => format!("{kept}. Paused; {} not shown.", bytes(more)),
                        (false, _) => format!("{kept}."),
                    }
                }}
            </p>
            <Show when=move || earlier.get()>
                <p>
                    <button
                        type="button"
                        class="button button-small script-only"
                        on:click=move |_| log.earlier()
                    >
                        <Icon glyph=Glyph::Up/>
                        "Earlier lines"
                    </button>
                </p>
            </Show>
            <pre class="verbatim log-text" tabindex="0" role="log" aria-live="off" aria-label="Log" node_ref=log.place>
                <For
                    each=move || log.pieces.get()
                    key=|piece| (piece.start, piece.next)
                    let:piece
                >
                    <span>{piece.text}</span>
                </For>
            </pre>
            <Show when=move || size.get() == 0>
                <p class="muted">{nothing}</p>
            </Show>
            <ErrorNote error=log.trouble/>
        </section>
    }
}

/// A field, and the lines that hold what is typed.
#[component]
fn Search(log: LogData) -> impl IntoView {
    let typed = RwSignal::new(String::new());
    let found = RwSignal::new(None::<Vec<(u64, String)>>);
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let id = log.data.id;
    let look = move || {
        let wanted = typed.get_untracked();
        if wanted.trim().is_empty() {
            found.set(None);
            return;
        }
        spawn_local(async move {
            match api::launch_log(id, 0, 1, wanted.clone()).await {
                // Something else was typed meanwhile.
                _ if typed.try_get_untracked() != Some(wanted) => {}
                Ok(page) => {
                    found.try_set(Some(page.found));
                    log.trouble.try_set(None);
                }
                Err(error) => {
                    log.trouble.try_set(Some(error));
                }
            }
        });
    };
    let forget = move || {
        if let Some(handle) = waiting.try_update_value(Option::take).flatten() {
            handle.clear();
        }
    };
    on_cleanup(forget);
    view! {
        <div class="log-search script-only" role="search">
            <label class="visually-hidden" for="log-search">"Search the log"</label>
            <input
                id="log-search"
                type="search"
                autocomplete="off"
                spellcheck="false"
                placeholder="Search the whole log"
                prop:value=typed
                on:input=move |event| {
                    typed.set(event_target_value(&event));
                    forget();
                    waiting.set_value(set_timeout_with_handle(look, PAUSE).ok());
                }
            />
            <p class="muted" role="status">
                {move || {
                    found
                        .with(|found| {
                            found
                                .as_ref()
                                .map(|found| match found.len() {
                                    0 => "No line holds it.".to_owned(),
                                    number => {
                                        format!(
                                            "{}; choose one to read around it.",
                                            text::plural(number as u64, "line", "lines"),
                                        )
                                    }
                                })
                        })
                }}
            </p>
            {move || {
                found
                    .get()
                    .filter(|found| !found.is_empty())
                    .map(|found| {
                        view! {
                            <ul class="log-found">
                                {found
                                    .into_iter()
                                    .map(|(at, line)| {
                                        view! {
                                            <li>
                                                <button type="button" on:click=move |_| log.jump(at)>
                                                    {line}
                                                </button>
                                            </li>
                                        }
                                    })
                                    .collect_view()}
                            </ul>
                        }
                    })
            }}
        </div>
    }
}

impl LogData {
    /// Fetches what was written since, piece by piece. Where that is more than the page
    /// keeps, it goes on at the end.
    fn catch_up(self) {
        let known = self.data.log_size.get_untracked();
        let shown = self.shown();
        if known <= shown || self.busy.try_get_value().unwrap_or(true) {
            return;
        }
        self.busy.set_value(true);
        spawn_local(async move {
            while let (Some(size), Some(false)) = (
                self.data.log_size.try_get_untracked(),
                self.paused.try_get_untracked(),
            ) {
                let mut from = self.shown();
                if size <= from {
                    break;
                }
                let skips = size - from > MOST;
                if skips {
                    from = size - TAIL;
                }
                let answer = api::launch_log(self.data.id, from, PIECE, String::new()).await;
                if self.pieces.is_disposed() {
                    return;
                }
                match answer {
                    // Nothing came although there should be more: the next news asks again.
                    Ok(page) if page.next <= from => break,
                    Ok(page) => self.append(page, skips),
                    Err(error) => {
                        self.trouble.try_set(Some(error));
                        break;
                    }
                }
            }
            let _ = self.busy.try_update_value(|busy| *busy = false);
        });
    }

    fn shown(self) -> u64 {
        self.pieces
            .try_with_untracked(|pieces| pieces.last().map_or(0, |piece| piece.next))
            .unwrap_or_default()
    }

    fn append(self, page: LogPage, skips: bool) {
        let at_end = self.is_at_end();
        self.trouble.try_set(None);
        self.pieces.try_update(|pieces| {
            if skips {
                pieces.clear();
            }
            push(pieces, page.into());
        });
        if at_end {
            self.to_the_end();
        }
    }

    /// Fetches a piece before the first one.
    fn earlier(self) {
        let Some(first) = self
            .pieces
            .with_untracked(|pieces| pieces.first().map(|piece| piece.start))
        else {
            return;
        };
        // Reading back, so new lines would push away what is read.
        self.paused.set(true);
        let from = first.saturating_sub(PIECE);
        spawn_local(async move {
            match api::launch_log(self.data.id, from, first - from, String::new()).await {
                Ok(page) => {
                    self.pieces.try_update(|pieces| {
                        if pieces.first().is_some_and(|piece| piece.start == first) {
                            pieces.insert(0, page.into());
                        }
                    });
                }
                Err(error) => {
                    self.trouble.try_set(Some(error));
                }
            }
        });
    }

    /// Shows what stands around a byte.
    fn jump(self, at: u64) {
        self.paused.set(true);
        let from = at.saturating_sub(BEFORE);
        spawn_local(async move {
            match api::launch_log(self.data.id, from, PIECE, String::new()).await {
                Ok(page) => {
                    self.pieces.try_set(vec![page.into()]);
                    if let Some(place) = self.place.try_get_untracked().flatten() {
                        place.set_scroll_top(0);
                    }
                }
                Err(error) => {
                    self.trouble.try_set(Some(error));
                }
            }
        });
    }

    /// Goes on at the end.
    fn follow_again(self) {
        let size = self.data.log_size.get_untracked();
        self.pieces.update(|pieces| {
            if pieces
                .last()
                .is_some_and(|piece| size.saturating_sub(piece.next) > PIECE)
            {
                pieces.clear();
                // An empty piece says from where to go on.
                let from = size.saturating_sub(TAIL);
                pieces.push(Piece {
                    start: from,
                    next: from,
                    text: String::new(),
                });
            }
        });
        self.paused.set(false);
        self.to_the_end();
    }

    fn is_at_end(self) -> bool {
        self.place
            .try_get_untracked()
            .flatten()
            .is_none_or(|place| {
                place.scroll_top() + place.client_height() >= place.scroll_height() - 12
            })
    }

    /// Scrolls down, once what was added is there.
    fn to_the_end(self) {
        request_animation_frame(move || {
            if let Some(place) = self.place.try_get_untracked().flatten() {
                place.set_scroll_top(place.scroll_height());
            }
        });
    }
}

/// Adds the newest piece.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    // A piece without a byte only said from where to go on.
    pieces.retain(|piece| piece.next > piece.start);
    pieces.push(piece);
    trim(pieces);
}

/// Drops the oldest pieces beyond what a page keeps.
fn trim(pieces: &mut Vec<Piece>) {
    let kept = |pieces: &[Piece]| match (pieces.first(), pieces.last()) {
        (Some(first), Some(last)) => last.next.saturating_sub(first.start),
        _ => 0,
    };
    while pieces.len() > 1 && kept(pieces) > MOST {
        pieces.remove(0);
    }
}

/// `512 bytes`, `34 KiB`, `1.2 MiB`.
fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        text::plural(bytes, "byte", "bytes")
    } else if bytes < 1024 * 1024 {
        format!("{} KiB", bytes / 1024)
    } else {
        format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_keeps_the_newest_pieces_only() {
        let piece = |start: u64| Piece {
            start,
            next: start + MOST / 2,
            text: String::new(),
        };
        let mut pieces = vec![piece(0), piece(MOST / 2), piece(MOST)];
        trim(&mut pieces);
        assert_eq!(pieces, [piece(MOST / 2), piece(MOST)]);
        let mut one = vec![Piece {
            next: 4 * MOST,
            ..piece(0)
        }];
        trim(&mut one);
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn an_empty_log_gives_way_to_its_first_line() {
        let piece = |next: u64, text: &str| Piece {
            start: 0,
            next,
            text: text.to_owned(),
        };
        let mut pieces = vec![piece(0, "")];
        push(&mut pieces, piece(6, "ready\n"));
        assert_eq!(pieces, [piece(6, "ready\n")]);
    }

    #[test]
    fn sizes_read_naturally() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(34 * 1024), "34 KiB");
        assert_eq!(bytes(1_258_291), "1.2 MiB");
    }
}
