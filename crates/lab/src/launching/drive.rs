//! One launch, from its claim to its end and what is owed after it.

use std::sync::Arc;

use tokdyno_domain::{
    host::Keeper,
    launch::{FailureKind, LaunchFailure, LaunchOrigin, LaunchState},
    timestamp::Timestamp,
};
use tokdyno_remote::{Forward, Host, ProcessStatus, RemoteError};
use tokio::{sync::watch, time::Instant};

use super::{
    Launcher, give_back,
    lease::LaunchLease,
    log::Log,
    patience::{BackOff, Patience},
    row::{self, Change, Launch},
    trouble::{failure_of, is_outage, passes},
};
use crate::{
    Lab, LabError, heartbeat::Heartbeat, launch_runs::cancel_runs_of, steps::Doing,
    worker::patience::persist,
};

/// Why a step was left before its end.
#[derive(Debug)]
pub(super) enum Halt {
    /// The launch failed.
    Failed(LaunchFailure),
    /// How it ended is not known; a sentence.
    Lost(String),
    /// It is to end.
    End(Cause),
    /// This worker is to end. What runs goes on running.
    Leave,
    /// The store.
    Lab(LabError),
}

/// Why a launch is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody asked for it.
    Asked,
    /// The host is given back.
    GiveBack,
    /// Its work is done.
    Done,
}

