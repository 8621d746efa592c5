//! What the engine says of itself in numbers: counters, gauges, histograms.

use std::fmt::Write as _;

use crate::{
    config::{Engine, SimConfig},
    pacer::{Emission, Ns},
};

const LATENCY_BOUNDS: [f64; 21] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0,
];
const TOKEN_BOUNDS: [f64; 11] = [
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0,
];
/// Tokens the cache can hold. Invented.
pub(crate) const CACHE_TOKENS: u64 = 412_345;

#[derive(Debug, Clone)]
struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    fn add(&mut self, value: f64, times: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(at) {
            *count += times;
        }
        self.sum += value * times as f64;
    }

    fn write(&self, out: &mut String, name: &str, labels: &str) {
        let _ = writeln!(out, "# TYPE {name} histogram");
        let mut total = 0;
        let bounds = self.bounds.iter().map(|bound| format!("{bound:?}"));
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&self.counts) {
            total += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {total}.0");
        }
        let _ = writeln!(out, "{name}_count{{{labels}}} {total}.0");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {:?}", self.sum);
    }
}

/// A finished request's times, for the histograms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    pub(crate) received: Ns,
    pub(crate) first: Ns,
    pub(crate) last: Ns,
    pub(crate) tokens: u32,
    pub(crate) reason: &'static str,
}

/// All counts since the start.
#[derive(Debug, Clone)]
pub(crate) struct Stats {
    pub(crate) running: u32,
    pub(crate) waiting: u32,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) generated: u64,
    /// Of finished requests alone: SGLang counts no others.
    generated_by_finished: u64,
    finished: [u64; 3],
    drafts: u64,
    drafted: u64,
    accepted: u64,
    positions: Vec<u64>,
    verify_steps: u64,
    steps: u64,
    /// Verify steps and tokens since start or flush, as last published.
    pub(crate) accept_length: Option<f64>,
    window: (u64, u64),
    /// Tokens since the last log line, and when that was.
    since_log: (u64, Ns),
    pub(crate) throughput: f64,
    ttft: Histogram,
    itl: Histogram,
    tpot: Histogram,
    e2e: Histogram,
    step_tokens: Histogram,
}

const REASONS: [&str; 3] = ["stop", "length", "abort"];

impl Stats {
    pub(crate) fn new(config: &SimConfig) -> Self {
        let positions = config.speculation.map_or(0, |spec| spec.drafted as usize);
        Self {
            running: 0,
            waiting: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            generated: 0,
            generated_by_finished: 0,
            finished: [0; 3],
            drafts: 0,
            drafted: 0,
            accepted: 0,
            positions: vec![0; positions],
            verify_steps: 0,
            steps: 0,
            accept_length: None,
            window: (0, 0),
            since_log: (0, 0),
            throughput: 0.0,
            ttft: Histogram::new(&LATENCY_BOUNDS),
            itl: Histogram::new(&LATENCY_BOUNDS),
            tpot: Histogram::new(&LATENCY_BOUNDS),
            e2e: Histogram::new(&LATENCY_BOUNDS),
            step_tokens: Histogram::new(&TOKEN_BOUNDS),
        }
    }

    /// Counts a step's tokens. True if a line for the engine's log is due.
    pub(crate) fn step(&mut self, emissions: &[Emission], interval: u64) -> bool {
        let mut tokens = 0;
        for emission in emissions {
            tokens += u64::from(emission.tokens);
            if let Some(verify) = emission.verify {
                self.drafts += 1;
                self.drafted += u64::from(verify.drafted);
                self.accepted += u64::from(verify.accepted);
                for position in self.positions.iter_mut().take(verify.accepted as usize) {
                    *position += 1;
                }
                self.window.0 += 1;
                self.window.1 += u64::from(verify.accepted) + 1;
            }
        }
        self.generated += tokens;
        self.since_log.0 += tokens;
        self.steps += 1;
        self.step_tokens.add(tokens as f64, 1);
        let due = self.steps.is_multiple_of(interval);
        if let (true, Some(emission)) = (due, emissions.first()) {
            let seconds = (emission.at - self.since_log.1) as f64 / 1e9;
            if seconds > 0.0 {
                self.throughput = self.since_log.0 as f64 / seconds;
            }
            self.since_log = (0, emission.at);
            if self.window.0 > 0 {
                self.accept_length = Some(self.window.1 as f64 / self.window.0 as f64);
            }
        }
        due
    }

