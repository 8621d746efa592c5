//! The stages of a run, one after another.

use std::{rc::Rc, time::Duration};

use tokdyno_domain::{
    conditions::{ClientLoad, RepliesSeen, StageConditions},
    meter::{MeterEventKind, MeterOutcome, MeterSpec},
    metrics::{StageFigures, StageFlag, Traced, percentile, whole_stage},
    record::Failure,
    workload::{CachePolicy, StagePlan, StageSize},
};

use super::certificates::Certificates;
use crate::{
    cancel::CancelFlag,
    client_load::Watch,
    load::{self, LoadPlan, Loaded, Shape, Shared, Slots, Until},
    preflight,
    saturation::Ladder,
    schedule::schedule,
    scrape::{Scraper, reset_cache},
};

/// Pause before warm-up requests that all failed are sent once more: an engine that was
/// overloaded for a moment, or a proxy that lost its connection, has recovered by then.
const WARM_UP_PAUSE: Duration = Duration::from_secs(1);

/// What goes from one stage to the next.
pub(super) struct Stages<'a> {
    spec: &'a MeterSpec,
    shared: Rc<Shared>,
    /// The user's flag, or a lost reader's; ours is in `shared`.
    cancel: CancelFlag,
    slots: Slots,
    ladder: Ladder,
    certificates: Certificates,
}

impl<'a> Stages<'a> {
    pub(super) fn new(
        spec: &'a MeterSpec,
        shared: Rc<Shared>,
        cancel: CancelFlag,
        slots: Slots,
    ) -> Self {
        Self {
            certificates: Certificates::new(spec.certify, shared.stop.clone()),
            spec,
            shared,
            cancel,
            slots,
            ladder: Ladder::new(spec.workload.saturation),
        }
    }

    /// Runs all of them.
    pub(super) async fn run(mut self) -> MeterOutcome {
        let plan = self.spec.workload.plan();
        for stage in &plan {
            if let Some(reason) = self.skips(stage) {
                self.shared.emitter.emit(MeterEventKind::StageSkipped {
                    stage: stage.index,
                    reason,
                });
                continue;
            }
            let ended = self.stage(stage).await;
            if let Some(reason) = self.shared.hopeless.get().cloned().or(ended) {
                return MeterOutcome::Failed { reason };
            }
            if self.shared.stop.is_cancelled() {
                return MeterOutcome::Cancelled;
            }
            for later in plan.iter().filter(|later| self.skips(later).is_some()) {
                self.shared.outlook.borrow_mut().skipped(later.index);
            }
        }
        MeterOutcome::Complete
    }

    fn skips(&self, stage: &StagePlan) -> Option<String> {
        self.ladder.skips(stage.level.kind.closed_loop()?)
    }

    /// Runs a stage. Gives a sentence if the run cannot go on.
    async fn stage(&mut self, stage: &StagePlan) -> Option<String> {
        self.shared
            .emitter
            .emit(MeterEventKind::StageStarted { stage: *stage });
        // Before the warm-up, so that nothing cools down meanwhile.
        let mut conditions = StageConditions {
            certificate: self.certificates.find(stage.level.kind.slots()).await,
            ..StageConditions::default()
        };
        let failure = self.warm_up(stage).await;
        let shape = shape(stage, self.spec);
        let planned = shape.planned();
        let mut loaded = Loaded::default();
        if failure.is_none() && !self.shared.stop.is_cancelled() {
            loaded = self.measure(stage, shape, &mut conditions).await;
        }
        conditions.ended_early = failure
            .clone()
            .or_else(|| self.shared.hopeless.get().cloned())
            .or_else(|| loaded.ended_early.take());
        if !self.cancel.is_cancelled() {
            conditions.unsent = unsent(planned, loaded.requests.len());
        }
        self.finish(stage, planned, &loaded.requests, conditions)
            .await;
        failure
    }

