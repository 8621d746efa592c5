//! What must hold of requests and figures whatever the engine: where it does not,
//! the measurement contradicts itself, and the stage says so.

use super::{
    P99_NEEDS, RequestFigures, StageAsked, StageFigures, StageFlag, Traced, chunks::token_counts,
};
use crate::record::{ChunkTrace, RequestRecord, TokenCount};

/// Share of failed requests above which a stage is flagged and supports no verdict.
pub const FAILURE_FLAG_SHARE: f64 = 0.01;

/// Share of C, or of half the requests, below which a stage is flagged.
const LOW_CONCURRENCY: f64 = 0.9;

/// Requests in flight on average may exceed C by this share: sums of rounded times.
const CONCURRENCY_SLACK: f64 = 0.02;

/// And by this much: one nanosecond more or less of a very short stage.
const CONCURRENCY_ROUNDING: f64 = 0.01;

/// The busiest second may fall short of the average one by this share.
const PEAK_SLACK: f64 = 0.02;

/// Shortest stage, in seconds, whose peak is held against its mean.
const PEAK_NEEDS_S: f64 = 2.0;

/// Chunk times are kept in whole microseconds, which may part what came within a
/// second.
const TRACE_ROUNDING_S: f64 = 1e-5;

/// A prompt may be longer or shorter than asked by this share, or by one token
/// where that is more: a word at its beginning is often split differently.
const PROMPT_SLACK: f64 = 0.01;

/// Share of the prompt tokens in the prefix cache above which cold prompts were not
/// cold.
pub(crate) const CACHE_HIT_SHARE: f64 = 0.05;

/// Cached tokens of a prompt that are expected all the same: the mark at the
/// beginning, the head of the chat template, the first words of a phrase. Without
/// this allowance a prompt of twenty tokens would be flagged for its template.
pub(crate) const COMMON_HEAD: u64 = 8;

/// What is counted while the requests are gone through.
#[derive(Default)]
pub(super) struct Checks {
    by_chunk: u64,
    approximate: u64,
    no_done: u64,
    odd_length: u64,
    /// Not all of these were asked for the same.
    lengths_vary: bool,
    not_positive: u64,
    not_monotonic: u64,
    inconsistent: u64,
    odd_prompt: u64,
    /// Cached prompt tokens beyond [`COMMON_HEAD`] each.
    cached: u64,
}

impl Checks {
    /// Takes in a successful request.
    pub(super) fn note(
        &mut self,
        asked: &StageAsked,
        (record, trace): &Traced,
        request: Option<&RequestFigures>,
    ) {
        self.by_chunk += u64::from(record.counted_by == TokenCount::Chunks);
        self.no_done += u64::from(!record.done_seen);
        self.approximate += u64::from(request.is_some_and(|request| request.tpot_approximate));
        let length = record.asked_tokens.unwrap_or(asked.output_tokens);
        if asked.exact_length && record.completion_tokens.unwrap_or(0) != length {
            self.odd_length += 1;
            self.lengths_vary |= length != asked.output_tokens;
        }
        self.not_positive += u64::from(record.ttft_ns == Some(0));
        self.not_monotonic += u64::from(!times_rise(record));
        let complete = trace.as_ref().and_then(|trace| all_counts(record, trace));
        self.inconsistent +=
            u64::from(complete.is_some_and(|sum| Some(sum) != record.completion_tokens));
        let odd = asked.prompt_tokens.zip(record.prompt_tokens);
        self.odd_prompt += u64::from(odd.is_some_and(|(asked, told)| is_odd_prompt(asked, told)));
        self.cached += u64::from(record.cached_tokens.unwrap_or(0)).saturating_sub(COMMON_HEAD);
    }

