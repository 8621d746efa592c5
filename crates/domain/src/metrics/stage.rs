//! From the requests of a stage to its figures.

use super::{
    NS_PER_S, Samples, StageAsked, StageFigures, StageFlag, Traced,
    invariants::{Checks, is_odd_prompt},
    peak::{peak_in_flight, peak_output_tps},
    request_figures,
    steady::steady_output_tps,
};
use crate::{
    conditions::StageConditions,
    goodput::{Bounds, Goodness, Goodput},
    prompts::PromptSet,
    workload::{StageKind, Workload},
};

/// The figures of a stage from its requests, in any order. Failed requests enter
/// counts and achieved concurrency, nothing else.
#[must_use]
pub fn stage_figures(asked: &StageAsked, requests: &[Traced]) -> StageFigures {
    let mut figures = StageFigures {
        requests: requests.len() as u64,
        ..Default::default()
    };
    let mut samples = Samples::default();
    let mut checks = Checks::default();
    let mut goodput = asked.goodput.map(Goodput::none_yet);
    let (mut first_sent, mut last_token, mut last_end) = (u64::MAX, 0_u64, 0_u64);
    let mut busy_ns = 0_u128;
    let mut coalesced = 0_u64;

    for traced in requests {
        let (record, trace) = traced;
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
        figures.output_tokens += u64::from(record.completion_tokens.unwrap_or(0));
        add(&mut figures.prompt_tokens, record.prompt_tokens);
        add(&mut figures.cached_tokens, record.cached_tokens);
        figures.chunks += u64::from(record.chunks);
        coalesced += u64::from(record.coalesced_chunks);
        if let Some(e2el) = record.e2el_ns {
            last_token = last_token.max(record.sent_ns.saturating_add(e2el));
        }
        let request = request_figures(record);
        checks.note(asked, traced, request.as_ref());
        if let Some(goodput) = &mut goodput {
            goodput.note(request.map(|request| goodput.bounds.judge(&request)));
        }
        if let Some(request) = &request {
            samples.push(record, request);
        }
        if let Some(trace) = trace {
            samples.push_gaps(record, trace);
        }
    }

    if figures.completed > 0 && last_token > first_sent {
        let seconds = (last_token - first_sent) as f64 / NS_PER_S;
        figures.duration_s = Some(seconds);
        figures.output_tps = Some(figures.output_tokens as f64 / seconds);
        figures.request_throughput = Some(figures.completed as f64 / seconds);
    }
    if last_end > first_sent && !requests.is_empty() {
        figures.achieved_concurrency = Some(busy_ns as f64 / (last_end - first_sent) as f64);
    }
    figures.coalesced_share =
        (figures.chunks > 0).then(|| coalesced as f64 / figures.chunks as f64);
    figures.goodput = goodput.map(|goodput| goodput.over(figures.duration_s));
    samples.summarise_into(&mut figures);
    figures.peak_output_tps = peak_output_tps(requests, figures.duration_s);
    figures.peak_in_flight = peak_in_flight(requests);
    figures.steady_output_tps = asked
        .kind
        .concurrency()
        .and_then(|slots| steady_output_tps(slots, requests, figures.e2el_ms.p50));
    figures.flags = checks.flags(asked, &figures);
    figures
}

/// All there is to say of a stage: its figures, with the flags that follow from its
/// requests, from the lengths of a trace's prompts, and from what went on around it.
#[must_use]
pub fn whole_stage(
    workload: &Workload,
    kind: StageKind,
    complete: bool,
    requests: &[Traced],
    conditions: &StageConditions,
) -> StageFigures {
    let asked = StageAsked::of(workload, kind, complete);
    let mut figures = stage_figures(&asked, requests);
    figures.heed_prompts(&workload.prompts, requests);
    figures.heed(&asked, conditions);
    figures
}

impl StageFigures {
    /// Flags the prompts whose length is not the one asked for, where every request
    /// asks for a length of its own (a trace). Sets that ask the same of all are
    /// looked at by [`stage_figures`].
    pub fn heed_prompts(&mut self, prompts: &PromptSet, requests: &[Traced]) {
        if !matches!(prompts, PromptSet::Trace { .. }) {
            return;
        }
        let odd = requests
            .iter()
            .filter(|(record, _)| record.is_success())
            .filter_map(|(record, _)| {
                let asked = prompts.asked_prompt_tokens(record.prompt)?;
                Some(is_odd_prompt(asked, record.prompt_tokens?))
            })
            .filter(|odd| *odd)
            .count() as u64;
        if odd > 0 {
            self.flag(StageFlag::PromptLengthMismatch {
                requests: odd,
                asked: None,
            });
        }
    }
}

impl Goodput {
    const fn none_yet(bounds: Bounds) -> Self {
        Self {
            bounds,
            good: 0,
            undefined: 0,
            requests_per_s: None,
        }
    }

    fn note(&mut self, goodness: Option<Goodness>) {
        match goodness {
            Some(Goodness::Met) => self.good += 1,
            Some(Goodness::Missed) => {}
            Some(Goodness::Undefined) | None => self.undefined += 1,
        }
    }

    fn over(self, duration_s: Option<f64>) -> Self {
        Self {
            requests_per_s: duration_s.map(|seconds| self.good as f64 / seconds),
            ..self
        }
    }
}

fn add(sum: &mut Option<u64>, value: Option<u32>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0) + u64::from(value));
    }
}

#[cfg(test)]
mod tests;
