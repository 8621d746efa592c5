//! What really runs, what was asked for, and the runs on it.

use leptos::prelude::*;
use tokdyno_domain::{
    launch::{Afterwards, LaunchPlan, LaunchState},
    text,
    views::servers::LaunchRun,
};

use super::data::LaunchData;
use crate::components::{ClockTime, CopyButton, EffectiveTable, StateBadge, TableBox};

/// The effective configuration, once it was read.
#[component]
pub(super) fn Effective(data: LaunchData) -> impl IntoView {
    let effective = data.part(|view| view.effective.clone());
    let state = data.state();
    view! {
        <section aria-labelledby="effective-title">
            <h2 id="effective-title">"What really runs"</h2>
            {move || match effective.get() {
                Some(effective) => view! { <EffectiveTable effective=effective/> }.into_any(),
                None => {
                    let why = match state.get() {
                        LaunchState::Queued | LaunchState::Starting | LaunchState::Loading => {
                            "Read from the host and the engine as soon as it is ready."
                        }
                        _ => "It was never read, so nothing is proved.",
                    };
                    view! { <p class="muted">{why}</p> }.into_any()
                }
            }}
        </section>
    }
}

/// Runs on it.
#[component]
pub(super) fn Runs(data: LaunchData) -> impl IntoView {
    let runs = data.part(|view| view.runs.clone());
    view! {
        <Show when=move || runs.with(|runs| !runs.is_empty())>
            <section aria-labelledby="runs-title">
                <h2 id="runs-title">"Runs on it"</h2>
                <TableBox label="Runs on this server">
                    <table class="data">
                        <thead>
                            <tr>
                                <th scope="col">"Run"</th>
                                <th scope="col">"State"</th>
                                <th scope="col">"Workload"</th>
                            </tr>
                        </thead>
                        <tbody>{move || runs.get().into_iter().map(run).collect_view()}</tbody>
                    </table>
                </TableBox>
            </section>
        </Show>
    }
}

fn run(run: LaunchRun) -> impl IntoView {
    view! {
        <tr>
            <th scope="row">
                <a href=format!("/runs/{}", run.id)>{run.configuration}</a>
                <span class="row-note">{format!("run {}", run.id)}</span>
            </th>
            <td>
                <StateBadge state=run.state/>
            </td>
            <td>{run.workload}</td>
        </tr>
    }
}

/// Command, plan, folder, remarks.
#[component]
pub(super) fn More(data: LaunchData) -> impl IntoView {
    let command = data.part(|view| view.command.clone());
    let folder = data.part(|view| view.folder.clone());
    let remarks = data.part(|view| view.remarks.clone());
    let plan = data.part(|view| view.plan.clone());
    let restores = data.part(|view| (view.restores, view.restored_by));
    view! {
        <Show when=move || remarks.with(|remarks| !remarks.is_empty())>
            <section aria-labelledby="remarks-title">
                <h2 id="remarks-title">"Remarks"</h2>
                <ul>
                    {move || remarks.get().into_iter().map(|remark| view! { <li>{remark}</li> }).collect_view()}
                </ul>
            </section>
        </Show>
        <section aria-labelledby="command-title">
            <div class="section-head">
                <h2 id="command-title">"Command"</h2>
                <CopyButton text=command label="Copy"/>
            </div>
            <pre class="verbatim" tabindex="0">{move || command.get()}</pre>
        </section>
        <section aria-labelledby="plan-title">
            <h2 id="plan-title">"What was asked for"</h2>
            {move || {
                view! {
                    <ul>
                        {sentences(&plan.get())
                            .into_iter()
                            .map(|sentence| view! { <li>{sentence}</li> })
                            .collect_view()}
                        {plan
                            .get()
                            .give_back_at
                            .map(|at| {
                                view! { <li>"The host is given back by " <ClockTime at=at/> "."</li> }
                            })}
                    </ul>
                }
            }}
            {move || {
                let (restores, by) = restores.get();
                [("Restores ", restores), ("Restored by ", by)]
                    .into_iter()
                    .filter_map(|(words, launch)| Some((words, launch?)))
                    .map(|(words, launch)| {
                        view! {
                            <p>
                                {words}
                                <a href=format!("/servers/{launch}")>{format!("launch {launch}")}</a> "."
                            </p>
                        }
                    })
                    .collect_view()
            }}
            <Show when=move || folder.with(|folder| !folder.is_empty())>
                <p class="muted">"Folder on the host: " <code>{move || folder.get()}</code></p>
            </Show>
        </section>
    }
}

fn sentences(plan: &LaunchPlan) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(measure) = &plan.measure {
        let place = if measure.through_forward {
            "through an SSH port forward"
        } else {
            "on the host itself"
        };
        sentences.push(format!(
            "Measure {place}, as {}: {}.",
            measure.configuration,
            measure.workload.describe()
        ));
    }
    if plan.verify_nccl {
        sentences.push("Write NCCL's own start-up log and read it.".to_owned());
    }
    sentences.push(
        match (plan.afterwards, plan.measure.is_some()) {
            (Afterwards::Keep, _) => "Keep it running afterwards.",
            (Afterwards::Stop, true) => "Stop it after the measurement.",
            (Afterwards::Stop, false) => "Stop it once it is verified.",
        }
        .to_owned(),
    );
    if let Some(launch) = plan.restore {
        sentences.push(format!(
            "Stop launch {launch} before, and start it again when this one is over, however it ends."
        ));
    }
    if plan.give_back_at.is_some() {
        sentences.push(format!(
            "Begin to end {} before the host is to be given back.",
            text::duration(f64::from(plan.give_back_lead_s))
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::ids::LaunchId;

    use super::*;

    #[test]
    fn a_plan_is_told_in_sentences() {
        let plan = LaunchPlan {
            afterwards: Afterwards::Stop,
            restore: Some(LaunchId(3)),
            ..LaunchPlan::default()
        };
        let said = sentences(&plan).join(" ");
        assert!(said.contains("once it is verified"), "{said}");
        assert!(said.contains("Stop launch 3 before"), "{said}");
        assert_eq!(
            sentences(&LaunchPlan::default()),
            ["Keep it running afterwards."]
        );
    }
}
