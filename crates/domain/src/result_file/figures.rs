//! Numbers that no measurement yields.

use crate::{
    conditions::{Certificate, ClientLoad, EngineReport, StageConditions},
    metrics::{Distribution, StageFigures},
};

/// No figure of a measurement is larger, whatever its unit.
const LARGEST: f64 = 1e12;

type Named = (&'static str, f64);

/// The first figure that is negative, not finite or beyond [`LARGEST`].
pub(super) fn impossible_figure(figures: &StageFigures) -> Option<Named> {
    let of = |name, spread: &Distribution| {
        [
            spread.mean,
            spread.min,
            spread.p50,
            spread.p90,
            spread.p95,
            spread.p99,
            spread.max,
        ]
        .map(|value| (name, value))
    };
    let goodput = figures.goodput.as_ref();
    let bound = |of: fn(&crate::goodput::Bounds) -> Option<f64>| {
        goodput.and_then(|goodput| of(&goodput.bounds))
    };
    let singles = [
        ("duration_s", figures.duration_s),
        ("output_tps", figures.output_tps),
        ("steady_output_tps", figures.steady_output_tps),
        ("peak_output_tps", figures.peak_output_tps),
        ("request_throughput", figures.request_throughput),
        ("achieved_concurrency", figures.achieved_concurrency),
        ("coalesced_share", figures.coalesced_share),
        (
            "goodput",
            goodput.and_then(|goodput| goodput.requests_per_s),
        ),
        ("goodput's ttft_ms", bound(|bounds| bounds.ttft_ms)),
        ("goodput's tpot_ms", bound(|bounds| bounds.tpot_ms)),
        ("goodput's e2el_ms", bound(|bounds| bounds.e2el_ms)),
        ("chunks", Some(figures.chunks as f64)),
    ];
    singles
        .into_iter()
        .chain(of("ttft_ms", &figures.ttft_ms))
        .chain(of("ttft_intended_ms", &figures.ttft_intended_ms))
        .chain(of("first_answer_ms", &figures.first_answer_ms))
        .chain(of("tpot_ms", &figures.tpot_ms))
        .chain(of("itl_ms", &figures.itl_ms))
        .chain(of("icl_ms", &figures.icl_ms))
        .chain(of("e2el_ms", &figures.e2el_ms))
        .chain(of("e2e_tps", &figures.e2e_tps))
        .chain(of("decode_tps", &figures.decode_tps))
        .filter_map(|(name, value)| Some((name, value?)))
        .find(|(_, value)| !(0.0..=LARGEST).contains(value))
}

/// The first number of the conditions that nothing can have been seen to have.
pub(super) fn impossible_condition(conditions: &StageConditions) -> Option<Named> {
    let engine = conditions.engine.as_ref().and_then(impossible_report);
    let client = conditions.client.as_ref().and_then(impossible_load);
    let certificate = conditions.certificate.as_ref();
    engine
        .or(client)
        .or_else(|| certificate.and_then(impossible_certificate))
        .or_else(|| {
            let replies = conditions.replies.unwrap_or_default();
            let counts = [
                ("unsent", Some(conditions.unsent as f64)),
                ("judged", Some(replies.judged as f64)),
                ("left_open", Some(replies.left_open as f64)),
                ("odd_usage", Some(replies.odd_usage as f64)),
            ];
            first(&counts, LARGEST).or_else(|| {
                first(
                    &[("looping", Some(replies.looping as f64))],
                    replies.judged as f64,
                )
            })
        })
}

fn impossible_report(engine: &EngineReport) -> Option<Named> {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let speculation = engine.speculation.as_ref();
    let at = speculation.and_then(|speculation| speculation.accepted_at.iter().max());
    first(
        &[
            ("running_mean", engine.running_mean),
            ("running_max", engine.running_max),
            ("waiting_max", engine.waiting_max),
            ("max_running", count(engine.max_running)),
            ("finished", count(engine.finished)),
            ("prompt_tokens", count(engine.prompt_tokens)),
            ("generation_tokens", count(engine.generation_tokens)),
            ("prefix_queries", count(engine.prefix_queries)),
            ("prefix_hits", count(engine.prefix_hits)),
            ("preemptions", count(engine.preemptions)),
            ("ttft_mean_ms", engine.ttft_mean_ms),
            ("e2el_mean_ms", engine.e2el_mean_ms),
            ("steps", count(speculation.map(|counts| counts.steps))),
            (
                "drafted",
                count(speculation.and_then(|counts| counts.drafted)),
            ),
            ("accepted", count(speculation.map(|counts| counts.accepted))),
            ("accepted_at", count(at.copied())),
            ("generated_before", count(engine.generated_before)),
            ("generated_after", count(engine.generated_after)),
            ("process_started_s", engine.process_started_s),
        ],
        LARGEST,
    )
    // Engines round, and vLLM counts blocks that are still being freed.
    .or_else(|| first(&[("kv_use_max", engine.kv_use_max)], 2.0))
}

fn impossible_load(client: &ClientLoad) -> Option<Named> {
    first(
        &[
            ("wake_lag_p99_ms", client.wake_lag_p99_ms),
            ("wake_lag_max_ms", client.wake_lag_max_ms),
            ("stood_still_ms", client.stood_still_ms),
            ("send_lag_p99_ms", client.send_lag_p99_ms),
        ],
        LARGEST,
    )
    // Processor time comes in ticks, so that a busy thread may seem to have had more
    // than there was.
    .or_else(|| first(&[("thread_busy", client.thread_busy)], 2.0))
    .or_else(|| {
        first(
            &[
                ("stolen", client.stolen),
                ("kernel_times", client.kernel_times),
            ],
            1.0,
        )
    })
}

fn impossible_certificate(certificate: &Certificate) -> Option<Named> {
    first(
        &[
            ("chunks_per_s", Some(certificate.chunks_per_s)),
            // Errors have either sign.
            (
                "ttft_error_p50_ms",
                Some(certificate.ttft_error_p50_ms.abs()),
            ),
            (
                "ttft_error_p99_ms",
                Some(certificate.ttft_error_p99_ms.abs()),
            ),
            ("tpot_error", Some(certificate.tpot_error.abs())),
        ],
        LARGEST,
    )
}

fn first(values: &[(&'static str, Option<f64>)], most: f64) -> Option<Named> {
    values
        .iter()
        .filter_map(|(name, value)| Some((*name, (*value)?)))
        .find(|(_, value)| !(0.0..=most).contains(value))
}