    /// The flags that follow from the requests and the finished figures.
    pub(super) fn flags(self, asked: &StageAsked, figures: &StageFigures) -> Vec<StageFlag> {
        let some =
            |requests: u64, flag: fn(u64) -> StageFlag| (requests > 0).then(|| flag(requests));
        [
            failures(figures),
            some(self.by_chunk, |requests| StageFlag::CountedByChunk {
                requests,
            }),
            some(self.approximate, |requests| StageFlag::ApproximateTpot {
                requests,
            }),
            some(self.no_done, |requests| StageFlag::NoDone { requests }),
            (self.odd_length > 0).then_some(StageFlag::LengthMismatch {
                requests: self.odd_length,
                asked: (!self.lengths_vary).then_some(asked.output_tokens),
            }),
            low_concurrency(asked, figures),
            (!asked.complete).then_some(StageFlag::Partial),
            high_concurrency(asked, figures),
            some(self.not_positive, |requests| StageFlag::NotPositiveTtft {
                requests,
            }),
            some(self.not_monotonic, |requests| {
                StageFlag::TimesNotMonotonic { requests }
            }),
            some(self.inconsistent, |requests| StageFlag::UsageInconsistent {
                requests,
            }),
            peak_below_mean(figures),
            (self.odd_prompt > 0).then_some(StageFlag::PromptLengthMismatch {
                requests: self.odd_prompt,
                asked: asked.prompt_tokens,
            }),
            cache_hits(asked, figures, self.cached),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl StageFigures {
    /// Flags what follows from the counts alone and from whether the stage ran to its
    /// end, where there are no requests to look at.
    pub(crate) fn heed_counts(&mut self, asked: &StageAsked) {
        if let Some(flag) = failures(self) {
            self.flag(flag);
        }
        if !asked.complete {
            self.flag(StageFlag::Partial);
        }
        self.drop_p99();
    }

    /// A 99th percentile of fewer requests than it needs is left out, as it would be
    /// had they been here.
    fn drop_p99(&mut self) {
        let completed = self.completed;
        let mut dropped = false;
        for distribution in [
            &mut self.ttft_ms,
            &mut self.ttft_intended_ms,
            &mut self.first_answer_ms,
            &mut self.tpot_ms,
            &mut self.itl_ms,
            &mut self.icl_ms,
            &mut self.e2el_ms,
            &mut self.e2e_tps,
            &mut self.decode_tps,
        ] {
            // Gaps are many a request, and no independent values.
            if distribution.count.min(completed) < P99_NEEDS as u64 {
                dropped |= distribution.p99.take().is_some();
            }
        }
        if dropped {
            self.flag(StageFlag::FewForP99 {
                requests: completed,
            });
        }
    }
}

fn failures(figures: &StageFigures) -> Option<StageFlag> {
    let requests = figures.completed.saturating_add(figures.failed);
    (figures.failed as f64 > FAILURE_FLAG_SHARE * requests as f64).then_some(StageFlag::Failures {
        failed: figures.failed,
        requests,
    })
}

/// Is a prompt so much longer or shorter than asked that it is another prompt?
pub(super) fn is_odd_prompt(asked: u32, told: u32) -> bool {
    f64::from(asked.abs_diff(told)) > (f64::from(asked) * PROMPT_SLACK).max(1.0)
}

/// Head, first token, first answer, last token, end: in this order.
fn times_rise(record: &RequestRecord) -> bool {
    [
        record.headers_ns,
        record.ttft_ns,
        record.first_answer_ns,
        record.e2el_ns,
        Some(record.end_ns),
    ]
    .into_iter()
    .flatten()
    .is_sorted()
        // Nothing can come before it was due to be sent.
        && record.intended_ns.is_none_or(|intended| {
            intended <= record.sent_ns.saturating_add(record.end_ns)
        })
}

/// The sum of the running counts, where there is one for each chunk.
fn all_counts(record: &RequestRecord, trace: &ChunkTrace) -> Option<u32> {
    let all = trace.tokens.len() == trace.gaps_us.len()
        && u32::try_from(trace.tokens.len()).ok() == Some(record.chunks);
    let counts = token_counts(record, trace).filter(|_| all)?;
    counts.iter().copied().try_fold(0_u32, u32::checked_add)
}

/// Below 2C requests ramp and drain are most of the stage, and C in flight on
/// average is out of reach whatever the client does.
fn low_concurrency(asked: &StageAsked, figures: &StageFigures) -> Option<StageFlag> {
    let concurrency = asked.kind.concurrency()?;
    let achieved = figures.achieved_concurrency?;
    let half = u32::try_from(figures.requests / 2).unwrap_or(u32::MAX);
    let reachable = f64::from(concurrency.min(half.max(1)));
    (asked.complete && achieved < LOW_CONCURRENCY * reachable).then_some(
        StageFlag::LowConcurrency {
            achieved,
            asked: concurrency,
        },
    )
}

fn high_concurrency(asked: &StageAsked, figures: &StageFigures) -> Option<StageFlag> {
    let concurrency = asked.kind.concurrency()?;
    let achieved = figures.achieved_concurrency?;
    let peak = figures.peak_in_flight.unwrap_or(0);
    let most = f64::from(concurrency) * (1.0 + CONCURRENCY_SLACK) + CONCURRENCY_ROUNDING;
    (achieved > most || peak > concurrency).then_some(StageFlag::HighConcurrency {
        achieved,
        peak,
        asked: concurrency,
    })
}

/// A stage of 3.4 s fits into four seconds, so one of them must hold a fourth of the
/// tokens: the mean is taken over whole seconds, or a server that sends a large
/// chunk each second would be accused.
fn peak_below_mean(figures: &StageFigures) -> Option<StageFlag> {
    let peak = figures.peak_output_tps?;
    let seconds = figures
        .duration_s
        .filter(|seconds| *seconds >= PEAK_NEEDS_S)?;
    let mean = figures.output_tokens as f64 / (seconds + TRACE_ROUNDING_S).ceil();
    (peak < mean * (1.0 - PEAK_SLACK)).then_some(StageFlag::PeakBelowMean { peak, mean })
}

/// The share is of all prompt tokens: where a server leaves the count out, it is
/// taken as nothing, so that the flag accuses nobody without proof.
fn cache_hits(asked: &StageAsked, figures: &StageFigures, beyond: u64) -> Option<StageFlag> {
    let prompt = figures.prompt_tokens.filter(|prompt| *prompt > 0)? as f64;
    let share = figures.cached_tokens? as f64 / prompt;
    (asked.cold_prompts && beyond as f64 / prompt > CACHE_HIT_SHARE)
        .then_some(StageFlag::CacheHits { share })
}

#[cfg(test)]
mod tests;
