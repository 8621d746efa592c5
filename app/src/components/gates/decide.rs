//! Accepting or rejecting what a gate was about.

use leptos::{form::ActionForm, prelude::*};
use tokdyno_domain::{
    gate::Outcome,
    ids::GateId,
    views::gates::{DecisionKind, MAX_REASON},
};

use crate::{api::DecideGate, components::feedback::ErrorNote};

/// The form; without WASM an ordinary one that comes back to the page.
#[component]
pub(super) fn Decide(
    gate: GateId,
    /// What the rules came to.
    outcome: Outcome,
    /// Raised when it was decided.
    decided: RwSignal<u32>,
) -> impl IntoView {
    let decide = ServerAction::<DecideGate>::new();
    let error = Signal::derive(move || decide.value().get().and_then(Result::err));
    Effect::new(move |_| {
        if matches!(decide.value().get(), Some(Ok(_))) {
            decided.update(|times| *times = times.wrapping_add(1));
        }
    });
    let choice = move |kind: DecisionKind, label: &'static str| {
        let id = format!("gate-{gate}-{kind}");
        view! {
            <p class="choice">
                <input id=id.clone() type="radio" name="decision" value=kind.word() required/>
                <label for=id>{label}</label>
            </p>
        }
    };
    let reason = format!("gate-{gate}-reason");
    let field = reason.clone();
    view! {
        <details class="fold">
            <summary>"Decide"</summary>
            <ActionForm action=decide attr:class="stack">
                <input type="hidden" name="gate" value=gate.to_string()/>
                <fieldset class="choices">
                    <legend>{question(outcome)}</legend>
                    {choice(DecisionKind::Accepted, "Accept")}
                    {choice(DecisionKind::Rejected, "Reject")}
                </fieldset>
                <p class="field">
                    <label for=reason>"Why"</label>
                    <textarea
                        id=field
                        name="reason"
                        rows="2"
                        required
                        maxlength=MAX_REASON.to_string()
                    ></textarea>
                    <span class="field-help">
                        "Kept with your name. It is decided once; who thinks otherwise later records another gate."
                    </span>
                </p>
                <ErrorNote error=error/>
                <button
                    type="submit"
                    class="button button-primary"
                    prop:disabled=decide.pending()
                >
                    "Record the decision"
                </button>
            </ActionForm>
        </details>
    }
}

/// What a decision would mean here.
const fn question(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "The rules hold. To reject it all the same is an override.",
        Outcome::NotEstablished => {
            "The rules are not established. To accept it all the same is an override."
        }
        Outcome::Broken => "A rule is broken. To accept it all the same is an override.",
    }
}
