//! Experiments as the server would tell of them.

use std::collections::BTreeMap;

use tokdyno_domain::{
    experiment::{
        Budget, Cell, Change, Design, ExperimentSpec, ExperimentState, FigureKey, Plan, Step,
        TrialFigures, TrialState, TrialStatus, plain_factor, results,
    },
    ids::{ExperimentId, HostId, LaunchId, ProfileId, RunId},
    source::Source,
    timestamp::Timestamp,
    views::{
        ChartView,
        experiments::{CellView, ExperimentSummary, ExperimentView, TrialView},
    },
    workload::{Preset, StageKind},
};

use super::super::new_experiment::samples::sglang;

/// Single-stream speed in tok/s: none is there twice, so that each can be found again.
fn speed_in_grid(cell: &Cell, block: u32) -> f64 {
    60.0 + 4.0 * f64::from(cell.index) + 0.1 * f64::from(block)
}

/// The first step is worth 40 %, the second nothing; blocks drift.
fn speed_in_ablation(cell: &Cell, block: u32) -> f64 {
    let tuned = cell.steps.is_some_and(|steps| steps.has(0));
    let noise = 0.01 * f64::from((7 * cell.index + 5 * block) % 4);
    (60.0 + f64::from(block) + noise) * if tuned { 1.4 } else { 1.0 }
}

/// A grid of 3 × 3, launched twice each, of which the first `over` launches are done and
/// the cell 4 has failed.
pub(super) fn grid(over: usize) -> ExperimentView<ChartView> {
    let levels = |levels: &str| tokdyno_domain::experiment::plain_levels(levels);
    let spec = spec(
        Design::FullGrid {
            factors: vec![
                plain_factor("NCCL_PROTO", &levels("as it is, LL, Simple")),
                plain_factor("NCCL_ALGO", &levels("as it is, Ring, Tree")),
            ],
        },
        2,
    );
    let plan = spec.plan(&sglang(), &[]).expect("a plan");
    let trials: Vec<TrialStatus> = plan
        .trials
        .iter()
        .enumerate()
        .map(|(place, trial)| {
            let state = match (place < over, trial.cell) {
                (true, 4) => TrialState::Failed,
                (true, _) => TrialState::Done,
                (false, _) => TrialState::Planned,
            };
            TrialStatus {
                trial: *trial,
                state,
                failures: if state == TrialState::Failed { 2 } else { 0 },
            }
        })
        .collect();
    view(&spec, &plan, &trials, speed_in_grid)
}

/// Two steps, launched four times each, to the end.
pub(super) fn ablation() -> ExperimentView<ChartView> {
    let step = |label: &str, change| Step {
        label: label.to_owned(),
        changes: vec![change],
    };
    let variables = Change::SetVariable {
        name: "NCCL_PROTO".to_owned(),
        value: "LL".to_owned(),
    };
    let flag = Change::SetArgument {
        flag: "--num-continuous-decode-steps".to_owned(),
        value: Some("4".to_owned()),
    };
    let steps = vec![
        step("NCCL variables", variables),
        step("decode steps", flag),
    ];
    let spec = spec(Design::Ablation { steps }, 4);
    let plan = spec.plan(&sglang(), &[]).expect("a plan");
    let trials: Vec<TrialStatus> = plan
        .trials
        .iter()
        .map(|trial| TrialStatus {
            trial: *trial,
            state: TrialState::Done,
            failures: 0,
        })
        .collect();
    view(&spec, &plan, &trials, speed_in_ablation)
}

fn spec(design: Design, launches_per_cell: u32) -> ExperimentSpec {
    ExperimentSpec {
        name: "NCCL".to_owned(),
        design,
        workload: Preset::Quick.workload(),
        launches_per_cell,
        seed: 7,
        early_stop: None,
        budget: Budget::default(),
        through_forward: false,
        relevant_effect: 0.02,
    }
}

fn view(
    spec: &ExperimentSpec,
    plan: &Plan,
    trials: &[TrialStatus],
    speed: fn(&Cell, u32) -> f64,
) -> ExperimentView<ChartView> {
    let run = |number: u32| RunId(100 + i64::from(number));
    let figures: Vec<TrialFigures> = trials
        .iter()
        .filter(|status| status.state == TrialState::Done)
        .map(|status| TrialFigures {
            cell: status.trial.cell,
            block: status.trial.block,
            run: run(status.trial.number),
            figures: BTreeMap::from([(
                FigureKey {
                    metric: "e2e_tps".to_owned(),
                    level: StageKind::SingleStream,
                },
                speed(&plan.cells[status.trial.cell as usize], status.trial.block),
            )]),
        })
        .collect();
    let found = (!figures.is_empty()).then(|| {
        results::results(&results::Findings {
            spec,
            cells: &plan.cells,
            trials,
            figures: &figures,
            doubts: &[],
            source: Source::Simulated,
            minutes_per_launch: None,
        })
    });
    let over = trials
        .iter()
        .filter(|status| status.state != TrialState::Planned)
        .count();
    let trial = |status: &TrialStatus| TrialView {
        number: status.trial.number,
        block: status.trial.block,
        state: status.state,
        failures: status.failures,
        reason: String::new(),
        launch: (status.state != TrialState::Planned)
            .then(|| LaunchId(i64::from(status.trial.number))),
        run: (status.state == TrialState::Done).then(|| run(status.trial.number)),
    };
    let view: ExperimentView = ExperimentView {
        summary: ExperimentSummary {
            id: ExperimentId(3),
            name: spec.name.clone(),
            state: if over == trials.len() {
                ExperimentState::Finished
            } else {
                ExperimentState::Running
            },
            reason: String::new(),
            host: (HostId(1), "gpu1".to_owned()),
            base: (ProfileId(1), "base".to_owned()),
            design: "full grid of NCCL_PROTO × NCCL_ALGO".to_owned(),
            cells: u32::try_from(plan.cells.len()).expect("few"),
            over: u32::try_from(over).expect("few"),
            launches: u32::try_from(trials.len()).expect("few"),
            by: "somebody".to_owned(),
            created_at: Timestamp(0),
            started_at: None,
            ended_at: None,
        },
        workload: "quick".to_owned(),
        launches_per_cell: spec.launches_per_cell,
        looks: Vec::new(),
        seed: spec.seed,
        relevant_effect: spec.relevant_effect,
        gpu_minutes: None,
        spent_gpu_minutes: 0.0,
        give_back_at: None,
        restore: None,
        estimate: None,
        cells: plan
            .cells
            .iter()
            .map(|cell| CellView {
                index: cell.index,
                title: cell.title.clone(),
                levels: cell.levels.clone(),
                trials: trials
                    .iter()
                    .filter(|status| status.trial.cell == cell.index)
                    .map(trial)
                    .collect(),
            })
            .collect(),
        source: Source::Simulated,
        doubts: Vec::new(),
        results: found,
        may_operate: true,
    };
    view.map_charts(crate::draw::chart_view)
}
