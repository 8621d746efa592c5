//! Who did what, for people to read.

use std::fmt;

use sqlx::PgConnection;
use tokdyno_domain::access::Actor;

use crate::LabError;

/// What was done.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Queue,
    Cancel,
    Import,
    Delete,
    Rename,
    Share,
    Founding,
}

impl Action {
    const fn word(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Cancel => "cancel",
            Self::Import => "import",
            Self::Delete => "delete",
            Self::Rename => "rename",
            Self::Share => "share",
            Self::Founding => "founding",
        }
    }
}

/// Notes it, in the transaction that does it.
pub(crate) async fn note(
    connection: &mut PgConnection,
    actor: &Actor,
    action: Action,
    subject: impl fmt::Display + Send,
) -> Result<(), LabError> {
    sqlx::query!(
        "INSERT INTO audit_log (team_id, actor_id, action, subject) VALUES ($1, $2, $3, $4)",
        actor.team.0,
        actor.id.0,
        action.word(),
        subject.to_string(),
    )
    .execute(connection)
    .await?;
    Ok(())
}
