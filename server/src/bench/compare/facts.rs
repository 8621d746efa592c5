//! A result file as the analysis wants it.

use tokdyno_domain::{
    analysis::RunFacts,
    engine::EngineKind,
    gate::Measured,
    ids::RunId,
    meter::MeterOutcome,
    result_file::{ResultFile, ResultStage},
    run::RunState,
    source::Source,
    views::run::{RunSummary, StageView},
};

/// A result as a gate looks at it; `number` as for [`of`].
pub(in crate::bench) fn measured(result: &ResultFile, number: i64) -> Measured {
    Measured {
        facts: of(result, number),
        workload: result.workload.clone(),
        skipped: result.skipped.clone(),
    }
}

/// The facts of a result; `number` tells it from the other where both have one
/// name.
pub(super) fn of(result: &ResultFile, number: i64) -> RunFacts {
    let endpoint = &result.endpoint;
    let source = if endpoint.simulated {
        Source::Simulated
    } else {
        Source::Measured
    };
    let engine = endpoint.engine.unwrap_or(EngineKind::Other);
    let mut configuration = match result.configuration.as_deref().map(str::trim) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => format!("{engine} {}", endpoint.model),
    };
    if endpoint.simulated {
        configuration.push_str(" [SIMULATED]");
    }
    let (state, reason) = match &result.outcome {
        MeterOutcome::Complete => (RunState::Finished, None),
        MeterOutcome::Cancelled => (RunState::Cancelled, None),
        MeterOutcome::Failed { reason } => (RunState::Failed, Some(reason.clone())),
    };
    RunFacts {
        summary: RunSummary {
            state,
            reason,
            engine,
            engine_version: endpoint.engine_version.clone(),
            model: endpoint.model.clone(),
            hardware: result.hardware.clone().unwrap_or_default(),
            endpoint: Some(endpoint.url.clone()),
            finished_at: Some(result.finished_at),
            ..RunSummary::finished(
                RunId(number),
                configuration,
                source,
                &result.workload,
                result.started_at,
            )
        },
        stages: result
            .stages
            .iter()
            .map(|stage| stage_view(stage, source))
            .collect(),
        settings: endpoint.settings.clone(),
        metric_version: result.metric_version,
        client: result.client.host.clone(),
        remarks: Vec::new(),
        acceptance: None,
    }
}

fn stage_view(stage: &ResultStage, source: Source) -> StageView {
    let figures = &stage.figures;
    StageView {
        index: stage.index,
        kind: stage.kind,
        repeat: stage.repeat,
        complete: stage.complete,
        source,
        disputed: false,
        completed: figures.completed,
        failed: figures.failed,
        cancelled: figures.cancelled,
        duration_s: figures.duration_s,
        prompt_tokens: figures.prompt_tokens,
        output_tokens: figures.output_tokens,
        cached_tokens: figures.cached_tokens,
        output_tps: figures.output_tps,
        steady_output_tps: figures.steady_output_tps,
        peak_output_tps: figures.peak_output_tps,
        request_throughput: figures.request_throughput,
        achieved_concurrency: figures.achieved_concurrency,
        peak_in_flight: figures.peak_in_flight,
        chunks: (figures.chunks > 0).then_some(figures.chunks),
        ttft_ms: figures.ttft_ms,
        ttft_intended_ms: figures.ttft_intended_ms,
        first_answer_ms: figures.first_answer_ms,
        tpot_ms: figures.tpot_ms,
        itl_ms: figures.itl_ms,
        icl_ms: figures.icl_ms,
        e2el_ms: figures.e2el_ms,
        e2e_tps: figures.e2e_tps,
        decode_tps: figures.decode_tps,
        goodput: figures.goodput,
        conditions: stage.conditions.clone(),
        flags: figures.flags.clone(),
        remark: None,
    }
}
