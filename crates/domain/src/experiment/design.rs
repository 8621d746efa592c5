//! Designs: which configurations an experiment measures.

mod check;

use serde::{Deserialize, Serialize};

pub(super) use self::check::is_label;
use self::check::{check_factors, check_labels, check_steps};
use super::{
    ablation::{Step, StepSet, step_sets, title},
    apply::apply_with,
    change::{Change, ChangeError, Target},
    error::ExperimentError,
    factor::{Factor, Level},
    flags::{Flags, PlainFlags},
};
use crate::{engine::EngineKind, ids::ContentHash, profile::ProfileSpec};

/// Most cells: all of NCCL's factors with and without a drafter.
pub const MOST_CELLS: usize = 144;

/// Which configurations are measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "design")]
pub enum Design {
    /// The first level of every factor, and each other level with the first of all
    /// other factors. Cheap, and blind to what two factors do together.
    OneAtATime {
        /// What is varied.
        factors: Vec<Factor>,
    },
    /// Every level with every level of the other factors.
    FullGrid {
        /// What is varied.
        factors: Vec<Factor>,
    },
    /// From one configuration to another, step by step; see [`step_sets`].
    Ablation {
        /// The steps, in the order of the chain.
        steps: Vec<Step>,
    },
    /// Given profiles as they are.
    Profiles,
}

/// One configuration of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its place, from 0; cell 0 is the one that others are compared with.
    pub index: u32,
    /// What people see.
    pub title: String,
    /// The level of each factor, by name; of a step *with* or *without*.
    pub levels: Vec<(String, String)>,
    /// Other choices of levels that come to the same command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<(String, String)>>,
    /// Which steps it has, in an ablation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepSet>,
    /// What is launched.
    pub spec: ProfileSpec,
    /// The profile's hash.
    pub hash: ContentHash,
}

/// A cell before it is made.
struct Sketch {
    title: String,
    levels: Vec<(String, String)>,
    steps: Option<StepSet>,
    changes: Vec<Change>,
}