    /// A gap between two chunks of `tokens` tokens.
    pub(crate) fn gap(&mut self, gap: Ns, tokens: u32) {
        let each = gap as f64 / 1e9 / f64::from(tokens.max(1));
        self.itl.add(each, u64::from(tokens));
    }

    pub(crate) fn finish(&mut self, request: Finished, verify_steps: u64) {
        self.verify_steps += verify_steps;
        self.generated_by_finished += u64::from(request.tokens);
        if let Some(at) = REASONS.iter().position(|reason| *reason == request.reason)
            && let Some(count) = self.finished.get_mut(at)
        {
            *count += 1;
        }
        if request.reason == "abort" {
            return;
        }
        let seconds = |from: Ns, to: Ns| to.saturating_sub(from) as f64 / 1e9;
        self.ttft.add(seconds(request.received, request.first), 1);
        self.e2e.add(seconds(request.received, request.last), 1);
        if request.tokens > 1 {
            let decode = seconds(request.first, request.last);
            self.tpot.add(decode / f64::from(request.tokens - 1), 1);
        }
    }

    /// The cache was flushed: acceptance counts from now.
    pub(crate) fn flush(&mut self) {
        self.window = (0, 0);
        self.accept_length = None;
    }

    /// The accept rate as this version of the engine defines it.
    pub(crate) fn accept_rate(&self, config: &SimConfig) -> Option<f64> {
        let drafted = f64::from(config.speculation?.drafted);
        let length = self.accept_length?;
        Some(if config.old_accept_rate() {
            length / (drafted + 1.0)
        } else {
            (length - 1.0) / drafted
        })
    }

    /// The line an engine logs every so many steps.
    pub(crate) fn log_line(&self, config: &SimConfig) -> String {
        match config.engine {
            Engine::Sglang => {
                let spec = match (self.accept_length, self.accept_rate(config)) {
                    (Some(length), Some(rate)) => {
                        format!("accept len: {length:.2}, accept rate: {rate:.2}, ")
                    }
                    _ => String::new(),
                };
                format!(
                    "[simulated] Decode batch, #running-req: {}, {spec}cuda graph: {}, gen throughput (token/s): {:.2}, #queue-req: {}",
                    self.running,
                    if config.eager { "False" } else { "True" },
                    self.throughput,
                    self.waiting
                )
            }
            Engine::Vllm => format!(
                "[simulated] Avg generation throughput: {:.1} tokens/s, Running: {} reqs, Waiting: {} reqs",
                self.throughput, self.running, self.waiting
            ),
        }
    }

    /// The text of `/metrics`.
    pub(crate) fn prometheus(&self, config: &SimConfig) -> String {
        let mut out = String::from(
            "# HELP tokdyno_simulated Whether these figures come from a stand-in engine.\n\
             # TYPE tokdyno_simulated gauge\ntokdyno_simulated 1.0\n",
        );
        match config.engine {
            Engine::Vllm => self.vllm_metrics(config, &mut out),
            Engine::Sglang => self.sglang_metrics(config, &mut out),
        }
        out
    }

    fn vllm_metrics(&self, config: &SimConfig, out: &mut String) {
        let labels = format!("engine=\"0\",model_name={:?}", config.name());
        let mut put = |name: &str, kind: &str, extra: &str, value: f64| {
            put(
                out,
                &format!("vllm:{name}"),
                kind,
                &format!("{labels}{extra}"),
                value,
            );
        };
        put("num_requests_running", "gauge", "", self.running.into());
        put("num_requests_waiting", "gauge", "", self.waiting.into());
        let used = self.used_share();
        put("kv_cache_usage_perc", "gauge", "", used);
        let looked_up = if config.prefix_cache {
            self.prompt_tokens
        } else {
            0
        };
        put(
            "prefix_cache_queries_total",
            "counter",
            "",
            looked_up as f64,
        );
        put(
            "prefix_cache_hits_total",
            "counter",
            "",
            self.cached_tokens as f64,
        );
        put("num_preemptions_total", "counter", "", 0.0);
        put(
            "prompt_tokens_total",
            "counter",
            "",
            self.prompt_tokens as f64,
        );
        put(
            "prompt_tokens_cached_total",
            "counter",
            "",
            self.cached_tokens as f64,
        );
        put(
            "generation_tokens_total",
            "counter",
            "",
            self.generated as f64,
        );
        for (reason, count) in REASONS.iter().zip(self.finished) {
            let extra = format!(",finished_reason=\"{reason}\"");
            put("request_success_total", "counter", &extra, count as f64);
        }
        if config.speculation.is_some() {
            put(
                "spec_decode_num_drafts_total",
                "counter",
                "",
                self.drafts as f64,
            );
            put(
                "spec_decode_num_draft_tokens_total",
                "counter",
                "",
                self.drafted as f64,
            );
            put(
                "spec_decode_num_accepted_tokens_total",
                "counter",
                "",
                self.accepted as f64,
            );
            for (position, count) in self.positions.iter().enumerate() {
                let extra = format!(",position=\"{position}\"");
                put(
                    "spec_decode_num_accepted_tokens_per_pos_total",
                    "counter",
                    &extra,
                    *count as f64,
                );
            }
        }
        self.step_tokens
            .write(out, "vllm:iteration_tokens_total", &labels);
        self.latencies("vllm:", &labels, out);
    }

