//! What a run says of the launch and the host that it measured.

use serde::{Deserialize, Serialize};

use super::ChartView;
use crate::{
    effective::{EffectiveConfiguration, Stamp},
    ids::{HostId, LaunchId, ProfileId},
};

/// Where the client stood during a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientPlace {
    /// Beside the dashboard, straight to the address.
    #[default]
    Dashboard,
    /// Beside the dashboard, through an SSH port forward.
    Forward,
    /// On the host itself: no network is in the figures.
    Host,
}

impl ClientPlace {
    /// The word as stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Dashboard => "dashboard",
            Self::Forward => "forward",
            Self::Host => "host",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Dashboard, Self::Forward, Self::Host]
            .into_iter()
            .find(|place| place.word() == word)
    }

    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Dashboard => "from the dashboard's machine",
            Self::Forward => "through an SSH port forward",
            Self::Host => "on the host itself",
        }
    }
}

/// The launch behind a run, in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunLaunch {
    /// Which launch.
    pub launch: LaunchId,
    /// Host: identity and name.
    pub host: (HostId, String),
    /// Profile: identity, name, number of the revision.
    pub profile: (ProfileId, String, u32),
    /// The stamp at the time of the run.
    pub stamp: Option<Stamp>,
}

/// The same on the run's own page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHost<C = ChartView> {
    /// The launch.
    pub launch: RunLaunch,
    /// Where the client stood.
    pub place: ClientPlace,
    /// Time of a small question and its answer, in ms.
    pub round_trip_ms: Option<f64>,
    /// What really ran.
    pub effective: Option<EffectiveConfiguration>,
    /// What the host did meanwhile: clocks, power, temperature.
    pub charts: Vec<C>,
    /// Drift, held-down clocks, other processes and other people's requests: a
    /// sentence each.
    pub flags: Vec<String>,
}

impl<C> RunHost<C> {
    /// The same with every chart drawn otherwise.
    #[must_use]
    pub fn map_charts<D>(self, draw: impl FnMut(C) -> D) -> RunHost<D> {
        RunHost {
            charts: self.charts.into_iter().map(draw).collect(),
            launch: self.launch,
            place: self.place,
            round_trip_ms: self.round_trip_ms,
            effective: self.effective,
            flags: self.flags,
        }
    }
}
