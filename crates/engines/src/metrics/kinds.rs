//! The numbers of one reading, by the engines' own names.

use std::collections::BTreeMap;

use tokdyno_domain::engine::EngineKind;

use super::text::{Sample, samples};

/// Most places in a draft for which accepted tokens are kept.
const MAX_PLACES: usize = 64;
const VLLM: &str = "vllm:";
const SGLANG: &str = "sglang:";
/// As the Prometheus client of Python names it; absent where several processes share
/// their metrics.
const STARTED: &str = "process_start_time_seconds";

/// One look at an engine's metrics. What was not there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Readings {
    /// Whose names they had.
    pub kind: EngineKind,
    /// Requests it works on.
    pub running: Option<f64>,
    /// Requests in its queue.
    pub waiting: Option<f64>,
    /// Share of the KV cache in use, 0 to 1; of several engines or ranks, the fullest.
    pub kv_use: Option<f64>,
    /// Requests finished since its start.
    pub finished: Option<f64>,
    /// Prompt tokens taken in.
    pub prompt_tokens: Option<f64>,
    /// Tokens generated.
    pub generation_tokens: Option<f64>,
    /// Tokens looked up in the prefix cache. SGLang: all prompt tokens.
    pub prefix_queries: Option<f64>,
    /// Tokens found there.
    pub prefix_hits: Option<f64>,
    /// Requests thrown out of the KV cache (vLLM: preempted, SGLang: retracted).
    pub preemptions: Option<f64>,
    /// Times to first token by the engine's clock: their sum in seconds, their number.
    pub ttft: Summed,
    /// End-to-end latencies by the engine's clock: the same.
    pub e2el: Summed,
    /// Verify steps of speculative decoding.
    pub spec_steps: Option<f64>,
    /// Tokens drafted. SGLang does not count them.
    pub spec_drafted: Option<f64>,
    /// Drafted tokens accepted. SGLang does not count them.
    pub spec_accepted: Option<f64>,
    /// Of these, by place in the draft. SGLang does not count them.
    pub spec_accepted_at: Vec<f64>,
    /// When the process that answered began, in seconds since 1970-01-01 UTC.
    pub process_started_s: Option<f64>,
}

/// Sum and number of a histogram's observations.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summed {
    /// Of all observations.
    pub sum: Option<f64>,
    /// How many.
    pub count: Option<f64>,
}

