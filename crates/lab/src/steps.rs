//! The way of a launch as steps, done and to come, worked out from its row: what the
//! worker is doing is told by state and step, what it has done by the times.

#[cfg(test)]
mod tests;

use tokdyno_domain::{
    ids::LaunchId,
    launch::{Afterwards, FailureKind, LaunchOrigin, LaunchPlan, LaunchState},
    run::RunState,
    views::servers::{LaunchRun, LaunchSummary, Step, StepState},
};

/// What is being done for a launch. Its words stand in the column `step` meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    StopProduction,
    CheckHost,
    Start,
    Load,
    Verify,
    Measure,
    /// Keeping or stopping it when its work is done.
    End,
    Restore,
}

impl Doing {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 8] = [
        Self::StopProduction,
        Self::CheckHost,
        Self::Start,
        Self::Load,
        Self::Verify,
        Self::Measure,
        Self::End,
        Self::Restore,
    ];

    /// As stored and shown. More may follow these words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::StopProduction => "stopping production",
            Self::CheckHost => "checking the host",
            Self::Start => "starting",
            Self::Load => "loading",
            Self::Verify => "verifying",
            Self::Measure => "measuring",
            Self::End => "stopping",
            Self::Restore => "restoring production",
        }
    }

    fn from_step(step: &str) -> Option<Self> {
        // The first that fits: "stopping production" before "stopping".
        Self::ALL
            .into_iter()
            .find(|doing| step.starts_with(doing.words()))
    }
}

/// The server that a launch stops before and brings back afterwards.
pub(crate) struct Production {
    pub(crate) launch: LaunchId,
    /// Its profile's name.
    pub(crate) name: String,
    pub(crate) state: LaunchState,
    /// The launch that brought it back since, its state, and why it failed.
    pub(crate) back: Option<(LaunchId, LaunchState, Option<String>)>,
}

/// All that the steps follow from.
pub(crate) struct Way<'a> {
    pub(crate) launch: &'a LaunchSummary,
    pub(crate) plan: &'a LaunchPlan,
    /// Of the plan's `restore`.
    pub(crate) production: Option<&'a Production>,
    /// The run that the plan asked for.
    pub(crate) run: Option<&'a LaunchRun>,
    /// Bringing production back is still owed.
    pub(crate) restore_due: bool,
}

