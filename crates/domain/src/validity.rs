//! Is a run what it seems? One checker, with a file for each rule or two that belong
//! together.
//!
//! What follows from the requests of a stage alone, and from what its own measuring
//! process and engine said of it, is found with the stage's figures
//! ([`crate::metrics`]). Here stand the rules that need more: other stages of the run,
//! the engine's settings, or the host's samples; and those that judge what the engine
//! and the replies were like. Each limit has its reason beside it and in
//! `docs/metrics.md`.

mod bundled;
mod cache;
mod cap;
mod clocks;
mod heat;
mod loops;
mod processes;
mod queue;
mod requests;
mod restart;
#[cfg(test)]
pub(crate) mod testing;
mod warmup;

use std::collections::BTreeMap;

use crate::{
    conditions::{EngineReport, StageConditions},
    host::{GpuSample, RunSample},
    metrics::{StageFigures, StageFlag},
    result_file::ResultStage,
    views::run::StageView,
    workload::StageKind,
};

/// Whose the GPUs and processes of a run are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Own {
    /// Numbers of the launch's GPUs; none means all of the host's.
    pub gpus: Option<Vec<u32>>,
    /// Identities of the same GPUs; none where they are not known: then every GPU
    /// counts as the launch's.
    pub gpu_uuids: Option<Vec<String>>,
    /// Processes of the launch. Those that hold GPU memory in the first sample count
    /// as its own too, since the launch owned the GPUs by then.
    pub pids: Vec<u32>,
}

impl Own {
    pub(crate) fn has_gpu(&self, gpu: &GpuSample) -> bool {
        self.gpus
            .as_ref()
            .is_none_or(|numbers| numbers.contains(&gpu.index))
    }

    fn with_first_of(&self, samples: &[RunSample]) -> Self {
        let mut own = self.clone();
        let first = samples.first().map(|sample| &sample.sample.processes);
        own.pids
            .extend(first.into_iter().flatten().map(|process| process.pid));
        own
    }
}

/// A stage, as far as the rules need it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StagePart<'a> {
    /// Place in the order of execution.
    pub index: u32,
    /// What was asked.
    pub kind: StageKind,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// It ran to its end.
    pub complete: bool,
    /// Requests that succeeded.
    pub completed: u64,
    /// Σ n.
    pub output_tokens: u64,
    /// Token chunks; none where not known.
    pub chunks: Option<u64>,
    /// Requests in flight on average.
    pub achieved_concurrency: Option<f64>,
    /// Its headline, in tok/s: the median speed of a single stream, the output
    /// throughput of a closed loop. A rate that was asked for has none.
    pub speed: Option<f64>,
    /// What went on around it.
    pub conditions: &'a StageConditions,
    /// What is known of it already.
    pub flags: &'a [StageFlag],
}

/// A run, as far as the rules need it. What is not known is left empty, and the rules
/// that need it find nothing.
#[derive(Debug, Clone, Copy)]
pub struct RunParts<'a> {
    /// Its stages, in their order.
    pub stages: &'a [StagePart<'a>],
    /// Every prompt was meant to be new to the engine.
    pub cold_prompts: bool,
    /// What the engine said of its settings.
    pub settings: &'a BTreeMap<String, String>,
    /// What the host did, in order of time.
    pub samples: &'a [RunSample],
    /// Whose the GPUs are.
    pub own: &'a Own,
}

impl<'a> StagePart<'a> {
    fn engine(&self) -> Option<&'a EngineReport> {
        self.conditions.engine.as_ref()
    }
}

impl<'a> From<&'a ResultStage> for StagePart<'a> {
    fn from(stage: &'a ResultStage) -> Self {
        let figures: &StageFigures = &stage.figures;
        Self {
            index: stage.index,
            kind: stage.kind,
            repeat: stage.repeat,
            complete: stage.complete,
            completed: figures.completed,
            output_tokens: figures.output_tokens,
            chunks: Some(figures.chunks).filter(|chunks| *chunks > 0),
            achieved_concurrency: figures.achieved_concurrency,
            speed: speed(stage.kind, figures.e2e_tps.p50, figures.output_tps),
            conditions: &stage.conditions,
            flags: &figures.flags,
        }
    }
}