    fn sglang_metrics(&self, config: &SimConfig, out: &mut String) {
        let engine = format!("engine_type=\"unified\",model_name={:?}", config.name());
        let scheduler = format!("{engine},moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"");
        let mut gauge = |name: &str, value: f64| {
            put(out, &format!("sglang:{name}"), "gauge", &scheduler, value);
        };
        gauge("num_running_reqs", self.running.into());
        gauge("num_queue_reqs", self.waiting.into());
        gauge("num_paused_reqs", 0.0);
        gauge("num_retracted_reqs", 0.0);
        gauge("token_usage", self.used_share());
        gauge("num_used_tokens", self.used_share() * CACHE_TOKENS as f64);
        gauge("max_total_num_tokens", CACHE_TOKENS as f64);
        gauge("gen_throughput", self.throughput);
        gauge("is_cuda_graph", f64::from(u8::from(!config.eager)));
        let share = self.cached_tokens as f64 / (self.prompt_tokens.max(1)) as f64;
        gauge("cache_hit_rate", share);
        if let Some(speculation) = config.speculation {
            gauge("spec_accept_length", self.accept_length.unwrap_or(0.0));
            gauge("spec_accept_rate", self.accept_rate(config).unwrap_or(0.0));
            gauge("spec_num_steps", speculation.drafted.into());
            gauge("spec_num_draft_tokens", f64::from(speculation.drafted + 1));
        }
        let streaming = format!("{engine},is_streaming=\"True\"");
        let mut counter = |name: &str, labels: &str, value: u64| {
            put(
                out,
                &format!("sglang:{name}"),
                "counter",
                labels,
                value as f64,
            );
        };
        if config.speculation.is_some() {
            counter("spec_verify_calls_total", &engine, self.verify_steps);
        }
        counter("prompt_tokens_total", &streaming, self.prompt_tokens);
        let generated = self.generated_by_finished;
        counter("generation_tokens_total", &streaming, generated);
        counter("num_requests_total", &streaming, self.finished.iter().sum());
        counter("num_retracted_requests_total", &scheduler, 0);
        let cached = format!("{engine},cache_source=\"device\"");
        counter("cached_tokens_total", &cached, self.cached_tokens);
        self.latencies("sglang:", &streaming, out);
    }

    fn latencies(&self, prefix: &str, labels: &str, out: &mut String) {
        for (name, histogram) in [
            ("time_to_first_token_seconds", &self.ttft),
            ("inter_token_latency_seconds", &self.itl),
            ("request_time_per_output_token_seconds", &self.tpot),
            ("e2e_request_latency_seconds", &self.e2e),
        ] {
            histogram.write(out, &format!("{prefix}{name}"), labels);
        }
    }

    /// Share of the cache in use, at 150 tokens a running request. Invented.
    fn used_share(&self) -> f64 {
        (f64::from(self.running) * 150.0 / CACHE_TOKENS as f64).min(1.0)
    }
}

fn put(out: &mut String, name: &str, kind: &str, labels: &str, value: f64) {
    let heading = format!("# TYPE {name} {kind}\n");
    if !out.contains(&heading) {
        out.push_str(&heading);
    }
    let _ = writeln!(out, "{name}{{{labels}}} {value:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::tests::{sglang, vllm},
        pacer::{Job, Pacer, Ticket},
    };

    /// The value of a sample; its labels do not matter.
    fn value(text: &str, name: &str) -> f64 {
        text.lines()
            .find(|line| line.split('{').next() == Some(name))
            .and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// One request of 256 tokens, from the first to the last step.
    fn one_request(config: &SimConfig) -> Stats {
        let (mut pacer, mut stats) = (Pacer::new(config), Stats::new(config));
        let job = Job {
            prefill_tokens: 19,
            tokens: 256,
            delay_ns: 0,
        };
        pacer.submit(Ticket(0), 0, job);
        let (mut emissions, mut verified) = (Vec::new(), 0);
        while pacer.next_deadline().is_some() {
            emissions.clear();
            pacer.advance(&mut emissions);
            verified += emissions.iter().filter(|one| one.verify.is_some()).count() as u64;
            stats.step(&emissions, 1);
        }
        let finished = Finished {
            received: 0,
            first: 1,
            last: 2,
            tokens: 256,
            reason: "length",
        };
        stats.finish(finished, verified);
        stats
    }

    #[test]
    fn sglang_counts_tokens_and_verify_steps_of_finished_requests() {
        let config = sglang(&[
            "--speculative-algorithm",
            "EAGLE3",
            "--speculative-draft-model-path",
            "AQ-MedAI/x",
        ]);
        let text = one_request(&config).prometheus(&config);
        assert_eq!(value(&text, "sglang:generation_tokens_total"), 256.0);
        assert_eq!(value(&text, "sglang:spec_verify_calls_total"), 152.0);
        assert_eq!(value(&text, "sglang:num_requests_total"), 1.0);
        assert_eq!(value(&text, "sglang:num_retracted_requests_total"), 0.0);
        // Under way, nothing is counted yet.
        let mut stats = Stats::new(&config);
        let mut pacer = Pacer::new(&config);
        let job = Job {
            prefill_tokens: 19,
            tokens: 256,
            delay_ns: 0,
        };
        pacer.submit(Ticket(0), 0, job);
        let mut emissions = Vec::new();
        while emissions.is_empty() {
            pacer.advance(&mut emissions);
        }
        stats.step(&emissions, 1);
        let text = stats.prometheus(&config);
        assert_eq!(value(&text, "sglang:generation_tokens_total"), 0.0);
    }

    #[test]
    fn vllm_counts_drafts_by_place() {
        let config = vllm(&[
            "--speculative-config",
            r#"{"method":"eagle3","model":"d","num_speculative_tokens":3}"#,
        ]);
        let text = one_request(&config).prometheus(&config);
        let drafts = value(&text, "vllm:spec_decode_num_drafts_total");
        assert_eq!(drafts, 175.0);
        assert_eq!(
            value(&text, "vllm:spec_decode_num_draft_tokens_total"),
            3.0 * drafts
        );
        let places: f64 = text
            .lines()
            .filter(|line| line.starts_with("vllm:spec_decode_num_accepted_tokens_per_pos_total{"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum();
        assert_eq!(
            places,
            value(&text, "vllm:spec_decode_num_accepted_tokens_total")
        );
    }

    #[test]
    fn what_is_not_looked_up_is_not_counted() {
        let config = vllm(&["--no-enable-prefix-caching"]);
        let mut stats = Stats::new(&config);
        stats.prompt_tokens = 19;
        let text = stats.prometheus(&config);
        assert_eq!(value(&text, "vllm:prefix_cache_queries_total"), 0.0);
        assert_eq!(value(&text, "vllm:prompt_tokens_total"), 19.0);
    }

    #[test]
    fn the_accept_rate_follows_the_versions_definition() {
        let drafter = ["--speculative-draft-model-path", "AQ-MedAI/x"];
        let rate = |drafter: &[&str], version: &str| {
            let flags = ["--speculative-algorithm", "EAGLE3", "--sim-engine-version"];
            let config = sglang(&[&flags[..], &[version], drafter].concat());
            let (mut pacer, mut stats) = (Pacer::new(&config), Stats::new(&config));
            let job = Job {
                prefill_tokens: 19,
                tokens: 256,
                delay_ns: 0,
            };
            pacer.submit(Ticket(0), 0, job);
            let mut emissions = Vec::new();
            while pacer.next_deadline().is_some() {
                emissions.clear();
                pacer.advance(&mut emissions);
                stats.step(&emissions, 1);
            }
            stats.accept_rate(&config).expect("a rate")
        };
        assert!((rate(&drafter, "0.5.9") - 0.42).abs() < 0.005);
        assert!((rate(&drafter, "0.5.23") - 0.226).abs() < 0.005);
        assert!((rate(&[], "0.5.9") - 0.25).abs() < 1e-9);
        assert!(rate(&[], "0.5.23").abs() < 1e-9);
    }
}
