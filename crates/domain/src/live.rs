//! What a page hears while it is open: that something of a run changed.

use serde::{Deserialize, Serialize};

use crate::{
    ids::{LaunchId, RunId},
    launch::LaunchState,
    meter::Progress,
    run::RunState,
};

/// Something happened to a run. Known by (run, seq), so that a reader who lost
/// the connection can say where to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveEvent {
    /// Which run.
    pub run: RunId,
    /// 1, 2, 3 … for events that are kept; a [`LiveKind::Progress`], which is
    /// not kept, carries the number of the last kept event before it.
    pub seq: i64,
    /// What happened.
    pub kind: LiveKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum LiveKind {
    /// How far it is.
    Progress(Progress),
    /// A stage finished: its figures can be fetched.
    Stage {
        /// Which.
        index: u32,
    },
    /// The run changed (state, cancellation, names): fetch it again.
    State {
        /// Where it stands now.
        state: RunState,
    },
}

/// Something happened to a launch. Not kept: a reader who comes back fetches the
/// launch again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchEvent {
    /// Which launch.
    pub launch: LaunchId,
    /// Where it stands now.
    pub state: LaunchState,
    /// Bytes of log there are, if that is the news.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_size: Option<u64>,
}
