//! From request records to figures. The definitions stand in `docs/metrics.md`;
//! a change of any of them raises [`METRIC_VERSION`], which is stored with every
//! run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    record::{ChunkTrace, FailureKind, RequestRecord, TokenCount},
    workload::StageKind,
};

/// Version of the definitions in this module.
///
/// 2: tokens of chunks that were read together with the first one count as first
/// tokens, since they share its time.
pub const METRIC_VERSION: u32 = 2;

/// Requests below which no p99 is stated: it would be the maximum by another name.
pub const P99_NEEDS: usize = 100;

/// Share of failed requests above which a stage is flagged and supports no verdict.
pub const FAILURE_FLAG_SHARE: f64 = 0.01;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// What one successful request yields. Undefined is none, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestFigures {
    /// First token chunk − sent, in ms.
    pub ttft_ms: f64,
    /// Last token chunk − sent, in ms.
    pub e2el_ms: f64,
    /// (e2el − ttft) / (n − n₁), in ms.
    pub tpot_ms: Option<f64>,
    /// n₁ was not told and had to be taken as 1.
    pub tpot_approximate: bool,
    /// 1000 / tpot, in tok/s.
    pub decode_tps: Option<f64>,
    /// n / e2el, in tok/s.
    pub e2e_tps: Option<f64>,
}

/// The figures of a request; none for a failed one.
#[must_use]
pub fn request_figures(record: &RequestRecord) -> Option<RequestFigures> {
    if !record.is_success() {
        return None;
    }
    let (ttft_ns, e2el_ns) = (record.ttft_ns?, record.e2el_ns?);
    let tokens = record.completion_tokens?;
    let ttft_ms = ttft_ns as f64 / NS_PER_MS;
    let e2el_ms = e2el_ns as f64 / NS_PER_MS;
    // One token a chunk leaves no doubt about the first chunk; fewer chunks than
    // tokens do, unless running usage told.
    // A first chunk with which the running count had not risen yet tells nothing.
    let (first, tpot_approximate) = match record.first_chunk_tokens.filter(|first| *first > 0) {
        Some(first) => (first, false),
        None => (1, record.chunks < tokens),
    };
    let tpot_ms = (tokens > first && !record.in_one_read())
        .then(|| (e2el_ms - ttft_ms) / f64::from(tokens - first))
        .filter(|tpot| *tpot > 0.0);
    Some(RequestFigures {
        ttft_ms,
        e2el_ms,
        tpot_ms,
        tpot_approximate: tpot_ms.is_some() && tpot_approximate,
        decode_tps: tpot_ms.map(|tpot| 1000.0 / tpot),
        e2e_tps: (e2el_ms > 0.0).then(|| f64::from(tokens) * 1000.0 / e2el_ms),
    })
}

/// A sample in short. All null where there was nothing to summarise.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile; null below [`P99_NEEDS`] values.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

impl Distribution {
    /// Summarises values (percentiles by linear interpolation between order
    /// statistics, as in NumPy's default).
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.retain(|value| value.is_finite());
        if values.is_empty() {
            return Self::default();
        }
        values.sort_by(f64::total_cmp);
        let count = values.len();
        Self {
            count: count as u64,
            mean: Some(values.iter().sum::<f64>() / count as f64),
            min: values.first().copied(),
            p50: percentile(&values, 50.0),
            p90: percentile(&values, 90.0),
            p95: percentile(&values, 95.0),
            p99: if count >= P99_NEEDS {
                percentile(&values, 99.0)
            } else {
                None
            },
            max: values.last().copied(),
        }
    }

    /// The same of values that each stand for a number of equal ones: as if they
    /// had been written out, at the cost of one entry each. Weights come from
    /// servers and files, so none may decide how much memory is used.
    #[must_use]
    pub fn weighted(mut values: Vec<(f64, u64)>) -> Self {
        values.retain(|(value, weight)| value.is_finite() && *weight > 0);
        values.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut count = 0_u64;
        let mut total = 0.0;
        // How many values there are up to each entry, itself included.
        let upto: Vec<u64> = values
            .iter()
            .map(|(value, weight)| {
                count = count.saturating_add(*weight);
                total += value * *weight as f64;
                count
            })
            .collect();
        let Some(last) = count.checked_sub(1) else {
            return Self::default();
        };
        let at = |rank: u64| {
            let entry = upto.partition_point(|upto| *upto <= rank);
            values.get(entry).map(|(value, _)| *value)
        };
        let percentile = |p: f64| {
            let rank = p / 100.0 * last as f64;
            // Beyond 2^53 the product may round past the last value.
            let below = (rank.floor() as u64).min(last);
            let low = at(below)?;
            let high = at(below.saturating_add(1)).unwrap_or(low);
            Some(low + (high - low) * (rank - rank.floor()))
        };
        Self {
            count,
            mean: Some(total / count as f64),
            min: values.first().map(|(value, _)| *value),
            p50: percentile(50.0),
            p90: percentile(90.0),
            p95: percentile(95.0),
            p99: if count >= P99_NEEDS as u64 {
                percentile(99.0)
            } else {
                None
            },
            max: values.last().map(|(value, _)| *value),
        }
    }
}

