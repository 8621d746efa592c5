//! Servers: what runs where, since when, by whom; and a launch.

use serde::{Deserialize, Serialize};

use crate::{
    effective::{EffectiveConfiguration, Stamp},
    engine::EngineKind,
    host::{FoundEngine, Keeper},
    ids::{ContentHash, HostId, LaunchId, ProfileId, RunId},
    launch::{Afterwards, LaunchFailure, LaunchOrigin, LaunchPlan, LaunchState, LoadStage},
    run::RunState,
    timestamp::Timestamp,
    views::measure::WorkloadForm,
};

/// A launch in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchSummary {
    /// Its identity.
    pub id: LaunchId,
    /// How it came to be.
    pub origin: LaunchOrigin,
    /// Where it stands.
    pub state: LaunchState,
    /// Why it failed.
    pub failure: Option<LaunchFailure>,
    /// Host: identity and name.
    pub host: (HostId, String),
    /// Profile: identity, name, number of the revision, its hash.
    pub profile: (ProfileId, String, u32, ContentHash),
    /// Which engine, and its version where it tells.
    pub engine: EngineKind,
    /// Its version.
    pub engine_version: Option<String>,
    /// The stand-in engine.
    pub simulated: bool,
    /// Port on the host's loopback.
    pub port: u16,
    /// GPUs it owns; none means all of the host's.
    pub gpus: Option<Vec<u32>>,
    /// The stamp, once the effective configuration was read.
    pub stamp: Option<Stamp>,
    /// Who asked for it.
    pub by: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its process was started.
    pub started_at: Option<Timestamp>,
    /// When it became ready.
    pub ready_at: Option<Timestamp>,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// How far loading is.
    pub stage: Option<LoadStage>,
    /// What it waits for, while it is queued.
    pub waits_for: Option<String>,
    /// What is being done just now, in words.
    pub step: String,
    /// Somebody asked it to stop.
    pub stop_requested: bool,
    /// Since when the host does not answer.
    pub unreachable_since: Option<Timestamp>,
    /// Given back by then.
    pub give_back_at: Option<Timestamp>,
}

/// A launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchView {
    /// As in the list.
    pub summary: LaunchSummary,
    /// The command as a shell would take it.
    pub command: String,
    /// The steps of the whole, in order, done and to come.
    pub steps: Vec<Step>,
    /// The newest line that told the stage.
    pub stage_text: String,
    /// Seconds that earlier launches of this profile on this host took to load.
    pub usual_load_s: Option<f64>,
    /// What really runs.
    pub effective: Option<EffectiveConfiguration>,
    /// What was asked for.
    pub plan: LaunchPlan,
    /// Who keeps the process.
    pub keeper: Keeper,
    /// Process number on the host.
    pub pid: Option<u32>,
    /// Folder on the host.
    pub folder: String,
    /// The adopted launch that is restored afterwards, or that this one restores.
    pub restores: Option<LaunchId>,
    /// Launch that restored this one.
    pub restored_by: Option<LaunchId>,
    /// What went wrong besides.
    pub remarks: Vec<String>,
    /// Runs on it, newest first.
    pub runs: Vec<LaunchRun>,
    /// Bytes of log there are.
    pub log_size: u64,
    /// May this reader stop and measure?
    pub may_operate: bool,
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not yet.
    ToCome,
    /// Under way.
    Now,
    /// Done.
    Done,
    /// It went wrong.
    Failed,
    /// Not reached any more.
    Skipped,
}

/// One step of a launch's way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it is: `check host`, `load`, `verify`, `measure`, `restore production`.
    pub name: String,
    /// Where it stands.
    pub state: StepState,
    /// What is to be said of it.
    pub detail: String,
    /// A page about it, such as `/runs/7`.
    pub link: Option<String>,
}

/// A run on a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRun {
    /// Its identity.
    pub id: RunId,
    /// Name of its configuration.
    pub configuration: String,
    /// Its workload in a line.
    pub workload: String,
    /// Where it stands.
    pub state: RunState,
}

/// The page of servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerList {
    /// Launches that live, newest first.
    pub alive: Vec<LaunchSummary>,
    /// Launches that are over, newest first, at most fifty.
    pub over: Vec<LaunchSummary>,
    /// May this reader launch and stop?
    pub may_operate: bool,
}

/// A launch as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchForm {
    /// Which profile; its newest revision is launched.
    pub profile: ProfileId,
    /// On which host.
    pub host: HostId,
    /// Measure once it is ready: this workload.
    #[serde(default)]
    pub measure: Option<WorkloadForm>,
    /// What the configuration is called; blank for the profile's name.
    #[serde(default)]
    pub configuration: String,
    /// Measure through a port forward rather than on the host.
    #[serde(default)]
    pub through_forward: bool,
    /// Write and read NCCL's own log.
    #[serde(default)]
    pub verify_nccl: bool,
    /// What is done afterwards.
    #[serde(default)]
    pub afterwards: Afterwards,
    /// The adopted server that is stopped before and started again afterwards.
    #[serde(default)]
    pub restore: Option<LaunchId>,
    /// Give the host back by then.
    #[serde(default)]
    pub give_back_at: Option<Timestamp>,
    /// Seconds before that time at which ending begins; none for the usual minute.
    #[serde(default)]
    pub give_back_lead_s: Option<u32>,
}

/// A measurement of a ready launch, as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureForm {
    /// Which launch.
    pub launch: LaunchId,
    /// What is sent.
    pub workload: WorkloadForm,
    /// What the configuration is called; blank for the profile's name.
    #[serde(default)]
    pub configuration: String,
    /// Through a port forward rather than on the host.
    #[serde(default)]
    pub through_forward: bool,
}

/// What is asked before something is stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopQuestion {
    /// Requests that it is working on just now; none if it does not tell.
    pub in_flight: Option<u64>,
    /// Why it does not tell.
    pub note: Option<String>,
    /// How it would be stopped, in words.
    pub how: String,
}

/// A running engine to be adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdoptForm {
    /// On which host.
    pub host: HostId,
    /// As it was found: its process is looked up again before anything is done.
    pub engine: FoundEngine,
    /// Name of the profile to make; blank for a suggestion.
    pub profile_name: String,
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// Where it begins, in bytes.
    pub start: u64,
    /// Where the next one begins.
    pub next: u64,
    /// Bytes there are now.
    pub size: u64,
    /// The text; bytes that are no UTF-8 are replaced here, and kept in the file.
    pub text: String,
    /// Lines that hold what was looked for: byte at which each begins, and the line.
    pub found: Vec<(u64, String)>,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its number.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// What was done, as a word.
    pub action: String,
    /// To what, such as `launch 7`.
    pub subject: String,
    /// More about it.
    pub detail: String,
    /// Where from.
    pub origin: String,
    /// A page about it.
    pub link: Option<String>,
}

/// A page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditPage {
    /// A hundred at most.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins: entries before this number.
    pub before: Option<i64>,
}

/// Who the reader is to the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Me {
    /// Name of the actor.
    pub name: String,
    /// May launch, and edit hosts and profiles.
    pub may_operate: bool,
    /// Signed in with the password, so that there is something to sign out of.
    pub signed_in: bool,
    /// A password is set, so that one can sign in.
    pub password_set: bool,
}
