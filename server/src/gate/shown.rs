//! A gate as text and JSON.

use serde::Serialize;
use tokdyno_domain::{
    gate::{GateOutcome, Outcome},
    ids::GateId,
    text,
};

/// What a gate came to, as `--json` writes it.
#[derive(Debug, Serialize)]
pub(crate) struct Said {
    /// Under which number it was recorded, if it was.
    pub(crate) gate: Option<GateId>,
    /// What it came to.
    #[serde(flatten)]
    pub(crate) outcome: GateOutcome,
}

/// The same in words: a line for each rule and run, and what they come to together.
pub(crate) fn text(said: &Said) -> String {
    let outcome = &said.outcome;
    let mut out = String::new();
    for judgement in &outcome.judgements {
        out.push_str(&format!(
            "{:<15}  {}\n{:<15}  {}: {}\n",
            judgement.outcome.words().to_uppercase(),
            judgement.rule,
            "",
            judgement.of,
            judgement.sentence
        ));
    }
    let count = |wanted: Outcome| {
        outcome
            .judgements
            .iter()
            .filter(|judgement| judgement.outcome == wanted)
            .count() as u64
    };
    out.push_str(&format!(
        "\nThe gate {}: {} hold, {} broken, {} not established.\n",
        match outcome.outcome {
            Outcome::Holds => "holds",
            Outcome::NotEstablished => "is not established",
            Outcome::Broken => "is broken",
        },
        text::count(count(Outcome::Holds)),
        text::count(count(Outcome::Broken)),
        text::count(count(Outcome::NotEstablished)),
    ));
    if let Some(gate) = said.gate {
        out.push_str(&format!("Recorded as gate {gate}.\n"));
    }
    if outcome.simulated {
        out.push_str("\n*** SIMULATED: what was judged comes from the stand-in engine and says nothing about a real GPU. ***\n");
    }
    out
}
