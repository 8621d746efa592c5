//! Runs: the list, and a run.

use serde::{Deserialize, Serialize};

use super::{
    ChartView,
    run_host::{RunHost, RunLaunch},
};
use crate::{
    engine::EngineKind,
    ids::{ContentHash, RunId},
    meter::Progress,
    metrics::{Distribution, StageFlag},
    record::RequestRecord,
    run::RunState,
    source::Source,
    statistics::Estimate,
    timestamp::Timestamp,
    workload::StageKind,
};

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its identity.
    pub id: RunId,
    /// Name of the configuration it measured.
    pub configuration: String,
    /// Where it stands.
    pub state: RunState,
    /// Why it failed or was interrupted.
    pub reason: Option<String>,
    /// Somebody asked it to stop.
    pub cancel_requested: bool,
    /// Runs to be run before it; none unless queued.
    pub queue_place: Option<u32>,
    /// Source of its figures.
    pub source: Source,
    /// Engine that answered.
    pub engine: EngineKind,
    /// Its version.
    pub engine_version: Option<String>,
    /// Model.
    pub model: String,
    /// Hardware as somebody described it; empty if nobody did.
    pub hardware: String,
    /// Base address; none for recorded figures.
    pub endpoint: Option<String>,
    /// Name of the workload.
    pub workload_name: String,
    /// Its hash.
    pub workload_hash: ContentHash,
    /// It in a line.
    pub workload_text: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub finished_at: Option<Timestamp>,
    /// Single-stream speed over its repeats, in tok/s.
    pub single_stream: Option<Estimate>,
    /// Highest mean output throughput of its levels: C and tok/s.
    pub peak_output: Option<(u32, Estimate)>,
    /// Stages with a flag, or figures in dispute.
    pub flagged: bool,
    /// The launch that was measured; none for a bare address or an import.
    #[serde(default)]
    pub launch: Option<RunLaunch>,
}

/// What the list shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunFilter {
    /// Part of configuration, model, endpoint or hardware; empty for all.
    #[serde(default)]
    pub text: String,
    /// This state only.
    #[serde(default)]
    pub state: Option<RunState>,
    /// This source only.
    #[serde(default)]
    pub source: Option<Source>,
    /// Page of fifty, from 0.
    #[serde(default)]
    pub page: u32,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPage {
    /// Newest first.
    pub runs: Vec<RunSummary>,
    /// How many match in all.
    pub total: u32,
    /// Which page this is.
    pub page: u32,
    /// Runs a page.
    pub page_size: u32,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunView<C = ChartView> {
    /// As in the list.
    pub summary: RunSummary,
    /// How far it is, while it runs.
    pub progress: Option<Progress>,
    /// One per load level, repeats taken together.
    pub levels: Vec<LevelView>,
    /// One per stage.
    pub stages: Vec<StageView>,
    /// Curves over concurrency, distribution, timeline.
    pub charts: Vec<C>,
    /// What a reader must know, in sentences.
    pub remarks: Vec<String>,
    /// Requests as the notes print them, for recorded figures: a line each.
    pub recorded_requests: Vec<String>,
    /// Acceptance of drafted tokens: what was read and what it means.
    pub acceptance: Option<AcceptanceView>,
    /// The engine's settings, secrets masked.
    pub settings: Vec<(String, String)>,
    /// Client machine and program, a line each: label and value.
    pub environment: Vec<(String, String)>,
    /// Request records stored.
    pub records: u64,
    /// The launch and the host that were measured.
    pub host: Option<RunHost<C>>,
}

/// Acceptance as shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptanceView {
    /// The figure as read.
    pub text: String,
    /// Under which definition.
    pub definition: String,
}

/// A load level over its repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelView {
    /// Single stream or C.
    #[serde(flatten)]
    pub kind: StageKind,
    /// Source of its figures.
    pub source: Source,
    /// Notes disagree about it.
    pub disputed: bool,
    /// Repeats that ran to their end.
    pub repeats: u32,
    /// Single stream only: the median `e2e_tps` of each repeat.
    pub single_stream: Option<Estimate>,
    /// Median `decode_tps` of each repeat: the speed per user.
    pub decode_tps: Option<Estimate>,
    /// Output throughput of each repeat.
    pub output_tps: Option<Estimate>,
    /// The same in the steady window.
    pub steady_output_tps: Option<Estimate>,
    /// Median time to first token of each repeat, in ms.
    pub ttft_ms: Option<Estimate>,
    /// Median time per output token of each repeat, in ms.
    pub tpot_ms: Option<Estimate>,
    /// Σ (end − sent) / duration of each repeat.
    pub achieved_concurrency: Option<Estimate>,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// What a reader must know.
    pub flags: Vec<String>,
    /// May a verdict rest on it?
    pub supports_verdict: bool,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageView {
    /// Place in the order.
    pub index: u32,
    /// Single stream or C.
    #[serde(flatten)]
    pub kind: StageKind,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Did it run to its end?
    pub complete: bool,
    /// Source of its figures.
    pub source: Source,
    /// Notes disagree about it.
    pub disputed: bool,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests stopped by us.
    pub cancelled: u64,
    /// Last token − first sent, in s.
    pub duration_s: Option<f64>,
    /// Σ n.
    pub output_tokens: u64,
    /// Output throughput, in tok/s.
    pub output_tps: Option<f64>,
    /// In the steady window, in tok/s.
    pub steady_output_tps: Option<f64>,
    /// Requests in flight on average.
    pub achieved_concurrency: Option<f64>,
    /// Time to first token, in ms.
    pub ttft_ms: Distribution,
    /// Time per output token, in ms.
    pub tpot_ms: Distribution,
    /// Gap between tokens, in ms.
    pub itl_ms: Distribution,
    /// End-to-end latency, in ms.
    pub e2el_ms: Distribution,
    /// n / e2el, in tok/s.
    pub e2e_tps: Distribution,
    /// 1000 / tpot, in tok/s.
    pub decode_tps: Distribution,
    /// What a reader must know.
    pub flags: Vec<StageFlag>,
    /// A remark for recorded figures.
    pub remark: Option<String>,
}

/// A page of request records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordPage {
    /// In the order of stage and number.
    pub records: Vec<RequestRecord>,
    /// How many in all.
    pub total: u64,
    /// Which page.
    pub page: u32,
    /// Records a page.
    pub page_size: u32,
}

impl<C> RunView<C> {
    /// The same view with every chart drawn otherwise.
    #[must_use]
    pub fn map_charts<D>(self, mut draw: impl FnMut(C) -> D) -> RunView<D> {
        RunView {
            host: self.host.map(|host| host.map_charts(&mut draw)),
            charts: self.charts.into_iter().map(draw).collect(),
            summary: self.summary,
            progress: self.progress,
            levels: self.levels,
            stages: self.stages,
            remarks: self.remarks,
            recorded_requests: self.recorded_requests,
            acceptance: self.acceptance,
            settings: self.settings,
            environment: self.environment,
            records: self.records,
        }
    }
}