impl Way<'_> {
    /// The steps in their order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        Doing::ALL
            .into_iter()
            .filter(|doing| self.has(*doing))
            .map(|doing| self.step(doing))
            .collect()
    }

    fn has(&self, doing: Doing) -> bool {
        match doing {
            Doing::StopProduction | Doing::Restore => self.production.is_some(),
            Doing::Measure => self.plan.measure.is_some(),
            // An adopted server was not started from here.
            Doing::CheckHost | Doing::Load => self.launch.origin != LaunchOrigin::Adopted,
            Doing::Start | Doing::Verify | Doing::End => true,
        }
    }

    fn step(&self, doing: Doing) -> Step {
        let (state, detail) = match doing {
            Doing::Measure => self.measure(),
            Doing::Restore => self.restore(),
            _ => self.own(doing),
        };
        let link = match doing {
            Doing::Measure => self.run.map(|run| format!("/runs/{}", run.id)),
            Doing::StopProduction => self
                .production
                .map(|production| format!("/servers/{}", production.launch)),
            Doing::Restore => self.production.map(|production| {
                let shown = production.back.as_ref().map(|(launch, ..)| *launch);
                format!("/servers/{}", shown.unwrap_or(production.launch))
            }),
            _ => None,
        };
        Step {
            name: self.name(doing),
            state,
            detail,
            link,
        }
    }

    fn name(&self, doing: Doing) -> String {
        let production = self.production.map_or("production", |one| &one.name);
        match doing {
            Doing::StopProduction => format!("stop {production}"),
            Doing::CheckHost => "check host".to_owned(),
            Doing::Start if self.launch.origin == LaunchOrigin::Adopted => "adopt".to_owned(),
            Doing::Start => "start".to_owned(),
            Doing::Load => "load".to_owned(),
            Doing::Verify => "verify".to_owned(),
            Doing::Measure => "measure".to_owned(),
            Doing::End if self.is_kept() => "keep running".to_owned(),
            Doing::End => "stop".to_owned(),
            Doing::Restore => format!("restore {production}"),
        }
    }

    /// Is it to go on running, as far as is known now?
    fn is_kept(&self) -> bool {
        let state = self.launch.state;
        self.plan.afterwards == Afterwards::Keep
            && !self.launch.stop_requested
            && !matches!(state, LaunchState::Stopping | LaunchState::Stopped)
    }

    /// A step of the launch itself.
    fn own(&self, doing: Doing) -> (StepState, String) {
        let plain = |state| (state, String::new());
        // What came back had been stopped, whatever else went wrong.
        let came_back = self.production.is_some_and(|one| one.back.is_some());
        if doing == Doing::StopProduction && came_back {
            return plain(StepState::Done);
        }
        match self.launch.state {
            LaunchState::Queued => plain(StepState::ToCome),
            LaunchState::Starting | LaunchState::Loading | LaunchState::Ready => {
                let now = self.now();
                if doing < now {
                    plain(StepState::Done)
                } else if doing > now {
                    plain(StepState::ToCome)
                } else if doing == Doing::End && self.is_kept() {
                    (
                        StepState::Done,
                        "It runs until somebody stops it.".to_owned(),
                    )
                } else {
                    (StepState::Now, self.detail_now(doing))
                }
            }
            LaunchState::Stopping | LaunchState::Stopped if doing == Doing::End => {
                match (self.launch.state, self.launch.started_at) {
                    (LaunchState::Stopping, _) => plain(StepState::Now),
                    (_, Some(_)) => plain(StepState::Done),
                    (_, None) => (
                        StepState::Skipped,
                        "It was stopped before it began.".to_owned(),
                    ),
                }
            }
            LaunchState::Stopping | LaunchState::Stopped => {
                if doing < self.broke_off() {
                    plain(StepState::Done)
                } else {
                    plain(StepState::Skipped)
                }
            }
            LaunchState::Failed | LaunchState::Lost => {
                let broke = self.broke_off();
                if doing < broke {
                    plain(StepState::Done)
                } else if doing > broke {
                    plain(StepState::Skipped)
                } else {
                    (StepState::Failed, self.why())
                }
            }
        }
    }

    /// What is being done while it lives.
    fn now(&self) -> Doing {
        let told = Doing::from_step(&self.launch.step);
        match self.launch.state {
            LaunchState::Starting => told
                .filter(|doing| *doing <= Doing::Start)
                .unwrap_or(Doing::CheckHost),
            LaunchState::Loading => match told {
                Some(Doing::Verify) => Doing::Verify,
                _ => self.loading(),
            },
            LaunchState::Ready if self.is_measuring() => Doing::Measure,
            _ => Doing::End,
        }
    }

    /// What comes between start and readiness: an adopted server has loaded.
    fn loading(&self) -> Doing {
        if self.has(Doing::Load) {
            Doing::Load
        } else {
            Doing::Verify
        }
    }

    fn is_measuring(&self) -> bool {
        self.plan.measure.is_some() && self.run.is_none_or(|run| !run.state.is_over())
    }

    fn detail_now(&self, doing: Doing) -> String {
        match (doing, self.launch.stage) {
            (Doing::Load, Some(stage)) => stage.text().to_owned(),
            _ => String::new(),
        }
    }

    /// The first step that was not done when it was over.
    fn broke_off(&self) -> Doing {
        let launch = self.launch;
        let kind = launch.failure.as_ref().map(|failure| failure.kind);
        if launch.ready_at.is_some() {
            let unfinished =
                |run: &LaunchRun| !matches!(run.state, RunState::Finished | RunState::Failed);
            if self.plan.measure.is_some() && self.run.is_none_or(unfinished) {
                return Doing::Measure;
            }
            return Doing::End;
        }
        if launch.started_at.is_some() {
            return match kind {
                Some(FailureKind::WrongModel | FailureKind::NoToken) => Doing::Verify,
                _ => self.loading(),
            };
        }
        match kind {
            Some(FailureKind::NoProgram | FailureKind::NoDirectory | FailureKind::Activation) => {
                Doing::Start
            }
            _ if launch.state == LaunchState::Stopped => Doing::StopProduction,
            _ if Doing::from_step(&launch.step) == Some(Doing::StopProduction) => {
                Doing::StopProduction
            }
            _ => Doing::CheckHost,
        }
    }

    fn why(&self) -> String {
        match &self.launch.failure {
            Some(failure) => failure.to_string(),
            None => {
                "How it ended is not known: the host rebooted, or the process vanished.".to_owned()
            }
        }
    }

    fn measure(&self) -> (StepState, String) {
        let over = self.launch.state.is_over();
        let Some(run) = self.run else {
            return match self.launch.state {
                LaunchState::Ready => (StepState::Now, String::new()),
                LaunchState::Failed | LaunchState::Lost if self.launch.ready_at.is_some() => {
                    (StepState::Failed, self.why())
                }
                LaunchState::Stopping => (StepState::Skipped, String::new()),
                _ if over => (StepState::Skipped, String::new()),
                _ => (StepState::ToCome, String::new()),
            };
        };
        let state = match run.state {
            RunState::Finished => StepState::Done,
            RunState::Failed | RunState::Interrupted => StepState::Failed,
            RunState::Cancelled => StepState::Skipped,
            RunState::Queued | RunState::Running => StepState::Now,
        };
        (state, format!("Run {} is {}.", run.id, run.state))
    }

    fn restore(&self) -> (StepState, String) {
        let Some(production) = self.production else {
            return (StepState::Skipped, String::new());
        };
        if let Some((launch, state, failure)) = &production.back {
            let state = match state {
                LaunchState::Failed | LaunchState::Lost => StepState::Failed,
                LaunchState::Ready | LaunchState::Stopping | LaunchState::Stopped => {
                    StepState::Done
                }
                LaunchState::Queued | LaunchState::Starting | LaunchState::Loading => {
                    StepState::Now
                }
            };
            let detail = match failure {
                Some(failure) => failure.clone(),
                None => format!("As launch {launch}."),
            };
            return (state, detail);
        }
        if !self.launch.state.is_over() {
            return (StepState::ToCome, String::new());
        }
        if self.restore_due {
            return (StepState::Now, String::new());
        }
        if !production.state.is_over() {
            let detail = format!("{} was not stopped.", production.name);
            return (StepState::Skipped, detail);
        }
        (
            StepState::Failed,
            format!(
                "{} was not started again. What is said of this launch below tells why; start it from its own page.",
                production.name
            ),
        )
    }
}
