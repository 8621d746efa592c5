//! Is it ready, and is it what was asked for?

use tokdyno_domain::{
    effective::{EffectiveConfiguration, Stamp},
    endpoint::{EndpointUrl, TlsTrust},
    engine::EngineInfo,
    host::{Inventory, Keeper, ProcessFacts},
    launch::{FailureKind, LaunchFailure, LaunchState},
};
use tokdyno_engines::{
    ContainerFacts, Evidence, Health, ProbeError, effective, health, one_token, probe,
};
use tokdyno_remote::{Forward, Host, RemoteError};

use super::{
    command::{api_key, is_nccl_log},
    drive::{Drive, Step},
    keeper, lease,
    row::{self, Change, Launch, now},
};
use crate::{
    LabError, launch_rows,
    launch_runs::{LaunchRunPlan, insert_launch_run},
    steps::Doing,
    worker::patience::persist,
};

/// Most of NCCL's own logs that is read, in bytes of each file.
const NCCL_LOG: u64 = 4 << 20;
/// Most files of NCCL's own log that are read: one a rank.
const NCCL_FILES: usize = 64;

/// Why nothing can be asked of a server that wants a key.
pub(crate) const WANTS_KEY: &str =
    "It wants a key that is not known here, because keys never leave the host.";

/// How an engine answered.
pub(super) enum Asked {
    /// It serves what was asked for.
    Ready(Box<Answer>),
    /// It does not answer yet.
    NotYet,
    /// It answers wrongly.
    Wrong(LaunchFailure),
}

/// What was read of an engine that is ready.
pub(super) struct Answer {
    /// None if it told nothing, because its key is not known here.
    pub(super) info: Option<EngineInfo>,
    pub(super) effective: EffectiveConfiguration,
}

/// The address of a forward.
pub(crate) fn address(forward: &Forward) -> Result<EndpointUrl, LabError> {
    format!("http://{}", forward.local())
        .parse()
        .map_err(|error| LabError::internal("addressing a forward", error))
}

impl Drive {
    /// Asks the engine whether it is ready: health, list of models, one token, and
    /// what it really runs with.
    pub(super) async fn ask(&mut self) -> Step<Asked> {
        let Some(endpoint) = self.endpoint().await? else {
            return Ok(Asked::NotYet);
        };
        let key = api_key(&self.launch.spec);
        let engine = self.launch.spec.engine;
        match health(engine, &endpoint, key.as_ref()).await {
            Health::Ok => {}
            // It may want a key: the list of models tells.
            Health::Unreachable(_) if self.is_production() => {}
            Health::Starting | Health::Dead(_) | Health::Unreachable(_) => {
                return Ok(Asked::NotYet);
            }
        }
        let report = match probe(&endpoint, key.as_ref(), &TlsTrust::default()).await {
            Ok(report) => report,
            Err(ProbeError::KeyMissing { .. } | ProbeError::KeyRefused { .. })
                if self.is_production() =>
            {
                return self.without_key().await;
            }
            Err(_) => return Ok(Asked::NotYet),
        };
        self.step(Doing::Verify).await?;
        let name = self.launch.spec.served_name();
        let served = report.info.models.iter().any(|model| model == name);
        if !served && !self.is_production() {
            return Ok(Asked::Wrong(LaunchFailure::new(
                FailureKind::WrongModel,
                format!(
                    "It lists {} and not {name}",
                    if report.info.models.is_empty() {
                        "no model".to_owned()
                    } else {
                        report.info.models.join(", ")
                    }
                ),
            )));
        }
        let model = if served {
            name
        } else {
            report.info.models.first().map_or(name, String::as_str)
        };
        if let Err(why) = one_token(&endpoint, key.as_ref(), model).await {
            return Ok(Asked::Wrong(LaunchFailure::new(FailureKind::NoToken, why)));
        }
        self.note_container().await?;
        let effective = self.read_effective(Some(&report.info)).await?;
        Ok(Asked::Ready(Box::new(Answer {
            info: Some(report.info),
            effective,
        })))
    }

    /// It serves those who know its key. What the host tells of it is read all the
    /// same.
    async fn without_key(&mut self) -> Step<Asked> {
        self.step(Doing::Verify).await?;
        let mut effective = self.read_effective(None).await?;
        // What differs on the host differs with and without a key.
        if !matches!(effective.stamp, Stamp::Mismatched { .. }) {
            effective.stamp = Stamp::Unverifiable {
                why: WANTS_KEY.to_owned(),
            };
        }
        Ok(Asked::Ready(Box::new(Answer {
            info: None,
            effective,
        })))
    }

    /// The engine's address from here; none while there is no way to it.
    pub(super) async fn endpoint(&mut self) -> Step<Option<EndpointUrl>> {
        if let Some(forward) = &mut self.forward
            && forward.ensure().await.is_err()
        {
            self.forward = None;
        }
        if self.forward.is_none() {
            match self.host.forward(self.launch.port).await {
                Ok(forward) => self.forward = Some(forward),
                Err(error) => {
                    tracing::debug!(launch = %self.launch.id, %error, "no way to the port");
                    return Ok(None);
                }
            }
        }
        match &self.forward {
            Some(forward) => Ok(Some(address(forward)?)),
            None => Ok(None),
        }
    }

    /// From now on its own container is known by its identity rather than its name.
    async fn note_container(&mut self) -> Step {
        let Some(Keeper::Container { runtime, id, name }) = self.own_container() else {
            return Ok(());
        };
        if !id.is_empty() {
            return Ok(());
        }
        let found = keeper::container_id(&self.host, &runtime, &name).await;
        let Ok(Some(id)) = found else {
            return Ok(());
        };
        self.change(Change {
            keeper: Some(Keeper::Container { runtime, id, name }),
            ..Change::default()
        })
        .await
    }

