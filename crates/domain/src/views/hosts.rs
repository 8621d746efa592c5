//! Hosts: the list, a host, what runs on it.

use serde::{Deserialize, Serialize};

use super::servers::LaunchSummary;
use crate::{
    host::{FoundEngine, Inventory, ProcessIdentity, Reach},
    ids::{HostId, LaunchId},
    timestamp::Timestamp,
};

/// A host as typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostForm {
    /// What it is called; blank for its destination.
    pub name: String,
    /// Blank for the machine this program runs on; otherwise as typed after `ssh`.
    pub destination: String,
    /// Notes for people.
    pub notes: String,
}

/// A host in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    /// Its identity.
    pub id: HostId,
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Notes for people.
    pub notes: String,
    /// When somebody last tried to connect.
    pub checked_at: Option<Timestamp>,
    /// How that failed, as a sentence; none if it went well.
    pub check_error: Option<String>,
    /// `8 × NVIDIA RTX PRO 6000`, or `no GPU`; blank before it was ever read.
    pub hardware: String,
    /// Who owns its GPUs now.
    pub owners: Vec<GpuOwner>,
    /// Launches that wait for it.
    pub waiting: u32,
}

/// Who owns a set of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuOwner {
    /// The launch.
    pub launch: LaunchId,
    /// Its profile's name.
    pub profile: String,
    /// Who launched it.
    pub by: String,
    /// GPUs; none means all of the host's.
    pub gpus: Option<Vec<u32>>,
    /// Since when.
    pub since: Timestamp,
    /// Until when, if it is to be given back by then.
    pub until: Option<Timestamp>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostView {
    /// As in the list.
    pub summary: HostSummary,
    /// The newest inventory.
    pub inventory: Option<Inventory>,
    /// Launches on it, newest first, at most fifty.
    pub launches: Vec<LaunchSummary>,
    /// May this reader launch, and edit hosts?
    pub may_operate: bool,
}

/// How a test of the connection went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum HostCheck {
    /// It answers.
    Reachable {
        /// Time of a question and its answer, in ms.
        round_trip_ms: f64,
        /// What is on it.
        inventory: Box<Inventory>,
    },
    /// It does not.
    Unreachable {
        /// The kind of trouble.
        word: String,
        /// A sentence with cause and remedy.
        reason: String,
    },
}

/// What is running on a host now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningNow {
    /// Engines that nobody launched from here.
    pub found: Vec<FoundEngine>,
    /// Processes of launches that are over.
    pub leftovers: Vec<Leftover>,
}

/// A process of ours that should not be there any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leftover {
    /// Of which launch, where its row is known here.
    pub launch: Option<LaunchId>,
    /// Its folder on the host.
    pub folder: String,
    /// The process.
    pub identity: ProcessIdentity,
    /// Its command, for people.
    pub command: String,
    /// GPU memory it and its group hold, in MiB.
    pub gpu_mib: u64,
}