impl<'a> From<&'a StageView> for StagePart<'a> {
    fn from(stage: &'a StageView) -> Self {
        Self {
            index: stage.index,
            kind: stage.kind,
            repeat: stage.repeat,
            complete: stage.complete,
            completed: stage.completed,
            output_tokens: stage.output_tokens,
            chunks: stage.chunks,
            achieved_concurrency: stage.achieved_concurrency,
            speed: speed(stage.kind, stage.e2e_tps.p50, stage.output_tps),
            conditions: &stage.conditions,
            flags: &stage.flags,
        }
    }
}

fn speed(kind: StageKind, e2e_tps: Option<f64>, output_tps: Option<f64>) -> Option<f64> {
    match kind {
        StageKind::SingleStream => e2e_tps,
        StageKind::ClosedLoop { .. } => output_tps,
        _ => None,
    }
}

/// What the rules find, each with the index of the stage that wears it, in the order
/// of the stages.
#[must_use]
pub fn check(run: &RunParts<'_>) -> Vec<(u32, StageFlag)> {
    let own = run.own.with_first_of(run.samples);
    let mut found: Vec<(u32, StageFlag)> = Vec::new();
    for stage in run.stages {
        let samples: Vec<&RunSample> = run
            .samples
            .iter()
            .filter(|sample| sample.stage == Some(stage.index))
            .collect();
        let cap = cap::check(run, stage);
        let flags = [
            queue::waiting(stage).filter(|_| cap.is_none()),
            cap,
            queue::held_back(stage),
            cache::check(run, stage),
            bundled::check(stage),
            loops::check(stage),
            requests::check_stage(&samples, stage.kind),
        ];
        let flags = flags.into_iter().flatten().chain(meanwhile(&samples, &own));
        found.extend(flags.map(|flag| (stage.index, flag)));
    }
    found.extend(restart::check(run));
    found.extend(warmup::check(run));
    found.extend(heat::drift(run));
    found.sort_by_key(|(stage, _)| *stage);
    found
}

/// What the host's samples tell a reader of the figures, over all of a run. Of requests
/// of others within a stage that stage's flags tell: how many are too many depends on
/// its load.
#[must_use]
pub fn host(samples: &[RunSample], own: &Own) -> Vec<StageFlag> {
    let own = own.with_first_of(samples);
    let samples: Vec<&RunSample> = samples.iter().collect();
    meanwhile(&samples, &own)
        .chain(requests::check_between(&samples))
        .collect()
}

fn meanwhile(samples: &[&RunSample], own: &Own) -> impl Iterator<Item = StageFlag> + use<> {
    [
        clocks::drift(samples, own),
        clocks::held_down(samples, own),
        heat::check(samples, own),
        processes::check(samples, own),
    ]
    .into_iter()
    .flatten()
}

fn own_gpus<'a>(
    samples: &'a [&RunSample],
    own: &'a Own,
) -> impl Iterator<Item = &'a GpuSample> + use<'a> {
    samples
        .iter()
        .flat_map(|sample| &sample.sample.gpus)
        .filter(|gpu| own.has_gpu(gpu))
}

/// From this use on, in percent, a GPU is under load: an engine that decodes keeps it
/// near 100, one that waits near 0.
const BUSY: u32 = 50;

/// Fewest samples, a second apart, from which a rule concludes: of fewer, one odd
/// moment would be a good part.
const FEWEST: usize = 5;

/// Is the GPU under load? One that does not tell counts as busy.
fn is_busy(gpu: &GpuSample) -> bool {
    gpu.utilisation.is_none_or(|percent| percent >= BUSY)
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
