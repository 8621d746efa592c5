//! What an experiment is, as ordered.

use serde::{Deserialize, Serialize};

use super::{
    design::{Cell, Design, is_label},
    error::ExperimentError,
    estimate::Budget,
    flags::{Flags, PlainFlags},
    order::{Trial, order},
    settle::EarlyStop,
};
use crate::{profile::ProfileSpec, statistics::RELEVANT_EFFECT, workload::Workload};

/// Most launches of a cell.
pub const MOST_LAUNCHES_PER_CELL: u32 = 30;
/// Most trials of an experiment.
pub const MOST_TRIALS: u64 = 1000;

/// An experiment as ordered. Build one, then [`validate`](Self::validate) it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentSpec {
    /// The name people see.
    pub name: String,
    /// Which configurations are measured.
    pub design: Design,
    /// What is sent to each launch.
    pub workload: Workload,
    /// How often each configuration is started anew and measured. The launch is the
    /// unit of every statement: repeats within one do not replace it.
    pub launches_per_cell: u32,
    /// Seed of the order.
    #[serde(default)]
    pub seed: u64,
    /// Whether cells may end before all their launches.
    #[serde(default)]
    pub early_stop: Option<EarlyStop>,
    /// What it may cost.
    #[serde(default)]
    pub budget: Budget,
    /// Measure from the dashboard's machine through a port forward, rather than with
    /// the meter on the host itself.
    #[serde(default)]
    pub through_forward: bool,
    /// Smallest effect that matters, as a share.
    #[serde(default = "relevant_effect")]
    pub relevant_effect: f64,
}

const fn relevant_effect() -> f64 {
    RELEVANT_EFFECT
}

/// What is done: the cells, and the order of their launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The configurations.
    pub cells: Vec<Cell>,
    /// Their launches.
    pub trials: Vec<Trial>,
}

impl ExperimentSpec {
    /// Checks what can be known without a profile.
    ///
    /// # Errors
    /// The first thing found wrong, a sentence with cause and remedy.
    pub fn validate(&self) -> Result<(), ExperimentError> {
        if !is_label(&self.name) {
            return Err(ExperimentError::Name);
        }
        self.workload.validate()?;
        if !(1..=MOST_LAUNCHES_PER_CELL).contains(&self.launches_per_cell) {
            return Err(ExperimentError::Launches(self.launches_per_cell));
        }
        if !(self.relevant_effect > 0.0 && self.relevant_effect <= 0.5) {
            return Err(ExperimentError::RelevantEffect(self.relevant_effect));
        }
        if let Some(minutes) = self.budget.gpu_minutes
            && !(minutes > 0.0 && minutes.is_finite())
        {
            return Err(ExperimentError::Budget(minutes));
        }
        if let Some(early_stop) = &self.early_stop
            && !early_stop.fits(self.launches_per_cell)
        {
            return Err(ExperimentError::Looks);
        }
        self.design.validate()
    }

    /// Cells and trials, by the spelling of flags alone ([`PlainFlags`]).
    ///
    /// # Errors
    /// What cannot be planned.
    pub fn plan(
        &self,
        base: &ProfileSpec,
        profiles: &[(String, ProfileSpec)],
    ) -> Result<Plan, ExperimentError> {
        self.plan_with(base, profiles, &PlainFlags)
    }

    /// Cells and trials, for an engine whose flags are known.
    ///
    /// # Errors
    /// What cannot be planned.
    pub fn plan_with(
        &self,
        base: &ProfileSpec,
        profiles: &[(String, ProfileSpec)],
        flags: &dyn Flags,
    ) -> Result<Plan, ExperimentError> {
        self.validate()?;
        let cells = self.design.cells_with(base, profiles, flags)?;
        let count = cells.len() as u64 * u64::from(self.launches_per_cell);
        if count > MOST_TRIALS {
            return Err(ExperimentError::Trials(count));
        }
        let trials = order(
            u32::try_from(cells.len()).unwrap_or(u32::MAX),
            self.launches_per_cell,
            self.seed,
        );
        Ok(Plan { cells, trials })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            factor::{drafter_factor, nccl_factors},
            samples::{factor, sglang},
        },
        *,
    };
    use crate::workload::Preset;

    fn sample() -> ExperimentSpec {
        ExperimentSpec {
            name: "channels".to_owned(),
            design: Design::FullGrid {
                factors: vec![factor("--a", &["1", "2"])],
            },
            workload: Preset::Quick.workload(),
            launches_per_cell: 4,
            seed: 7,
            early_stop: Some(EarlyStop { looks: vec![2, 3] }),
            budget: Budget::default(),
            through_forward: false,
            relevant_effect: RELEVANT_EFFECT,
        }
    }

    #[test]
    fn a_plan_has_every_cell_in_every_block() {
        let spec = sample();
        let plan = spec.plan(&sglang(""), &[]).expect("a plan");
        assert_eq!(plan.cells.len(), 3);
        assert_eq!(plan.trials.len(), 12);
        assert_eq!(spec.plan(&sglang(""), &[]), Ok(plan));
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let mut wire = serde_json::to_value(sample()).expect("JSON");
        let object = wire.as_object_mut().expect("an object");
        for field in [
            "seed",
            "early_stop",
            "budget",
            "through_forward",
            "relevant_effect",
        ] {
            object.remove(field);
        }
        let read: ExperimentSpec = serde_json::from_value(wire).expect("it reads back");
        let expected = ExperimentSpec {
            seed: 0,
            early_stop: None,
            ..sample()
        };
        assert_eq!(read, expected);
        let whole = serde_json::to_string(&sample()).expect("JSON");
        assert_eq!(
            serde_json::from_str::<ExperimentSpec>(&whole).expect("it reads back"),
            sample()
        );
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        type Spoil = fn(&mut ExperimentSpec);
        let cases: [(Spoil, &str); 10] = [
            (|s| s.name = " ".to_owned(), "needs a name"),
            (|s| s.workload.levels.clear(), "load level"),
            (|s| s.launches_per_cell = 0, "0 launches"),
            (|s| s.launches_per_cell = 31, "31 launches"),
            (|s| s.relevant_effect = f64::NAN, "smallest effect"),
            (
                |s| s.relevant_effect = 0.75,
                "smallest effect of 75 % is not possible. Give more than 0 % and at most 50 %",
            ),
            (|s| s.budget.gpu_minutes = Some(0.0), "0 GPU minutes"),
            (
                |s| s.early_stop = Some(EarlyStop { looks: vec![4] }),
                "looks",
            ),
            (
                |s| s.design = Design::OneAtATime { factors: vec![] },
                "Nothing is varied",
            ),
            (
                |s| {
                    let mut factors = nccl_factors();
                    factors.push(drafter_factor("/d"));
                    s.design = Design::FullGrid { factors };
                    s.launches_per_cell = 7;
                },
                "1008 launches in all",
            ),
        ];
        assert_eq!(sample().validate(), Ok(()));
        for (spoil, part) in cases {
            let mut spec = sample();
            spoil(&mut spec);
            let said = spec.plan(&sglang(""), &[]).expect_err(part).to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}
