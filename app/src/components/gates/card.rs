//! A recorded gate.

use leptos::prelude::*;
use tokdyno_domain::{
    gate::Judgement,
    source::Source,
    views::gates::{Decision, DecisionKind, GateView},
};

use super::decide::Decide;
use crate::{
    components::{
        badges::{Badge, OutcomeBadge, SourceBadge, Tone},
        icon::Glyph,
        table::TableBox,
        time::RelativeTime,
        who::OperatorNote,
    },
    query,
};

/// What it came to, rule by rule, and what was made of it.
#[component]
pub(super) fn GateCard(
    gate: GateView,
    /// It compares this page's run with others.
    elsewhere: bool,
    /// The reader may accept or reject it.
    may_decide: bool,
    /// Raised when it was decided.
    decided: RwSignal<u32>,
) -> impl IntoView {
    let id = gate.id;
    let is_override = gate.is_override();
    let heading = format!("gate-{id}");
    let label = heading.clone();
    let compared = elsewhere.then(|| {
        let address = format!("/compare?{}", query::compare_text(&gate.runs));
        view! { <a href=address>{format!("of {} runs compared", gate.runs.len())}</a> }
    });
    let simulated = gate
        .outcome
        .simulated
        .then(|| view! { <SourceBadge source=Source::Simulated/> });
    let decision = match gate.decision {
        Some(decision) => view! { <Decided decision is_override/> }.into_any(),
        None if may_decide => {
            view! { <Decide gate=id outcome=gate.outcome.outcome decided/> }.into_any()
        }
        None => view! { <OperatorNote what="Accepting and rejecting"/> }.into_any(),
    };
    view! {
        <article class="gate panel" aria-labelledby=label>
            <h3 id=heading class="cluster">
                {format!("Gate {id}")}
                <OutcomeBadge outcome=gate.outcome.outcome/>
                {simulated}
            </h3>
            <p class="muted cluster">
                <span>{format!("by {}", gate.by)}</span>
                <RelativeTime at=gate.at/>
                {compared}
            </p>
            <Judgements judgements=gate.outcome.judgements label=format!("Rules of gate {id}")/>
            {decision}
        </article>
    }
}

#[component]
fn Judgements(judgements: Vec<Judgement>, label: String) -> impl IntoView {
    let rows = judgements
        .into_iter()
        .map(|judgement| {
            view! {
                <tr>
                    <th scope="row">
                        <code>{judgement.rule}</code>
                    </th>
                    <td>{judgement.of}</td>
                    <td>
                        <OutcomeBadge outcome=judgement.outcome/>
                    </td>
                    <td>{judgement.sentence}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <TableBox label=label>
            <table class="data">
                <thead>
                    <tr>
                        <th scope="col">"Rule"</th>
                        <th scope="col">"Asked of"</th>
                        <th scope="col">"Outcome"</th>
                        <th scope="col">"What was seen"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </TableBox>
    }
}

/// What a person made of it; an override says so.
#[component]
fn Decided(decision: Decision, is_override: bool) -> impl IntoView {
    let (tone, glyph) = match decision.kind {
        DecisionKind::Accepted => (Tone::Ok, Glyph::Check),
        DecisionKind::Rejected => (Tone::Bad, Glyph::Cross),
    };
    let against = is_override.then(|| {
        view! {
            <Badge
                tone=Tone::Warn
                glyph=Glyph::Warning
                text="override"
                title="Decided otherwise than the rules say."
            />
        }
    });
    view! {
        <div class="gate-decision">
            <p class="cluster">
                <Badge tone glyph text=decision.kind.word()/>
                {against}
                <span>{format!("by {}", decision.by)}</span>
                <RelativeTime at=decision.at/>
            </p>
            <p class="gate-reason">{decision.reason}</p>
        </div>
    }
}