impl Design {
    /// Checks what can be known without a profile.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn validate(&self) -> Result<(), ExperimentError> {
        match self {
            Self::OneAtATime { factors } | Self::FullGrid { factors } => check_factors(factors)?,
            Self::Ablation { steps } => check_steps(steps)?,
            Self::Profiles => {}
        }
        self.check_overlaps(EngineKind::Other, &PlainFlags)?;
        match self.most_cells() {
            Some(count) if count > MOST_CELLS as u64 => Err(ExperimentError::Cells(count)),
            _ => Ok(()),
        }
    }

    /// How many cells there are, unless some come to the same command; none for given
    /// profiles.
    #[must_use]
    pub fn most_cells(&self) -> Option<u64> {
        let levels = |factor: &Factor| factor.levels.len() as u64;
        match self {
            Self::OneAtATime { factors } => Some(factors.iter().fold(1_u64, |sum, factor| {
                sum.saturating_add(levels(factor).saturating_sub(1))
            })),
            Self::FullGrid { factors } => Some(factors.iter().fold(1_u64, |product, factor| {
                product.saturating_mul(levels(factor))
            })),
            Self::Ablation { steps } => {
                let count = u32::try_from(steps.len().min(32)).unwrap_or(32);
                Some(step_sets(count).len() as u64)
            }
            Self::Profiles => None,
        }
    }

    /// The cells, by the spelling of flags alone ([`PlainFlags`]). `base` is what
    /// changes are made to; `profiles` are those that are compared as they are.
    ///
    /// # Errors
    /// What cannot be made or measured.
    pub fn cells(
        &self,
        base: &ProfileSpec,
        profiles: &[(String, ProfileSpec)],
    ) -> Result<Vec<Cell>, ExperimentError> {
        self.cells_with(base, profiles, &PlainFlags)
    }

    /// The cells, for an engine whose flags are known. Those that come to the same
    /// command are one.
    ///
    /// # Errors
    /// What cannot be made or measured.
    pub fn cells_with(
        &self,
        base: &ProfileSpec,
        profiles: &[(String, ProfileSpec)],
        flags: &dyn Flags,
    ) -> Result<Vec<Cell>, ExperimentError> {
        self.validate()?;
        self.check_overlaps(base.engine, flags)?;
        let sketches = match self {
            Self::OneAtATime { factors } => one_at_a_time(factors),
            Self::FullGrid { factors } => grid(factors),
            Self::Ablation { steps } => {
                for step in steps {
                    if made(base, &step.label, &step.changes, flags)?.hash() == base.hash() {
                        return Err(ExperimentError::EmptyStep(step.label.clone()));
                    }
                }
                ablation(steps)
            }
            Self::Profiles => return of_profiles(profiles),
        };
        let mut cells = Vec::new();
        for sketch in sketches {
            let spec = made(base, &sketch.title, &sketch.changes, flags)?;
            add(&mut cells, sketch, spec)?;
        }
        enough(cells)
    }

    /// Two factors or steps about one thing cannot be told apart.
    fn check_overlaps(&self, engine: EngineKind, flags: &dyn Flags) -> Result<(), ExperimentError> {
        let targets = |changes: &mut dyn Iterator<Item = &Change>| -> Vec<Target> {
            changes.map(|change| change.target(engine, flags)).collect()
        };
        let parts: Vec<(&str, Vec<Target>)> = match self {
            Self::OneAtATime { factors } | Self::FullGrid { factors } => factors
                .iter()
                .map(|factor| {
                    let mut changes = factor.levels.iter().flat_map(|level| &level.changes);
                    (factor.name.as_str(), targets(&mut changes))
                })
                .collect(),
            Self::Ablation { steps } => steps
                .iter()
                .map(|step| (step.label.as_str(), targets(&mut step.changes.iter())))
                .collect(),
            Self::Profiles => Vec::new(),
        };
        for (index, (name, targets)) in parts.iter().enumerate() {
            for (other, others) in parts.iter().skip(index + 1) {
                let both = targets
                    .iter()
                    .find(|target| others.iter().any(|other| target.overlaps(other)));
                if let Some(target) = both {
                    return Err(ExperimentError::Overlap(
                        (*name).to_owned(),
                        (*other).to_owned(),
                        target.to_string(),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn one_at_a_time(factors: &[Factor]) -> Vec<Sketch> {
    let first: Vec<usize> = vec![0; factors.len()];
    let mut sketches = vec![Sketch {
        title: "base".to_owned(),
        ..of_levels(factors, &first)
    }];
    for (index, factor) in factors.iter().enumerate() {
        for (number, level) in factor.levels.iter().enumerate().skip(1) {
            let mut chosen = first.clone();
            chosen[index] = number;
            sketches.push(Sketch {
                title: format!("{} {}", factor.name, level.label),
                ..of_levels(factors, &chosen)
            });
        }
    }
    sketches
}

fn grid(factors: &[Factor]) -> Vec<Sketch> {
    let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in factors {
        choices = choices
            .iter()
            .flat_map(|choice| {
                (0..factor.levels.len()).map(|number| [choice.as_slice(), &[number]].concat())
            })
            .collect();
    }
    choices
        .iter()
        .map(|choice| of_levels(factors, choice))
        .collect()
}

/// The cell with these levels, one number per factor.
fn of_levels(factors: &[Factor], chosen: &[usize]) -> Sketch {
    let levels: Vec<(&Factor, &Level)> = factors
        .iter()
        .zip(chosen)
        .filter_map(|(factor, number)| Some((factor, factor.levels.get(*number)?)))
        .collect();
    let names = levels
        .iter()
        .map(|(factor, level)| format!("{} {}", factor.name, level.label));
    Sketch {
        title: names.collect::<Vec<_>>().join(", "),
        levels: levels
            .iter()
            .map(|(factor, level)| (factor.name.clone(), level.label.clone()))
            .collect(),
        steps: None,
        changes: levels
            .iter()
            .flat_map(|(_, level)| level.changes.clone())
            .collect(),
    }
}

fn ablation(steps: &[Step]) -> Vec<Sketch> {
    let numbered = || (0_u32..).zip(steps);
    let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    step_sets(count)
        .into_iter()
        .map(|set| Sketch {
            title: title(set, steps),
            levels: numbered()
                .map(|(number, step)| {
                    let word = if set.has(number) { "with" } else { "without" };
                    (step.label.clone(), word.to_owned())
                })
                .collect(),
            steps: Some(set),
            changes: numbered()
                .filter(|(number, _)| set.has(*number))
                .flat_map(|(_, step)| step.changes.clone())
                .collect(),
        })
        .collect()
}

fn of_profiles(profiles: &[(String, ProfileSpec)]) -> Result<Vec<Cell>, ExperimentError> {
    if profiles.len() < 2 {
        return Err(ExperimentError::Profiles);
    }
    if profiles.len() > MOST_CELLS {
        return Err(ExperimentError::Cells(profiles.len() as u64));
    }
    check_labels(profiles.iter().map(|(name, _)| name.as_str()))?;
    let mut cells = Vec::new();
    for (name, spec) in profiles {
        spec.check().map_err(|error| ExperimentError::Change {
            at: name.clone(),
            error: ChangeError::Profile(error),
        })?;
        let sketch = Sketch {
            title: name.clone(),
            levels: vec![("profile".to_owned(), name.clone())],
            steps: None,
            changes: Vec::new(),
        };
        add(&mut cells, sketch, spec.clone())?;
    }
    enough(cells)
}

fn made(
    base: &ProfileSpec,
    at: &str,
    changes: &[Change],
    flags: &dyn Flags,
) -> Result<ProfileSpec, ExperimentError> {
    apply_with(base, changes, flags).map_err(|error| ExperimentError::Change {
        at: at.to_owned(),
        error,
    })
}

fn add(cells: &mut Vec<Cell>, sketch: Sketch, spec: ProfileSpec) -> Result<(), ExperimentError> {
    if let Some(what) = spec.masked() {
        return Err(ExperimentError::Masked {
            at: sketch.title,
            what,
        });
    }
    let hash = spec.hash();
    if let Some(same) = cells.iter_mut().find(|cell| cell.hash == hash) {
        same.also.push(sketch.levels);
        return Ok(());
    }
    cells.push(Cell {
        index: u32::try_from(cells.len()).unwrap_or(u32::MAX),
        title: sketch.title,
        levels: sketch.levels,
        also: Vec::new(),
        steps: sketch.steps,
        spec,
        hash,
    });
    Ok(())
}

fn enough(cells: Vec<Cell>) -> Result<Vec<Cell>, ExperimentError> {
    if cells.len() < 2 {
        return Err(ExperimentError::OneCell);
    }
    Ok(cells)
}

#[cfg(test)]
mod tests;
