//! Ending what runs on a host, its own way, and making sure that it is gone.

use std::time::Duration;

use tokdyno_domain::{
    host::{Keeper, ProcessIdentity},
    launch::{FailureKind, LaunchFailure, LaunchState},
};
use tokdyno_remote::{ProcessStatus, RemoteError, Signal};
use tokio::time::Instant;

use super::{
    drive::{Drive, Halt, Step},
    give_back, keeper, lease,
    row::{self, Change},
    trouble::is_outage,
};
use crate::{
    LabError,
    audit::{self, Action},
    worker::patience::persist,
};

/// How long a failed launch's processes get.
pub(super) const FAILED_GRACE: Duration = Duration::from_secs(10);
/// How long a killed process may take to vanish.
const KILL_TIME: Duration = Duration::from_secs(10);
/// Between two looks at one that ends.
const LOOK: Duration = Duration::from_millis(200);

/// What became of processes that were to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// They are gone; what is to be said of it.
    Gone(Vec<String>),
    /// Something of it runs on.
    Left {
        /// What, and why; a sentence.
        why: String,
        remarks: Vec<String>,
    },
}

impl Ended {
    /// Gone, unless something is left.
    fn of(left: &[String], remarks: Vec<String>) -> Self {
        if left.is_empty() {
            Self::Gone(remarks)
        } else {
            Self::Left {
                why: left.join(" "),
                remarks,
            }
        }
    }

    /// All there is to say.
    fn into_remarks(self) -> Vec<String> {
        match self {
            Self::Gone(remarks) => remarks,
            Self::Left { why, remarks } => std::iter::once(why).chain(remarks).collect(),
        }
    }
}

impl Drive {
    /// Ends the launch because somebody wants it. May be done again from the
    /// beginning.
    pub(super) async fn stop(&mut self) -> Step {
        self.follow_log().await?;
        self.wait_for_runs().await?;
        let mut remarks = match self.end_processes(self.patience.grace).await? {
            Ended::Gone(remarks) => remarks,
            Ended::Left { why, remarks } => {
                tracing::warn!(launch = %self.launch.id, why, "a launch could not be stopped");
                return self
                    .end_as(Change {
                        failure: Some(LaunchFailure::new(FailureKind::NotStopped, why)),
                        remarks,
                        ..Change::to(LaunchState::Failed)
                    })
                    .await;
            }
        };
        remarks.extend(self.gave_back_late().await?);
        self.end_as(Change {
            remarks,
            ..Change::to(LaunchState::Stopped)
        })
        .await
    }

    /// After a failure nothing of ours is left running. Others' production is left
    /// to its keeper.
    pub(super) async fn clear(&mut self) -> Step<Vec<String>> {
        let nothing_was_started = self.launch.state == LaunchState::Starting && !self.start_tried;
        if !self.is_ours() || nothing_was_started {
            return Ok(Vec::new());
        }
        match self
            .end_processes(FAILED_GRACE.min(self.patience.grace))
            .await
        {
            // That it failed is known.
            Err(Halt::Lost(why)) => Ok(vec![why]),
            other => other.map(Ended::into_remarks),
        }
    }

    /// The host is free again; later than was agreed?
    async fn gave_back_late(&self) -> Step<Option<String>> {
        let at = self.launch.plan.give_back_at;
        let Some(remark) = at.and_then(|at| give_back::ended(at, row::now())) else {
            return Ok(None);
        };
        persist!(&self.signals.stop, self.note_give_back(&remark))?;
        Ok(Some(remark))
    }

