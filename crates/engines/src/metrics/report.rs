//! From readings to what happened between them.

use tokdyno_domain::{
    conditions::{EngineReport, SAME_START_S, Speculation},
    engine::EngineKind,
};

use super::kinds::{Readings, Summed};

/// What an engine did from `before` to `after`, with the readings in between.
///
/// Where a counter fell, the engine was started anew or its counts were cleared:
/// then no difference means anything, and there is none. The most requests it works
/// on at once is not among its metrics; whoever knows it adds it.
///
/// Speculation. vLLM counts drafts, drafted and accepted tokens. SGLang counts
/// verify steps and generated tokens alone, both when a request is finished, so
/// accepted = Δ generated − Δ steps, which makes tokens per step what SGLang itself
/// calls the accept length. The first token of a request, made without a verify
/// step, is among the accepted: one in a whole answer. An engine that tells only
/// its mean accept length (SGLang's server info) has told no counts, and there is no
/// speculation here.
#[must_use]
pub fn report(before: &Readings, during: &[Readings], after: &Readings) -> EngineReport {
    let told = |of: fn(&Readings) -> Option<f64>| during.iter().filter_map(of);
    let most = |of| told(of).reduce(f64::max);
    let running: Vec<f64> = told(|readings| readings.running).collect();
    let mut report = EngineReport {
        samples: u32::try_from(during.len()).unwrap_or(u32::MAX),
        running_mean: (!running.is_empty())
            .then(|| running.iter().sum::<f64>() / running.len() as f64),
        running_max: running.iter().copied().reduce(f64::max),
        waiting_max: most(|readings| readings.waiting),
        // A share: what is none says nothing.
        kv_use_max: most(|readings| readings.kv_use.filter(|share| (0.0..=1.0).contains(share))),
        counters_fell: {
            let all = std::iter::once(before).chain(during);
            let next = during.iter().chain(std::iter::once(after));
            all.zip(next).any(|(one, next)| counters_fell(one, next))
        },
        generated_before: before.generation_tokens.and_then(whole),
        generated_after: after.generation_tokens.and_then(whole),
        process_started_s: after.process_started_s,
        ..EngineReport::default()
    };
    if report.counters_fell {
        return report;
    }
    let count = |of: fn(&Readings) -> Option<f64>| whole(rise(of(before), of(after))?);
    report.finished = count(|readings| readings.finished);
    report.prompt_tokens = count(|readings| readings.prompt_tokens);
    report.generation_tokens = count(|readings| readings.generation_tokens);
    report.prefix_queries = count(|readings| readings.prefix_queries);
    report.prefix_hits = count(|readings| readings.prefix_hits);
    report.preemptions = count(|readings| readings.preemptions);
    report.ttft_mean_ms = mean_ms(before.ttft, after.ttft);
    report.e2el_mean_ms = mean_ms(before.e2el, after.e2el);
    report.speculation = speculation(before, after);
    report
}

/// Is any counter of `after` below that of `before`? Also if it is another engine, or
/// another process of it.
#[must_use]
pub fn counters_fell(before: &Readings, after: &Readings) -> bool {
    let counters = |readings: &Readings| {
        [
            readings.finished,
            readings.prompt_tokens,
            readings.generation_tokens,
            readings.prefix_queries,
            readings.prefix_hits,
            readings.preemptions,
            readings.ttft.count,
            readings.e2el.count,
            readings.spec_steps,
            readings.spec_drafted,
            readings.spec_accepted,
        ]
    };
    let moved = before
        .process_started_s
        .zip(after.process_started_s)
        .is_some_and(|(then, now)| (now - then).abs() > SAME_START_S);
    moved
        || before.kind != after.kind
        || counters(before)
            .into_iter()
            .zip(counters(after))
            .any(|pair| matches!(pair, (Some(before), Some(after)) if after < before))
}