/// Percentile `p` (0 to 100) of ascending values, linearly interpolated; none of
/// an empty slice.
#[must_use]
pub fn percentile(ascending: &[f64], p: f64) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let rank = (p / 100.0).clamp(0.0, 1.0) * last as f64;
    let below = rank.floor() as usize;
    let low = *ascending.get(below)?;
    let high = ascending.get(below + 1).copied().unwrap_or(low);
    Some(low + (high - low) * (rank - rank.floor()))
}

/// Median of values in any order; none of none.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    percentile(&values, 50.0)
}

/// Something a reader must know about a stage before believing it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "flag")]
pub enum StageFlag {
    /// More than 1 % of the requests failed.
    Failures {
        /// How many failed.
        failed: u64,
        /// Of how many.
        requests: u64,
    },
    /// The server sent no usage: tokens were counted by chunk.
    CountedByChunk {
        /// How many requests.
        requests: u64,
    },
    /// n₁ unknown: TPOT is approximate.
    ApproximateTpot {
        /// How many requests.
        requests: u64,
    },
    /// Streams without `[DONE]` that were otherwise complete.
    NoDone {
        /// How many requests.
        requests: u64,
    },
    /// Requests whose length is not the one asked for.
    LengthMismatch {
        /// How many requests.
        requests: u64,
        /// Tokens asked for.
        asked: u32,
    },
    /// Fewer requests in flight than asked (achieved below 90 % of C, or of half
    /// the requests where that is less).
    LowConcurrency {
        /// Σ (end − sent) / duration.
        achieved: f64,
        /// C.
        asked: u32,
    },
    /// The stage did not run to its end.
    Partial,
}

impl StageFlag {
    /// What was seen, what it does to the figure, and what to do.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Failures { failed, requests } => format!(
                "{failed} of {requests} requests failed: no verdict rests on this stage. Look at the failures and measure again."
            ),
            Self::CountedByChunk { requests } => format!(
                "The server sent no usage for {requests} requests, so chunks were counted instead of tokens: not comparable with other runs. Let the server send usage (stream_options.include_usage)."
            ),
            Self::ApproximateTpot { requests } => format!(
                "{requests} requests packed several tokens into a chunk without running usage: TPOT is approximate. A server that sends continuous_usage_stats makes it exact."
            ),
            Self::NoDone { requests } => format!(
                "{requests} streams ended without [DONE], though finish reason and usage came: counted as successes."
            ),
            Self::LengthMismatch { requests, asked } => format!(
                "{requests} replies are not {asked} tokens long, as asked: speeds of different lengths are not comparable. Check that the server honours ignore_eos and its context length."
            ),
            Self::LowConcurrency { achieved, asked } => format!(
                "On average {achieved:.1} of {asked} requests were in flight: throughput is understated. Ask for more requests per stage."
            ),
            Self::Partial => {
                "The stage did not run to its end: its figures rest on the requests that were finished.".to_owned()
            }
        }
    }

    /// Does this forbid comparing the stage with others?
    #[must_use]
    pub const fn forbids_verdict(&self) -> bool {
        matches!(
            self,
            Self::Failures { .. }
                | Self::CountedByChunk { .. }
                | Self::LengthMismatch { .. }
                | Self::Partial
        )
    }
}