    async fn read_effective(&mut self, info: Option<&EngineInfo>) -> Step<EffectiveConfiguration> {
        let started = self.spec_to_start().await?;
        let reader = self.reader().await?;
        let facts = Facts::read(&self.host, &self.launch, self.own_container().is_some()).await;
        let container = launch_rows::container(&self.launch.folder);
        let evidence = Evidence {
            spec: &self.launch.spec,
            command: &started.started_command(&container),
            process: facts.process.as_ref(),
            info,
            log: &reader,
            nccl_log: facts.nccl_log.as_deref(),
            nccl_conf: facts
                .inventory
                .as_ref()
                .map_or(&[], |inventory| inventory.nccl_conf.as_slice()),
            inventory: facts.inventory.as_ref(),
            container: facts.container.as_ref(),
            at: now(),
            verify_nccl: self.launch.plan.verify_nccl,
        };
        let mut read = effective(&evidence);
        read.notes.extend(facts.notes);
        Ok(read)
    }

    /// It is ready, and what is to be measured is queued in the same moment.
    pub(super) async fn become_ready(&mut self, answer: Answer) -> Step {
        let wants_key = answer.info.is_none();
        let remark = wants_key
            .then(|| format!("{WANTS_KEY} So it can be stopped and restored, but not measured."));
        let ready = Change {
            effective: Some(answer.effective),
            simulated: answer.info.as_ref().is_some_and(|info| info.simulated),
            engine_version: answer.info.and_then(|info| info.version),
            wants_key,
            remarks: remark.into_iter().collect(),
            step: Some(String::new()),
            ..Change::to(LaunchState::Ready)
        };
        let done = persist!(&self.signals.stop, self.write_ready(&ready));
        self.launch.state = done?;
        Ok(())
    }

    async fn write_ready(&self, ready: &Change) -> Result<LaunchState, LabError> {
        let mut tx = self.lab.0.pool.begin().await?;
        lease::hold(&mut tx, &self.lease).await?;
        let state =
            sqlx::query_scalar!("SELECT state FROM launches WHERE id = $1", self.launch.id.0)
                .fetch_one(&mut *tx)
                .await?;
        // Stored before, and the answer was lost: what is measured is queued already.
        if launch_rows::state_of(&state)? == LaunchState::Ready {
            return Ok(LaunchState::Ready);
        }
        let mut ready = ready.clone();
        if let Some(plan) = &self.launch.plan.measure {
            ready.step = Some(Doing::Measure.words().to_owned());
            row::change(&mut tx, &self.lease, &ready).await?;
            let plan = LaunchRunPlan {
                launch: self.launch.id,
                configuration: &plan.configuration,
                workload: &plan.workload,
                through_forward: plan.through_forward,
            };
            insert_launch_run(&mut tx, &self.launch.actor, &plan).await?;
        } else {
            row::change(&mut tx, &self.lease, &ready).await?;
        }
        tx.commit().await?;
        Ok(LaunchState::Ready)
    }
}

/// What the host tells of a process, as far as it does.
pub(super) struct Facts {
    pub(super) process: Option<ProcessFacts>,
    pub(super) container: Option<ContainerFacts>,
    pub(super) inventory: Option<Inventory>,
    pub(super) nccl_log: Option<String>,
    /// What could not be read, and why.
    pub(super) notes: Vec<String>,
}

impl Facts {
    pub(super) async fn read(host: &Host, launch: &Launch, contained: bool) -> Self {
        let mut notes = Vec::new();
        let container = match keeper::container(host, &launch.keeper).await {
            Ok(container) => container,
            Err(error) => {
                notes.push(format!("The container could not be read: {error}"));
                None
            }
        };
        // Of a container's own client only what it runs inside counts.
        let pid = match &container {
            Some(container) => container.pid,
            None if contained => None,
            None => launch.identity.as_ref().map(|identity| identity.pid),
        };
        let names: Vec<String> = launch
            .spec
            .environment
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        let process = match pid {
            Some(pid) => {
                noted(host.process(pid, &names).await, "The process", &mut notes).flatten()
            }
            None => None,
        };
        let inventory = noted(host.inventory().await, "The host", &mut notes);
        let nccl_log = if launch.plan.verify_nccl {
            noted(
                nccl_log(host, &launch.folder).await,
                "NCCL's log",
                &mut notes,
            )
            .flatten()
        } else {
            None
        };
        Self {
            process,
            container,
            inventory,
            nccl_log,
            notes,
        }
    }
}

fn noted<T>(read: Result<T, RemoteError>, what: &str, notes: &mut Vec<String>) -> Option<T> {
    read.inspect_err(|error| notes.push(format!("{what} could not be read: {error}")))
        .ok()
}

/// NCCL's own logs of all ranks, one after another; none if there is none.
async fn nccl_log(host: &Host, folder: &str) -> Result<Option<String>, RemoteError> {
    let mut text = String::new();
    let files = host.list(folder).await?;
    for file in files
        .iter()
        .filter(|file| is_nccl_log(&file.name))
        .take(NCCL_FILES)
    {
        if let Some(bytes) = host.read(folder, &file.name, NCCL_LOG).await? {
            text.push_str(&String::from_utf8_lossy(&bytes));
            text.push('\n');
        }
    }
    Ok((!text.is_empty()).then_some(text))
}
