//! Figures of made-up stages.

use proptest::prelude::*;

use super::{
    super::{
        Distribution,
        testing::{MS, asked, close, record},
    },
    *,
};
use crate::{
    prompts::TraceRequest,
    record::{ChunkTrace, Failure, FailureKind},
    workload::{Arrivals, LoadLevel, StageSize, Thousandths},
};

#[test]
fn throughput_counts_successes_from_first_send_to_last_token() {
    let kind = StageKind::ClosedLoop { concurrency: 2 };
    let mut failed = record(2, 100, 10, 100, 10);
    failed.failure = Some(Failure {
        kind: FailureKind::Broken,
        message: "cut".to_owned(),
        http_status: None,
    });
    failed.end_ns = 900 * MS;
    let requests = vec![
        (record(0, 0, 10, 100, 10), None),
        (record(1, 0, 10, 200, 10), None),
        (failed, None),
    ];
    let figures = stage_figures(&asked(kind), &requests);
    assert_eq!(
        (figures.completed, figures.failed, figures.output_tokens),
        (2, 1, 20)
    );
    close(figures.duration_s, 0.2);
    close(figures.output_tps, 100.0);
    close(figures.achieved_concurrency, 1.2);
    assert!(figures.flags.contains(&StageFlag::Failures {
        failed: 1,
        requests: 3
    }));
    assert!(!figures.supports_verdict());
}

#[test]
fn cancelled_requests_are_nobodys_failure() {
    let mut stopped = record(1, 100, 10, 20, 10);
    stopped.failure = Some(Failure {
        kind: FailureKind::Cancelled,
        message: "stopped".to_owned(),
        http_status: None,
    });
    let asked = StageAsked {
        complete: false,
        ..asked(StageKind::SingleStream)
    };
    let figures = stage_figures(
        &asked,
        &[(record(0, 0, 10, 100, 10), None), (stopped, None)],
    );
    assert_eq!(
        (figures.completed, figures.failed, figures.cancelled),
        (1, 0, 1)
    );
    assert_eq!(figures.flags, [StageFlag::Partial]);
}

#[test]
fn coalesced_chunks_share_their_gap() {
    let trace = ChunkTrace {
        gaps_us: vec![50_000, 10_000, 0, 20_000],
        tokens: vec![1, 2, 2, 1],
    };
    let figures = stage_figures(
        &asked(StageKind::SingleStream),
        &[(record(0, 0, 50, 80, 6), Some(trace))],
    );
    close(figures.icl_ms.min, 5.0);
    close(figures.icl_ms.max, 20.0);
    assert_eq!(figures.icl_ms.count, 3);
    close(figures.itl_ms.min, 2.5);
    assert_eq!(figures.itl_ms.count, 5);
}

#[test]
fn counts_that_no_reply_has_cost_nothing_and_count_nothing() {
    for tokens in [vec![1, 4_000_000_000], vec![u32::MAX; 3]] {
        let trace = ChunkTrace {
            gaps_us: vec![50_000, 10_000, 0],
            tokens,
        };
        let mut lying = record(0, 0, 50, 60, 10);
        let figures = stage_figures(
            &asked(StageKind::SingleStream),
            &[(lying.clone(), Some(trace.clone()))],
        );
        assert_eq!(figures.itl_ms, Distribution::default());
        assert_eq!(figures.icl_ms.count, 2);
        // Even if the total agrees, a count is a weight and never a length.
        lying.completion_tokens = Some(u32::MAX);
        let figures = stage_figures(&asked(StageKind::SingleStream), &[(lying, Some(trace))]);
        assert!(figures.itl_ms.count <= 4_000_000_000);
    }
}

#[test]
fn open_loops_count_from_the_schedule_as_well() {
    let kind = StageKind::OpenLoop {
        rate: Thousandths::ONE,
        arrivals: Arrivals::Poisson,
    };
    let requests: Vec<Traced> = (0..4)
        .map(|seq| {
            let mut late = record(seq, 100, 10, 100, 10);
            late.intended_ns = Some((100 - u64::from(seq)) * MS);
            late.first_answer_ns = Some(50 * MS);
            (late, None)
        })
        .collect();
    let figures = stage_figures(&asked(kind), &requests);
    close(figures.ttft_ms.max, 10.0);
    close(figures.ttft_intended_ms.min, 10.0);
    close(figures.ttft_intended_ms.max, 13.0);
    close(figures.first_answer_ms.p50, 50.0);
    assert_eq!(figures.peak_in_flight, Some(4));
    assert_eq!(figures.flags, [], "an open loop has no C to exceed");
    let closed = stage_figures(&asked(kind), &[(record(0, 0, 10, 100, 10), None)]);
    assert_eq!(closed.ttft_intended_ms, Distribution::default());
}

#[test]
fn goodput_counts_the_good_and_names_the_undefined() {
    let asked = StageAsked {
        exact_length: false,
        goodput: Some(Bounds {
            ttft_ms: Some(20.0),
            tpot_ms: Some(10.0),
            e2el_ms: None,
        }),
        ..asked(StageKind::SingleStream)
    };
    let requests = [
        (record(0, 0, 10, 100, 10), None),
        (record(1, 100, 30, 100, 10), None),
        // A single token has no time per token.
        (record(2, 200, 10, 10, 1), None),
        (record(3, 300, 10, 200, 10), None),
    ];
    let goodput = stage_figures(&asked, &requests).goodput.expect("goodput");
    assert_eq!((goodput.good, goodput.undefined), (1, 1));
    close(goodput.requests_per_s, 2.0);
    let nothing = stage_figures(&asked, &[]).goodput.expect("goodput");
    assert_eq!((nothing.good, nothing.requests_per_s), (0, None));
}