    /// Sends the warm-up requests, in a closed loop whatever follows; once more where
    /// all of them failed, since a few requests, or one, may meet a passing fault.
    /// Gives a sentence if all of these failed as well.
    async fn warm_up(&mut self, stage: &StagePlan) -> Option<String> {
        if stage.warmup_requests == 0 {
            return None;
        }
        let plan = LoadPlan {
            stage: stage.index,
            kind: stage.level.kind,
            warming: true,
            slots: stage.level.kind.slots(),
            shape: Shape::Closed(Until::Requests(stage.warmup_requests)),
            first_prompt: stage.first_warmup_prompt,
            max_tokens: self.spec.workload.warmup_output_tokens,
        };
        let warmed = load::run(&self.shared, plan.clone(), &mut self.slots).await;
        all_failed(&warmed.requests)?;
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => return None,
            () = tokio::time::sleep(WARM_UP_PAUSE) => {}
        }
        let warmed = load::run(&self.shared, plan, &mut self.slots).await;
        let failure = all_failed(&warmed.requests)?;
        let failed = match warmed.requests.len() {
            1 => "The warm-up request failed, and so did".to_owned(),
            several => format!("All {several} warm-up requests failed, and so did"),
        };
        Some(format!(
            "{failed} the same a second later. {}",
            preflight::explain(failure, self.spec)
        ))
    }

    /// The part of a stage that counts, and what goes on around it.
    async fn measure(
        &mut self,
        stage: &StagePlan,
        shape: Shape,
        conditions: &mut StageConditions,
    ) -> Loaded {
        let plan = LoadPlan {
            stage: stage.index,
            kind: stage.level.kind,
            warming: false,
            slots: stage.level.kind.slots(),
            shape,
            first_prompt: stage.first_prompt,
            max_tokens: self.spec.workload.output_tokens,
        };
        let scraper = tokio::select! {
            biased;
            scraper = self.prepare_engine(conditions) => scraper,
            () = self.shared.stop.cancelled() => return Loaded::default(),
        };
        let watch = Watch::start();
        let before = self.shared.target.reads();
        let loaded = load::run(&self.shared, plan, &mut self.slots).await;
        let reads = self.shared.target.reads().since(before);
        conditions.client = Some(ClientLoad {
            send_lag_p99_ms: p99(&loaded.lags_ms),
            ..watch.finish(reads.by_kernel, reads.all)
        });
        conditions.replies = Some(loaded.replies).filter(|seen| *seen != RepliesSeen::default());
        // Whoever stops a run is not kept waiting for the engine's last word.
        if !self.shared.stop.is_cancelled() {
            conditions.engine = scraper.finish().await;
        }
        loaded
    }

    /// Clears the prefix cache where that is asked for, and takes the engine's first
    /// reading. After the warm-up: nothing that it left behind is to be found.
    async fn prepare_engine(&self, conditions: &mut StageConditions) -> Scraper {
        let MeterSpec {
            endpoint,
            tls,
            api_key,
            workload,
            ..
        } = self.spec;
        let key = api_key.as_ref();
        if workload.cache == CachePolicy::ResetBeforeStage {
            let cleared = reset_cache(&self.shared.target, endpoint, key).await;
            conditions.cache_reset = Some(cleared);
        }
        Scraper::start(endpoint, tls, key).await
    }

    /// Tells what came of a stage.
    async fn finish(
        &mut self,
        stage: &StagePlan,
        planned: Option<u64>,
        requests: &[Traced],
        mut conditions: StageConditions,
    ) {
        let stopped = self.shared.stop.is_cancelled();
        let complete = conditions.ended_early.is_none() && is_complete(planned, requests, stopped);
        let (workload, kind) = (&self.spec.workload, stage.level.kind);
        let mut figures = whole_stage(workload, kind, complete, requests, &conditions);
        // An open loop has as many in flight as the server leaves unanswered.
        let in_flight = figures.peak_in_flight.unwrap_or(0).max(kind.slots());
        let before = conditions.certificate.as_ref();
        if let Some(wider) = self.certificates.wider(in_flight, before).await {
            conditions.certificate = Some(wider);
            figures = whole_stage(workload, kind, complete, requests, &conditions);
        }
        let before = conditions.certificate.as_ref();
        if is_beyond(&figures)
            && let Some(better) = self.certificates.better(in_flight, before).await
        {
            conditions.certificate = Some(better);
            figures = whole_stage(workload, kind, complete, requests, &conditions);
        }
        if stage.repeat == 0
            && let Some(concurrency) = stage.level.kind.closed_loop()
        {
            // What no verdict may rest on ends no climb either.
            let trusted = figures.supports_verdict();
            let output_tps = figures.output_tps.filter(|_| trusted);
            self.ladder.note(concurrency, output_tps);
        }
        self.shared.emitter.emit(MeterEventKind::StageFinished {
            stage: stage.index,
            figures: Box::new(figures),
            conditions: Box::new(conditions),
        });
    }
}

