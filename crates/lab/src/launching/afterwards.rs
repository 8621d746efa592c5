//! What a launch is for, once it is ready.

use tokdyno_domain::run::RunState;

use super::drive::{Drive, Step};
use crate::{LabError, worker::patience::persist};

impl Drive {
    /// Is what was planned over, so that it may be stopped?
    pub(super) async fn plan_is_done(&self) -> Step<bool> {
        if self.launch.plan.measure.is_none() {
            return Ok(true);
        }
        let state = persist!(&self.signals.stop, self.planned_run())?;
        // One that was deleted does not come any more.
        Ok(state.is_none_or(RunState::is_over))
    }

    /// Where the run stands that was queued when the launch became ready: its first.
    async fn planned_run(&self) -> Result<Option<RunState>, LabError> {
        let state = sqlx::query_scalar!(
            "SELECT state FROM runs WHERE launch_id = $1 ORDER BY id LIMIT 1",
            self.launch.id.0,
        )
        .fetch_optional(&self.lab.0.pool)
        .await?;
        Ok(state.and_then(|word| RunState::from_word(&word)))
    }
}
