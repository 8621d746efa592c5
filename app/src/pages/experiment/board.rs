//! The board: every launch of every configuration, and where it stands.

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::TrialState,
    text,
    views::experiments::{CellView, TrialView},
};

use super::data::ExperimentData;
use crate::components::{TableBox, TrialBadge};

/// Configurations down the side, blocks along the top.
#[component]
pub(super) fn Board(data: ExperimentData) -> impl IntoView {
    let cells = data.part(|view| view.cells.clone());
    let indices = Memo::new(move |_| {
        cells.with(|cells| cells.iter().map(|cell| cell.index).collect::<Vec<_>>())
    });
    let blocks = Memo::new(move |_| cells.with(|cells| blocks(cells)));
    let order = data.summary(|summary| summary.state.is_over());
    view! {
        <section class="section" aria-labelledby="board-title">
            <h2 id="board-title">"Launches"</h2>
            <p class="muted">
                {move || {
                    if order.get() {
                        "Each configuration was launched once in every block. A mark leads to the launch or its run."
                    } else {
                        "Each configuration is launched once in every block, one after another; every second block goes backwards. A mark leads to the launch or its run."
                    }
                }}
            </p>
            <TableBox label="Launches of every configuration">
                <table class="data trials">
                    <thead>
                        <tr>
                            <th scope="col">"Configuration"</th>
                            {move || {
                                (1..=blocks.get())
                                    .map(|block| view! { <th scope="col">{format!("Block {block}")}</th> })
                                    .collect_view()
                            }}
                        </tr>
                    </thead>
                    <tbody>
                        <For each=move || indices.get() key=|index| *index let:index>
                            <Row data index blocks/>
                        </For>
                    </tbody>
                </table>
            </TableBox>
        </section>
    }
}

/// How many blocks there are.
fn blocks(cells: &[CellView]) -> u32 {
    cells
        .iter()
        .flat_map(|cell| &cell.trials)
        .map(|trial| trial.block + 1)
        .max()
        .unwrap_or(0)
}

#[component]
fn Row(data: ExperimentData, index: u32, blocks: Memo<u32>) -> impl IntoView {
    let cell = data.part(move |view| view.cells.iter().find(|cell| cell.index == index).cloned());
    let title = Memo::new(move |_| {
        cell.with(|cell| {
            cell.as_ref()
                .map(|cell| cell.title.clone())
                .unwrap_or_default()
        })
    });
    view! {
        <tr>
            <th scope="row">
                {move || title.get()}
                {(index == 0).then(|| view! { <span class="row-note">"the others are compared with it"</span> })}
            </th>
            {move || {
                let trials = cell.get().map(|cell| cell.trials).unwrap_or_default();
                (0..blocks.get())
                    .map(|block| {
                        let trial = trials.iter().find(|trial| trial.block == block).cloned();
                        view! { <td>{trial.map(mark)}</td> }
                    })
                    .collect_view()
            }}
        </tr>
    }
}

/// The state of one launch, leading to what there is of it.
fn mark(trial: TrialView) -> AnyView {
    let address = address(&trial);
    let note = (trial.failures > 0).then(|| {
        view! {
            <span class="row-note">
                {format!("failed {}", text::plural(trial.failures.into(), "time", "times"))}
            </span>
        }
    });
    let reason = (trial.state == TrialState::Failed && !trial.reason.is_empty())
        .then(|| view! { <span class="row-note">{trial.reason.clone()}</span> });
    let badge = view! { <TrialBadge state=trial.state reason=trial.reason/> };
    let badge = match address {
        Some((address, what)) => view! {
            <a class="badge-link" href=address aria-label=format!("{}: {what}", trial.state.word())>
                {badge}
            </a>
        }
        .into_any(),
        None => badge.into_any(),
    };
    view! { {badge} {note} {reason} }.into_any()
}

/// The run, once there is one; else the launch.
fn address(trial: &TrialView) -> Option<(String, String)> {
    let run = trial
        .run
        .map(|run| (format!("/runs/{run}"), format!("run {run}")));
    run.or_else(|| {
        trial
            .launch
            .map(|launch| (format!("/servers/{launch}"), format!("launch {launch}")))
    })
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::ids::{LaunchId, RunId};

    use super::*;

    fn trial(block: u32, launch: Option<i64>, run: Option<i64>) -> TrialView {
        TrialView {
            number: block,
            block,
            state: TrialState::Planned,
            failures: 0,
            reason: String::new(),
            launch: launch.map(LaunchId),
            run: run.map(RunId),
        }
    }

    #[test]
    fn a_mark_leads_to_the_run_or_else_to_the_launch() {
        assert_eq!(address(&trial(0, None, None)), None);
        let to = |trial| address(&trial).map(|(address, _)| address);
        assert_eq!(to(trial(0, Some(3), None)).as_deref(), Some("/servers/3"));
        assert_eq!(to(trial(0, Some(3), Some(9))).as_deref(), Some("/runs/9"));
    }

    #[test]
    fn there_are_as_many_columns_as_blocks() {
        let cell = |trials| CellView {
            index: 0,
            title: String::new(),
            levels: Vec::new(),
            trials,
        };
        assert_eq!(blocks(&[]), 0);
        assert_eq!(
            blocks(&[
                cell(vec![trial(0, None, None)]),
                cell(vec![trial(2, None, None)])
            ]),
            3
        );
    }
}