/// The figures of a stage. Field names are those of the result file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StageFigures {
    /// Requests sent.
    pub requests: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed, those cancelled by us not counted.
    pub failed: u64,
    /// Requests cancelled by us.
    pub cancelled: u64,
    /// Failures by kind.
    #[serde(default)]
    pub failures: BTreeMap<FailureKind, u64>,
    /// Last token of any successful request − first sent, in seconds.
    pub duration_s: Option<f64>,
    /// Σ prompt tokens of the successful requests, where the server told.
    pub prompt_tokens: Option<u64>,
    /// Σ n of the successful requests.
    pub output_tokens: u64,
    /// Σ cached prompt tokens, where the server told.
    pub cached_tokens: Option<u64>,
    /// `output_tokens` / `duration_s`, in tok/s.
    pub output_tps: Option<f64>,
    /// Tokens per second between the C-th send and the first slot without a
    /// successor; none if the stage is too short for one.
    pub steady_output_tps: Option<f64>,
    /// Σ (end − sent) over all requests / (last end − first sent).
    pub achieved_concurrency: Option<f64>,
    /// Share of token chunks that came in one read with their predecessor.
    pub coalesced_share: Option<f64>,
    /// Time to first token, in ms.
    pub ttft_ms: Distribution,
    /// Time per output token, in ms.
    pub tpot_ms: Distribution,
    /// Gap between token chunks ÷ tokens, in ms; needs per-chunk counts.
    pub itl_ms: Distribution,
    /// Gap between token chunks, in ms.
    pub icl_ms: Distribution,
    /// End-to-end latency, in ms.
    pub e2el_ms: Distribution,
    /// n / e2el of each request, in tok/s.
    pub e2e_tps: Distribution,
    /// 1000 / tpot of each request, in tok/s.
    pub decode_tps: Distribution,
    /// What a reader must know.
    #[serde(default)]
    pub flags: Vec<StageFlag>,
}

impl StageFigures {
    /// May a verdict rest on this stage?
    #[must_use]
    pub fn supports_verdict(&self) -> bool {
        self.completed > 0 && !self.flags.iter().any(StageFlag::forbids_verdict)
    }
}

/// A request with its chunk times, as a stage's figures need it.
pub type Traced = (RequestRecord, Option<ChunkTrace>);

/// What was asked of a stage, as far as its figures need it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageAsked {
    /// Kind, and with it C.
    pub kind: StageKind,
    /// Completion tokens asked for.
    pub output_tokens: u32,
    /// Were equal lengths asked for (`ignore_eos`)?
    pub exact_length: bool,
    /// Did the stage run to its end?
    pub complete: bool,
}

