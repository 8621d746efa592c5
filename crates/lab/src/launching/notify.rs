//! What pages hear of launches.

use sqlx::PgConnection;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    live::LaunchEvent,
};
use tokio::sync::broadcast;

use crate::{Lab, LabError};

/// The channel of the database on which launches are announced.
pub(crate) const CHANNEL: &str = "tokdyno_launches";

impl Lab {
    /// Events of all launches from now on. None is kept: whoever sees
    /// [`RecvError::Lagged`](broadcast::error::RecvError::Lagged), or comes back
    /// after a while, fetches the launch afresh.
    ///
    /// # Errors
    /// [`LabError::Forbidden`].
    pub fn hear_launches(
        &self,
        actor: &Actor,
    ) -> Result<broadcast::Receiver<LaunchEvent>, LabError> {
        authorise(actor, Capability::Read)?;
        Ok(self.hear_launches_inside())
    }

    /// The same for the laboratory itself.
    pub(crate) fn hear_launches_inside(&self) -> broadcast::Receiver<LaunchEvent> {
        self.0.launches.subscribe()
    }
}

/// Announces an event when the transaction is committed.
pub(crate) async fn announce(
    connection: &mut PgConnection,
    event: &LaunchEvent,
) -> Result<(), LabError> {
    let text = serde_json::to_string(event)
        .map_err(|error| LabError::internal("writing an event", error))?;
    sqlx::query!("SELECT pg_notify($1, $2)", CHANNEL, text)
        .fetch_one(connection)
        .await?;
    Ok(())
}