impl From<LabError> for Halt {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

/// How a step went.
pub(super) type Step<T = ()> = Result<T, Halt>;

/// What may come from outside while a step is under way.
pub(super) struct Signals {
    heartbeat: Heartbeat,
    pub(super) stop: watch::Receiver<bool>,
    end_by: Option<Timestamp>,
}

impl Signals {
    /// Does some work unless the launch is to end meanwhile. The work must bear
    /// being dropped wherever it waits.
    pub(super) async fn within<T>(&self, work: impl Future<Output = Step<T>>) -> Step<T> {
        let time_is_up = async {
            match self.end_by {
                Some(at) => give_back::wait_until(at, row::now).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            halt = self.left() => Err(halt),
            () = self.heartbeat.until(|beat| beat.end_requested) => Err(Halt::End(Cause::Asked)),
            () = time_is_up => Err(Halt::End(Cause::GiveBack)),
            done = work => done,
        }
    }

    /// Does some work unless this worker must leave off.
    pub(super) async fn unless_left<T>(&self, work: impl Future<Output = Step<T>>) -> Step<T> {
        tokio::select! {
            biased;
            halt = self.left() => Err(halt),
            done = work => done,
        }
    }

    async fn left(&self) -> Halt {
        let mut stop = self.stop.clone();
        let told = async {
            if stop.wait_for(|stop| *stop).await.is_err() {
                // The worker's handle is gone without a word: it has told before.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = told => Halt::Leave,
            () = self.heartbeat.until(|beat| beat.lost) => Halt::Lab(LabError::LeaseLost),
        }
    }
}

/// Whoever drives one launch.
pub(super) struct Drive {
    pub(super) lab: Lab,
    pub(super) lease: LaunchLease,
    pub(super) launch: Launch,
    pub(super) host: Host,
    pub(super) patience: Patience,
    pub(super) signals: Arc<Signals>,
    pub(super) log: Option<Log>,
    /// The way to the engine's port.
    pub(super) forward: Option<Forward>,
    /// Something may have been started on the host.
    pub(super) start_tried: bool,
    back_off: BackOff,
    pub(super) unreachable: bool,
    /// The host has answered before: its name and its way are right.
    pub(super) answered: bool,
}

/// Drives a launch until it is over and nothing is owed any more, or this worker
/// leaves off.
pub(super) async fn drive(
    launcher: &Launcher,
    lease: LaunchLease,
    launch: Launch,
    stop: watch::Receiver<bool>,
) {
    let id = launch.id;
    let signals = Signals {
        heartbeat: Heartbeat::start(&launcher.lab, lease),
        stop,
        end_by: launch.end_by(),
    };
    let mut drive = Drive {
        host: Host::open(&launcher.lab.0.config.remote, &launch.reach),
        lab: launcher.lab.clone(),
        lease,
        answered: launch.host_answered,
        launch,
        patience: launcher.patience,
        signals: Arc::new(signals),
        log: None,
        forward: None,
        start_tried: false,
        back_off: BackOff::new(&launcher.patience),
        unreachable: false,
    };
    tracing::info!(launch = %id, state = %drive.launch.state, "a launch is driven");
    let ended = match drive.live().await {
        Ok(()) => drive.restore().await,
        Err(halt) => Err(halt),
    };
    match ended {
        Ok(()) => tracing::info!(launch = %id, state = %drive.launch.state, "a launch is over"),
        Err(Halt::Leave) => tracing::info!(launch = %id, "a launch is left as it is"),
        Err(Halt::Lab(LabError::LeaseLost)) => {
            tracing::warn!(launch = %id, "another worker has taken the launch over");
        }
        Err(halt) => {
            // Its lease lapses, and it is taken up again.
            tracing::warn!(launch = %id, ?halt, "a launch could not be driven on");
        }
    }
}

impl Drive {
    /// From state to state, until it is over.
    async fn live(&mut self) -> Step {
        while !self.launch.state.is_over() {
            let signals = Arc::clone(&self.signals);
            let step = match self.launch.state {
                LaunchState::Starting => match signals.within(self.prepare()).await {
                    // Left only by a worker that ends: the next one looks for what was
                    // started.
                    Ok(()) => signals.unless_left(self.start()).await,
                    Err(halt) => Err(halt),
                },
                LaunchState::Loading => signals.within(self.load()).await,
                LaunchState::Ready => signals.within(self.serve()).await,
                LaunchState::Stopping => signals.unless_left(self.stop()).await,
                LaunchState::Queued
                | LaunchState::Stopped
                | LaunchState::Failed
                | LaunchState::Lost => Err(Halt::Leave),
            };
            let Err(halt) = step else { continue };
            match halt {
                Halt::End(cause) => self.begin_to_end(cause).await?,
                Halt::Failed(failure) => signals.unless_left(self.fail(failure)).await?,
                Halt::Lost(why) => signals.unless_left(self.be_lost(why)).await?,
                Halt::Lab(LabError::Internal(doing)) => {
                    let failure = LaunchFailure::new(
                        FailureKind::Internal,
                        format!("Something went wrong while {doing}"),
                    );
                    signals.unless_left(self.fail(failure)).await?;
                }
                halt @ (Halt::Leave | Halt::Lab(_)) => return Err(halt),
            }
        }
        Ok(())
    }

    /// Changes the row, waiting for the database where it is away.
    pub(super) async fn change(&mut self, change: Change) -> Step {
        let done = persist!(&self.signals.stop, self.write(&change));
        self.launch.state = done?;
        if change.state == Some(LaunchState::Loading) {
            self.launch.started_at.get_or_insert_with(row::now);
        }
        if let Some(identity) = change.identity {
            self.launch.identity = Some(identity);
        }
        if let Some(keeper) = change.keeper {
            self.launch.keeper = keeper;
        }
        Ok(())
    }

    async fn write(&self, change: &Change) -> Result<LaunchState, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        let state = row::change(&mut tx, &self.lease, change).await?;
        tx.commit().await?;
        Ok(state)
    }

    /// Says what is being done.
    pub(super) async fn step(&mut self, doing: Doing) -> Step {
        self.change(Change::step(doing.words())).await
    }

    /// Was it started from here, so that all of its processes are ours?
    pub(super) fn is_ours(&self) -> bool {
        match self.launch.origin {
            LaunchOrigin::Launched => true,
            // A plain process is started again under our own watch.
            LaunchOrigin::Restored => self.launch.keeper == Keeper::Process,
            LaunchOrigin::Adopted => false,
        }
    }

    /// Is it somebody's production, to which no time-out of ours applies?
    pub(super) fn is_production(&self) -> bool {
        self.launch.origin != LaunchOrigin::Launched
    }

    /// One look at the process; none while the host does not answer, after a pause.
    pub(super) async fn look(&mut self) -> Step<Option<ProcessStatus>> {
        let Some(identity) = self.launch.identity.clone() else {
            return Ok(Some(ProcessStatus::Gone));
        };
        match self.host.status(&self.launch.folder, &identity).await {
            Ok(status) => {
                self.reached().await?;
                Ok(Some(status))
            }
            Err(error) if is_outage(&error) => {
                self.not_reached(&error).await?;
                Ok(None)
            }
            Err(error) => Err(Halt::Failed(failure_of(&error))),
        }
    }

    /// Asks the host until it answers, through connections that are cut and come back.
    /// What is asked must bear being asked again.
    pub(super) async fn patiently<T, F>(
        &mut self,
        ask: impl Fn(Host) -> F,
    ) -> Step<Result<T, RemoteError>>
    where
        F: Future<Output = Result<T, RemoteError>>,
    {
        let began = Instant::now();
        loop {
            match ask(self.host.clone()).await {
                Err(error)
                    if passes(&error, self.answered)
                        && began.elapsed() < self.patience.connection =>
                {
                    self.not_reached(&error).await?;
                }
                Err(error) if is_outage(&error) => return Ok(Err(error)),
                other => {
                    self.reached().await?;
                    return Ok(other);
                }
            }
        }
    }

    /// The host answers.
    pub(super) async fn reached(&mut self) -> Step {
        self.answered = true;
        if self.unreachable {
            let change = Change {
                reachable: Some(true),
                ..Change::default()
            };
            self.change(change).await?;
            self.unreachable = false;
            self.back_off = BackOff::new(&self.patience);
        }
        Ok(())
    }

    /// The host does not answer: kept, and waited for a while.
    pub(super) async fn not_reached(&mut self, error: &RemoteError) -> Step {
        tracing::debug!(launch = %self.launch.id, %error, "a host does not answer");
        // The forward goes the same way; it is made anew.
        self.forward = None;
        if !self.unreachable {
            let change = Change {
                reachable: Some(false),
                ..Change::default()
            };
            self.change(change).await?;
            self.unreachable = true;
        }
        self.back_off.wait().await;
        Ok(())
    }

    /// Turns to ending it.
    async fn begin_to_end(&mut self, cause: Cause) -> Step {
        let remark = match (cause, self.launch.plan.give_back_at) {
            (Cause::GiveBack, Some(at)) => Some(give_back::begins(at, row::now())),
            _ => None,
        };
        let done = persist!(&self.signals.stop, self.write_end(cause, remark.as_deref()));
        self.launch.state = done?;
        Ok(())
    }

    async fn write_end(&self, cause: Cause, remark: Option<&str>) -> Result<LaunchState, LabError> {
        let mut change = Change {
            step: Some(Doing::End.words().to_owned()),
            ..Change::to(LaunchState::Stopping)
        };
        change.remarks.extend(remark.map(str::to_owned));
        let mut tx = self.lab.0.pool.begin().await?;
        let state = row::change(&mut tx, &self.lease, &change).await?;
        cancel_runs_of(&mut tx, self.launch.id).await?;
        if cause == Cause::GiveBack {
            crate::audit::note_more(
                &mut tx,
                &self.launch.actor,
                crate::audit::Action::GiveBack,
                format!("launch {}", self.launch.id),
                remark.unwrap_or_default(),
            )
            .await?;
        }
        tx.commit().await?;
        Ok(state)
    }

    /// Ends a launch that failed: first what is left of it on the host, then its row.
    async fn fail(&mut self, failure: LaunchFailure) -> Step {
        tracing::info!(launch = %self.launch.id, %failure, "a launch failed");
        let remarks = self.clear().await?;
        self.end_as(Change {
            failure: Some(failure),
            remarks,
            ..Change::to(LaunchState::Failed)
        })
        .await
    }

    /// Ends a launch of which nobody knows how it ended. Its first process is gone;
    /// others of it may live on and hold what the next one needs.
    async fn be_lost(&mut self, why: String) -> Step {
        tracing::warn!(launch = %self.launch.id, why, "a launch is lost");
        let mut remarks = vec![why];
        for remark in self.clear().await? {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        self.end_as(Change {
            remarks,
            ..Change::to(LaunchState::Lost)
        })
        .await
    }

    /// The last change of its state. Runs on it do not go on.
    pub(super) async fn end_as(&mut self, mut change: Change) -> Step {
        if change.state == Some(LaunchState::Stopped) {
            change.step = Some(String::new());
        }
        change.reachable = Some(true);
        self.drain_log().await;
        self.log = None;
        self.forward = None;
        let done = persist!(&self.signals.stop, self.write_over(&change));
        self.launch.state = done?;
        Ok(())
    }

    async fn write_over(&self, change: &Change) -> Result<LaunchState, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        let state = row::change(&mut tx, &self.lease, change).await?;
        cancel_runs_of(&mut tx, self.launch.id).await?;
        tx.commit().await?;
        Ok(state)
    }
}