impl Readings {
    /// Reads the text of `/metrics`. None if neither engine's numbers are in it.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let mut readings: Option<Self> = None;
        let mut ranks = Ranks::default();
        let mut started: Option<f64> = None;
        for sample in samples(text, &[VLLM, SGLANG, STARTED]) {
            // Not a number is no number; an engine without work may say so.
            if !sample.value.is_finite() {
                continue;
            }
            if sample.name == STARTED {
                started = Some(sample.value);
                continue;
            }
            let kind = if sample.name.starts_with(VLLM) {
                EngineKind::Vllm
            } else {
                EngineKind::Sglang
            };
            let readings = readings.get_or_insert_with(|| Self::none_of(kind));
            if kind == EngineKind::Vllm {
                readings.take_vllm(&sample);
            } else if !readings.take_sglang(&sample) {
                ranks.take(&sample);
            }
        }
        let mut readings = readings?;
        readings.process_started_s = started.filter(|at| *at > 0.0);
        readings.running = readings.running.or_else(|| ranks.sum(RUNNING));
        readings.waiting = readings.waiting.or_else(|| ranks.sum(QUEUED));
        readings.kv_use = readings.kv_use.or_else(|| ranks.most(USAGE));
        readings.preemptions = readings.preemptions.or_else(|| ranks.sum(RETRACTED));
        readings.spec_steps = readings.spec_steps.or_else(|| ranks.sum(VERIFIED));
        if readings.kind == EngineKind::Sglang {
            readings.prefix_queries = readings.prompt_tokens;
            readings.finished = readings.finished.or(readings.e2el.count);
        }
        Some(readings)
    }

    /// Is the engine at rest, as far as it tells?
    #[must_use]
    pub fn at_rest(&self) -> bool {
        self.running.unwrap_or(0.0) + self.waiting.unwrap_or(0.0) <= 0.0
    }

    fn none_of(kind: EngineKind) -> Self {
        Self {
            kind,
            running: None,
            waiting: None,
            kv_use: None,
            finished: None,
            prompt_tokens: None,
            generation_tokens: None,
            prefix_queries: None,
            prefix_hits: None,
            preemptions: None,
            ttft: Summed::default(),
            e2el: Summed::default(),
            spec_steps: None,
            spec_drafted: None,
            spec_accepted: None,
            spec_accepted_at: Vec::new(),
            process_started_s: None,
        }
    }

    fn take_vllm(&mut self, sample: &Sample<'_>) {
        let Some(name) = sample.name.strip_prefix(VLLM) else {
            return;
        };
        let place = match name {
            "num_requests_running" => &mut self.running,
            "num_requests_waiting" => &mut self.waiting,
            // The second is its name in older versions.
            "kv_cache_usage_perc" | "gpu_cache_usage_perc" => {
                return raise(&mut self.kv_use, sample.value);
            }
            "request_success_total" => &mut self.finished,
            "prompt_tokens_total" => &mut self.prompt_tokens,
            "generation_tokens_total" => &mut self.generation_tokens,
            "prefix_cache_queries_total" => &mut self.prefix_queries,
            "prefix_cache_hits_total" => &mut self.prefix_hits,
            "num_preemptions_total" => &mut self.preemptions,
            "time_to_first_token_seconds_sum" => &mut self.ttft.sum,
            "time_to_first_token_seconds_count" => &mut self.ttft.count,
            "e2e_request_latency_seconds_sum" => &mut self.e2el.sum,
            "e2e_request_latency_seconds_count" => &mut self.e2el.count,
            "spec_decode_num_drafts_total" => &mut self.spec_steps,
            "spec_decode_num_draft_tokens_total" => &mut self.spec_drafted,
            "spec_decode_num_accepted_tokens_total" => &mut self.spec_accepted,
            "spec_decode_num_accepted_tokens_per_pos_total" => {
                return self.take_place(sample);
            }
            _ => return,
        };
        add(place, sample.value);
    }

    fn take_place(&mut self, sample: &Sample<'_>) {
        let place = sample.label("position").and_then(|text| text.parse().ok());
        let Some(place) = place.filter(|place: &usize| *place < MAX_PLACES) else {
            return;
        };
        if self.spec_accepted_at.len() <= place {
            self.spec_accepted_at.resize(place + 1, 0.0);
        }
        if let Some(sum) = self.spec_accepted_at.get_mut(place) {
            *sum += sample.value;
        }
    }

    /// Takes what SGLang's front end counts. False for what its ranks count.
    fn take_sglang(&mut self, sample: &Sample<'_>) -> bool {
        let place = match sample.name.strip_prefix(SGLANG) {
            Some("num_requests_total") => &mut self.finished,
            Some("prompt_tokens_total") => &mut self.prompt_tokens,
            Some("generation_tokens_total") => &mut self.generation_tokens,
            Some("cached_tokens_total") => &mut self.prefix_hits,
            Some("time_to_first_token_seconds_sum") => &mut self.ttft.sum,
            Some("time_to_first_token_seconds_count") => &mut self.ttft.count,
            Some("e2e_request_latency_seconds_sum") => &mut self.e2el.sum,
            Some("e2e_request_latency_seconds_count") => &mut self.e2el.count,
            _ => return false,
        };
        add(place, sample.value);
        true
    }
}

const RUNNING: &str = "sglang:num_running_reqs";
const QUEUED: &str = "sglang:num_queue_reqs";
const USAGE: &str = "sglang:token_usage";
const RETRACTED: &str = "sglang:num_retracted_requests_total";
const VERIFIED: &str = "sglang:spec_verify_calls_total";

