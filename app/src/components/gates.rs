//! Gates, on the page of a run and on Compare: what runs were held to, what it came to,
//! who decided what and why.
#![expect(
    unreachable_pub,
    reason = "the component macro makes every component public, in whatever module"
)]

mod card;
mod decide;
mod form;

use leptos::prelude::*;
use tokdyno_domain::{ids::RunId, views::gates::GateView};

use self::{card::GateCard, form::GateEditor};
use super::{
    feedback::{ErrorBanner, Skeleton},
    who::Who,
};
use crate::api::{self, RecordGate};

/// The gates of a run, or of runs that are compared, and the form for another one.
#[component]
pub fn GateSection(
    /// One run, or several, the baseline first.
    runs: Vec<RunId>,
) -> impl IntoView {
    let record = ServerAction::<RecordGate>::new();
    // Raised by every decision.
    let decided = RwSignal::new(0_u32);
    let asked = runs.clone();
    let gates = Resource::new(
        move || (record.version().get(), decided.get()),
        move |_| api::gates(asked.clone()),
    );
    let here = StoredValue::new(runs.clone());
    view! {
        <section class="section gates" aria-labelledby="gates-title">
            <h2 id="gates-title">"Gates"</h2>
            <p class="muted">{explained(runs.len())}</p>
            <Transition fallback=|| view! { <Skeleton lines=3/> }>
                {move || Suspend::new(async move {
                    let may_decide = Who::may_operate().await;
                    match gates.await {
                        Ok(gates) => {
                            view! { <GateList gates here=here.get_value() may_decide decided/> }
                                .into_any()
                        }
                        Err(error) => {
                            view! {
                                <ErrorBanner
                                    error=error
                                    retry=Callback::new(move |()| gates.refetch())
                                />
                            }
                                .into_any()
                        }
                    }
                })}
            </Transition>
            <GateEditor runs record/>
        </section>
    }
}

/// The recorded gates, newest first.
#[component]
fn GateList(
    gates: Vec<GateView>,
    /// The runs of this page.
    here: Vec<RunId>,
    may_decide: bool,
    decided: RwSignal<u32>,
) -> impl IntoView {
    if gates.is_empty() {
        return view! { <p>"No gate was recorded yet."</p> }.into_any();
    }
    gates
        .into_iter()
        .map(|gate| {
            // On the page of a run stand also those that compare it with others.
            let elsewhere = here.len() == 1 && gate.runs.len() > 1;
            view! { <GateCard gate elsewhere may_decide decided/> }
        })
        .collect_view()
        .into_any()
}

fn explained(runs: usize) -> &'static str {
    if runs > 1 {
        "Rules that the other runs are held to, the first one being the baseline. What they came to is kept as it was, and a person accepts or rejects it."
    } else {
        "Rules that this run is held to. What they came to is kept as it was, and a person accepts or rejects it."
    }
}
