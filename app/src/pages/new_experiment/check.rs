//! What can be found wrong with a plan without asking the server.

use tokdyno_domain::{
    experiment::{Design, ExperimentError},
    views::experiments::{DesignForm, ExperimentForm},
    workload::Workload,
};

use super::super::new_run::{Field, Wrong, field_of};

/// By the very rules of the server, but for what only it knows: the profiles.
pub(super) fn check(form: &ExperimentForm, workload: Workload) -> Result<(), Wrong> {
    let design = match &form.design {
        DesignForm::OneAtATime { factors } => Design::OneAtATime {
            factors: factors.clone(),
        },
        DesignForm::FullGrid { factors } => Design::FullGrid {
            factors: factors.clone(),
        },
        DesignForm::Ablation { .. } | DesignForm::Profiles { .. } => Design::Profiles,
    };
    let spec = form.spec(design, workload, form.seed.unwrap_or_default());
    spec.validate().map_err(|error| Wrong {
        field: match &error {
            ExperimentError::Name => Field::ExperimentName,
            ExperimentError::Launches(_) | ExperimentError::Trials(_) => Field::Launches,
            ExperimentError::Looks => Field::Looks,
            ExperimentError::RelevantEffect(_) => Field::Effect,
            ExperimentError::Budget(_) => Field::Budget,
            ExperimentError::Workload(error) => field_of(error, &form.workload),
            _ => Field::Varied,
        },
        sentence: error.to_string(),
    })
}
