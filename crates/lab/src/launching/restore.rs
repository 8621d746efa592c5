//! Bringing back what was put aside: its own way, as a launch of its own that is
//! watched like any other.

use std::time::Duration;

use sqlx::types::Json;
use tokdyno_domain::{
    access::{Actor, Capability, authorise},
    host::Keeper,
    ids::LaunchId,
    launch::{FailureKind, LaunchFailure, LaunchOrigin, LaunchState},
};
use tokdyno_remote::{FailureWord, RemoteError};
use tokio::time::Instant;

use super::{
    aside,
    drive::{Drive, Halt, Step},
    keeper, lease,
    row::Change,
    stop::FAILED_GRACE,
    trouble::{failure_of, is_outage, said},
};
use crate::{Lab, LabError, hosts, launch_rows, steps::Doing, worker::patience::persist};

/// How long a keeper may take to have a process.
const APPEARS: Duration = Duration::from_secs(60);

impl Lab {
    /// Starts a stopped server again that had been adopted, its own way, as a launch
    /// of its own.
    ///
    /// # Errors
    /// [`LabError::NoSuchLaunch`], [`LabError::Conflict`] if it was started from here,
    /// lives, or is being restored already, [`LabError::NoSuchHost`] if its host was
    /// removed, [`LabError::Forbidden`], [`LabError::DatabaseUnavailable`].
    pub async fn restore_launch(
        &self,
        actor: &Actor,
        launch: LaunchId,
    ) -> Result<LaunchId, LabError> {
        authorise(actor, Capability::Launch)?;
        let mut tx = self.0.pool.begin().await?;
        // The host before the launch, as everywhere: all incarnations of a server are
        // on one host, so whoever comes second finds what the first has queued.
        let host = launch_rows::host_of(&mut tx, actor, launch).await?;
        hosts::lock(&mut tx, actor, host).await?;
        let locked = launch_rows::lock(&mut tx, actor, launch).await?;
        let refuse = |why: &str| Err(LabError::Conflict(format!("Launch {launch} {why}")));
        if locked.origin == LaunchOrigin::Launched {
            return refuse(
                "was started from here, and only a server that was adopted is restored. Launch its profile again.",
            );
        }
        if !locked.state.is_over() {
            return refuse("lives, so there is nothing to restore.");
        }
        if let Some(living) = aside::living(&mut tx, launch).await? {
            return refuse(&format!(
                "has been restored already, as launch {}.",
                living.launch
            ));
        }
        let restored = aside::queue_restoring(&mut tx, actor, self.0.id, launch).await?;
        tx.commit().await?;
        Ok(restored)
    }
}

impl Drive {
    /// What this launch owes once it is over: the server that it had put aside. Owed
    /// until the restoring was begun.
    pub(super) async fn restore(&mut self) -> Step {
        let Some(named) = self.launch.plan.restore else {
            return Ok(());
        };
        // Asked of the row: the step that promised it may have been left meanwhile.
        if !persist!(&self.signals.stop, self.owes_restoring())? {
            return Ok(());
        }
        let kept_step = self.launch.state != LaunchState::Stopped;
        if !kept_step {
            self.step(Doing::Restore).await?;
        }
        let signals = std::sync::Arc::clone(&self.signals);
        let mut outcome = None;
        signals
            .unless_left(async {
                outcome = Some(self.bring_back(named).await?);
                Ok(())
            })
            .await?;
        // Tried for as long as it may be: from here on it is for people.
        let remarks = outcome.and_then(|back| back.remark()).into_iter();
        self.change(Change {
            restore_due: Some(false),
            step: (!kept_step).then(String::new),
            remarks: remarks.collect(),
            ..Change::default()
        })
        .await
    }

    pub(super) async fn owes_restoring(&self) -> Result<bool, LabError> {
        let due = sqlx::query_scalar!(
            "SELECT restore_due FROM launches WHERE id = $1",
            self.launch.id.0
        )
        .fetch_one(&self.lab.0.pool)
        .await?;
        Ok(due)
    }

