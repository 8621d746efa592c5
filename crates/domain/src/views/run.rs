//! Runs: the list, and a run.

use serde::{Deserialize, Serialize};

use super::{
    ChartView,
    measure::WorkloadForm,
    run_host::{RunHost, RunLaunch},
};
use crate::{
    conditions::{Certificate, ClientLoad, EngineReport, StageConditions},
    effective::Stamp,
    engine::EngineKind,
    goodput::Goodput,
    ids::{ContentHash, RunId},
    meter::Progress,
    metrics::{Distribution, StageFlag},
    record::RequestRecord,
    run::RunState,
    source::Source,
    statistics::Estimate,
    timestamp::Timestamp,
    workload::{StageKind, Workload},
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
    /// Its highest rate and the requests per second that were answered there; for
    /// a run that has neither a single stream nor a C.
    #[serde(default)]
    pub peak_rate: Option<(StageKind, Option<Estimate>)>,
    /// Stages with a flag, or figures in dispute.
    pub flagged: bool,
    /// The launch that was measured; none for a bare address or an import.
    #[serde(default)]
    pub launch: Option<RunLaunch>,
}

impl RunSummary {
    /// A finished run of which nothing more is known than what it measured, and when.
    #[must_use]
    pub fn finished(
        id: RunId,
        configuration: String,
        source: Source,
        workload: &Workload,
        at: Timestamp,
    ) -> Self {
        Self {
            id,
            configuration,
            state: RunState::Finished,
            reason: None,
            cancel_requested: false,
            queue_place: None,
            source,
            engine: EngineKind::Other,
            engine_version: None,
            model: String::new(),
            hardware: String::new(),
            endpoint: None,
            workload_name: workload.name.clone(),
            workload_hash: workload.hash(),
            workload_text: workload.describe(),
            created_at: at,
            started_at: Some(at),
            finished_at: Some(at),
            single_stream: None,
            peak_output: None,
            peak_rate: None,
            flagged: false,
            launch: None,
        }
    }

    /// Where its figures come from; none before it is known who answers, who may be a
    /// stand-in.
    #[must_use]
    pub fn known_source(&self) -> Option<Source> {
        let is_known = self.state.is_over()
            || self.engine != EngineKind::Other
            || self.engine_version.is_some();
        is_known.then_some(self.source)
    }

    /// Why what ran was not what its configuration promises, in a sentence. Such a run
    /// says nothing of that configuration, so no verdict may rest on it.
    #[must_use]
    pub fn mismatch(&self) -> Option<String> {
        let stamp = self.launch.as_ref()?.stamp.as_ref()?;
        matches!(stamp, Stamp::Mismatched { .. }).then(|| stamp.sentence())
    }
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
    /// Stages of the plan that a rule of the workload left out.
    #[serde(default)]
    pub skipped: Vec<SkippedStage>,
    /// Its workload as the form has it, so that it can be measured again; none where
    /// the form cannot say it. Prompts from a file have to be chosen anew.
    #[serde(default)]
    pub again: Option<WorkloadForm>,
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

/// A stage that was planned and left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedStage {
    /// Place in the plan.
    pub index: u32,
    /// What it would have been.
    #[serde(flatten)]
    pub kind: StageKind,
    /// In which repeat, from 0.
    pub repeat: u32,
    /// Why, in a sentence; none where a file said only which.
    pub reason: Option<String>,
}

