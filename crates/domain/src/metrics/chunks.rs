//! When which tokens came, and the gaps between them.

use super::{NS_PER_US, Traced};
use crate::record::{ChunkTrace, RequestRecord};

/// A token in the unit in which parts of tokens are added up: whole numbers, so
/// that no sum depends on its order.
pub(super) const TOKEN: u64 = 1_000_000;

/// Tokens that came at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Since the start of the run.
    pub(super) at_ns: u64,
    /// In millionths of a token ([`TOKEN`]).
    pub(super) tokens: u64,
}

/// The gap before one read, and what came in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gap {
    /// Since the read before.
    pub(crate) ms: f64,
    /// Token chunks of the read.
    pub(crate) chunks: u64,
    /// Their tokens; 0 where not told.
    pub(crate) tokens: u64,
}

/// The tokens of each chunk; none where the server did not tell, or told counts
/// that add up to more than the reply has.
pub(super) fn token_counts<'a>(record: &RequestRecord, trace: &'a ChunkTrace) -> Option<&'a [u32]> {
    let sum: u64 = trace.tokens.iter().map(|count| u64::from(*count)).sum();
    (sum > 0 && sum <= u64::from(record.completion_tokens?)).then_some(&trace.tokens)
}

/// When the tokens of a successful request came, chunk by chunk. Without running
/// usage, or where its counts do not add up to *n*, they are estimated: all *n* in a
/// reply of one chunk, else n₁ (or 1) in the first chunk and the rest in equal parts.
/// None without chunk times.
pub(super) fn arrivals(
    (record, trace): &Traced,
) -> Option<impl Iterator<Item = Arrival> + use<'_>> {
    let trace = trace.as_ref()?;
    let total = record.completion_tokens?;
    // Counts that miss tokens would understate every throughput that rests on them.
    let counts = token_counts(record, trace).filter(|counts| {
        let sum: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        sum == u64::from(total) && counts.len() <= trace.gaps_us.len()
    });
    let later_chunks = trace.gaps_us.len().saturating_sub(1) as u64;
    let first = if later_chunks == 0 {
        total
    } else {
        let told = record.first_chunk_tokens.filter(|first| *first > 0);
        told.unwrap_or(1).min(total)
    };
    let rest = u64::from(total - first) * TOKEN;
    let sent_ns = record.sent_ns;
    let estimated = move |chunk: u64| match rest.checked_div(later_chunks) {
        Some(part) if chunk > 0 => part + u64::from(chunk <= rest % later_chunks),
        _ => u64::from(first) * TOKEN,
    };
    Some(
        trace
            .arrivals_us()
            .zip(0_u64..)
            .map(move |(arrival_us, chunk)| Arrival {
                at_ns: sent_ns.saturating_add(arrival_us.saturating_mul(NS_PER_US)),
                tokens: match counts {
                    Some(counts) => {
                        let count = usize::try_from(chunk).ok().and_then(|at| counts.get(at));
                        u64::from(count.copied().unwrap_or(0)) * TOKEN
                    }
                    None => estimated(chunk),
                },
            }),
    )
}

/// The gaps after the first read. Chunks that came in one read stand together: a
/// gap of zero between them would say something about our socket, not about the
/// server. What came behind the first token in its very read has no gap at all.
pub(crate) fn gaps<'a>(
    record: &RequestRecord,
    trace: &'a ChunkTrace,
) -> impl Iterator<Item = Gap> + use<'a> {
    let counts = token_counts(record, trace);
    let mut start = 1;
    std::iter::from_fn(move || {
        let gap_us = *trace.gaps_us.get(start)?;
        let mut end = start + 1;
        while trace.gaps_us.get(end) == Some(&0) {
            end += 1;
        }
        let tokens = counts
            .and_then(|counts| counts.get(start..end.min(counts.len())))
            .map_or(0, |counts| {
                counts.iter().map(|count| u64::from(*count)).sum()
            });
        let gap = Gap {
            ms: f64::from(gap_us) / 1000.0,
            chunks: (end - start) as u64,
            tokens,
        };
        start = end;
        Some(gap)
    })
    .filter(|gap| gap.ms > 0.0)
}

#[cfg(test)]
mod tests {
    use super::{super::testing::record, *};

    fn tokens(traced: &Traced) -> Vec<u64> {
        arrivals(traced)
            .expect("chunk times")
            .map(|arrival| arrival.tokens)
            .collect()
    }

    #[test]
    fn estimated_parts_add_up_to_the_whole() {
        let trace = ChunkTrace {
            gaps_us: vec![10_000; 4],
            tokens: vec![],
        };
        let mut traced = (record(0, 0, 10, 40, 12), Some(trace));
        let parts = tokens(&traced);
        assert_eq!(parts[0], TOKEN);
        assert_eq!(parts[1], 3_666_667);
        assert_eq!(parts.iter().sum::<u64>(), 12 * TOKEN);
        traced.0.first_chunk_tokens = Some(3);
        assert_eq!(tokens(&traced), [3, 3, 3, 3].map(|count| count * TOKEN));
        traced.1 = Some(ChunkTrace {
            gaps_us: vec![10_000],
            tokens: vec![],
        });
        assert_eq!(tokens(&traced), [12 * TOKEN]);
    }

    #[test]
    fn told_counts_are_taken_only_if_they_are_all() {
        let of = |counts: &[u32]| {
            let trace = ChunkTrace {
                gaps_us: vec![10_000; 3],
                tokens: counts.to_vec(),
            };
            (record(0, 7, 10, 30, 12), Some(trace))
        };
        assert_eq!(tokens(&of(&[2, 5, 5])), [2, 5, 5].map(|n| n * TOKEN));
        assert_eq!(tokens(&of(&[2, 10])), [2, 10, 0].map(|n| n * TOKEN));
        // Too few, too many, or on chunks that have no time: as if none were told.
        let untold = tokens(&of(&[]));
        for counts in [&[2, 5][..], &[2, 5, 4], &[2, 5, 6], &[2, 5, 4, 1]] {
            let told = tokens(&of(counts));
            assert_eq!(told, untold, "{counts:?}");
            assert_eq!(told.iter().sum::<u64>(), 12 * TOKEN);
        }
        let traced = of(&[2, 5]);
        let times: Vec<u64> = arrivals(&traced)
            .expect("chunk times")
            .map(|arrival| arrival.at_ns)
            .collect();
        assert_eq!(times, [17_000_000, 27_000_000, 37_000_000]);
    }
}