/// When the requests of a stage are sent.
fn shape(stage: &StagePlan, spec: &MeterSpec) -> Shape {
    let workload = &spec.workload;
    match schedule(stage, &workload.prompts, workload.seed) {
        Some(schedule) => Shape::Open(Rc::new(schedule)),
        None => Shape::Closed(match stage.level.size {
            StageSize::Requests { requests } => Until::Requests(requests),
            StageSize::Duration { seconds } => Until::Seconds(seconds),
        }),
    }
}

fn is_beyond(figures: &StageFigures) -> bool {
    let beyond = |flag: &StageFlag| matches!(flag, StageFlag::BeyondCertificate { .. });
    figures.flags.iter().any(beyond)
}

/// The 99th percentile of lags. Of any number of them: few requests that left late
/// are to be seen as well.
fn p99(lags_ms: &[f64]) -> Option<f64> {
    let mut ascending = lags_ms.to_vec();
    ascending.sort_by(f64::total_cmp);
    percentile(&ascending, 99.0)
}

fn unsent(planned: Option<u64>, sent: usize) -> u64 {
    planned.unwrap_or(0).saturating_sub(sent as u64)
}

/// Did the stage run to its end? A stop that comes after the last request of a
/// stage takes nothing away from it.
fn is_complete(planned: Option<u64>, requests: &[Traced], stopped: bool) -> bool {
    let any_cancelled = requests.iter().any(|(record, _)| record.is_cancelled());
    match planned {
        Some(planned) => planned == requests.len() as u64 && !any_cancelled,
        None => !stopped,
    }
}

/// The first failure, if no warm-up request succeeded and none was stopped.
fn all_failed(warmed: &[Traced]) -> Option<&Failure> {
    if warmed
        .iter()
        .any(|(record, _)| record.is_success() || record.is_cancelled())
    {
        return None;
    }
    let (first, _) = warmed.iter().min_by_key(|(record, _)| record.seq)?;
    first.failure.as_ref()
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::record::FailureKind;

    use super::*;

    /// Requests that succeeded, and then some that were stopped.
    fn requests(whole: usize, stopped: usize) -> Vec<Traced> {
        let record = serde_json::json!({
            "stage": 0, "seq": 0, "prompt": 0, "sent_ns": 0, "end_ns": 1,
            "chunks": 1, "coalesced_chunks": 0, "counted_by": "usage", "done_seen": true,
        });
        let succeeded: Traced = (serde_json::from_value(record).expect("a record"), None);
        let mut cancelled = succeeded.clone();
        cancelled.0.failure = Some(Failure {
            kind: FailureKind::Cancelled,
            message: String::new(),
            http_status: None,
        });
        let mut requests = vec![succeeded; whole];
        requests.extend(vec![cancelled; stopped]);
        requests
    }

    #[test]
    fn what_ends_before_its_time_is_partial() {
        assert!(is_complete(None, &requests(3, 0), false));
        assert!(!is_complete(None, &requests(3, 1), true));
        assert!(is_complete(Some(5), &requests(5, 0), true));
        assert!(!is_complete(Some(5), &requests(4, 0), false));
        assert!(!is_complete(Some(5), &requests(4, 1), true));
    }

    #[test]
    fn what_was_never_sent_is_counted() {
        assert_eq!(unsent(Some(5), 3), 2);
        assert_eq!(unsent(Some(5), 5), 0);
        assert_eq!(unsent(None, 3), 0);
    }
}
