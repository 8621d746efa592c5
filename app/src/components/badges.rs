//! Where a figure comes from, where a run stands, what must be known: always a
//! shape and a word, never a colour alone.
#![expect(
    clippy::needless_pass_by_value,
    reason = "properties of components are owned"
)]

use leptos::prelude::*;
use tokdyno_domain::{
    effective::{Finding, Stamp},
    engine::EngineKind,
    gate::Outcome,
    ids::LaunchId,
    launch::LaunchState,
    run::RunState,
    source::Source,
    verdict::VerdictKind,
    views::{
        compare::ClassKind,
        profiles::{Caution, CautionOf, Gravity},
    },
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

/// Where a launch stands.
#[component]
pub fn LaunchBadge(
    /// The state.
    state: LaunchState,
    /// Somebody asked it to stop, and it has not yet.
    #[prop(optional)]
    stop_requested: bool,
) -> impl IntoView {
    let (tone, glyph) = match state {
        LaunchState::Queued => (Tone::Quiet, Glyph::Clock),
        LaunchState::Starting | LaunchState::Loading => (Tone::Info, Glyph::Pulse),
        LaunchState::Ready => (Tone::Ok, Glyph::Check),
        LaunchState::Stopping | LaunchState::Stopped => (Tone::Quiet, Glyph::Stop),
        LaunchState::Failed => (Tone::Bad, Glyph::Cross),
        LaunchState::Lost => (Tone::Warn, Glyph::Broken),
    };
    let text = if stop_requested && !state.is_over() {
        "stopping"
    } else {
        state.word()
    };
    view! { <Badge tone=tone glyph=glyph text=text/> }
}

/// Does what runs match what was asked for? On hover, what does not; leads to the
/// launch.
#[component]
pub fn StampBadge(
    /// The stamp.
    stamp: Stamp,
    /// The launch that it is about; none where the page is about it anyway.
    #[prop(optional)]
    launch: Option<LaunchId>,
) -> impl IntoView {
    let (tone, glyph) = match &stamp {
        Stamp::Verified => (Tone::Ok, Glyph::Check),
        Stamp::Mismatched { .. } => (Tone::Bad, Glyph::NotEqual),
        Stamp::Unverifiable { .. } => (Tone::Warn, Glyph::Question),
    };
    let badge = view! { <Badge tone=tone glyph=glyph text=stamp.word() title=stamp.sentence()/> };
    match launch {
        Some(launch) => view! {
            <a
                class="badge-link"
                href=format!("/servers/{launch}")
                aria-label=format!("{}: launch {launch}. {}", stamp.word(), stamp.sentence())
            >
                {badge}
            </a>
        }
        .into_any(),
        None => badge.into_any(),
    }
}

/// How asked and found stand to each other, with what the word means on hover.
#[component]
pub fn FindingBadge(
    /// The finding.
    finding: Finding,
) -> impl IntoView {
    let (tone, glyph) = match finding {
        Finding::Differs => (Tone::Bad, Glyph::NotEqual),
        Finding::NotAsked => (Tone::Bad, Glyph::Warning),
        Finding::Inert => (Tone::Warn, Glyph::Empty),
        Finding::NotReadable => (Tone::Warn, Glyph::Question),
        Finding::Passed => (Tone::Info, Glyph::Chevron),
        Finding::AsAsked => (Tone::Ok, Glyph::Equal),
        Finding::Confirmed => (Tone::Ok, Glyph::Check),
        Finding::Noted => (Tone::Quiet, Glyph::File),
    };
    view! { <Badge tone=tone glyph=glyph text=finding.text() title=finding.meaning()/> }
}

/// The few words of a caution; its sentences on hover.
#[component]
pub fn CautionBadge(
    /// The caution.
    caution: Caution,
) -> impl IntoView {
    let (tone, glyph) = match caution.gravity {
        Gravity::Wrong => (Tone::Bad, Glyph::Cross),
        Gravity::Caution => (Tone::Warn, Glyph::Warning),
        Gravity::Note => (Tone::Quiet, Glyph::Flag),
    };
    view! { <Badge tone=tone glyph=glyph text=caution.badge title=caution.text/> }
}

/// The badges of several cautions, each word once, with all its sentences on hover.
#[component]
pub fn CautionBadges(
    /// The cautions.
    cautions: Vec<Caution>,
) -> impl IntoView {
    let mut shown: Vec<Caution> = Vec::new();
    for caution in cautions {
        let alike = shown
            .iter_mut()
            .find(|other| other.badge == caution.badge && other.gravity == caution.gravity);
        match alike {
            Some(other) if other.text.contains(&caution.text) => {}
            Some(other) => {
                other.text.push(' ');
                other.text.push_str(&caution.text);
            }
            None => shown.push(caution),
        }
    }
    shown
        .into_iter()
        .map(|caution| view! { <CautionBadge caution=caution/> })
        .collect_view()
}

/// Cautions one below the other: badge, what it is about, sentences.
#[component]
pub fn CautionList(
    /// The cautions.
    cautions: Vec<Caution>,
    /// Arguments that their places refer to.
    arguments: Vec<String>,
) -> impl IntoView {
    let about = move |of: &CautionOf| match of {
        CautionOf::Argument { index } => arguments.get(*index as usize).cloned(),
        CautionOf::Variable { name } => Some(name.clone()),
        CautionOf::Profile => None,
    };
    (!cautions.is_empty()).then(|| {
        view! {
            <ul class="cautions">
                {cautions
                    .into_iter()
                    .map(|caution| {
                        let about = about(&caution.of);
                        let text = caution.text.clone();
                        view! {
                            <li>
                                <CautionBadge caution=caution/>
                                <span class="caution-text">
                                    {about.map(|name| view! { <code>{name}</code> " " })} {text}
                                </span>
                            </li>
                        }
                    })
                    .collect_view()}
            </ul>
        }
    })
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
        VerdictKind::Failed => (Tone::Bad, Glyph::Cross),
    };
    view! { <Badge tone=tone glyph=glyph text=kind.words()/> }
}

/// What a rule, or a gate, came to.
#[component]
pub fn OutcomeBadge(
    /// What it came to.
    outcome: Outcome,
) -> impl IntoView {
    let (tone, glyph) = match outcome {
        Outcome::Holds => (Tone::Ok, Glyph::Check),
        Outcome::NotEstablished => (Tone::Warn, Glyph::Question),
        Outcome::Broken => (Tone::Bad, Glyph::Cross),
    };
    view! { <Badge tone=tone glyph=glyph text=outcome.words()/> }
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