fn speculation(before: &Readings, after: &Readings) -> Option<Speculation> {
    let steps = rise(before.spec_steps, after.spec_steps)?;
    if after.kind == EngineKind::Sglang {
        // Without a verify step it does not speculate: all that was generated would
        // pass for accepted.
        if steps <= 0.0 {
            return None;
        }
        let generated = rise(before.generation_tokens, after.generation_tokens)?;
        return Some(Speculation {
            steps: whole(steps)?,
            drafted: None,
            accepted: whole((generated - steps).max(0.0))?,
            accepted_at: Vec::new(),
        });
    }
    let accepted_at = after.spec_accepted_at.iter().enumerate();
    let accepted_at = accepted_at.map(|(place, now)| {
        let then = before.spec_accepted_at.get(place).copied();
        whole((now - then.unwrap_or(0.0)).max(0.0)).unwrap_or(0)
    });
    Some(Speculation {
        steps: whole(steps)?,
        drafted: rise(before.spec_drafted, after.spec_drafted).and_then(whole),
        accepted: rise(before.spec_accepted, after.spec_accepted).and_then(whole)?,
        accepted_at: accepted_at.collect(),
    })
}

/// A counter that was not there yet began at zero: some appear with their first
/// event.
fn rise(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    after.map(|after| after - before.unwrap_or(0.0))
}

fn mean_ms(before: Summed, after: Summed) -> Option<f64> {
    let count = rise(before.count, after.count).filter(|count| *count > 0.0)?;
    let mean = rise(before.sum, after.sum)? / count * 1000.0;
    (mean.is_finite() && mean >= 0.0).then_some(mean)
}

