//! Where a figure comes from, where a run stands, what must be known: always a
//! shape and a word, never a colour alone.

use leptos::prelude::*;
use tokdyno_domain::{
    engine::EngineKind, run::RunState, source::Source, verdict::VerdictKind,
    views::compare::ClassKind,
};

use super::icon::{Glyph, Icon};

/// How a badge is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// All is well.
    Ok,
    /// Something to know.
    Warn,
    /// Something went wrong.
    Bad,
    /// Something is going on.
    Info,
    /// Nothing special.
    #[default]
    Quiet,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Ok => "badge badge-ok",
            Self::Warn => "badge badge-warn",
            Self::Bad => "badge badge-bad",
            Self::Info => "badge badge-info",
            Self::Quiet => "badge",
        }
    }
}

/// A word with a shape.
#[component]
pub fn Badge(
    /// Its colour.
    #[prop(optional)]
    tone: Tone,
    /// Its shape.
    glyph: Glyph,
    /// Its word.
    #[prop(into)]
    text: String,
    /// One line of help, on hover.
    #[prop(optional, into)]
    title: Option<String>,
) -> impl IntoView {
    view! {
        <span class=tone.class() title=title>
            <Icon glyph=glyph/>
            <span>{text}</span>
        </span>
    }
}

/// Where a figure comes from.
#[component]
pub fn SourceBadge(
    /// The source.
    source: Source,
) -> impl IntoView {
    let (tone, glyph) = match source {
        Source::Measured => (Tone::Ok, Glyph::Gauge),
        Source::Imported => (Tone::Info, Glyph::File),
        Source::Recorded => (Tone::Quiet, Glyph::Pencil),
        Source::Estimated => (Tone::Warn, Glyph::About),
        Source::Simulated => (Tone::Warn, Glyph::Ghost),
    };
    view! { <Badge tone=tone glyph=glyph text=source.word() title=source.meaning()/> }
}

/// Where a run stands.
#[component]
pub fn StateBadge(
    /// The state.
    state: RunState,
    /// Somebody asked it to stop, and it has not yet.
    #[prop(optional)]
    cancel_requested: bool,
) -> impl IntoView {
    let (tone, glyph) = match state {
        RunState::Queued => (Tone::Quiet, Glyph::Clock),
        RunState::Running => (Tone::Info, Glyph::Pulse),
        RunState::Finished => (Tone::Ok, Glyph::Check),
        RunState::Failed => (Tone::Bad, Glyph::Cross),
        RunState::Cancelled => (Tone::Quiet, Glyph::Stop),
        RunState::Interrupted => (Tone::Warn, Glyph::Broken),
    };
    let text = if cancel_requested && !state.is_over() {
        "stopping"
    } else {
        state.word()
    };
    view! { <Badge tone=tone glyph=glyph text=text/> }
}

/// May one rest on an answer?
#[component]
pub fn EstablishedBadge(
    /// It holds.
    established: bool,
) -> impl IntoView {
    if established {
        view! { <Badge tone=Tone::Ok glyph=Glyph::Check text="established"/> }
    } else {
        view! { <Badge tone=Tone::Warn glyph=Glyph::Question text="not established"/> }
    }
}

/// The word of a verdict.
#[component]
pub fn VerdictBadge(
    /// The word.
    kind: VerdictKind,
) -> impl IntoView {
    let (tone, glyph) = match kind {
        VerdictKind::Better => (Tone::Ok, Glyph::Up),
        VerdictKind::Worse => (Tone::Bad, Glyph::Down),
        VerdictKind::NoClearChange => (Tone::Quiet, Glyph::Equal),
        VerdictKind::NotEstablished => (Tone::Warn, Glyph::Question),
        VerdictKind::NotComparable => (Tone::Bad, Glyph::NotEqual),
        VerdictKind::Missing => (Tone::Quiet, Glyph::Empty),
    };
    view! { <Badge tone=tone glyph=glyph text=kind.words()/> }
}

/// How far runs can be compared.
#[component]
pub fn ClassBadge(
    /// The class.
    kind: ClassKind,
) -> impl IntoView {
    let (tone, glyph, word) = match kind {
        ClassKind::Repeat => (Tone::Info, Glyph::Equal, "repetition"),
        ClassKind::Controlled => (Tone::Ok, Glyph::Check, "controlled"),
        ClassKind::Confounded => (Tone::Warn, Glyph::Question, "confounded"),
        ClassKind::Invalid => (Tone::Bad, Glyph::NotEqual, "invalid"),
    };
    view! { <Badge tone=tone glyph=glyph text=word/> }
}

/// An engine by the shape that it has in the charts.
#[component]
pub fn EngineName(
    /// The engine.
    engine: EngineKind,
) -> impl IntoView {
    let shape = match engine {
        EngineKind::Sglang => "M8 3.500a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z",
        EngineKind::Vllm => "M4 4h8v8H4z",
        EngineKind::Other => "M8 2.500L13.5 8 8 13.5 2.5 8z",
    };
    view! {
        <span class="engine">
            <svg class="icon icon-solid" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
                <path d=shape></path>
            </svg>
            {engine.name()}
        </span>
    }
}

/// A sentence that a reader must know.
#[component]
pub fn FlagNote(
    /// The sentence.
    #[prop(into)]
    text: String,
) -> impl IntoView {
    view! {
        <span class="flag-note">
            <Icon glyph=Glyph::Flag/>
            <span>{text}</span>
        </span>
    }
}
