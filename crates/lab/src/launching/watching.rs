//! Watching a process: while it loads, and while it serves.

use tokdyno_domain::{
    host::Keeper,
    launch::{Afterwards, FailureKind, LaunchFailure, LaunchOrigin},
    profile::Activation,
};
use tokdyno_engines::{LogReader, ended};
use tokdyno_remote::ProcessStatus;
use tokio::time::Instant;

use super::{
    drive::{Cause, Drive, Halt, Step},
    keeper,
    log::{self, Log},
    row::{Change, now},
    trouble::is_outage,
    verify::Asked,
};
use crate::{launch_rows, steps::Doing, worker::patience::persist};

/// Between two looks at how far the rest of a log was read.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

impl Drive {
    /// Watches until the engine answers, or it is clear that it will not.
    pub(super) async fn load(&mut self) -> Step {
        self.step(Doing::Load).await?;
        self.follow_log().await?;
        let mut stall = Stall::new();
        let mut failing_since: Option<Instant> = None;
        let mut late_said = false;
        let mut refused_tokens = 0;
        loop {
            let Some(status) = self.look().await? else {
                continue;
            };
            self.go_on_or_end(status).await?;
            match self.ask().await? {
                Asked::Ready(answer) => return self.become_ready(*answer).await,
                Asked::NotYet => {}
                Asked::Wrong(failure) => {
                    // One small answer that did not come says little.
                    refused_tokens += u32::from(failure.kind == FailureKind::NoToken);
                    let final_word = failure.kind != FailureKind::NoToken || refused_tokens >= 3;
                    if final_word && !self.is_production() {
                        return Err(Halt::Failed(failure));
                    }
                }
            }
            let tells_failure = self.log.as_ref().is_some_and(Log::tells_failure);
            if tells_failure {
                let since = *failing_since.get_or_insert_with(Instant::now);
                if since.elapsed() > self.patience.dying && !self.is_production() {
                    return Err(Halt::Failed(ended(&self.reader().await?, None, None)));
                }
            }
            if self.is_late() {
                if !self.is_production() {
                    return Err(Halt::Failed(self.late().await?));
                }
                if !late_said {
                    late_said = true;
                    let seconds = self.launch.spec.ready_timeout_s;
                    self.change(Change::remark(format!(
                        "It was not ready within {seconds} s; it is not stopped for that, since others rely on it."
                    )))
                    .await?;
                }
            }
            if self.is_stalled(&mut stall).await? {
                return Err(Halt::Failed(self.stalled().await?));
            }
            tokio::time::sleep(self.patience.loading).await;
        }
    }

