//! What factors and steps may say.

use super::super::{
    ablation::{LONGEST_LABEL, MOST_STEPS, Step},
    change::Change,
    error::ExperimentError,
    factor::Factor,
};

pub(super) fn check_factors(factors: &[Factor]) -> Result<(), ExperimentError> {
    if factors.is_empty() {
        return Err(ExperimentError::NothingVaried);
    }
    check_labels(factors.iter().map(|factor| factor.name.as_str()))?;
    for factor in factors {
        if factor.levels.len() < 2 {
            return Err(ExperimentError::OneLevel(factor.name.clone()));
        }
        check_labels(factor.levels.iter().map(|level| level.label.as_str()))?;
        for (index, level) in factor.levels.iter().enumerate() {
            let at = || format!("{}: {}", factor.name, level.label);
            check_changes(at, &level.changes)?;
            let same = factor.levels[..index]
                .iter()
                .find(|other| other.changes == level.changes);
            if let Some(other) = same {
                return Err(ExperimentError::SameLevels(
                    factor.name.clone(),
                    other.label.clone(),
                    level.label.clone(),
                ));
            }
        }
    }
    Ok(())
}

pub(super) fn check_steps(steps: &[Step]) -> Result<(), ExperimentError> {
    if steps.is_empty() {
        return Err(ExperimentError::NothingVaried);
    }
    if steps.len() > MOST_STEPS {
        return Err(ExperimentError::Steps(steps.len()));
    }
    check_labels(steps.iter().map(|step| step.label.as_str()))?;
    for step in steps {
        if step.changes.is_empty() {
            return Err(ExperimentError::EmptyStep(step.label.clone()));
        }
        check_changes(|| step.label.clone(), &step.changes)?;
    }
    Ok(())
}

fn check_changes(at: impl Fn() -> String, changes: &[Change]) -> Result<(), ExperimentError> {
    for change in changes {
        change
            .check()
            .map_err(|error| ExperimentError::Change { at: at(), error })?;
    }
    Ok(())
}

/// Are these names, and each another?
pub(super) fn check_labels<'a>(
    labels: impl Iterator<Item = &'a str>,
) -> Result<(), ExperimentError> {
    let mut seen = std::collections::BTreeSet::new();
    for label in labels {
        if !is_label(label) {
            return Err(ExperimentError::Label(label.chars().take(100).collect()));
        }
        if !seen.insert(label.trim()) {
            return Err(ExperimentError::Twice(label.to_owned()));
        }
    }
    Ok(())
}

/// Not blank, not long, on one line.
pub(in super::super) fn is_label(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= LONGEST_LABEL
        && !text.contains(char::is_control)
}