/// The figures of a stage from its requests, in any order. Failed requests enter
/// counts and achieved concurrency, nothing else.
#[must_use]
pub fn stage_figures(asked: &StageAsked, requests: &[Traced]) -> StageFigures {
    let mut figures = StageFigures {
        requests: requests.len() as u64,
        ..Default::default()
    };
    let mut samples = Samples::default();
    let (mut first_sent, mut last_token, mut last_end) = (u64::MAX, 0_u64, 0_u64);
    let mut busy_ns = 0_u128;
    let (mut chunks, mut coalesced) = (0_u64, 0_u64);
    let (mut by_chunk, mut approximate, mut no_done, mut odd_length) = (0, 0, 0, 0);

    for (record, trace) in requests {
        first_sent = first_sent.min(record.sent_ns);
        last_end = last_end.max(record.sent_ns.saturating_add(record.end_ns));
        busy_ns += u128::from(record.end_ns);
        if let Some(failure) = &record.failure {
            *figures.failures.entry(failure.kind).or_default() += 1;
            if record.is_cancelled() {
                figures.cancelled += 1;
            } else {
                figures.failed += 1;
            }
            continue;
        }
        figures.completed += 1;
        let tokens = record.completion_tokens.unwrap_or(0);
        figures.output_tokens += u64::from(tokens);
        add(&mut figures.prompt_tokens, record.prompt_tokens);
        add(&mut figures.cached_tokens, record.cached_tokens);
        chunks += u64::from(record.chunks);
        coalesced += u64::from(record.coalesced_chunks);
        if let Some(e2el) = record.e2el_ns {
            last_token = last_token.max(record.sent_ns.saturating_add(e2el));
        }
        by_chunk += u64::from(record.counted_by == TokenCount::Chunks);
        no_done += u64::from(!record.done_seen);
        odd_length += u64::from(asked.exact_length && tokens != asked.output_tokens);
        if let Some(request) = request_figures(record) {
            approximate += u64::from(request.tpot_approximate);
            samples.push(&request);
        }
        if let Some(trace) = trace {
            samples.push_gaps(trace, token_counts(record, trace));
        }
    }

    if figures.completed > 0 && last_token > first_sent {
        let seconds = (last_token - first_sent) as f64 / NS_PER_S;
        figures.duration_s = Some(seconds);
        figures.output_tps = Some(figures.output_tokens as f64 / seconds);
    }
    if last_end > first_sent && !requests.is_empty() {
        figures.achieved_concurrency = Some(busy_ns as f64 / (last_end - first_sent) as f64);
    }
    figures.coalesced_share = (chunks > 0).then(|| coalesced as f64 / chunks as f64);
    samples.summarise_into(&mut figures);
    figures.steady_output_tps =
        steady_output_tps(asked.kind.concurrency(), requests, figures.e2el_ms.p50);

    let judged = figures.completed + figures.failed;
    let mut flags = Vec::new();
    if figures.failed as f64 > FAILURE_FLAG_SHARE * judged as f64 {
        flags.push(StageFlag::Failures {
            failed: figures.failed,
            requests: judged,
        });
    }
    if by_chunk > 0 {
        flags.push(StageFlag::CountedByChunk { requests: by_chunk });
    }
    if approximate > 0 {
        flags.push(StageFlag::ApproximateTpot {
            requests: approximate,
        });
    }
    if no_done > 0 {
        flags.push(StageFlag::NoDone { requests: no_done });
    }
    if odd_length > 0 {
        flags.push(StageFlag::LengthMismatch {
            requests: odd_length,
            asked: asked.output_tokens,
        });
    }
    // Below 2C requests ramp and drain are most of the stage, and C in flight on
    // average is out of reach whatever the client does.
    let half = u32::try_from(requests.len() / 2).unwrap_or(u32::MAX);
    let reachable = asked.kind.concurrency().min(half.max(1));
    if let Some(achieved) = figures.achieved_concurrency
        && asked.complete
        && achieved < 0.9 * f64::from(reachable)
    {
        flags.push(StageFlag::LowConcurrency {
            achieved,
            asked: asked.kind.concurrency(),
        });
    }
    if !asked.complete {
        flags.push(StageFlag::Partial);
    }
    figures.flags = flags;
    figures
}

fn add(sum: &mut Option<u64>, value: Option<u32>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0) + u64::from(value));
    }
}

/// The tokens of each chunk; none where the server did not tell, or told counts
/// that add up to more than the reply has.
fn token_counts<'a>(record: &RequestRecord, trace: &'a ChunkTrace) -> Option<&'a [u32]> {
    let sum: u64 = trace.tokens.iter().map(|count| u64::from(*count)).sum();
    (sum > 0 && sum <= u64::from(record.completion_tokens?)).then_some(&trace.tokens)
}

#[derive(Default)]
struct Samples {
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    /// With the tokens that each stands for.
    itl: Vec<(f64, u64)>,
    icl: Vec<f64>,
    e2el: Vec<f64>,
    e2e_tps: Vec<f64>,
    decode_tps: Vec<f64>,
}

impl Samples {
    fn push(&mut self, request: &RequestFigures) {
        self.ttft.push(request.ttft_ms);
        self.e2el.push(request.e2el_ms);
        self.tpot.extend(request.tpot_ms);
        self.e2e_tps.extend(request.e2e_tps);
        self.decode_tps.extend(request.decode_tps);
    }