    /// Watches for as long as it serves, and does what was planned.
    pub(super) async fn serve(&mut self) -> Step {
        self.follow_log().await?;
        let mut done = false;
        loop {
            if !done && self.plan_is_done().await? {
                done = true;
                if self.launch.plan.afterwards == Afterwards::Stop {
                    return Err(Halt::End(Cause::Done));
                }
                if self.launch.plan.measure.is_some() {
                    // It goes on serving; nothing is under way any more.
                    self.change(Change::step("")).await?;
                }
            }
            if let Some(status) = self.look().await? {
                self.go_on_or_end(status).await?;
            }
            let mut runs = self.lab.hear();
            // A run's end is heard; it is looked at again in any case.
            let heard = async {
                while let Ok(event) = runs.recv().await {
                    if matches!(event.kind, tokdyno_domain::live::LiveKind::State { .. }) {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(self.patience.serving, heard).await;
        }
    }

    /// The log is followed where the agent writes one.
    pub(super) async fn follow_log(&mut self) -> Step {
        if self.log.is_some() || !self.is_ours() {
            return Ok(());
        }
        let log = persist!(
            &self.signals.stop,
            Log::follow(
                &self.lab.0.pool,
                self.lease,
                &self.host,
                &self.launch,
                &self.patience
            )
        )?;
        self.log = Some(log);
        Ok(())
    }

    /// What the log tells.
    pub(super) async fn reader(&self) -> Step<LogReader> {
        match &self.log {
            Some(log) => Ok(log.reader()),
            None if self.is_ours() => {
                let read = persist!(
                    &self.signals.stop,
                    log::stored(&self.lab.0.pool, &self.launch)
                )?;
                Ok(read.0)
            }
            None => Ok(LogReader::new(self.launch.spec.engine)),
        }
    }

    /// Waits until what the process has written is stored, for as long as it goes on.
    pub(super) async fn drain_log(&mut self) {
        let Some(log) = &self.log else { return };
        let (mut stored, mut since) = (log.size(), Instant::now());
        while !log.is_ended() {
            let listed = self.host.list(&self.launch.folder).await;
            let there = listed.as_ref().ok().map(|files| {
                let file = files.iter().find(|file| file.name == log::FILE);
                file.map_or(0, |file| file.size)
            });
            let done = match there {
                Some(there) if log.is_full() => log
                    .take_end(&self.host, &self.launch.folder, there, &self.patience)
                    .await
                    .is_ok(),
                Some(there) => log.size() >= there,
                // No such folder: nothing was written.
                None => listed.is_err_and(|error| !is_outage(&error)),
            };
            if done {
                return;
            }
            if log.size() > stored {
                (stored, since) = (log.size(), Instant::now());
            }
            if since.elapsed() >= self.patience.log_rest {
                return log.tell_missing(there).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Goes on if the process lives; otherwise says how the launch ended.
    async fn go_on_or_end(&mut self, status: ProcessStatus) -> Step {
        let (code, signal) = match status {
            ProcessStatus::Running { .. } => return Ok(()),
            ProcessStatus::Rebooted | ProcessStatus::Gone if self.kept_on().await? => {
                return Ok(());
            }
            ProcessStatus::Rebooted => {
                return Err(Halt::Failed(LaunchFailure::new(
                    FailureKind::Rebooted,
                    "Its boot is another one than when the engine was started",
                )));
            }
            ProcessStatus::Gone => {
                return Err(Halt::Lost(
                    "Its process is gone, and nothing on the host says how it ended.".to_owned(),
                ));
            }
            ProcessStatus::Exited { code } => (Some(code), None),
            ProcessStatus::Killed { signal } => (None, Some(signal)),
        };
        self.drain_log().await;
        let mut failure = ended(&self.reader().await?, code, signal);
        let activated = !matches!(self.launch.spec.activation, Activation::None);
        if activated && matches!(code, Some(125..=127)) && failure.kind == FailureKind::NoProgram {
            failure.kind = FailureKind::Activation;
        }
        Err(Halt::Failed(failure))
    }

    /// Has its keeper started it again by itself? Then it is the same launch with
    /// another process.
    async fn kept_on(&mut self) -> Step<bool> {
        if self.is_ours() || self.launch.keeper == Keeper::Process {
            return Ok(false);
        }
        let pid = match keeper::main_process(&self.host, &self.launch.keeper).await {
            Ok(Some(pid)) => pid,
            Ok(None) => return Ok(false),
            Err(error) if is_outage(&error) => {
                self.not_reached(&error).await?;
                return Ok(true);
            }
            Err(_) => return Ok(false),
        };
        let Ok(Some(facts)) = self.host.process(pid, &[]).await else {
            return Ok(false);
        };
        self.change(Change {
            identity: Some(facts.identity),
            ..Change::remark(format!(
                "Its keeper started it again by itself, as process {pid}."
            ))
        })
        .await?;
        Ok(true)
    }

    fn is_late(&self) -> bool {
        let Some(started) = self.launch.started_at else {
            return false;
        };
        let most = i64::from(self.launch.spec.ready_timeout_s) * 1_000_000;
        now().0 > started.0.saturating_add(most)
    }

    async fn late(&self) -> Step<LaunchFailure> {
        let reader = self.reader().await?;
        Ok(reader.failure().unwrap_or_else(|| {
            let seconds = self.launch.spec.ready_timeout_s;
            let seen = match reader.last_lines().pop() {
                Some(line) => format!("its last line was: {line}"),
                None => "it has logged nothing".to_owned(),
            };
            LaunchFailure::new(FailureKind::TimedOut, format!("It had {seconds} s; {seen}"))
        }))
    }

    async fn stalled(&self) -> Step<LaunchFailure> {
        let reader = self.reader().await?;
        if let Some(failure) = reader.failure() {
            return Ok(failure);
        }
        let kind = if reader.after_nccl() {
            FailureKind::NcclHang
        } else {
            FailureKind::Stalled
        };
        let minutes = self.patience.stalled.as_secs() / 60;
        let seen = match reader.last_lines().pop() {
            Some(line) => format!("The last line of the log, {minutes} minutes ago: {line}"),
            None => format!("Nothing was logged within {minutes} minutes"),
        };
        Ok(LaunchFailure::new(kind, seen))
    }

    /// Has neither the log nor the memory on the GPUs moved for long?
    async fn is_stalled(&mut self, stall: &mut Stall) -> Step<bool> {
        let Some(log) = &self.log else {
            return Ok(false);
        };
        // Of a full one it is not known whether it still grows.
        if self.is_production() || log.is_full() {
            return Ok(false);
        }
        let silent = log.silent_for();
        let patience = self.patience.stalled;
        if silent < patience / 2 {
            stall.memory = None;
            return Ok(false);
        }
        let due = stall
            .memory
            .is_none_or(|(looked, _)| looked.elapsed() >= patience / 4);
        if due {
            let held = self.held_memory().await;
            match stall.memory {
                Some((_, before)) if before == held => {
                    if silent >= patience && stall.still_since.elapsed() >= patience / 2 {
                        return Ok(true);
                    }
                }
                _ => stall.still_since = Instant::now(),
            }
            stall.memory = Some((Instant::now(), held));
        }
        Ok(false)
    }

    async fn held_memory(&self) -> Option<u64> {
        let pid = self.launch.identity.as_ref()?.pid;
        let facts = self.host.process(pid, &[]).await.ok()??;
        Some(facts.gpu_mib)
    }

    /// The container that is started for it from here, if one is.
    pub(super) fn own_container(&self) -> Option<Keeper> {
        match (&self.launch.origin, &self.launch.spec.activation) {
            (LaunchOrigin::Launched, Activation::Container { runtime, .. }) => {
                Some(match &self.launch.keeper {
                    known @ Keeper::Container { .. } => known.clone(),
                    _ => Keeper::Container {
                        runtime: runtime.clone(),
                        id: String::new(),
                        name: launch_rows::container(&self.launch.folder),
                    },
                })
            }
            _ => None,
        }
    }
}

/// What is remembered between two looks at something that stands still.
struct Stall {
    /// When memory was looked at last, and how much was held.
    memory: Option<(Instant, Option<u64>)>,
    still_since: Instant,
}

impl Stall {
    fn new() -> Self {
        Self {
            memory: None,
            still_since: Instant::now(),
        }
    }
}
