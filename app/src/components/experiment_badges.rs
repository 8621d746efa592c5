//! Where an experiment, one of its launches or one of its configurations stands: a shape
//! and a word.

use leptos::prelude::*;
use tokdyno_domain::experiment::{
    ExperimentState, TrialState,
    results::{EntryState, StepStanding},
};

use super::{
    badges::{Badge, Tone},
    icon::Glyph,
};

/// Where an experiment stands.
#[component]
pub fn ExperimentBadge(
    /// The state.
    state: ExperimentState,
) -> impl IntoView {
    let (tone, glyph) = match state {
        ExperimentState::Queued => (Tone::Quiet, Glyph::Clock),
        ExperimentState::Running => (Tone::Info, Glyph::Pulse),
        ExperimentState::Paused => (Tone::Warn, Glyph::Equal),
        ExperimentState::Stopping | ExperimentState::Cancelled => (Tone::Quiet, Glyph::Stop),
        ExperimentState::Finished => (Tone::Ok, Glyph::Check),
        ExperimentState::Failed => (Tone::Bad, Glyph::Cross),
    };
    view! { <Badge tone=tone glyph=glyph text=state.word()/> }
}

/// Where one launch of a configuration stands.
#[component]
pub fn TrialBadge(
    /// The state.
    state: TrialState,
    /// Why it failed last; blank if it did not.
    #[prop(into)]
    reason: String,
) -> impl IntoView {
    let (tone, glyph) = match state {
        TrialState::Planned => (Tone::Quiet, Glyph::Empty),
        TrialState::Running => (Tone::Info, Glyph::Pulse),
        TrialState::Done => (Tone::Ok, Glyph::Check),
        TrialState::Failed => (Tone::Bad, Glyph::Cross),
        TrialState::Skipped => (Tone::Quiet, Glyph::Chevron),
        TrialState::Settled => (Tone::Ok, Glyph::Equal),
        TrialState::Cancelled => (Tone::Quiet, Glyph::Stop),
    };
    let title = if reason.is_empty() {
        meaning(state).to_owned()
    } else {
        reason
    };
    view! { <Badge tone=tone glyph=glyph text=state.word() title=title/> }
}

const fn meaning(state: TrialState) -> &'static str {
    match state {
        TrialState::Planned => "Its turn is still to come.",
        TrialState::Running => "It is started or measured.",
        TrialState::Done => "It was measured.",
        TrialState::Failed => "Its launch or its run failed.",
        TrialState::Skipped => "Measured before, or its configuration was given up.",
        TrialState::Settled => "Not needed: its configuration was settled at a declared look.",
        TrialState::Cancelled => "Not run, or ended: somebody ended the experiment.",
    }
}

/// What there is of a configuration without a figure; never a number.
#[component]
pub fn EntryBadge(
    /// The state.
    state: EntryState,
) -> impl IntoView {
    let (tone, glyph, word) = match state {
        EntryState::Measured => (Tone::Ok, Glyph::Check, "measured"),
        EntryState::Running => (Tone::Info, Glyph::Pulse, "running"),
        EntryState::Planned => (Tone::Quiet, Glyph::Clock, "planned"),
        EntryState::Failed => (Tone::Bad, Glyph::Cross, "failed"),
        EntryState::Missing => (Tone::Quiet, Glyph::Empty, "missing"),
    };
    view! { <Badge tone=tone glyph=glyph text=word/> }
}

/// What may be said of a step of an ablation.
#[component]
pub fn StandingBadge(
    /// The standing.
    standing: StepStanding,
) -> impl IntoView {
    let (tone, glyph, word, meaning) = match standing {
        StepStanding::Changes => (
            Tone::Ok,
            Glyph::Check,
            "changes it",
            "It changes the figure beyond doubt, where the chain adds it.",
        ),
        StepStanding::Nothing => (
            Tone::Quiet,
            Glyph::Equal,
            "nothing",
            "However it is measured, its change is within the effect that matters.",
        ),
        StepStanding::Depends => (
            Tone::Warn,
            Glyph::NotEqual,
            "depends on the others",
            "What it does with all others and alone differ beyond doubt: the order matters.",
        ),
        StepStanding::NotEstablished => (
            Tone::Warn,
            Glyph::Question,
            "not established",
            "The data do not tell.",
        ),
    };
    view! { <Badge tone=tone glyph=glyph text=word title=meaning/> }
}