/// What SGLang's ranks report. Those of one data-parallel rank work on the same
/// requests, so the first of them speaks for all.
#[derive(Debug, Default)]
struct Ranks(BTreeMap<(&'static str, String), Spoken>);

#[derive(Debug)]
struct Spoken {
    /// Who speaks: pipeline, tensor and expert rank.
    rank: [u32; 3],
    /// With a row for each priority, the row for none of them is the whole.
    whole: bool,
    value: f64,
}

impl Ranks {
    fn take(&mut self, sample: &Sample<'_>) {
        let wanted = [RUNNING, QUEUED, USAGE, RETRACTED, VERIFIED];
        let Some(name) = wanted.into_iter().find(|name| *name == sample.name) else {
            return;
        };
        let rank = ["pp_rank", "tp_rank", "moe_ep_rank"].map(|label| {
            sample
                .label(label)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        });
        let replica = sample.label("dp_rank").unwrap_or_default().to_owned();
        let whole = sample.label("priority").is_none_or(str::is_empty);
        let spoken = Spoken {
            rank,
            whole,
            value: sample.value,
        };
        self.0
            .entry((name, replica))
            .and_modify(|before| before.hear(&spoken))
            .or_insert(spoken);
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = f64> + 'a {
        self.0
            .iter()
            .filter(move |((found, _), _)| *found == name)
            .map(|(_, spoken)| spoken.value)
    }

    fn sum(&self, name: &str) -> Option<f64> {
        self.of(name).reduce(|sum, value| sum + value)
    }

    fn most(&self, name: &str) -> Option<f64> {
        self.of(name).reduce(f64::max)
    }
}

impl Spoken {
    fn hear(&mut self, other: &Self) {
        let key = |spoken: &Self| (spoken.rank, !spoken.whole);
        if key(other) < key(self) {
            (self.rank, self.whole, self.value) = (other.rank, other.whole, other.value);
        } else if key(other) == key(self) {
            // The same rank under other labels: a part of its number.
            self.value += other.value;
        }
    }
}

fn add(place: &mut Option<f64>, value: f64) {
    *place = Some(place.unwrap_or(0.0) + value);
}

fn raise(place: &mut Option<f64>, value: f64) {
    *place = Some(place.map_or(value, |before| before.max(value)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VLLM_TEXT: &str = include_str!("../../data/vllm-metrics.txt");
    const SGLANG_TEXT: &str = include_str!("../../data/sglang-metrics.txt");

    #[test]
    fn vllm_sums_over_its_engines() {
        let readings = Readings::of(VLLM_TEXT).expect("readings");
        assert_eq!(readings.kind, EngineKind::Vllm);
        assert_eq!(readings.running, Some(12.0));
        assert_eq!(readings.waiting, Some(3.0));
        assert_eq!(readings.kv_use, Some(0.5));
        // All reasons, both engines.
        assert_eq!(readings.finished, Some(110.0));
        assert_eq!(readings.prompt_tokens, Some(2_090.0));
        assert_eq!(readings.generation_tokens, Some(28_160.0));
        assert_eq!(readings.prefix_queries, Some(2_090.0));
        assert_eq!(readings.prefix_hits, Some(160.0));
        assert_eq!(readings.preemptions, Some(2.0));
        assert_eq!(readings.ttft.sum, Some(8.25));
        assert_eq!(readings.ttft.count, Some(110.0));
        assert_eq!(readings.e2el.sum, Some(330.0));
        assert_eq!(readings.spec_steps, Some(1_000.0));
        assert_eq!(readings.spec_drafted, Some(3_000.0));
        assert_eq!(readings.spec_accepted, Some(450.0));
        assert_eq!(readings.spec_accepted_at, [320.0, 100.0, 30.0]);
        assert!(!readings.at_rest());
    }

    #[test]
    fn of_sglangs_ranks_the_first_of_each_replica_counts() {
        let readings = Readings::of(SGLANG_TEXT).expect("readings");
        assert_eq!(readings.kind, EngineKind::Sglang);
        // Replica 0: rank 0 says 8, rank 1 the same. Replica 1: its first rank is 2.
        assert_eq!(readings.running, Some(14.0));
        assert_eq!(readings.waiting, Some(5.0));
        assert_eq!(readings.kv_use, Some(0.31));
        assert_eq!(readings.preemptions, Some(4.0));
        // Streamed and not streamed.
        assert_eq!(readings.finished, Some(50.0));
        assert_eq!(readings.prompt_tokens, Some(950.0));
        assert_eq!(readings.generation_tokens, Some(12_800.0));
        assert_eq!(readings.prefix_queries, Some(950.0));
        assert_eq!(readings.prefix_hits, Some(190.0));
        assert_eq!(readings.spec_steps, Some(7_600.0));
        assert_eq!(readings.spec_accepted, None);
        assert_eq!(readings.ttft.count, Some(50.0));
        assert_eq!(readings.e2el.sum, Some(180.0));
    }

    #[test]
    fn other_texts_are_no_readings() {
        for text in [
            "",
            "<html>not found</html>",
            "go_goroutines 8\npython_info{version=\"3\"} 1\n",
            "vllm:num_requests_running NaN\n",
        ] {
            assert_eq!(Readings::of(text), None, "{text}");
        }
    }

    #[test]
    fn an_engine_that_counts_nothing_is_known_all_the_same() {
        let readings = Readings::of("vllm:cache_config_info{engine=\"0\"} 1.0\n").expect("some");
        assert_eq!(readings.kind, EngineKind::Vllm);
        assert_eq!((readings.running, readings.finished), (None, None));
    }

    #[test]
    fn the_row_of_all_priorities_is_the_whole() {
        let text = "sglang:num_queue_reqs{priority=\"1\",tp_rank=\"0\"} 2\n\
            sglang:num_queue_reqs{priority=\"\",tp_rank=\"0\"} 5\n\
            sglang:num_queue_reqs{priority=\"2\",tp_rank=\"0\"} 3\n";
        assert_eq!(Readings::of(text).expect("some").waiting, Some(5.0));
        let parts =
            "sglang:num_queue_reqs{priority=\"1\"} 2\nsglang:num_queue_reqs{priority=\"2\"} 3\n";
        assert_eq!(Readings::of(parts).expect("some").waiting, Some(5.0));
    }

    proptest! {
        #[test]
        fn cut_texts_are_survived(cut in 0..VLLM_TEXT.len(), other in 0..SGLANG_TEXT.len()) {
            let text = format!("{}{}", &VLLM_TEXT[..cut], &SGLANG_TEXT[other..]);
            if let Some(readings) = Readings::of(&text) {
                prop_assert!(readings.spec_accepted_at.len() <= MAX_PLACES);
            }
        }
    }
}
