//! Small facts for the tests of this module.

use std::collections::BTreeMap;

use super::RunFacts;
use crate::{
    effective::Stamp,
    engine::EngineKind,
    ids::{HostId, LaunchId, ProfileId, RunId},
    metrics::{Distribution, METRIC_VERSION},
    source::Source,
    timestamp::Timestamp,
    views::{
        run::{RunSummary, StageView},
        run_host::RunLaunch,
    },
    workload::{Arrivals, Preset, StageKind, Thousandths},
};

fn stage(kind: StageKind, repeat: u32) -> StageView {
    StageView {
        index: repeat,
        completed: 4,
        duration_s: Some(1.0),
        output_tokens: 1024,
        achieved_concurrency: Some(1.0),
        ttft_ms: Distribution::of(vec![20.0, 30.0]),
        tpot_ms: Distribution::of(vec![10.0, 12.0]),
        e2el_ms: Distribution::of(vec![2800.0]),
        decode_tps: Distribution::of(vec![90.0, 100.0]),
        ..StageView::blank(kind, repeat, Source::Measured)
    }
}

pub(crate) fn single(repeat: u32, e2e_tps: f64) -> StageView {
    StageView {
        e2e_tps: Distribution::of(vec![e2e_tps]),
        ..stage(StageKind::SingleStream, repeat)
    }
}

pub(crate) fn closed(concurrency: u32, repeat: u32, output_tps: f64) -> StageView {
    StageView {
        output_tps: Some(output_tps),
        ..stage(StageKind::ClosedLoop { concurrency }, repeat)
    }
}

pub(crate) fn open(rate: f64, index: u32) -> StageView {
    let rate = Thousandths::new(rate).expect("a rate");
    StageView {
        index,
        request_throughput: Some(rate.get() * 0.9),
        ..stage(
            StageKind::OpenLoop {
                rate,
                arrivals: Arrivals::Constant,
            },
            0,
        )
    }
}

pub(crate) fn recorded(
    concurrency: u32,
    output_tps: f64,
    source: Source,
    disputed: bool,
) -> StageView {
    StageView {
        source,
        disputed,
        completed: 0,
        duration_s: None,
        achieved_concurrency: None,
        ttft_ms: Distribution::default(),
        tpot_ms: Distribution::default(),
        decode_tps: Distribution::default(),
        e2el_ms: Distribution::default(),
        ..closed(concurrency, 0, output_tps)
    }
}

pub(crate) fn run(id: i64, configuration: &str, stages: Vec<StageView>) -> RunFacts {
    let source = stages
        .first()
        .map_or(Source::Measured, |stage| stage.source);
    RunFacts {
        summary: RunSummary {
            engine: EngineKind::Sglang,
            engine_version: Some("0.5.23".to_owned()),
            model: "m".to_owned(),
            hardware: "8 GPUs".to_owned(),
            workload_text: "256 tokens".to_owned(),
            ..RunSummary::finished(
                RunId(id),
                configuration.to_owned(),
                source,
                &Preset::Standard.workload(),
                Timestamp(id),
            )
        },
        stages,
        settings: BTreeMap::from([("tp_size".to_owned(), "8".to_owned())]),
        metric_version: METRIC_VERSION,
        client: String::new(),
        remarks: vec![],
        acceptance: None,
    }
}

/// On a launch on gpu1; each name is a profile.
pub(crate) fn launched(id: i64, name: &str, launch: i64, stages: Vec<StageView>) -> RunFacts {
    let mut facts = run(id, name, stages);
    let profile = name.bytes().fold(0, |sum, byte| sum * 31 + i64::from(byte));
    facts.summary.launch = Some(RunLaunch {
        launch: LaunchId(launch),
        host: (HostId(1), "gpu1".to_owned()),
        profile: (ProfileId(profile % 1_000_003), name.to_owned(), 1),
        stamp: None,
    });
    facts
}

/// The same of a launch that did not run as asked.
pub(crate) fn mismatched(mut facts: RunFacts) -> RunFacts {
    if let Some(launch) = &mut facts.summary.launch {
        launch.stamp = Some(Stamp::Mismatched {
            items: vec!["--tp-size".to_owned()],
        });
    }
    facts
}
