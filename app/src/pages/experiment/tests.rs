//! What the page says of an experiment, as the server writes it.

use std::collections::BTreeSet;

use leptos::{prelude::*, reactive::owner::Owner};
use tokdyno_domain::{
    experiment::ExperimentState,
    views::{ChartView, experiments::ExperimentView},
};

use super::{
    actions::Actions, attribution::Attributions, board::Board, data::ExperimentData,
    heat::HeatMaps, results::Results, samples,
};

fn html(view: ExperimentView<ChartView>, of: impl FnOnce(ExperimentData) -> AnyView) -> String {
    Owner::new().with(|| of(ExperimentData::new(view)).to_html())
}

/// The text of each field of the heat map, mark-up left out.
fn fields(html: &str) -> Vec<String> {
    html.split("<td class=\"heat-field")
        .skip(1)
        .filter_map(|rest| rest.split("</td>").next())
        .map(|field| {
            let mut inside = true;
            field
                .chars()
                .skip_while(|letter| *letter != '>')
                .filter(|letter| {
                    match letter {
                        '<' => inside = true,
                        '>' => inside = false,
                        _ => return !inside,
                    }
                    false
                })
                .collect()
        })
        .collect()
}

#[test]
fn a_grid_has_a_field_for_every_combination_that_leads_to_its_runs() {
    let html = html(samples::grid(18), |data| {
        view! { <HeatMaps data/> }.into_any()
    });
    let fields = fields(&html);
    assert_eq!(fields.len(), 9, "{html}");
    // 60.0 and 60.1 tok/s.
    assert!(fields[0].contains("60.0"), "{:?}", fields[0]);
    assert!(fields[0].contains("2 launches"), "{:?}", fields[0]);
    assert!(fields[0].contains("compared with"), "{:?}", fields[0]);
    assert!(fields[8].contains("92.0"), "{:?}", fields[8]);
    assert!(fields[8].contains("better"), "{:?}", fields[8]);
    // What failed says so, and is no figure.
    assert!(fields[4].contains("failed"), "{:?}", fields[4]);
    assert!(!fields[4].contains("better"), "{:?}", fields[4]);
    for run in [100, 108] {
        assert!(html.contains(&format!("href=\"/runs/{run}\"")), "{html}");
    }
    assert!(html.contains("NCCL_PROTO ↓ NCCL_ALGO →"), "{html}");
}

#[test]
fn a_figure_that_is_not_judged_is_pale() {
    let tints = |view: ExperimentView<ChartView>| -> BTreeSet<String> {
        let html = html(view, |data| view! { <HeatMaps data/> }.into_any());
        html.split("heat-better-")
            .skip(1)
            .map(|rest| rest.chars().take(1).collect())
            .collect()
    };
    let mut view = samples::grid(18);
    assert!(tints(view.clone()).contains("4"));
    let results = view.results.as_mut().expect("figures");
    for map in &mut results.heat_maps {
        for entry in &mut map.entries {
            entry.verdict = None;
        }
    }
    assert_eq!(tints(view), BTreeSet::from(["1".to_owned()]));
}

#[test]
fn an_experiment_that_stops_by_itself_can_still_be_cancelled() {
    let in_state = |state| {
        let mut view = samples::grid(1);
        view.summary.state = state;
        let html = html(view, |data| view! { <Actions data/> }.into_any());
        html.contains("Cancel experiment")
    };
    assert!(in_state(ExperimentState::Stopping));
    assert!(!in_state(ExperimentState::Cancelled));
}

#[test]
fn what_is_to_come_is_planned_and_never_nought() {
    let html = html(samples::grid(1), |data| {
        view! { <HeatMaps data/> }.into_any()
    });
    let fields = fields(&html);
    let planned = fields.iter().filter(|field| field.starts_with("planned"));
    assert_eq!(planned.count(), 8, "{html}");
    let measured: Vec<&String> = fields
        .iter()
        .filter(|field| field.contains("one launch"))
        .collect();
    assert_eq!(measured.len(), 1, "{html}");
}

#[test]
fn without_a_figure_the_page_says_what_comes_next() {
    let html = html(samples::grid(0), |data| {
        view! { <Results data/> }.into_any()
    });
    assert!(html.contains("There is no figure yet"), "{html}");
    assert!(!html.contains("heat-field"), "{html}");
}

#[test]
fn the_board_has_every_launch_with_a_word() {
    let html = html(samples::grid(9), |data| view! { <Board data/> }.into_any());
    assert_eq!(html.matches(">planned<").count(), 9, "{html}");
    assert_eq!(html.matches(">done<").count(), 8, "{html}");
    assert_eq!(html.matches(">failed<").count(), 1, "{html}");
    assert!(html.contains("Block 2"), "{html}");
}

#[test]
fn an_ablation_says_what_comes_from_which_step_with_its_share() {
    let html = html(samples::ablation(), |data| {
        view! { <Attributions data/> }.into_any()
    });
    let row = |step: &str| {
        html.split("<tr>")
            .find(|row| row.contains(&format!("<th scope=\"row\">{step}")))
            .unwrap_or_else(|| panic!("{step} in {html}"))
            .to_owned()
    };
    let (variables, flag) = (row("NCCL variables"), row("decode steps"));
    assert!(variables.contains("changes it"), "{variables}");
    assert!(variables.contains("+40.0 %"), "{variables}");
    assert!(variables.contains("share-bar"), "{variables}");
    assert!(flag.contains("no clear change"), "{flag}");
    assert!(!flag.contains("changes it"), "{flag}");
    // Of B and of A, four launches each.
    assert_eq!(row("All of them").matches("href=\"/runs/").count(), 8);
}
