//! The Board: the answer first.

use serde::{Deserialize, Serialize};

use super::ChartView;
use crate::{
    effective::Stamp,
    engine::EngineKind,
    ids::{ContentHash, RunId},
    source::Source,
    statistics::Estimate,
    timestamp::Timestamp,
};

/// Which throughput is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThroughputMetric {
    /// Whole stage, ramp and drain included.
    #[default]
    OutputTps,
    /// Steady window only.
    SteadyOutputTps,
}

impl ThroughputMetric {
    /// The field's name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::OutputTps => "output_tps",
            Self::SteadyOutputTps => "steady_output_tps",
        }
    }
}

/// What the Board shows: all of it in the address, absent keys meaning the
/// default (the newest model with figures, C = 128 or the highest there is).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BoardFilter {
    /// This model.
    #[serde(default)]
    pub model: Option<String>,
    /// This hardware; an empty text is "not stated".
    #[serde(default)]
    pub hardware: Option<String>,
    /// This workload, by hash.
    #[serde(default)]
    pub workload: Option<ContentHash>,
    /// This throughput.
    #[serde(default)]
    pub metric: ThroughputMetric,
    /// Throughput at this concurrency.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// Simulated figures instead of the others; the two never share a chart.
    #[serde(default)]
    pub simulated: bool,
}

/// What can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BoardChoices {
    /// Models with figures.
    pub models: Vec<String>,
    /// Hardware of the chosen model.
    pub hardware: Vec<String>,
    /// Workloads of the chosen model and hardware: hash, name, and it in a line.
    pub workloads: Vec<(ContentHash, String, String)>,
    /// Concurrencies of the chosen workload.
    pub concurrencies: Vec<u32>,
    /// Are there simulated figures at all?
    pub has_simulated: bool,
    /// Are there others?
    pub has_real: bool,
}

/// The Board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardView<C = ChartView> {
    /// Nothing is stored at all.
    pub empty: bool,
    /// The founding figures are not loaded.
    pub founding_missing: bool,
    /// What can be chosen.
    pub choices: BoardChoices,
    /// What is chosen, every key filled where there is a figure.
    pub filter: BoardFilter,
    /// Best for one user.
    pub best_single: Answer,
    /// Best at the chosen concurrency.
    pub best_throughput: Answer,
    /// The configurations, fastest single stream first.
    pub rows: Vec<BoardRow>,
    /// Throughput across, single-stream speed up.
    pub chart: Option<C>,
    /// When the newest figure was made.
    pub as_of: Option<Timestamp>,
}

/// An answer in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// `Best for one user`.
    pub question: String,
    /// Name of the leading configuration, where there is one.
    pub leader: Option<String>,
    /// Its figure, in tok/s.
    pub figure: Option<Estimate>,
    /// Where the figure comes from.
    pub source: Option<Source>,
    /// Is it beyond doubt, over several launches of both?
    pub established: bool,
    /// Why (not), against whom, and on how many launches it rests.
    pub because: String,
}

/// A configuration on the Board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardRow {
    /// Its name.
    pub configuration: String,
    /// Its engine.
    pub engine: EngineKind,
    /// Where its figures come from.
    pub source: Source,
    /// Single-stream speed over its launches (or the repeats of its only one), in tok/s.
    pub single_stream: Option<Estimate>,
    /// Throughput at the chosen concurrency, in tok/s.
    pub throughput: Option<Estimate>,
    /// Source of the throughput where it differs (an estimate beside a record).
    pub throughput_source: Option<Source>,
    /// The single-stream figure is flagged or disputed.
    pub single_doubtful: bool,
    /// The throughput is flagged or disputed.
    pub throughput_doubtful: bool,
    /// Acceptance as read, with its definition.
    pub acceptance: Option<(String, String)>,
    /// Launches behind it. Runs against an address of unknown history count as one.
    pub launches: u32,
    /// The worst stamp of its launches; none if none of its runs measured a launch.
    #[serde(default)]
    pub stamp: Option<Stamp>,
    /// Its runs, newest first.
    pub runs: Vec<RunId>,
    /// What a reader must know.
    pub remarks: Vec<String>,
}

impl<C> BoardView<C> {
    /// The same view with its chart drawn otherwise.
    #[must_use]
    pub fn map_charts<D>(self, draw: impl FnOnce(C) -> D) -> BoardView<D> {
        BoardView {
            chart: self.chart.map(draw),
            empty: self.empty,
            founding_missing: self.founding_missing,
            choices: self.choices,
            filter: self.filter,
            best_single: self.best_single,
            best_throughput: self.best_throughput,
            rows: self.rows,
            as_of: self.as_of,
        }
    }
}