    /// Chunks that came in one read share the gap before that read evenly: a gap
    /// of zero would say something about our socket, not about the server.
    fn push_gaps(&mut self, trace: &ChunkTrace, counts: Option<&[u32]>) {
        let mut start = 1;
        while start < trace.gaps_us.len() {
            let mut end = start + 1;
            while trace.gaps_us.get(end) == Some(&0) {
                end += 1;
            }
            let gap_ms = f64::from(trace.gaps_us.get(start).copied().unwrap_or(0)) / 1000.0;
            let share = gap_ms / (end - start) as f64;
            // Chunks behind the first token in its very read have no gap at all.
            if gap_ms > 0.0 {
                self.icl.extend(std::iter::repeat_n(share, end - start));
                let tokens: u64 = counts
                    .and_then(|counts| counts.get(start..end.min(counts.len())))
                    .map_or(0, |counts| {
                        counts.iter().map(|count| u64::from(*count)).sum()
                    });
                if tokens > 0 {
                    self.itl.push((gap_ms / tokens as f64, tokens));
                }
            }
            start = end;
        }
    }

    fn summarise_into(self, figures: &mut StageFigures) {
        figures.ttft_ms = Distribution::of(self.ttft);
        figures.tpot_ms = Distribution::of(self.tpot);
        figures.itl_ms = Distribution::weighted(self.itl);
        figures.icl_ms = Distribution::of(self.icl);
        figures.e2el_ms = Distribution::of(self.e2el);
        figures.e2e_tps = Distribution::of(self.e2e_tps);
        figures.decode_tps = Distribution::of(self.decode_tps);
    }
}

