//! Starting the process of a launch, and finding it again.

use tokdyno_domain::{
    host::ProcessIdentity,
    launch::{FailureKind, LaunchFailure, LaunchState},
    profile::{Activation, ProfileSpec},
};
use tokdyno_remote::{FailureWord, Host, RawCommand, RemoteError, Spawn, Spawned};
use tokio::time::Instant;

use super::{
    command::{raw, with_nccl_log},
    drive::{Drive, Halt, Step},
    row::Change,
    trouble::{failure_of, is_outage, passes, said},
};
use crate::{launch_rows, steps::Doing};

/// Prints where state folders lie on a host, by the same rule as the agent.
const STATE: &str = r#"printf %s "${XDG_STATE_HOME:-$HOME/.local/state}/tokdyno/launches""#;
/// The agent's record of a folder's process, and what is read of it.
const RECORD: &str = "process.json";

#[derive(serde::Deserialize)]
struct Record {
    leader: Option<ProcessIdentity>,
}

impl Drive {
    /// Starts the process. It is known to the host's agent by the launch's folder,
    /// which the row names, so that it is found again whatever happens here.
    pub(super) async fn start(&mut self) -> Step {
        if let Some(identity) = self.launch.identity.clone() {
            // Found by the preparation.
            return self
                .change(Change {
                    identity: Some(identity),
                    keeper: self.own_container(),
                    step: Some(Doing::Load.words().to_owned()),
                    ..Change::to(LaunchState::Loading)
                })
                .await;
        }
        self.step(Doing::Start).await?;
        self.start_tried = true;
        if self.is_production() {
            return self.start_again().await;
        }
        let spec = self.spec_to_start().await?;
        let container = launch_rows::container(&self.launch.folder);
        let spawn = &Spawn {
            folder: self.launch.folder.clone(),
            command: raw(&spec.started_command(&container)),
        };
        let keeper = self.own_container();
        let identity = self
            .start_once(|host| async move { host.spawn(spawn).await })
            .await?
            .map_err(|error| Halt::Failed(not_started(&error, &spec)))?;
        self.change(Change {
            identity: Some(identity),
            keeper,
            step: Some(Doing::Load.words().to_owned()),
            ..Change::to(LaunchState::Loading)
        })
        .await
    }

    /// The profile as it is started: with NCCL's own log if that was asked for.
    pub(super) async fn spec_to_start(&mut self) -> Step<ProfileSpec> {
        if !self.launch.plan.verify_nccl {
            return Ok(self.launch.spec.clone());
        }
        let command = &RawCommand::new(["sh", "-c", STATE]);
        let asked = self
            .patiently(|host| async move { host.run(command, &[]).await })
            .await?
            .map_err(|error| Halt::Failed(failure_of(&error)))?;
        let state = String::from_utf8_lossy(&asked.stdout);
        let folder = format!("{}/{}", state.trim_end(), self.launch.folder);
        Ok(with_nccl_log(&self.launch.spec, &folder))
    }

    /// Looks for a process that a former holder of the launch had started. If there
    /// is one, the launch goes on with it.
    pub(super) async fn find_started(&mut self) -> Step<bool> {
        if self.launch.identity.is_some() {
            return Ok(true);
        }
        // Nobody has driven it before.
        if self.lease.epoch <= 1 || !self.is_ours() {
            return Ok(false);
        }
        loop {
            match self.recorded().await {
                Ok(Some(identity)) => {
                    self.start_tried = true;
                    self.launch.identity = Some(identity);
                    return Ok(true);
                }
                Ok(None) => return Ok(false),
                // Until it is known, nothing can be said of it.
                Err(error) if is_outage(&error) => self.not_reached(&error).await?,
                Err(error) => return Err(Halt::Failed(failure_of(&error))),
            }
        }
    }

    /// Starts the process of this launch's folder exactly once, also through
    /// connections that are cut: the answer may have been lost and not the process,
    /// so the folder is looked at before the order is given again.
    pub(super) async fn start_once<F>(
        &mut self,
        start: impl Fn(Host) -> F,
    ) -> Step<Result<ProcessIdentity, RemoteError>>
    where
        F: Future<Output = Result<Spawned, RemoteError>>,
    {
        let began = Instant::now();
        loop {
            let error = match start(self.host.clone()).await {
                Ok(spawned) => {
                    self.reached().await?;
                    return Ok(Ok(spawned.identity));
                }
                Err(error) => error,
            };
            let cut = passes(&error, self.answered);
            if cut {
                self.not_reached(&error).await?;
            } else if !said(&error, FailureWord::StillAlive) {
                return Ok(Err(error));
            }
            let folder = &self.launch.folder.clone();
            match self
                .patiently(|host| async move { recorded(&host, folder).await })
                .await?
            {
                Ok(Some(identity)) => return Ok(Ok(identity)),
                Ok(None) if cut && began.elapsed() < self.patience.connection => {}
                Ok(None) | Err(_) => return Ok(Err(error)),
            }
        }
    }

    /// The process that the agent has recorded in the launch's folder, alive or not.
    pub(super) async fn recorded(&self) -> Result<Option<ProcessIdentity>, RemoteError> {
        recorded(&self.host, &self.launch.folder).await
    }
}

async fn recorded(host: &Host, folder: &str) -> Result<Option<ProcessIdentity>, RemoteError> {
    let most = 64 * 1024;
    let bytes = match host.read(folder, RECORD, most).await {
        Ok(bytes) => bytes,
        Err(error) if said(&error, FailureWord::NoSuchFolder) => None,
        Err(error) => return Err(error),
    };
    let record = bytes.and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
    Ok(record.and_then(|record| record.leader))
}

/// Why the program was not started. What a profile activates has its own name.
fn not_started(error: &RemoteError, spec: &ProfileSpec) -> LaunchFailure {
    let mut failure = failure_of(error);
    let activation = match &spec.activation {
        Activation::Container { .. } => failure.kind == FailureKind::NoProgram,
        Activation::Script { .. } => failure.kind == FailureKind::NoProgram,
        Activation::VirtualEnvironment { .. } => {
            failure.kind == FailureKind::NoProgram && !spec.program.contains('/')
        }
        Activation::None => false,
    };
    if activation {
        failure.kind = FailureKind::Activation;
    }
    failure
}
