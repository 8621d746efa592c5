//! From a figure to the runs behind it.

use leptos::prelude::*;
use tokdyno_domain::{
    experiment::TrialState,
    ids::RunId,
    views::experiments::{CellView, TrialView},
};

use super::data::ExperimentData;

/// Links to the runs that a cell's figures come from.
#[component]
pub(super) fn Traces(data: ExperimentData, cell: u32) -> impl IntoView {
    let runs = data.part(move |view| {
        view.cells
            .iter()
            .find(|candidate| candidate.index == cell)
            .map(runs_of)
            .unwrap_or_default()
    });
    view! {
        <span class="traces">
            {move || {
                let runs = runs.get();
                let first = (!runs.is_empty()).then_some(if runs.len() == 1 { "run" } else { "runs" });
                view! {
                    {first}
                    {runs
                        .into_iter()
                        .map(|run| {
                            view! {
                                " "
                                <a href=format!("/runs/{run}") aria-label=format!("run {run}")>
                                    {run.to_string()}
                                </a>
                            }
                        })
                        .collect_view()}
                }
            }}
        </span>
    }
}

/// The runs whose figures count, in order.
fn runs_of(cell: &CellView) -> Vec<RunId> {
    let counts = |trial: &&TrialView| matches!(trial.state, TrialState::Done | TrialState::Skipped);
    cell.trials
        .iter()
        .filter(counts)
        .filter_map(|trial| trial.run)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_comes_from_finished_runs_alone() {
        let trial = |number: u32, state, run: Option<i64>| TrialView {
            number,
            block: number,
            state,
            failures: 0,
            reason: String::new(),
            launch: None,
            run: run.map(RunId),
        };
        let cell = CellView {
            index: 0,
            title: "LL".to_owned(),
            levels: Vec::new(),
            trials: vec![
                trial(0, TrialState::Done, Some(7)),
                trial(1, TrialState::Failed, Some(8)),
                trial(2, TrialState::Skipped, Some(3)),
                trial(3, TrialState::Running, Some(9)),
                // Skipped because its cell was given up.
                trial(4, TrialState::Skipped, None),
            ],
        };
        assert_eq!(runs_of(&cell), [RunId(7), RunId(3)]);
    }
}
