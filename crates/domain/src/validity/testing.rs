//! What the tests of the rules share.

use std::collections::BTreeMap;

use super::{Own, RunParts, StagePart};
use crate::{
    conditions::{EngineReport, StageConditions},
    host::{GpuSample, HostSample, RunSample},
    metrics::StageFlag,
    timestamp::Timestamp,
    workload::StageKind,
};

/// Eight at once.
pub(crate) const CLOSED: StageKind = StageKind::ClosedLoop { concurrency: 8 };

/// A sound stage of thirty-two requests.
pub(crate) fn part(index: u32, kind: StageKind, conditions: &StageConditions) -> StagePart<'_> {
    StagePart {
        index,
        kind,
        repeat: index,
        complete: true,
        completed: 32,
        output_tokens: 3200,
        chunks: Some(3200),
        achieved_concurrency: kind.concurrency().map(f64::from),
        speed: Some(100.0),
        conditions,
        flags: &[],
    }
}

/// Conditions of which only the engine spoke.
pub(crate) fn said(engine: EngineReport) -> StageConditions {
    StageConditions {
        engine: Some(engine),
        ..StageConditions::default()
    }
}

/// What a rule finds in a run of these stages, of which nothing else is known.
pub(crate) fn of_run<T>(
    stages: &[StagePart<'_>],
    settings: &[(&str, &str)],
    samples: &[RunSample],
    rule: impl FnOnce(&RunParts<'_>) -> T,
) -> T {
    let settings: BTreeMap<String, String> = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    rule(&RunParts {
        stages,
        cold_prompts: true,
        settings: &settings,
        samples,
        own: &Own::default(),
    })
}

/// Who wears a flag of any kind.
pub(crate) fn wearers(found: &[(u32, StageFlag)]) -> Vec<u32> {
    found.iter().map(|(stage, _)| *stage).collect()
}

pub(crate) fn sample(second: i64, gpus: Vec<GpuSample>) -> RunSample {
    RunSample {
        sample: HostSample {
            at: Timestamp(second * 1_000_000),
            gpus,
            ..HostSample::default()
        },
        ..RunSample::default()
    }
}

/// A GPU at work.
pub(crate) fn gpu(index: u32, sm_mhz: u32) -> GpuSample {
    GpuSample {
        index,
        sm_mhz: Some(sm_mhz),
        utilisation: Some(99),
        ..GpuSample::default()
    }
}

pub(crate) fn refs(samples: &[RunSample]) -> Vec<&RunSample> {
    samples.iter().collect()
}
