//! From the meter's events to a result.

use std::collections::BTreeMap;

use tokdyno_domain::{
    meter::{ClientInfo, MeterEvent, MeterEventKind, MeterOutcome, RequestEvent},
    metrics::{METRIC_VERSION, StageAsked, StageFigures, stage_figures},
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
}

#[derive(Debug)]
struct Stage {
    plan: StagePlan,
    requests: Vec<RequestEvent>,
    figures: Option<StageFigures>,
}

/// What belongs into a result beside what the meter said.
pub(crate) struct Circumstances<'a> {
    /// Base address.
    pub(crate) url: String,
    /// Who was measured.
    pub(crate) subject: &'a Subject,
    /// What was sent.
    pub(crate) workload: Workload,
    /// What the configuration is called.
    pub(crate) configuration: Option<String>,
    /// The hardware in words.
    pub(crate) hardware: Option<String>,
}

impl Collected {
    /// Takes an event.
    pub(crate) fn take(&mut self, event: MeterEvent) {
        self.first.get_or_insert(event.at);
        self.last = Some(event.at);
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
            }),
            MeterEventKind::Request(request) => {
                if let Some(stage) = self.stage(request.record.stage) {
                    stage.requests.push(*request);
                }
            }
            MeterEventKind::StageFinished { stage, figures } => {
                if let Some(stage) = self.stage(stage) {
                    stage.figures = Some(*figures);
                }
            }
            MeterEventKind::Progress(_) | MeterEventKind::Finished { .. } => {}
        }
    }

    /// Request fields that the server refused and that were therefore not sent.
    pub(crate) fn dropped_fields(&self) -> &[String] {
        &self.dropped_fields
    }

    /// The result of what was measured. A stage without a single request is left
    /// out: there is nothing to say of it.
    pub(crate) fn result(self, outcome: MeterOutcome, around: Circumstances<'_>) -> ResultFile {
        let info = around.subject.info.as_ref();
        let workload = around.workload;
        let mut stages: Vec<ResultStage> = Vec::new();
        let mut simulated = info.is_some_and(|info| info.simulated);
        for stage in self.stages {
            simulated |= stage
                .requests
                .iter()
                .any(|request| request.record.simulated);
            if !stage.requests.is_empty() {
                stages.push(finished(stage, &workload));
            }
        }
        ResultFile {
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
                engine: around.subject.engine(),
                engine_version: info.and_then(|info| info.version.clone()),
                settings: info.map_or_else(BTreeMap::new, |info| info.settings.clone()),
                simulated,
            },
            client: self.client,
            workload,
            outcome,
            stages,
        }
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
        let asked = StageAsked {
            kind,
            output_tokens: workload.output_tokens,
            exact_length: workload.ignore_eos,
            complete: false,
        };
        let traced: Vec<_> = stage
            .requests
            .iter()
            .map(|request| (request.record.clone(), request.trace.clone()))
            .collect();
        stage_figures(&asked, &traced)
    });
    let partial = figures
        .flags
        .contains(&tokdyno_domain::metrics::StageFlag::Partial);
    ResultStage {
        index: plan.index,
        kind: kind.into(),
        concurrency: kind.concurrency(),
        repeat: plan.repeat,
        complete: !partial,
        figures,
        records: stage.requests,
    }
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::{
        record::{Failure, FailureKind, RequestRecord, TokenCount},
        workload::{LoadLevel, StageKind, StageSize},
    };

    use super::*;

    /// The first moment of 2026, in microseconds.
    const NEW_YEAR: i64 = 1_767_225_600_000_000;

    fn record(stage: u32, seq: u32, failure: Option<Failure>) -> RequestRecord {
        RequestRecord {
            stage,
            seq,
            prompt: u64::from(seq),
            sent_ns: u64::from(seq) * 3_000_000_000,
            connect_ns: None,
            headers_ns: Some(1),
            ttft_ns: failure.is_none().then_some(20_000_000),
            first_answer_ns: None,
            e2el_ns: failure.is_none().then_some(2_844_000_000),
            end_ns: 2_845_000_000,
            prompt_tokens: Some(18),
            completion_tokens: failure.is_none().then_some(256),
            first_chunk_tokens: failure.is_none().then_some(1),
            cached_tokens: None,
            reasoning_tokens: None,
            chunks: 256,
            coalesced_chunks: 0,
            counted_by: TokenCount::Usage,
            done_seen: true,
            finish_reason: Some("length".to_owned()),
            simulated: seq == 0,
            failure,
        }
    }

    fn workload() -> Workload {
        let level = |kind| LoadLevel {
            kind,
            size: StageSize::Requests { requests: 2 },
        };
        Workload::with_levels(
            "two",
            vec![
                level(StageKind::SingleStream),
                level(StageKind::ClosedLoop { concurrency: 2 }),
            ],
        )
    }

    fn collected(events: Vec<MeterEventKind>) -> Collected {
        let mut collected = Collected::default();
        for (seq, kind) in (1_i64..).zip(events) {
            collected.take(MeterEvent {
                seq: seq.unsigned_abs(),
                at: Timestamp(NEW_YEAR + seq * 1_000_000),
                kind,
            });
        }
        collected
    }

    fn request(stage: u32, seq: u32, failure: Option<Failure>) -> MeterEventKind {
        MeterEventKind::Request(Box::new(RequestEvent {
            record: record(stage, seq, failure),
            trace: None,
        }))
    }

    #[test]
    fn a_cancelled_measurement_keeps_what_there_is_and_reads_back() {
        let plan = workload().plan();
        let cancelled = Failure {
            kind: FailureKind::Cancelled,
            message: "Stopped.".to_owned(),
            http_status: None,
        };
        let collected = collected(vec![
            MeterEventKind::StageStarted { stage: plan[0] },
            // Out of order, as they come when several are in flight.
            request(0, 1, Some(cancelled)),
            request(0, 0, None),
            MeterEventKind::StageStarted { stage: plan[1] },
        ]);
        let subject = Subject {
            info: None,
            notes: Vec::new(),
        };
        let around = Circumstances {
            url: "http://127.0.0.1:1".to_owned(),
            subject: &subject,
            workload: workload(),
            configuration: Some("tuned".to_owned()),
            hardware: None,
        };
        let result = collected.result(MeterOutcome::Cancelled, around);
        assert_eq!(result.stages.len(), 1, "the second stage has no request");
        let stage = &result.stages[0];
        assert!(!stage.complete);
        assert_eq!((stage.figures.completed, stage.figures.cancelled), (1, 1));
        assert_eq!(stage.records[0].record.seq, 0);
        assert!(result.endpoint.simulated, "a reply carried the marker");
        assert_eq!(
            (result.started_at.0, result.finished_at.0),
            (NEW_YEAR + 1_000_000, NEW_YEAR + 4_000_000)
        );

        let bytes = serde_json::to_vec(&result).expect("serialises");
        let read = ResultFile::parse(&bytes).expect("our own file is importable");
        assert_eq!(read.stages.len(), 1);
        assert_eq!(read.configuration.as_deref(), Some("tuned"));
    }
}
