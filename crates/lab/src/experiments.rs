//! Experiments as people ask for them: planned, shown, paused, resumed, cancelled.

use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    ids::ExperimentId,
    views::experiments::{ExperimentForm, ExperimentList, ExperimentPreview, ExperimentView},
};

use crate::{Lab, LabError};

impl Lab {
    /// What an experiment would do and cost, without starting it.
    ///
    /// # Errors
    /// [`LabError::Invalid`] with the first thing found wrong, [`LabError::NoSuchHost`],
    /// [`LabError::NoSuchProfile`], [`LabError::NoSuchLaunch`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn preview_experiment(
        &self,
        actor: &Actor,
        _form: &ExperimentForm,
    ) -> Result<ExperimentPreview, LabError> {
        authorise(actor, Capability::Launch)?;
        Err(not_yet())
    }

    /// Plans an experiment and queues it.
    ///
    /// # Errors
    /// As [`Self::preview_experiment`].
    pub async fn queue_experiment(
        &self,
        actor: &Actor,
        _form: &ExperimentForm,
    ) -> Result<ExperimentId, LabError> {
        authorise(actor, Capability::Launch)?;
        Err(not_yet())
    }

    /// The newest experiments.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn experiments(&self, actor: &Actor) -> Result<ExperimentList, LabError> {
        authorise(actor, Capability::Read)?;
        Ok(ExperimentList {
            experiments: Vec::new(),
            may_operate: authorise(actor, Capability::Launch).is_ok(),
        })
    }

    /// One experiment with what it found so far.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Forbidden`],
    /// [`LabError::DatabaseUnavailable`].
    pub async fn experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<ExperimentView, LabError> {
        authorise(actor, Capability::Read)?;
        Err(LabError::NoSuchExperiment(experiment))
    }

    /// Asks for a pause: the trial under way is stopped and planned again, and the host
    /// is given back as it was found.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Conflict`] if it is over or paused,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn pause_experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        Err(LabError::NoSuchExperiment(experiment))
    }

    /// Queues a paused experiment again.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Conflict`] if it is not paused,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn resume_experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        Err(LabError::NoSuchExperiment(experiment))
    }

    /// Ends an experiment: the trial under way is stopped, the others are not run.
    ///
    /// # Errors
    /// [`LabError::NoSuchExperiment`], [`LabError::Conflict`] if it is over,
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn cancel_experiment(
        &self,
        actor: &Actor,
        experiment: ExperimentId,
    ) -> Result<(), LabError> {
        authorise(actor, Capability::Launch)?;
        Err(LabError::NoSuchExperiment(experiment))
    }
}

fn not_yet() -> LabError {
    LabError::Conflict("Experiments cannot be run yet.".to_owned())
}
