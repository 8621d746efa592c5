//! Experiments as tables and sentences.

use tokdyno_domain::{
    experiment::TrialState,
    text,
    views::experiments::{CellView, ExperimentSummary, ExperimentView},
};

use super::show::table;

/// Experiments, a line each.
pub(crate) fn experiments(experiments: &[ExperimentSummary]) -> String {
    if experiments.is_empty() {
        return "No experiment yet. Plan one in the browser, at /experiments/new, or with POST /api/v1/experiments.\n"
            .to_owned();
    }
    let rows = experiments.iter().map(|experiment| {
        vec![
            experiment.id.to_string(),
            experiment.name.clone(),
            experiment.state.to_string(),
            format!("{} of {}", experiment.over, experiment.launches),
            experiment.host.1.clone(),
            experiment.by.clone(),
            experiment.design.clone(),
        ]
    });
    table(
        &[
            "experiment",
            "name",
            "state",
            "launches",
            "host",
            "by",
            "design",
        ],
        rows,
    )
}

/// An experiment: where it stands, what it found, and how its configurations fare.
pub(crate) fn experiment(view: &ExperimentView) -> String {
    let summary = &view.summary;
    let mut lines = vec![
        format!("{} (experiment {})", summary.name, summary.id),
        format!(
            "{}, {} of {} over; {}; {} on {}",
            summary.state,
            text::count(summary.over.into()),
            text::plural(summary.launches.into(), "launch", "launches"),
            summary.design,
            summary.base.1,
            summary.host.1,
        ),
    ];
    if !summary.reason.is_empty() {
        lines.push(summary.reason.clone());
    }
    if let Some(results) = &view.results {
        lines.push(format!("Source of the figures: {}.", view.source.word()));
        lines.push(String::new());
        lines.extend(results.headline.iter().cloned());
    }
    lines.push(String::new());
    let mut text = lines.join("\n");
    text.push('\n');
    text.push_str(&cells(&view.cells));
    text
}

fn cells(cells: &[CellView]) -> String {
    let rows = cells.iter().map(|cell| {
        let runs: Vec<String> = cell
            .trials
            .iter()
            .filter(|trial| matches!(trial.state, TrialState::Done | TrialState::Skipped))
            .filter_map(|trial| Some(trial.run?.to_string()))
            .collect();
        vec![
            cell.index.to_string(),
            cell.title.clone(),
            states(cell),
            runs.join(", "),
        ]
    });
    table(&["cell", "configuration", "launches", "runs"], rows)
}

/// `2 done, 1 planned`.
fn states(cell: &CellView) -> String {
    let counted = TrialState::ALL.into_iter().filter_map(|state| {
        let count = cell
            .trials
            .iter()
            .filter(|trial| trial.state == state)
            .count();
        (count > 0).then(|| format!("{count} {state}"))
    });
    counted.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn summary() -> Value {
        json!({
            "id": 3, "name": "NCCL", "state": "paused", "reason": "The budget is used up.",
            "host": [1, "gpu1"], "base": [1, "tuned"], "design": "full grid", "cells": 2,
            "over": 1, "launches": 4, "by": "somebody", "created_at": 0, "started_at": 0,
            "ended_at": null,
        })
    }

    fn trial(number: u32, state: &str, run: Option<i64>) -> Value {
        json!({
            "number": number, "block": number, "state": state, "failures": 0, "reason": "",
            "launch": null, "run": run,
        })
    }

    #[test]
    fn an_experiment_says_where_it_stands_and_which_runs_count() {
        let view: ExperimentView = serde_json::from_value(json!({
            "summary": summary(), "workload": "quick", "launches_per_cell": 2, "looks": [],
            "seed": 1, "relevant_effect": 0.02, "gpu_minutes": null, "spent_gpu_minutes": 1.5,
            "give_back_at": null, "restore": null, "estimate": null,
            "cells": [{
                "index": 0, "title": "LL", "levels": [],
                "trials": [trial(0, "done", Some(7)), trial(1, "failed", Some(8))],
            }],
            "source": "simulated", "doubts": [], "results": null, "may_operate": true,
        }))
        .expect("an experiment");
        let text = experiment(&view);
        assert!(text.contains("paused, 1 of 4 launches over"), "{text}");
        assert!(text.contains("The budget is used up."), "{text}");
        assert!(text.contains("1 done, 1 failed"), "{text}");
        assert!(
            text.lines().last().is_some_and(|line| line.ends_with(" 7")),
            "{text}"
        );
    }

    #[test]
    fn a_list_has_a_line_for_each() {
        let one: ExperimentSummary = serde_json::from_value(summary()).expect("a summary");
        let text = experiments(&[one]);
        assert!(text.contains("1 of 4"), "{text}");
        assert_eq!(text.lines().count(), 2);
        assert!(experiments(&[]).contains("/experiments/new"));
    }
}