#[test]
fn successes_and_chunks_per_second() {
    let requests = [
        (record(0, 0, 10, 100, 10), None),
        (record(1, 100, 10, 100, 10), None),
    ];
    let figures = stage_figures(&asked(StageKind::SingleStream), &requests);
    close(figures.request_throughput, 10.0);
    assert_eq!(figures.chunks, 20);
    close(figures.chunks_per_s(), 100.0);
    let none = stage_figures(&asked(StageKind::SingleStream), &[]);
    assert_eq!((none.request_throughput, none.chunks_per_s()), (None, None));
    assert_eq!((none.peak_in_flight, none.peak_output_tps), (None, None));
}

#[test]
fn a_trace_asks_each_prompt_for_its_own_length() {
    let level = LoadLevel {
        kind: StageKind::Replay {
            speed: Thousandths::ONE,
        },
        size: StageSize::Requests { requests: 2 },
    };
    let request = |input_tokens| TraceRequest {
        at_ms: 0,
        input_tokens,
        output_tokens: 10,
    };
    let workload = Workload {
        prompts: PromptSet::Trace {
            name: "t".to_owned(),
            requests: vec![request(18), request(36)],
        },
        ..Workload::with_levels("trace", vec![level])
    };
    let requests: Vec<Traced> = (0..2)
        .map(|seq| {
            let mut record = record(seq, 0, 10, 100, 10);
            record.asked_tokens = Some(10);
            (record, None)
        })
        .collect();
    let conditions = StageConditions {
        unsent: 1,
        ..StageConditions::default()
    };
    let figures = whole_stage(&workload, level.kind, true, &requests, &conditions);
    assert_eq!(
        figures.flags,
        [
            StageFlag::PromptLengthMismatch {
                requests: 1,
                asked: None
            },
            StageFlag::Unsent { requests: 1 },
        ]
    );
}

/// A request with everything about it left to chance.
fn any_request() -> impl Strategy<Value = Traced> {
    let chunks = prop::collection::vec((0_u32..300_000, 0_u32..4), 0..12);
    let counts = (0_u32..30, any::<bool>(), 0_u32..40, any::<bool>());
    (0_u64..5000, 0_u64..50, chunks, counts, 0_u8..8).prop_map(
        |(sent, late, chunks, (tokens, told, cached, traced), how)| {
            let trace = ChunkTrace {
                gaps_us: chunks.iter().map(|(gap, _)| *gap).collect(),
                tokens: if told {
                    chunks.iter().map(|(_, tokens)| *tokens).collect()
                } else {
                    vec![]
                },
            };
            let first = chunks.first().map_or(0, |(gap, _)| *gap);
            let e2el: u32 = chunks.iter().map(|(gap, _)| *gap).sum();
            let mut record = record(0, sent, 0, 0, tokens);
            record.ttft_ns = Some(u64::from(first) * 1000);
            record.first_answer_ns = record.ttft_ns;
            record.e2el_ns = Some(u64::from(e2el) * 1000);
            record.end_ns = u64::from(e2el) * 1000;
            record.intended_ns = Some((sent + 50 - late) * MS);
            record.cached_tokens = told.then_some(cached);
            record.chunks = u32::try_from(chunks.len()).expect("a few");
            record.failure = match how {
                0 => Some(FailureKind::Broken),
                1 => Some(FailureKind::Cancelled),
                _ => None,
            }
            .map(|kind| Failure {
                kind,
                message: "m".to_owned(),
                http_status: None,
            });
            (record, traced.then_some(trace))
        },
    )
}

proptest! {
    #[test]
    fn the_order_of_requests_changes_no_figure(
        (sorted, shuffled) in prop::collection::vec(any_request(), 0..30)
            .prop_flat_map(|requests| (Just(requests.clone()), Just(requests).prop_shuffle())),
        all_traced: bool,
        concurrency in 0_u32..4,
    ) {
        let traced = |requests: Vec<Traced>| -> Vec<Traced> {
            if !all_traced {
                return requests;
            }
            // So that the figures that need every trace are there.
            requests
                .into_iter()
                .map(|(record, trace)| (record, trace.or_else(|| Some(ChunkTrace::default()))))
                .collect()
        };
        let kind = match concurrency {
            0 => StageKind::OpenLoop {
                rate: Thousandths::ONE,
                arrivals: Arrivals::Poisson,
            },
            concurrency => StageKind::ClosedLoop { concurrency },
        };
        let asked = StageAsked {
            goodput: Some(Bounds {
                tpot_ms: Some(50.0),
                ..Bounds::default()
            }),
            prompt_tokens: Some(20),
            ..asked(kind)
        };
        prop_assert_eq!(
            stage_figures(&asked, &traced(sorted)),
            stage_figures(&asked, &traced(shuffled))
        );
    }
}
