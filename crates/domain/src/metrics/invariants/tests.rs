//! Stages that contradict themselves, and some that only seem to.

use super::{
    super::{
        stage_figures,
        testing::{MS, asked, record},
    },
    *,
};
use crate::workload::StageKind;

fn flags(asked: &StageAsked, requests: &[Traced]) -> Vec<StageFlag> {
    stage_figures(asked, requests).flags
}

fn single(record: RequestRecord) -> Vec<StageFlag> {
    flags(&asked(StageKind::SingleStream), &[(record, None)])
}

#[test]
fn a_sound_stage_has_no_flag() {
    assert_eq!(single(record(0, 0, 10, 100, 10)), []);
}

#[test]
fn odd_lengths_and_chunk_counts_are_flagged() {
    let mut short = record(0, 0, 10, 100, 7);
    short.counted_by = TokenCount::Chunks;
    let requests = [(short, None)];
    let figures = stage_figures(&asked(StageKind::SingleStream), &requests);
    assert!(figures.flags.contains(&StageFlag::LengthMismatch {
        requests: 1,
        asked: Some(10)
    }));
    assert!(
        figures
            .flags
            .contains(&StageFlag::CountedByChunk { requests: 1 })
    );
    assert!(!figures.supports_verdict());
}

#[test]
fn a_request_may_ask_for_a_length_of_its_own() {
    let mut short = record(0, 0, 10, 100, 7);
    short.asked_tokens = Some(7);
    assert_eq!(single(short.clone()), []);
    short.asked_tokens = Some(8);
    assert_eq!(
        single(short),
        [StageFlag::LengthMismatch {
            requests: 1,
            asked: None
        }]
    );
}

#[test]
fn low_concurrency_is_measured_against_what_can_be_reached() {
    let flagged = |requests: u32, concurrency: u32| {
        // Strictly one after the other, whatever was asked.
        let requests: Vec<Traced> = (0..requests)
            .map(|seq| (record(seq, u64::from(seq) * 100, 10, 100, 10), None))
            .collect();
        flags(&asked(StageKind::ClosedLoop { concurrency }), &requests)
            .iter()
            .any(|flag| matches!(flag, StageFlag::LowConcurrency { .. }))
    };
    assert!(flagged(8, 2), "one of two");
    assert!(flagged(4, 8), "one of the two that four requests can reach");
    assert!(!flagged(3, 8), "three requests can reach one");
    assert!(!flagged(8, 1));
}

#[test]
fn more_in_flight_than_slots_is_a_contradiction() {
    let requests = [
        (record(0, 0, 10, 100, 10), None),
        (record(1, 99, 10, 100, 10), None),
    ];
    let figures = stage_figures(&asked(StageKind::SingleStream), &requests);
    assert_eq!(
        figures.flags,
        [StageFlag::HighConcurrency {
            achieved: 200.0 / 199.0,
            peak: 2,
            asked: 1
        }]
    );
    assert!(!figures.supports_verdict());
}

#[test]
fn times_must_rise() {
    let mut instant = record(0, 0, 0, 100, 10);
    instant.headers_ns = Some(0);
    assert_eq!(
        single(instant),
        [StageFlag::NotPositiveTtft { requests: 1 }]
    );
    let backwards = [StageFlag::TimesNotMonotonic { requests: 1 }];
    type Change = fn(&mut RequestRecord);
    let changes: [Change; 5] = [
        |record| record.headers_ns = Some(11 * MS),
        |record| record.e2el_ns = Some(9 * MS),
        |record| record.end_ns = 99 * MS,
        |record| record.first_answer_ns = Some(9 * MS),
        |record| record.intended_ns = Some(101 * MS),
    ];
    for change in changes {
        let mut record = record(0, 0, 10, 100, 10);
        record.headers_ns = Some(9 * MS);
        assert_eq!(single(record.clone()), []);
        change(&mut record);
        assert_eq!(single(record), backwards);
    }
}