    /// The launch that brings it back; none while the one that was put aside has not
    /// ended yet.
    async fn write_restored(&self, named: LaunchId) -> Result<Option<LaunchId>, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        hosts::lock(&mut tx, &self.launch.actor, self.launch.host).await?;
        lease::hold(&mut tx, &self.lease).await?;
        if let Some(living) = aside::living(&mut tx, named).await? {
            return Ok((!living.ending).then_some(living.launch));
        }
        // Done by a former holder of this launch, and over again since.
        let done = sqlx::query_scalar!(
            "SELECT l.id FROM launches l
             WHERE l.origin = 'restored'
               AND l.restores_id = (SELECT coalesce(restores_id, id) FROM launches WHERE id = $1)
               AND l.created_at >= (SELECT ended_at FROM launches WHERE id = $2)
             ORDER BY l.id DESC LIMIT 1",
            named.0,
            self.launch.id.0,
        )
        .fetch_optional(&mut *tx)
        .await?;
        if let Some(done) = done {
            return Ok(Some(LaunchId(done)));
        }
        let actor = &self.launch.actor;
        let restored = aside::queue_restoring(&mut tx, actor, self.lab.0.id, named).await?;
        tx.commit().await?;
        Ok(Some(restored))
    }

    /// Until what is brought back was started, or could not be. What is still being
    /// stopped is waited for.
    async fn bring_back(&self, named: LaunchId) -> Step<Back> {
        let mut live = self.lab.hear_launches_inside();
        loop {
            let restored = persist!(&self.signals.stop, self.write_restored(named))?;
            if let Some(restored) = restored {
                let back = persist!(&self.signals.stop, self.back(restored))?;
                if !matches!(back.state, LaunchState::Queued | LaunchState::Starting) {
                    return Ok(back);
                }
            }
            // Whatever is heard is a reason to look again.
            let _ = tokio::time::timeout(self.patience.serving, live.recv()).await;
        }
    }

    async fn back(&self, launch: LaunchId) -> Result<Back, LabError> {
        let row = sqlx::query!(
            r#"SELECT state, failure AS "failure: Json<LaunchFailure>" FROM launches WHERE id = $1"#,
            launch.0
        )
        .fetch_one(&self.lab.0.pool)
        .await?;
        Ok(Back {
            launch,
            state: launch_rows::state_of(&row.state)?,
            failure: row.failure.map(|failure| failure.0),
        })
    }

    /// Ends what still lives of launches that are over and belong to the same story:
    /// those that this server was put aside for, and its own former incarnations.
    pub(super) async fn end_those_before(&mut self) -> Step {
        let folders = persist!(&self.signals.stop, self.folders_before())?;
        let prefix = &launch_rows::folder_prefix(self.lab.0.id);
        let asked = self.patiently(|host| async move { host.leftovers(prefix).await });
        let left = asked
            .await?
            .map_err(|error| Halt::Failed(failure_of(&error)))?;
        for left in left.iter().filter(|left| folders.contains(&left.folder)) {
            let grace = FAILED_GRACE.min(self.patience.grace);
            let stopped = self.host.stop(&left.folder, &left.identity, grace).await;
            tracing::info!(launch = %self.launch.id, left.folder, ?stopped, "a leftover was in the way");
        }
        Ok(())
    }

    async fn folders_before(&self) -> Result<Vec<String>, LabError> {
        let root = self.launch.restores.unwrap_or(self.launch.id);
        let folders = sqlx::query_scalar!(
            "SELECT folder FROM launches
             WHERE host_id = $1 AND id <> $2 AND folder <> ''
               AND state IN ('stopped', 'failed', 'lost')
               AND (restores_id = $3 OR (plan ->> 'restore')::bigint IN
                   (SELECT id FROM launches WHERE id = $3 OR restores_id = $3))",
            self.launch.host.0,
            self.launch.id.0,
            root.0,
        )
        .fetch_all(&self.lab.0.pool)
        .await?;
        Ok(folders)
    }

    /// Before something is brought back: the host is waited for, since somebody
    /// relies on it.
    pub(super) async fn prepare_restoring(&mut self) -> Step {
        self.step(Doing::CheckHost).await?;
        let began = Instant::now();
        loop {
            match self.find_kept().await {
                // It was never stopped, or has been started by somebody else.
                Ok(true) => return Ok(()),
                Ok(false) => break,
                Err(error) if is_outage(&error) && began.elapsed() < self.patience.unreachable => {
                    self.not_reached(&error).await?;
                }
                Err(error) => return Err(Halt::Failed(failure_of(&error))),
            }
        }
        self.reached().await?;
        self.end_those_before().await?;
        self.check_port().await?;
        self.check_gpus().await
    }

    /// Does its keeper run it already?
    async fn find_kept(&mut self) -> Result<bool, RemoteError> {
        self.host.check().await?;
        let Some(pid) = keeper::main_process(&self.host, &self.launch.keeper).await? else {
            return Ok(false);
        };
        let facts = self.host.process(pid, &[]).await?;
        self.launch.identity = facts.map(|facts| facts.identity);
        Ok(self.launch.identity.is_some())
    }

    /// Starts it its own way.
    pub(super) async fn start_again(&mut self) -> Step {
        let kept = self.launch.keeper.clone();
        let identity = if kept == Keeper::Process {
            let root = persist!(&self.signals.stop, self.root_folder())?;
            let (folder, root) = (&self.launch.folder.clone(), &root);
            self.start_once(|host| async move { host.respawn_kept(folder, root).await })
                .await?
                .map_err(|error| Halt::Failed(not_restored(&error)))?
        } else {
            let (kept, grace) = (&kept, self.patience.grace);
            let started =
                self.patiently(|host| async move { keeper::start(&host, kept, grace).await });
            match started.await? {
                Ok(Some(Err(sentence))) => {
                    return Err(Halt::Failed(LaunchFailure::new(
                        FailureKind::Activation,
                        sentence,
                    )));
                }
                Ok(_) => {}
                Err(error) => return Err(Halt::Failed(failure_of(&error))),
            }
            let began = Instant::now();
            loop {
                match self.find_kept().await {
                    Ok(true) => break,
                    Ok(false) if began.elapsed() < APPEARS => {
                        tokio::time::sleep(self.patience.loading).await;
                    }
                    Ok(false) => {
                        return Err(Halt::Failed(LaunchFailure::new(
                            FailureKind::Exited,
                            "Its keeper was told to start it, but no process of it appeared",
                        )));
                    }
                    Err(error)
                        if is_outage(&error) && began.elapsed() < self.patience.unreachable =>
                    {
                        self.not_reached(&error).await?;
                    }
                    Err(error) => return Err(Halt::Failed(failure_of(&error))),
                }
            }
            let Some(identity) = self.launch.identity.clone() else {
                return Err(Halt::Lost("Its process vanished at once.".to_owned()));
            };
            identity
        };
        self.change(Change {
            identity: Some(identity),
            step: Some(Doing::Load.words().to_owned()),
            ..Change::to(LaunchState::Loading)
        })
        .await
    }

    /// Folder of the adopted launch, in which its command is kept.
    async fn root_folder(&self) -> Result<String, LabError> {
        let root = self.launch.restores.unwrap_or(self.launch.id);
        let folder = sqlx::query_scalar!("SELECT folder FROM launches WHERE id = $1", root.0)
            .fetch_one(&self.lab.0.pool)
            .await?;
        Ok(folder)
    }
}

/// How bringing something back went.
struct Back {
    launch: LaunchId,
    state: LaunchState,
    failure: Option<LaunchFailure>,
}

impl Back {
    /// What people must know of it.
    fn remark(&self) -> Option<String> {
        let why = match (&self.failure, self.state) {
            (Some(failure), _) => failure.to_string(),
            (None, LaunchState::Lost) => "How it ended is not known.".to_owned(),
            _ => return None,
        };
        Some(format!(
            "What was stopped for this launch is not back: launch {} was to restore it and is {}. {why} Restore it by hand as soon as nothing is in its way.",
            self.launch, self.state
        ))
    }
}

fn not_restored(error: &RemoteError) -> LaunchFailure {
    if said(error, FailureWord::NoSuchFolder) || said(error, FailureWord::NoSuchFile) {
        return LaunchFailure::new(
            FailureKind::Activation,
            "The folder on the host in which its command was kept is gone. Start it by hand and adopt it again",
        );
    }
    failure_of(error)
}