/// A load level over its repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelView {
    /// Single stream, C or a rate.
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
    /// Requests answered per second of each repeat.
    #[serde(default)]
    pub request_throughput: Option<Estimate>,
    /// p99 of the time to first token of each repeat, in ms.
    #[serde(default)]
    pub ttft_p99_ms: Option<Estimate>,
    /// Open loop: median time from a request's scheduled start to its first token,
    /// of each repeat, in ms.
    #[serde(default)]
    pub ttft_intended_ms: Option<Estimate>,
    /// The same at p99.
    #[serde(default)]
    pub ttft_intended_p99_ms: Option<Estimate>,
    /// Most requests in flight at any moment of any repeat.
    #[serde(default)]
    pub peak_in_flight: Option<u32>,
    /// Requests per second that met the workload's bounds, of each repeat.
    #[serde(default)]
    pub goodput: Option<Estimate>,
    /// Token chunks per second, of the repeat that had most.
    #[serde(default)]
    pub chunks_per_s: Option<f64>,
    /// What the engine said meanwhile: counts added up over the repeats, maxima of
    /// all of them.
    #[serde(default)]
    pub engine: Option<EngineReport>,
    /// Mean time to first token by our clock in the repeats for which the engine
    /// told its own, in ms.
    #[serde(default)]
    pub ttft_beside_engine_ms: Option<f64>,
    /// How the measuring machine fared: the worst of the repeats.
    #[serde(default)]
    pub client: Option<ClientLoad>,
    /// What the measuring machine can time truthfully: the least of the repeats.
    #[serde(default)]
    pub certificate: Option<Certificate>,
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
    /// Single stream, C or a rate.
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
    /// Σ prompt tokens of the successful requests, where the server told.
    #[serde(default)]
    pub prompt_tokens: Option<u64>,
    /// Σ n.
    pub output_tokens: u64,
    /// Σ prompt tokens from the prefix cache, where the server told.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
    /// Output throughput, in tok/s.
    pub output_tps: Option<f64>,
    /// In the steady window, in tok/s.
    pub steady_output_tps: Option<f64>,
    /// In its busiest second, in tok/s.
    #[serde(default)]
    pub peak_output_tps: Option<f64>,
    /// Requests answered per second.
    #[serde(default)]
    pub request_throughput: Option<f64>,
    /// Requests in flight on average.
    pub achieved_concurrency: Option<f64>,
    /// Most requests in flight at any moment.
    #[serde(default)]
    pub peak_in_flight: Option<u32>,
    /// Token chunks read.
    #[serde(default)]
    pub chunks: Option<u64>,
    /// Time to first token, in ms.
    pub ttft_ms: Distribution,
    /// Open loop: from the scheduled start to the first token, in ms.
    #[serde(default)]
    pub ttft_intended_ms: Distribution,
    /// Until the first text of the answer, reasoning not included, in ms.
    #[serde(default)]
    pub first_answer_ms: Distribution,
    /// Time per output token, in ms.
    pub tpot_ms: Distribution,
    /// Gap between tokens, in ms.
    pub itl_ms: Distribution,
    /// Gap between token chunks, whatever they carry, in ms.
    #[serde(default)]
    pub icl_ms: Distribution,
    /// End-to-end latency, in ms.
    pub e2el_ms: Distribution,
    /// n / e2el, in tok/s.
    pub e2e_tps: Distribution,
    /// 1000 / tpot, in tok/s.
    pub decode_tps: Distribution,
    /// Requests that met the workload's bounds, where it has any.
    #[serde(default)]
    pub goodput: Option<Goodput>,
    /// What went on around it.
    #[serde(default)]
    pub conditions: StageConditions,
    /// What a reader must know.
    pub flags: Vec<StageFlag>,
    /// A remark for recorded figures.
    pub remark: Option<String>,
}

impl StageView {
    /// A stage that ran to its end, without a request, a figure or a flag.
    #[must_use]
    pub fn blank(kind: StageKind, repeat: u32, source: Source) -> Self {
        Self {
            index: 0,
            kind,
            repeat,
            complete: true,
            source,
            disputed: false,
            completed: 0,
            failed: 0,
            cancelled: 0,
            duration_s: None,
            prompt_tokens: None,
            output_tokens: 0,
            cached_tokens: None,
            output_tps: None,
            steady_output_tps: None,
            peak_output_tps: None,
            request_throughput: None,
            achieved_concurrency: None,
            peak_in_flight: None,
            chunks: None,
            ttft_ms: Distribution::default(),
            ttft_intended_ms: Distribution::default(),
            first_answer_ms: Distribution::default(),
            tpot_ms: Distribution::default(),
            itl_ms: Distribution::default(),
            icl_ms: Distribution::default(),
            e2el_ms: Distribution::default(),
            e2e_tps: Distribution::default(),
            decode_tps: Distribution::default(),
            goodput: None,
            conditions: StageConditions::default(),
            flags: Vec::new(),
            remark: None,
        }
    }
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
            skipped: self.skipped,
            again: self.again,
            remarks: self.remarks,
            recorded_requests: self.recorded_requests,
            acceptance: self.acceptance,
            settings: self.settings,
            environment: self.environment,
            records: self.records,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Preset;

    #[test]
    fn nobody_is_called_measured_before_it_is_known_who_answers() {
        let workload = Preset::Quick.workload();
        let name = "a server".to_owned();
        let mut run =
            RunSummary::finished(RunId(1), name, Source::Measured, &workload, Timestamp(0));
        assert_eq!(run.known_source(), Some(Source::Measured));
        run.state = RunState::Running;
        assert_eq!(run.known_source(), None);
        run.engine = EngineKind::Sglang;
        run.source = Source::Simulated;
        assert_eq!(run.known_source(), Some(Source::Simulated));
    }
}