/// Throughput of the middle of a stage: from the C-th send to the first moment
/// at which a slot was left without a successor. None below 2C requests, without
/// chunk times, or where that window is shorter than three median latencies.
fn steady_output_tps(
    concurrency: u32,
    requests: &[Traced],
    median_e2el_ms: Option<f64>,
) -> Option<f64> {
    let slots = concurrency as usize;
    if requests.len() < 2 * slots || requests.iter().any(|(record, _)| record.is_cancelled()) {
        return None;
    }
    let mut sends: Vec<u64> = requests.iter().map(|(record, _)| record.sent_ns).collect();
    sends.sort_unstable();
    let from = *sends.get(slots.checked_sub(1)?)?;
    let mut ends: Vec<u64> = requests
        .iter()
        .map(|(record, _)| record.sent_ns.saturating_add(record.end_ns))
        .collect();
    ends.sort_unstable();
    // Every end but the last C is followed by a send in its slot.
    let to = *ends.get(requests.len() - slots)?;
    let window_ms = to.checked_sub(from)? as f64 / NS_PER_MS;
    if window_ms < 3.0 * median_e2el_ms? {
        return None;
    }
    let mut tokens = 0.0;
    for (record, trace) in requests {
        if !record.is_success() {
            continue;
        }
        let trace = trace.as_ref()?;
        let total = f64::from(record.completion_tokens?);
        let counts = token_counts(record, trace);
        let later_chunks = trace.gaps_us.len().saturating_sub(1);
        let first = if later_chunks == 0 {
            total
        } else {
            let told = record.first_chunk_tokens.filter(|first| *first > 0);
            f64::from(told.unwrap_or(1)).min(total)
        };
        for (chunk, arrival_us) in trace.arrivals_us().enumerate() {
            let at = record
                .sent_ns
                .saturating_add(arrival_us.saturating_mul(1000));
            if at > from && at <= to {
                tokens += match counts {
                    Some(counts) => counts.get(chunk).copied().map_or(0.0, f64::from),
                    None if chunk == 0 => first,
                    None => (total - first) / later_chunks as f64,
                };
            }
        }
    }
    Some(tokens * 1000.0 / window_ms)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::Failure;

    const MS: u64 = 1_000_000;

    fn record(seq: u32, sent_ms: u64, ttft_ms: u64, e2el_ms: u64, tokens: u32) -> RequestRecord {
        RequestRecord {
            stage: 0,
            seq,
            prompt: seq.into(),
            sent_ns: sent_ms * MS,
            connect_ns: None,
            headers_ns: None,
            ttft_ns: Some(ttft_ms * MS),
            first_answer_ns: Some(ttft_ms * MS),
            e2el_ns: Some(e2el_ms * MS),
            end_ns: e2el_ms * MS,
            prompt_tokens: Some(18),
            completion_tokens: Some(tokens),
            first_chunk_tokens: None,
            cached_tokens: None,
            reasoning_tokens: None,
            chunks: tokens,
            coalesced_chunks: 0,
            counted_by: TokenCount::Usage,
            done_seen: true,
            finish_reason: Some("length".to_owned()),
            simulated: false,
            failure: None,
        }
    }

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("a figure");
        assert!(
            (value - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "{value} is not {expected}"
        );
    }

    #[test]
    fn the_founding_arithmetic() {
        // 256 tokens in 2844 ms are 90.0 tok/s, time to first token included.
        let figures = request_figures(&record(0, 0, 30, 2844, 256)).expect("figures");
        close(figures.e2e_tps, 256.0 / 2.844);
        close(figures.tpot_ms, (2844.0 - 30.0) / 255.0);
        assert!(!figures.tpot_approximate);
    }

    #[test]
    fn several_tokens_in_a_chunk() {
        let mut packed = record(0, 0, 50, 130, 12);
        packed.chunks = 3;
        let figures = request_figures(&packed).expect("figures");
        assert!(
            figures.tpot_approximate,
            "n1 unknown and fewer chunks than tokens"
        );
        close(figures.tpot_ms, 80.0 / 11.0);
        packed.first_chunk_tokens = Some(4);
        let figures = request_figures(&packed).expect("figures");
        assert!(!figures.tpot_approximate);
        close(figures.tpot_ms, 10.0);
        close(figures.decode_tps, 100.0);
    }

    #[test]
    fn undefined_is_none() {
        assert_eq!(
            request_figures(&record(0, 0, 50, 50, 1))
                .expect("figures")
                .tpot_ms,
            None
        );
        let mut at_once = record(0, 0, 50, 51, 8);
        at_once.coalesced_chunks = 7;
        assert_eq!(request_figures(&at_once).expect("figures").tpot_ms, None);
        assert_eq!(Distribution::of(vec![]), Distribution::default());
        let few = Distribution::of((0..99).map(f64::from).collect());
        assert_eq!((few.p99, few.p95), (None, Some(93.1)));
        assert!(
            Distribution::of((0..100).map(f64::from).collect())
                .p99
                .is_some()
        );
    }

    fn asked(kind: StageKind) -> StageAsked {
        StageAsked {
            kind,
            output_tokens: 10,
            exact_length: true,
            complete: true,
        }
    }

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
        let mut stopped = record(1, 0, 10, 20, 10);
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
    fn odd_lengths_and_chunk_counts_are_flagged() {
        let mut short = record(0, 0, 10, 100, 7);
        short.counted_by = TokenCount::Chunks;
        let figures = stage_figures(&asked(StageKind::SingleStream), &[(short, None)]);
        assert!(figures.flags.contains(&StageFlag::LengthMismatch {
            requests: 1,
            asked: 10
        }));
        assert!(
            figures
                .flags
                .contains(&StageFlag::CountedByChunk { requests: 1 })
        );
        assert!(!figures.supports_verdict());
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
    fn the_steady_window_leaves_out_ramp_and_drain() {
        // Two slots, one token each 10 ms, 10 tokens a request, back to back.
        let requests: Vec<Traced> = (0..20)
            .map(|seq| {
                let sent = u64::from(seq / 2) * 100 + u64::from(seq % 2) * 5;
                let trace = ChunkTrace {
                    gaps_us: vec![10_000; 10],
                    tokens: vec![1; 10],
                };
                (record(seq, sent, 10, 100, 10), Some(trace))
            })
            .collect();
        let kind = StageKind::ClosedLoop { concurrency: 2 };
        let figures = stage_figures(&asked(kind), &requests);
        let steady = figures.steady_output_tps.expect("a steady figure");
        assert!((steady - 200.0).abs() < 2.0, "{steady}");
        let few = stage_figures(&asked(kind), &requests[..3]);
        assert_eq!(few.steady_output_tps, None);
    }

    #[test]
    fn replies_of_one_chunk_count_whole_in_the_steady_window() {
        // Two slots, 10 tokens in one chunk each 100 ms, no running usage.
        let requests: Vec<Traced> = (0..20)
            .map(|seq| {
                let sent = u64::from(seq / 2) * 100 + u64::from(seq % 2) * 5;
                let trace = ChunkTrace {
                    gaps_us: vec![100_000],
                    tokens: vec![],
                };
                let mut record = record(seq, sent, 100, 100, 10);
                record.chunks = 1;
                (record, Some(trace))
            })
            .collect();
        let kind = StageKind::ClosedLoop { concurrency: 2 };
        let steady = stage_figures(&asked(kind), &requests).steady_output_tps;
        // A window of 895 ms holds 17 or 18 of the replies.
        let steady = steady.expect("a steady figure");
        assert!((185.0..=205.0).contains(&steady), "{steady}");
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
    fn a_first_chunk_without_a_count_is_approximate() {
        let mut late = record(0, 0, 50, 140, 10);
        late.chunks = 5;
        late.first_chunk_tokens = Some(0);
        let figures = request_figures(&late).expect("figures");
        assert!(figures.tpot_approximate);
        close(figures.tpot_ms, 90.0 / 9.0);
    }

    #[test]
    fn low_concurrency_is_measured_against_what_can_be_reached() {
        let flagged = |requests: u32, concurrency: u32| {
            // Strictly one after the other, whatever was asked.
            let requests: Vec<Traced> = (0..requests)
                .map(|seq| (record(seq, u64::from(seq) * 100, 10, 100, 10), None))
                .collect();
            let kind = StageKind::ClosedLoop { concurrency };
            stage_figures(&asked(kind), &requests)
                .flags
                .iter()
                .any(|flag| matches!(flag, StageFlag::LowConcurrency { .. }))
        };
        assert!(flagged(8, 2), "one of two");
        assert!(flagged(4, 8), "one of the two that four requests can reach");
        assert!(!flagged(3, 8), "three requests can reach one");
        assert!(!flagged(8, 1));
    }

    proptest! {
        #[test]
        fn weights_mean_as_if_written_out(
            values in prop::collection::vec((-1e6_f64..1e6, 0_u64..60), 0..20),
        ) {
            let written: Vec<f64> = values
                .iter()
                .flat_map(|(value, weight)| std::iter::repeat_n(*value, *weight as usize))
                .collect();
            let (short, long) = (Distribution::weighted(values), Distribution::of(written));
            prop_assert_eq!(short.count, long.count);
            for (short, long) in [
                (short.min, long.min),
                (short.p50, long.p50),
                (short.p90, long.p90),
                (short.p95, long.p95),
                (short.p99, long.p99),
                (short.max, long.max),
            ] {
                prop_assert_eq!(short, long);
            }
            prop_assert_eq!(short.mean.is_some(), long.mean.is_some());
            if let (Some(short), Some(long)) = (short.mean, long.mean) {
                prop_assert!((short - long).abs() < 1e-6, "{} {}", short, long);
            }
        }

        #[test]
        fn percentiles_rise_and_stay_within(
            mut values in prop::collection::vec(-1e6_f64..1e6, 1..200),
            one in 0.0_f64..=100.0,
            other in 0.0_f64..=100.0,
        ) {
            values.sort_by(f64::total_cmp);
            let at = |p| percentile(&values, p).expect("a value");
            let (low, high) = (at(one.min(other)), at(one.max(other)));
            // Interpolating may round in the last digit.
            prop_assert!(low <= high + 1e-9);
            prop_assert!(values[0] <= low && high <= values[values.len() - 1] + 1e-9);
        }

        #[test]
        fn the_order_of_requests_changes_no_figure(
            order in Just((0..24_u32).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let request = |seq: u32| -> Traced {
                let trace = ChunkTrace {
                    gaps_us: vec![8_000 + seq; 10],
                    tokens: vec![1; 10],
                };
                let e2el = 80 + u64::from(seq % 3);
                let sent = u64::from(seq / 2) * 90 + u64::from(seq % 2) * 5;
                (record(seq, sent, 8, e2el, 10), Some(trace))
            };
            let kind = StageKind::ClosedLoop { concurrency: 2 };
            let asked = asked(kind);
            let sorted: Vec<Traced> = (0..24).map(request).collect();
            let shuffled: Vec<Traced> = order.into_iter().map(request).collect();
            prop_assert_eq!(
                stage_figures(&asked, &sorted),
                stage_figures(&asked, &shuffled)
            );
        }
    }
}
