//! Who did what, from where, for people to read.

#[cfg(test)]
mod store_tests;

use std::{fmt, future::Future};

use sqlx::PgConnection;
use tokdyno_domain::{
    access::{Actor, Capability, Role, authorise},
    timestamp::Timestamp,
    views::servers::{AuditEntry, AuditPage, Me},
};

use crate::{Lab, LabError, clean};

/// Entries a page.
const PAGE: i64 = 100;
/// Longest detail and origin, in characters.
const LONGEST: usize = 500;

tokio::task_local! {
    static ORIGIN: String;
}

/// Does some work on behalf of somebody at this address, or of the command line:
/// what it notes in the audit log says so.
pub async fn acting_from<F: Future>(origin: impl Into<String>, work: F) -> F::Output {
    ORIGIN.scope(origin.into(), work).await
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Queue,
    Cancel,
    Import,
    Delete,
    Rename,
    Share,
    Gate,
    GateDecide,
    Founding,
    HostAdd,
    HostEdit,
    HostRemove,
    ProfileAdd,
    ProfileEdit,
    ProfileArchive,
    Launch,
    Adopt,
    Stop,
    Restore,
    CleanUp,
    GiveBack,
    SignIn,
    SignOut,
    SignInRefused,
    Password,
    ExperimentPlan,
    ExperimentPause,
    ExperimentResume,
    ExperimentCancel,
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
            Self::Gate => "gate",
            Self::GateDecide => "gate_decide",
            Self::Founding => "founding",
            Self::HostAdd => "host_add",
            Self::HostEdit => "host_edit",
            Self::HostRemove => "host_remove",
            Self::ProfileAdd => "profile_add",
            Self::ProfileEdit => "profile_edit",
            Self::ProfileArchive => "profile_archive",
            Self::Launch => "launch",
            Self::Adopt => "adopt",
            Self::Stop => "stop",
            Self::Restore => "restore",
            Self::CleanUp => "clean_up",
            Self::GiveBack => "give_back",
            Self::SignIn => "sign_in",
            Self::SignOut => "sign_out",
            Self::SignInRefused => "sign_in_refused",
            Self::Password => "password",
            Self::ExperimentPlan => "experiment_plan",
            Self::ExperimentPause => "experiment_pause",
            Self::ExperimentResume => "experiment_resume",
            Self::ExperimentCancel => "experiment_cancel",
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
    note_more(connection, actor, action, subject, "").await
}

/// The same with more to say about it.
pub(crate) async fn note_more(
    connection: &mut PgConnection,
    actor: &Actor,
    action: Action,
    subject: impl fmt::Display + Send,
    detail: &str,
) -> Result<(), LabError> {
    let origin = ORIGIN.try_with(Clone::clone).unwrap_or_default();
    sqlx::query!(
        "INSERT INTO audit_log (team_id, actor_id, action, subject, detail, origin)
         VALUES ($1, $2, $3, $4, $5, $6)",
        actor.team.0,
        actor.id.0,
        action.word(),
        subject.to_string(),
        short(detail),
        short(&origin),
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn short(text: &str) -> String {
    clean::text(text).chars().take(LONGEST).collect()
}

impl Lab {
    /// Who did what, newest first: a hundred entries before this number.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn audit(&self, actor: &Actor, before: Option<i64>) -> Result<AuditPage, LabError> {
        authorise(actor, Capability::ReadAudit)?;
        // One more than a page tells whether there is another.
        let rows = sqlx::query!(
            r#"SELECT l.id, l.created_at, a.name AS by, l.action, l.subject, l.detail, l.origin
               FROM audit_log l JOIN actors a ON a.id = l.actor_id
               WHERE l.team_id = $1 AND ($2::bigint IS NULL OR l.id < $2)
               ORDER BY l.id DESC LIMIT $3"#,
            actor.team.0,
            before,
            PAGE + 1,
        )
        .fetch_all(&self.0.pool)
        .await?;
        let mut entries: Vec<AuditEntry> = rows
            .into_iter()
            .map(|row| AuditEntry {
                id: row.id,
                at: Timestamp::from_datetime(row.created_at),
                by: row.by,
                link: link(&row.action, &row.subject),
                action: row.action,
                subject: row.subject,
                detail: row.detail,
                origin: row.origin,
            })
            .collect();
        let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
        let more = entries.len() > page;
        entries.truncate(page);
        let before = entries.last().filter(|_| more).map(|entry| entry.id);
        Ok(AuditPage { entries, before })
    }

    /// Who the reader is to the program.
    ///
    /// # Errors
    /// [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn me(&self, actor: &Actor) -> Result<Me, LabError> {
        authorise(actor, Capability::Read)?;
        let row = sqlx::query!(
            r#"SELECT (SELECT name FROM actors WHERE id = $1) AS name,
                   EXISTS (SELECT 1 FROM operator_password) AS "password_set!""#,
            actor.id.0,
        )
        .fetch_one(&self.0.pool)
        .await?;
        Ok(Me {
            name: row.name.unwrap_or_default(),
            may_operate: may_operate(actor),
            signed_in: actor.id == Actor::SIGNED_IN.id,
            password_set: row.password_set,
        })
    }
}

/// May this reader launch, and edit hosts and profiles?
pub(crate) fn may_operate(actor: &Actor) -> bool {
    actor.role >= Role::Operator
}

/// The page about what an entry names. What was deleted or removed has none.
fn link(action: &str, subject: &str) -> Option<String> {
    if matches!(action, "delete" | "host_remove") {
        return None;
    }
    let (kind, name) = subject.split_once(' ')?;
    let folder = match kind {
        "run" => "runs",
        "launch" => "servers",
        "host" => "hosts",
        "profile" => "profiles",
        "experiment" => "experiments",
        "comparison" => "c",
        _ => return None,
    };
    // Names of all of these can stand in an address as they are.
    Some(format!("/{folder}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_links_to_what_it_names_unless_that_is_gone() {
        assert_eq!(link("stop", "launch 7").as_deref(), Some("/servers/7"));
        assert_eq!(
            link("profile_edit", "profile sglang-nccl").as_deref(),
            Some("/profiles/sglang-nccl")
        );
        assert_eq!(
            link("experiment_pause", "experiment 7").as_deref(),
            Some("/experiments/7")
        );
        assert_eq!(link("delete", "run 7"), None);
        assert_eq!(link("sign_in", "operator"), None);
    }
}
