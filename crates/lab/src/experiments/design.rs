//! From what is to be varied, as asked for, to a design over profiles as they are now.

use std::collections::BTreeSet;

use sqlx::PgConnection;
use tokdyno_domain::{
    access::Actor,
    experiment::{Change, Design, Step, changes_between_with, steps_of},
    ids::{ProfileId, RevisionId},
    profile::ProfileSpec,
    views::experiments::{DesignForm, ExperimentForm},
};
use tokdyno_engines::knowledge::KnownFlags;

use crate::{LabError, profile_rows};

/// A profile as it is now.
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) revision: RevisionId,
    pub(super) spec: ProfileSpec,
}

/// Every change that a design makes.
pub(super) fn changes(design: &Design) -> Vec<&Change> {
    match design {
        Design::OneAtATime { factors } | Design::FullGrid { factors } => factors
            .iter()
            .flat_map(|factor| &factor.levels)
            .flat_map(|level| &level.changes)
            .collect(),
        Design::Ablation { steps } => steps.iter().flat_map(|step| &step.changes).collect(),
        Design::Profiles => Vec::new(),
    }
}

/// A design, the profiles that it compares as they are, and the steps of an ablation.
type Designed = (Design, Vec<(String, ProfileSpec)>, Vec<Step>);

/// What is varied, as asked for.
pub(super) async fn design_of(
    connection: &mut PgConnection,
    actor: &Actor,
    form: &ExperimentForm,
    base: &Chosen,
) -> Result<Designed, LabError> {
    Ok(match &form.design {
        DesignForm::OneAtATime { factors } => {
            let factors = factors.clone();
            (Design::OneAtATime { factors }, Vec::new(), Vec::new())
        }
        DesignForm::FullGrid { factors } => {
            let factors = factors.clone();
            (Design::FullGrid { factors }, Vec::new(), Vec::new())
        }
        DesignForm::Ablation { to, steps } => {
            let to = chosen(connection, actor, *to).await?;
            let steps = steps_between(base, &to, steps)?;
            let design = Design::Ablation {
                steps: steps.clone(),
            };
            (design, Vec::new(), steps)
        }
        DesignForm::Profiles { profiles } => {
            let mut compared = vec![(base.name.clone(), base.spec.clone())];
            for profile in profiles {
                let chosen = chosen(connection, actor, *profile).await?;
                compared.push((chosen.name, chosen.spec));
            }
            (Design::Profiles, compared, Vec::new())
        }
    })
}

/// The steps from one profile to another: as they were grouped, if they lead there, or
/// as usual.
fn steps_between(base: &Chosen, to: &Chosen, grouped: &[Step]) -> Result<Vec<Step>, LabError> {
    let changes = changes_between_with(&base.spec, &to.spec, &KnownFlags)
        .map_err(|error| LabError::Invalid(error.to_string()))?;
    if changes.is_empty() {
        return Err(LabError::Invalid(format!(
            "{} and {} come to the same command, so there is nothing to take apart. Choose another profile.",
            base.name, to.name
        )));
    }
    if grouped.is_empty() {
        return Ok(steps_of(&changes, true));
    }
    let named: Vec<&Change> = grouped.iter().flat_map(|step| &step.changes).collect();
    let same = named.len() == changes.len() && changes.iter().all(|change| named.contains(&change));
    if !same {
        return Err(LabError::Invalid(format!(
            "The steps do not lead from {} to {}: one of the profiles was changed meanwhile, or a change is missing. Let the steps be made anew.",
            base.name, to.name
        )));
    }
    Ok(grouped.to_vec())
}

/// Holds the profiles of a form until the transaction ends. By rising numbers, so that
/// of two forms that name the same ones neither waits for the other.
pub(super) async fn hold_profiles(
    connection: &mut PgConnection,
    actor: &Actor,
    form: &ExperimentForm,
) -> Result<(), LabError> {
    let mut profiles = BTreeSet::from([form.base]);
    match &form.design {
        DesignForm::OneAtATime { .. } | DesignForm::FullGrid { .. } => {}
        DesignForm::Ablation { to, .. } => {
            profiles.insert(*to);
        }
        DesignForm::Profiles { profiles: others } => profiles.extend(others),
    }
    for profile in profiles {
        profile_rows::lock(connection, actor, profile).await?;
    }
    Ok(())
}

/// A profile's newest revision.
pub(super) async fn chosen(
    connection: &mut PgConnection,
    actor: &Actor,
    profile: ProfileId,
) -> Result<Chosen, LabError> {
    let held = profile_rows::read(connection, actor, profile).await?;
    held.refuse_archived()?;
    let newest = profile_rows::newest(connection, profile).await?;
    Ok(Chosen {
        name: held.name,
        revision: newest.id,
        spec: newest.spec,
    })
}
