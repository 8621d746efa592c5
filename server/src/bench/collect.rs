//! From the meter's events to a result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokdyno_domain::{
    conditions::StageConditions,
    engine::EngineKind,
    histogram::StageHistograms,
    meter::{ClientInfo, MeterEvent, MeterEventKind, MeterOutcome, RequestEvent},
    metrics::{METRIC_VERSION, StageFigures, StageFlag, whole_stage},
    result_file::{RESULT_SCHEMA, ResultEndpoint, ResultFile, ResultStage, TOOL},
    timestamp::Timestamp,
    workload::{StagePlan, Workload},
};

use super::Subject;

/// What was measured so far.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    client: ClientInfo,
    model: Option<String>,
    dropped_fields: Vec<String>,
    stages: Vec<Stage>,
    skipped: Vec<u32>,
    outcome: Option<MeterOutcome>,
}

#[derive(Debug)]
struct Stage {
    plan: StagePlan,
    requests: Vec<RequestEvent>,
    figures: Option<StageFigures>,
    conditions: StageConditions,
}

/// What belongs into a result beside what the meter said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Circumstances {
    /// Base address.
    pub(crate) url: String,
    /// Which engine, if it could be told.
    pub(crate) engine: Option<EngineKind>,
    /// Its version.
    pub(crate) engine_version: Option<String>,
    /// Its settings, secrets masked.
    pub(crate) settings: BTreeMap<String, String>,
    /// It said that it is the stand-in.
    pub(crate) simulated: bool,
    /// What was sent.
    pub(crate) workload: Workload,
    /// What the configuration is called.
    pub(crate) configuration: Option<String>,
    /// The hardware in words.
    pub(crate) hardware: Option<String>,
}

impl Circumstances {
    /// Of measuring this subject at this address.
    pub(crate) fn new(url: String, subject: &Subject, workload: Workload) -> Self {
        let info = subject.info.as_ref();
        Self {
            url,
            engine: subject.engine(),
            engine_version: info.and_then(|info| info.version.clone()),
            settings: info.map_or_else(BTreeMap::new, |info| info.settings.clone()),
            simulated: info.is_some_and(|info| info.simulated),
            workload,
            configuration: None,
            hardware: None,
        }
    }
}

impl Collected {
    /// Takes an event.
    pub(crate) fn take(&mut self, event: MeterEvent) {
        self.first.get_or_insert(event.at);
        // The wall clock may be set back meanwhile, and nothing ends before it began.
        self.last = self.last.max(Some(event.at));
        match event.kind {
            MeterEventKind::Started {
                client,
                model,
                dropped_fields,
                ..
            } => {
                self.client = client;
                self.model = Some(model);
                self.dropped_fields = dropped_fields;
            }
            MeterEventKind::StageStarted { stage } => self.stages.push(Stage {
                plan: stage,
                requests: Vec::new(),
                figures: None,
                conditions: StageConditions::default(),
            }),
            MeterEventKind::Request(request) => {
                if let Some(stage) = self.stage(request.record.stage) {
                    stage.requests.push(*request);
                }
            }
            MeterEventKind::StageFinished {
                stage,
                figures,
                conditions,
            } => {
                if let Some(stage) = self.stage(stage) {
                    stage.figures = Some(*figures);
                    stage.conditions = *conditions;
                }
            }
            MeterEventKind::StageSkipped { stage, .. } => self.skipped.push(stage),
            MeterEventKind::Finished { outcome } => self.outcome = Some(outcome),
            MeterEventKind::Progress(_) => {}
        }
    }

    /// Request fields that the server refused and that were therefore not sent.
    pub(crate) fn dropped_fields(&self) -> &[String] {
        &self.dropped_fields
    }

    /// How the meter said that it ended, if it came to that.
    pub(crate) const fn outcome(&self) -> Option<&MeterOutcome> {
        self.outcome.as_ref()
    }

    /// Is any request over?
    pub(crate) fn has_requests(&self) -> bool {
        self.stages.iter().any(|stage| !stage.requests.is_empty())
    }

    /// The result of what was measured. A stage without a single request is left
    /// out: there is nothing to say of it.
    pub(crate) fn result(self, outcome: MeterOutcome, around: Circumstances) -> ResultFile {
        let workload = around.workload;
        let mut stages: Vec<ResultStage> = Vec::new();
        let mut simulated = around.simulated;
        for stage in self.stages {
            simulated |= stage
                .requests
                .iter()
                .any(|request| request.record.simulated);
            if !stage.requests.is_empty() {
                stages.push(finished(stage, &workload));
            }
        }
        let mut result = ResultFile {
            schema_version: RESULT_SCHEMA,
            tool: TOOL.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            metric_version: METRIC_VERSION,
            started_at: self.first.unwrap_or(Timestamp(0)),
            finished_at: self.last.unwrap_or(Timestamp(0)),
            configuration: around.configuration,
            hardware: around.hardware,
            endpoint: ResultEndpoint {
                url: around.url,
                model: self.model.unwrap_or_default(),
                engine: around.engine,
                engine_version: around.engine_version,
                settings: around.settings,
                simulated,
            },
            client: self.client,
            workload,
            outcome,
            stages,
            skipped: self.skipped,
        };
        result.heed_run();
        result
    }

    fn stage(&mut self, index: u32) -> Option<&mut Stage> {
        // Nearly always the last: stages do not overlap.
        self.stages
            .iter_mut()
            .rev()
            .find(|stage| stage.plan.index == index)
    }
}

fn finished(mut stage: Stage, workload: &Workload) -> ResultStage {
    stage.requests.sort_by_key(|request| request.record.seq);
    let plan = stage.plan;
    let kind = plan.level.kind;
    let figures = stage.figures.unwrap_or_else(|| {
        // The stage was cut off before its figures came.
        let traced: Vec<_> = stage
            .requests
            .iter()
            .map(|request| (request.record.clone(), request.trace.clone()))
            .collect();
        whole_stage(workload, kind, false, &traced, &stage.conditions)
    });
    let partial = figures.flags.contains(&StageFlag::Partial);
    ResultStage {
        index: plan.index,
        kind,
        repeat: plan.repeat,
        complete: !partial,
        figures,
        conditions: stage.conditions,
        histograms: StageHistograms::of_events(&stage.requests),
        records: stage.requests,
    }
}

#[cfg(test)]
mod tests;
