//! A host on which launches vary and blocks drift.

use std::collections::BTreeMap;

use super::super::{
    super::{
        Budget, Cell, Change, Design, EarlyStop, ExperimentSpec, FigureKey, Step, TrialFigures,
        TrialState, TrialStatus, order,
        samples::{factor, set, sglang, variable},
    },
    Doubt, ExperimentResults, Findings, Standing, results,
    table::Table,
};
use crate::{
    ids::RunId,
    source::Source,
    statistics::{LogEstimate, RELEVANT_EFFECT, holm, simulations::world::Random},
    workload::{Preset, StageKind},
};

/// Spread of a block, which all its launches share: a drift that would hide any effect
/// looked for here, were figures not paired.
const DRIFT: f64 = 0.05;

pub(super) struct World {
    pub(super) spec: ExperimentSpec,
    pub(super) cells: Vec<Cell>,
    pub(super) trials: Vec<TrialStatus>,
    pub(super) figures: Vec<TrialFigures>,
    pub(super) doubts: Vec<Doubt>,
}

pub(super) fn single() -> FigureKey {
    FigureKey {
        metric: "e2e_tps".to_owned(),
        level: StageKind::SingleStream,
    }
}

pub(super) fn at(concurrency: u32) -> FigureKey {
    FigureKey {
        metric: "output_tps".to_owned(),
        level: StageKind::ClosedLoop { concurrency },
    }
}

/// From SGLang as it comes to SGLang tuned: variables of NCCL, then a flag.
pub(super) fn tuning() -> Design {
    let step = |label: &str, changes: Vec<Change>| Step {
        label: label.to_owned(),
        changes,
    };
    Design::Ablation {
        steps: vec![
            step(
                "the NCCL variables",
                vec![
                    variable("NCCL_PROTO", "LL"),
                    variable("NCCL_MIN_NCHANNELS", "8"),
                ],
            ),
            step(
                "--num-continuous-decode-steps 4",
                vec![set("--num-continuous-decode-steps", "4")],
            ),
        ],
    }
}

/// Three levels of each of these flags.
pub(super) fn grid(flags: &[&str]) -> Design {
    Design::FullGrid {
        factors: flags.iter().map(|flag| factor(flag, &["1", "2"])).collect(),
    }
}

/// Two or more profiles as they are.
pub(super) fn profiles(names: &[&str], launches: u32) -> World {
    let profiles: Vec<(String, _)> = names
        .iter()
        .map(|name| ((*name).to_owned(), sglang(&format!("--x-{name}"))))
        .collect();
    World::with(Design::Profiles, launches, &profiles)
}

impl World {
    pub(super) fn new(design: Design, launches: u32) -> Self {
        Self::with(design, launches, &[])
    }

    fn with(
        design: Design,
        launches_per_cell: u32,
        profiles: &[(String, crate::profile::ProfileSpec)],
    ) -> Self {
        let spec = ExperimentSpec {
            name: "tuning".to_owned(),
            design,
            workload: Preset::Quick.workload(),
            launches_per_cell,
            seed: 1,
            early_stop: None,
            budget: Budget::default(),
            through_forward: false,
            relevant_effect: RELEVANT_EFFECT,
        };
        let plan = spec.plan(&sglang(""), profiles).expect("a plan");
        let cells = u32::try_from(plan.cells.len()).expect("few");
        Self {
            trials: order(cells, launches_per_cell, 1)
                .into_iter()
                .map(TrialStatus::planned)
                .collect(),
            spec,
            cells: plan.cells,
            figures: Vec::new(),
            doubts: Vec::new(),
        }
    }

    pub(super) fn looking_after(mut self, looks: &[u32]) -> Self {
        self.spec.early_stop = Some(EarlyStop {
            looks: looks.to_vec(),
        });
        self
    }

    /// Measures the planned trials of the first `blocks` blocks. A cell's launches spread
    /// by `spread` around its true figure, after the block's drift.
    pub(super) fn measure(
        &mut self,
        random: &mut Random,
        blocks: u32,
        spread: f64,
        keys: &[FigureKey],
        truth: impl Fn(u32, &FigureKey) -> f64,
    ) {
        for block in 0..blocks {
            let drift = DRIFT * random.normal();
            let turn = self
                .trials
                .iter_mut()
                .filter(|status| status.trial.block == block)
                .filter(|status| status.state == TrialState::Planned);
            for status in turn {
                status.state = TrialState::Done;
                let cell = status.trial.cell;
                let figures: BTreeMap<FigureKey, f64> = keys
                    .iter()
                    .map(|key| {
                        let noise = drift + spread * random.normal();
                        (key.clone(), truth(cell, key) * noise.exp())
                    })
                    .collect();
                self.figures.push(TrialFigures {
                    cell,
                    block,
                    run: RunId(i64::from(status.trial.number)),
                    figures,
                });
            }
        }
    }

    /// Forgets everything measured, so that it can be measured anew.
    pub(super) fn reset(&mut self) {
        self.figures.clear();
        for status in &mut self.trials {
            status.state = TrialState::Planned;
        }
    }

    pub(super) fn findings(&self) -> Findings<'_> {
        Findings {
            spec: &self.spec,
            cells: &self.cells,
            trials: &self.trials,
            figures: &self.figures,
            doubts: &self.doubts,
            source: Source::Simulated,
            minutes_per_launch: Some(20.0),
        }
    }

    pub(super) fn table(&self, key: &FigureKey) -> Table<'_> {
        Table::of(self.findings(), Standing::of(&self.findings()), key)
    }

    pub(super) fn results(&self) -> ExperimentResults {
        results(&self.findings())
    }

    pub(super) fn set_trials(
        &mut self,
        which: impl Fn(&TrialStatus) -> bool,
        state: TrialState,
        failures: u32,
    ) {
        for status in self.trials.iter_mut().filter(|status| which(status)) {
            status.state = state;
            status.failures = failures;
        }
    }
}

/// Would any of the pairs of a family be told apart?
pub(super) fn any_falls(estimates: &[LogEstimate]) -> bool {
    let p_values: Vec<f64> = estimates
        .iter()
        .map(|estimate| estimate.p_value().expect("a p value"))
        .collect();
    holm(&p_values, 0.05).iter().any(|tested| tested.rejected)
}

/// Does an estimate over five blocks cover the truth at 95 %?
pub(super) fn covers_of_five(estimate: &LogEstimate, truth: f64) -> bool {
    const T: f64 = 2.776_445_105;
    let spread = estimate.spread.expect("a spread");
    assert!((spread.freedom - 4.0).abs() < 1e-9, "{spread:?}");
    (estimate.centre - truth).abs() <= T * spread.standard_error
}

pub(super) fn percent_of(trials: u32, mut happens: impl FnMut() -> bool) -> f64 {
    let count: u32 = (0..trials).map(|_| u32::from(happens())).sum();
    100.0 * f64::from(count) / f64::from(trials)
}
