//! What a launch is for, and what comes after it.

use serde::{Deserialize, Serialize};

use crate::{ids::LaunchId, timestamp::Timestamp, workload::Workload};

/// How long before the agreed time what runs is ended, in seconds.
pub const GIVE_BACK_LEAD_S: u32 = 60;

/// What a launch is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Write NCCL's own start-up log and read it. It slows the engine a little, so a
    /// measurement of such a launch says so.
    #[serde(default)]
    pub verify_nccl: bool,
    /// What is measured once it is ready.
    #[serde(default)]
    pub measure: Option<MeasurePlan>,
    /// What is done after the measurement, and after a failure. Without a
    /// measurement, [`Afterwards::Stop`] means that it is stopped when it is verified.
    #[serde(default)]
    pub afterwards: Afterwards,
    /// The adopted launch that is stopped before, and started again afterwards: when
    /// this launch is over, however it ended.
    #[serde(default)]
    pub restore: Option<LaunchId>,
    /// The host is given back by then: this launch is ended, and what is to be
    /// restored is started again.
    #[serde(default)]
    pub give_back_at: Option<Timestamp>,
    /// Seconds before that time at which ending begins.
    #[serde(default = "lead")]
    pub give_back_lead_s: u32,
}

const fn lead() -> u32 {
    GIVE_BACK_LEAD_S
}

impl Default for LaunchPlan {
    fn default() -> Self {
        Self {
            verify_nccl: false,
            measure: None,
            afterwards: Afterwards::default(),
            restore: None,
            give_back_at: None,
            give_back_lead_s: GIVE_BACK_LEAD_S,
        }
    }
}

/// A measurement of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasurePlan {
    /// What the configuration is called on the Board.
    pub configuration: String,
    /// What is sent.
    pub workload: Workload,
    /// Measure from the dashboard's machine through a port forward, rather than with
    /// the meter on the host itself.
    #[serde(default)]
    pub through_forward: bool,
}

/// What becomes of a launch when its work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Afterwards {
    /// It goes on running.
    #[default]
    Keep,
    /// It is stopped; what is to be restored is started again.
    Stop,
}