    async fn note_give_back(&self, remark: &str) -> Result<(), LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        lease::hold(&mut tx, &self.lease).await?;
        let subject = format!("launch {}", self.launch.id);
        audit::note_more(
            &mut tx,
            &self.launch.actor,
            Action::GiveBack,
            subject,
            remark,
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Runs are told to end with the launch; they get the time to.
    async fn wait_for_runs(&mut self) -> Step {
        let until = Instant::now() + self.patience.runs;
        while Instant::now() < until {
            let running = persist!(&self.signals.stop, self.runs_go_on())?;
            if !running {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    async fn runs_go_on(&self) -> Result<bool, LabError> {
        let running = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM runs
                   WHERE launch_id = $1 AND state = 'running') AS "running!""#,
            self.launch.id.0,
        )
        .fetch_one(&self.lab.0.pool)
        .await?;
        Ok(running)
    }

    async fn end_processes(&mut self, grace: Duration) -> Step<Ended> {
        let began = Instant::now();
        // A host that was waited for already, and in vain, is asked once more only.
        let patience = if self.unreachable && self.launch.state != LaunchState::Stopping {
            Duration::ZERO
        } else {
            self.patience.unreachable
        };
        loop {
            match self.end_processes_once(grace).await {
                Ok(ended) => {
                    self.reached().await?;
                    return Ok(ended);
                }
                Err(error) if is_outage(&error) => {
                    if began.elapsed() >= patience {
                        return Err(Halt::Lost(format!(
                            "The host did not answer when its processes were to be ended, so they may still run there. {error}"
                        )));
                    }
                    self.not_reached(&error).await?;
                }
                Err(error) => {
                    return Ok(Ended::Left {
                        why: format!("Not all of it could be ended. {error}"),
                        remarks: Vec::new(),
                    });
                }
            }
        }
    }

    async fn end_processes_once(&self, grace: Duration) -> Result<Ended, RemoteError> {
        if !self.is_ours() {
            return match &self.launch.keeper {
                Keeper::Process => self.end_found(grace).await,
                kept => self.end_kept(kept, grace).await,
            };
        }
        let mut left = Vec::new();
        if let Some(container) = self.own_container()
            && let Some(Err(sentence)) = keeper::stop(&self.host, &container, grace).await?
        {
            // One that is gone already is no trouble.
            if keeper::main_process(&self.host, &container)
                .await?
                .is_some()
            {
                left.push(format!("Its container could not be stopped. {sentence}"));
            }
        }
        let identity = match &self.launch.identity {
            Some(identity) => Some(identity.clone()),
            None => self.recorded().await?,
        };
        let Some(identity) = identity else {
            return Ok(Ended::of(&left, Vec::new()));
        };
        let stopped = self
            .host
            .stop(&self.launch.folder, &identity, grace)
            .await?;
        let mut remarks = Vec::new();
        if stopped.forced {
            remarks.push("It did not end when it was asked to, so it was killed.".to_owned());
        }
        if !stopped.left.is_empty() {
            let pids: Vec<String> = stopped.left.iter().map(|one| one.pid.to_string()).collect();
            left.push(format!(
                "Processes of it live even after a kill: {}. Look at them on the host.",
                pids.join(", ")
            ));
        }
        if stopped.gpu_held {
            remarks.push(
                "The driver still shows GPU memory of its processes. It may need a reset of the GPU."
                    .to_owned(),
            );
        }
        Ok(Ended::of(&left, remarks))
    }

    /// Has a unit or a container stopped by whoever keeps it.
    async fn end_kept(&self, kept: &Keeper, grace: Duration) -> Result<Ended, RemoteError> {
        let answer = keeper::stop(&self.host, kept, grace).await?;
        let refused = match answer {
            Some(Err(sentence)) => Some(format!("It could not be stopped its own way. {sentence}")),
            _ => None,
        };
        let mut alive = match &self.launch.identity {
            Some(identity) if !self.gone_within(identity, grace).await? => Some(identity.pid),
            _ => None,
        };
        // One that was refused may run as another process by now.
        if alive.is_none() && refused.is_some() {
            alive = keeper::main_process(&self.host, kept).await?;
        }
        Ok(match alive {
            None => Ended::Gone(refused.into_iter().collect()),
            Some(pid) => {
                let alive = format!("Its process {pid} still lives.");
                Ended::of(
                    &refused.into_iter().chain([alive]).collect::<Vec<_>>(),
                    Vec::new(),
                )
            }
        })
    }

    /// Ends a process that was found running: nobody but its own signals is asked.
    async fn end_found(&self, grace: Duration) -> Result<Ended, RemoteError> {
        let Some(identity) = &self.launch.identity else {
            return Ok(Ended::Gone(Vec::new()));
        };
        // Of its group only what belongs to it: a script that started it may lead it.
        let leads = identity.pid == identity.pgid;
        let (mut left_over, mut remarks) = (Vec::new(), Vec::new());
        if self.host.signal(identity, Signal::Term, false).await?
            && !self.gone_within(identity, grace).await?
        {
            self.host.signal(identity, Signal::Kill, leads).await?;
            if self.gone_within(identity, KILL_TIME).await? {
                remarks.push("It did not end when it was asked to, so it was killed.".to_owned());
            } else {
                left_over.push(format!(
                    "Its process {} lives even after a kill. Look at it on the host.",
                    identity.pid
                ));
            }
        }
        if leads {
            for left in self.host.engines().await? {
                let same_group = left.identity.boot_id == identity.boot_id
                    && left.identity.pgid == identity.pgid
                    && left.identity.start_ticks >= identity.start_ticks;
                if same_group {
                    self.host
                        .signal(&left.identity, Signal::Kill, false)
                        .await?;
                }
            }
        }
        Ok(Ended::of(&left_over, remarks))
    }

    async fn gone_within(
        &self,
        identity: &ProcessIdentity,
        time: Duration,
    ) -> Result<bool, RemoteError> {
        let until = Instant::now() + time;
        loop {
            let status = self.host.status(&self.launch.folder, identity).await?;
            if !matches!(status, ProcessStatus::Running { .. }) {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