/// Counters are written as floating-point numbers.
fn whole(count: f64) -> Option<u64> {
    // 2^53: up to here each whole number is one of them.
    (0.0..=9_007_199_254_740_992.0)
        .contains(&count)
        .then(|| count.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vllm(body: &str) -> Readings {
        let text: String = body.lines().map(|line| format!("vllm:{line}\n")).collect();
        Readings::of(&text).expect("readings")
    }

    fn sglang(body: &str) -> Readings {
        let text: String = body
            .lines()
            .map(|line| format!("sglang:{line}\n"))
            .collect();
        Readings::of(&text).expect("readings")
    }

    #[test]
    fn differences_of_counters_and_extremes_of_gauges() {
        let before = vllm(
            "num_requests_running 0\nrequest_success_total 10\nprompt_tokens_total 190\n\
             generation_tokens_total 2560\nprefix_cache_queries_total 190\n\
             prefix_cache_hits_total 0\nnum_preemptions_total 1\n\
             time_to_first_token_seconds_sum 1.0\ntime_to_first_token_seconds_count 10\n\
             spec_decode_num_drafts_total 100\nspec_decode_num_draft_tokens_total 300\n\
             spec_decode_num_accepted_tokens_total 45\n\
             spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 45",
        );
        let during = [
            vllm("num_requests_running 4\nnum_requests_waiting 2\nkv_cache_usage_perc 0.1"),
            vllm("num_requests_running 8\nnum_requests_waiting 0\nkv_cache_usage_perc 0.4"),
        ];
        let after = vllm(
            "num_requests_running 0\nrequest_success_total 30\nprompt_tokens_total 570\n\
             generation_tokens_total 7680\nprefix_cache_queries_total 570\n\
             prefix_cache_hits_total 95\nnum_preemptions_total 1\n\
             time_to_first_token_seconds_sum 2.0\ntime_to_first_token_seconds_count 30\n\
             spec_decode_num_drafts_total 200\nspec_decode_num_draft_tokens_total 600\n\
             spec_decode_num_accepted_tokens_total 105\n\
             spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 95\n\
             spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 10",
        );
        let told = report(&before, &during, &after);
        assert_eq!(told.samples, 2);
        assert_eq!(
            (told.running_mean, told.running_max),
            (Some(6.0), Some(8.0))
        );
        assert_eq!((told.waiting_max, told.kv_use_max), (Some(2.0), Some(0.4)));
        assert_eq!(told.finished, Some(20));
        assert_eq!(told.prompt_tokens, Some(380));
        assert_eq!(told.generation_tokens, Some(5120));
        assert_eq!(told.prefix_hit_rate(), Some(0.25));
        assert_eq!(told.preemptions, Some(0));
        assert_eq!(told.ttft_mean_ms, Some(50.0));
        // Not told.
        assert_eq!((told.e2el_mean_ms, told.max_running), (None, None));
        let speculation = told.speculation.expect("speculation");
        assert_eq!(speculation.accept_length(), Some(1.6));
        assert_eq!(speculation.accept_rate(), Some(0.2));
        assert_eq!(speculation.accepted_at, [50, 10]);
        assert!(!told.counters_fell);
    }

    #[test]
    fn sglangs_accept_length_is_tokens_per_verify_step() {
        let before = sglang("spec_verify_calls_total 10\ngeneration_tokens_total 16");
        let after = sglang("spec_verify_calls_total 162\ngeneration_tokens_total 272");
        let told = report(&before, &[], &after).speculation.expect("counts");
        assert_eq!((told.steps, told.accepted), (152, 104));
        assert_eq!(told.accept_length(), Some(256.0 / 152.0));
        assert_eq!((told.drafted, told.accept_rate()), (None, None));
        // Counted, and never done.
        let after = sglang("spec_verify_calls_total 10\ngeneration_tokens_total 272");
        assert_eq!(report(&before, &[], &after).speculation, None);
        let gauge = sglang("spec_accept_length 1.68\ngeneration_tokens_total 272");
        assert_eq!(report(&gauge, &[], &gauge).speculation, None);
    }

    #[test]
    fn a_restart_leaves_no_difference() {
        let many = vllm("request_success_total 30\nprompt_tokens_total 570");
        let few = vllm("request_success_total 2\nprompt_tokens_total 600\nnum_requests_running 3");
        for told in [
            report(&many, std::slice::from_ref(&few), &few),
            // Restarted in between, and caught up since.
            report(&many, std::slice::from_ref(&few), &many),
        ] {
            assert!(told.counters_fell);
            assert_eq!((told.finished, told.prompt_tokens), (None, None));
            assert_eq!(told.running_max, Some(3.0));
        }
        let other = sglang("num_requests_total 31");
        assert!(report(&many, &[], &other).counters_fell);
    }

    #[test]
    fn counters_that_appear_began_at_zero() {
        let before = sglang("num_running_reqs 0");
        let after = sglang("num_requests_total{is_streaming=\"true\"} 5\nprompt_tokens_total 95");
        let told = report(&before, &[], &after);
        assert_eq!((told.finished, told.prompt_tokens), (Some(5), Some(95)));
        assert_eq!((told.samples, told.running_mean), (0, None));
    }

    #[test]
    fn a_new_process_is_told_though_its_counters_are_higher() {
        let at = |started: &str, generated: u32| {
            let text = format!(
                "process_start_time_seconds {started}\nvllm:generation_tokens_total {generated}\n"
            );
            Readings::of(&text).expect("readings")
        };
        let same = report(&at("1.7e9", 5), &[], &at("1700000002", 9));
        assert_eq!(same.generation_tokens, Some(4));
        assert_eq!(
            (same.generated_before, same.generated_after),
            (Some(5), Some(9))
        );
        assert_eq!(same.process_started_s, Some(1_700_000_002.0));
        let another = report(&at("1.7e9", 5), &[], &at("1700000003", 9));
        assert!(another.counters_fell);
        assert_eq!(another.generation_tokens, None);
        assert_eq!(another.generated_after, Some(9));
        assert_eq!(Readings::of("process_start_time_seconds 1.7e9\n"), None);
    }
}