#[test]
fn running_usage_must_add_up() {
    let told = |tokens: Vec<u32>| {
        let trace = ChunkTrace {
            gaps_us: vec![20_000; 5],
            tokens,
        };
        let mut record = record(0, 0, 20, 100, 10);
        record.chunks = 5;
        record.first_chunk_tokens = Some(2);
        flags(&asked(StageKind::SingleStream), &[(record, Some(trace))])
    };
    assert_eq!(told(vec![2; 5]), []);
    assert_eq!(
        told(vec![2, 2, 2, 2, 1]),
        [StageFlag::UsageInconsistent { requests: 1 }]
    );
    assert_eq!(told(vec![2, 2]), [], "not told for each");
    assert_eq!(told(vec![]), []);
}

#[test]
fn tokens_that_came_after_the_last_one_make_the_peak_too_low() {
    let stage = |told: u32, gap_us: u32| {
        let trace = ChunkTrace {
            gaps_us: vec![gap_us; 40],
            tokens: vec![told; 40],
        };
        let mut record = record(0, 0, 100, 4000, 80);
        record.chunks = 40;
        let asked = StageAsked {
            output_tokens: 80,
            ..asked(StageKind::SingleStream)
        };
        flags(&asked, &[(record, Some(trace))])
    };
    let below = |flags: &[StageFlag]| {
        flags
            .iter()
            .any(|flag| matches!(flag, StageFlag::PeakBelowMean { .. }))
    };
    assert!(!below(&stage(2, 100_000)));
    assert!(below(&stage(2, 300_000)));
    // Counts that miss tokens are not used, and have a flag of their own.
    let missed = stage(1, 100_000);
    assert!(!below(&missed));
    assert!(missed.contains(&StageFlag::UsageInconsistent { requests: 1 }));
}

#[test]
fn a_large_chunk_each_second_is_no_contradiction() {
    let trace = ChunkTrace {
        gaps_us: vec![1, 1_000_000, 1_000_000],
        tokens: vec![10; 3],
    };
    let mut record = record(0, 0, 1, 2000, 30);
    record.chunks = 3;
    record.first_chunk_tokens = Some(10);
    let asked = StageAsked {
        output_tokens: 30,
        ..asked(StageKind::SingleStream)
    };
    let figures = stage_figures(&asked, &[(record, Some(trace))]);
    assert_eq!(figures.peak_output_tps, Some(10.0));
    assert_eq!(figures.output_tps, Some(15.0));
    assert_eq!(figures.flags, []);
}

#[test]
fn prompts_of_another_length_are_flagged() {
    let prompt = |asked_tokens: u32, told: u32| {
        let mut record = record(0, 0, 10, 100, 10);
        record.prompt_tokens = Some(told);
        let asked = StageAsked {
            prompt_tokens: Some(asked_tokens),
            ..asked(StageKind::SingleStream)
        };
        flags(&asked, &[(record, None)])
    };
    assert_eq!(prompt(1000, 1010), []);
    assert_eq!(prompt(32, 33), [], "one token is no other length");
    for told in [989, 1011] {
        assert_eq!(
            prompt(1000, told),
            [StageFlag::PromptLengthMismatch {
                requests: 1,
                asked: Some(1000)
            }]
        );
    }
}

#[test]
fn cold_prompts_must_be_cold() {
    let cached = |prompt: u32, cached: u32, cold_prompts: bool| {
        let mut record = record(0, 0, 10, 100, 10);
        record.prompt_tokens = Some(prompt);
        record.cached_tokens = Some(cached);
        let asked = StageAsked {
            cold_prompts,
            ..asked(StageKind::SingleStream)
        };
        flags(&asked, &[(record, None)])
    };
    assert_eq!(cached(20, 8, true), [], "template and opening words");
    assert_eq!(cached(1000, 58, true), []);
    assert_eq!(
        cached(1000, 64, true),
        [StageFlag::CacheHits { share: 0.064 }]
    );
    assert_eq!(cached(20, 16, true), [StageFlag::CacheHits { share: 0.8 }]);
    assert_eq!(cached(1000, 900, false), []);
}
