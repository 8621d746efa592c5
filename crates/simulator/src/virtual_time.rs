//! The same scheduler without a clock: what an ideal client would see of an
//! engine whose replies take no time to travel.

use std::collections::BTreeMap;

use tokdyno_domain::{
    metrics::{StageAsked, Traced},
    record::{ChunkTrace, RequestRecord, TokenCount},
    workload::StageKind,
};

use crate::{
    config::SimConfig,
    pacer::{Job, Ns, Pacer, Ticket},
};

/// A closed loop: so many requests at once, the next sent when one ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedLoop {
    /// Requests in flight; 1 is single stream.
    pub concurrency: u32,
    /// Requests in all.
    pub requests: u32,
    /// Prompt tokens of each.
    pub prompt_tokens: u32,
    /// Completion tokens of each.
    pub output_tokens: u32,
}

impl ClosedLoop {
    /// The founding conditions at this concurrency: 512 requests of 256 tokens,
    /// or at single stream three.
    #[must_use]
    pub const fn founding(concurrency: u32) -> Self {
        use crate::model::founding::{OUTPUT_TOKENS, PROMPT_TOKENS, REQUESTS};
        Self {
            concurrency,
            requests: if concurrency == 1 { 3 } else { REQUESTS },
            prompt_tokens: PROMPT_TOKENS,
            output_tokens: OUTPUT_TOKENS,
        }
    }

    /// What the stage's figures need to know of it.
    #[must_use]
    pub const fn asked(&self) -> StageAsked {
        StageAsked {
            kind: if self.concurrency == 1 {
                StageKind::SingleStream
            } else {
                StageKind::ClosedLoop {
                    concurrency: self.concurrency,
                }
            },
            output_tokens: self.output_tokens,
            exact_length: true,
            complete: true,
            prompt_tokens: None,
            goodput: None,
            cold_prompts: true,
        }
    }
}

struct Flight {
    sent: Ns,
    arrivals: Vec<Ns>,
    tokens: Vec<u32>,
}

/// Runs the loop in virtual time. The records are marked simulated.
#[must_use]
pub fn simulate(config: &SimConfig, plan: &ClosedLoop) -> Vec<Traced> {
    let mut pacer = Pacer::new(config);
    let mut flights = BTreeMap::new();
    let mut next = 0;
    let job = Job {
        prefill_tokens: plan.prompt_tokens,
        tokens: plan.output_tokens,
        delay_ns: 0,
    };
    let send = |pacer: &mut Pacer, flights: &mut BTreeMap<Ticket, Flight>, serial: u32, at| {
        let ticket = Ticket(u64::from(serial));
        pacer.submit(ticket, at, job);
        let flight = Flight {
            sent: at,
            arrivals: Vec::new(),
            tokens: Vec::new(),
        };
        flights.insert(ticket, flight);
    };
    while next < plan.concurrency.min(plan.requests) {
        send(&mut pacer, &mut flights, next, 0);
        next += 1;
    }
    let mut done = Vec::new();
    let mut emissions = Vec::new();
    while pacer.next_deadline().is_some() {
        pacer.advance(&mut emissions);
        for emission in emissions.drain(..) {
            if let Some(flight) = flights.get_mut(&emission.ticket) {
                flight.arrivals.push(emission.at);
                flight.tokens.push(emission.tokens);
            }
            if emission.finished
                && let Some(flight) = flights.remove(&emission.ticket)
            {
                done.push(record(plan, emission.ticket, flight));
                if next < plan.requests {
                    send(&mut pacer, &mut flights, next, emission.at);
                    next += 1;
                }
            }
        }
    }
    done
}

fn record(plan: &ClosedLoop, ticket: Ticket, flight: Flight) -> Traced {
    let since = |at: Ns| at - flight.sent;
    let first = flight.arrivals.first().copied().map(since);
    let last = flight.arrivals.last().copied().map(since);
    // Gaps of rounded times, so that roundings do not add up.
    let mut before = 0;
    let gaps_us = flight
        .arrivals
        .iter()
        .map(|at| {
            let us = since(*at) / 1000;
            let gap = u32::try_from(us - before).unwrap_or(u32::MAX);
            before = us;
            gap
        })
        .collect();
    let record = RequestRecord {
        stage: 0,
        seq: u32::try_from(ticket.0).unwrap_or(u32::MAX),
        prompt: ticket.0,
        sent_ns: flight.sent,
        intended_ns: None,
        turn: None,
        asked_tokens: None,
        connect_ns: None,
        headers_ns: Some(0),
        ttft_ns: first,
        first_answer_ns: first,
        e2el_ns: last,
        end_ns: last.unwrap_or(0),
        prompt_tokens: Some(plan.prompt_tokens),
        completion_tokens: Some(flight.tokens.iter().sum()),
        first_chunk_tokens: flight.tokens.first().copied(),
        cached_tokens: None,
        reasoning_tokens: None,
        chunks: u32::try_from(flight.arrivals.len()).unwrap_or(u32::MAX),
        coalesced_chunks: 0,
        counted_by: TokenCount::Usage,
        done_seen: true,
        finish_reason: Some("length".to_owned()),
        simulated: true,
        failure: None,
    };
    let trace = ChunkTrace {
        gaps_us,
        tokens: flight.tokens,
    };
    (record, Some(trace))
}

#[cfg(test)]
mod tests {
    use tokdyno_domain::metrics::stage_figures;

    use super::*;
    use crate::{
        config::tests::{parse, sglang, vllm},
        model::{self, NCCL_SET, Recorded},
    };

    const AQ: [&str; 4] = [
        "--speculative-algorithm",
        "EAGLE3",
        "--speculative-draft-model-path",
        "AQ-MedAI/Kimi-K2-Instruct-eagle3",
    ];
    const OWN: [&str; 4] = [
        "--speculative-algorithm",
        "EAGLE3",
        "--speculative-draft-model-path",
        "/shared/own-eagle3",
    ];

    fn single(config: &SimConfig) -> f64 {
        let plan = ClosedLoop::founding(1);
        let figures = stage_figures(&plan.asked(), &simulate(config, &plan));
        figures.e2e_tps.p50.expect("a figure")
    }

    fn at(config: &SimConfig, concurrency: u32) -> f64 {
        let plan = ClosedLoop::founding(concurrency);
        let figures = stage_figures(&plan.asked(), &simulate(config, &plan));
        assert_eq!(figures.output_tokens, u64::from(plan.requests * 256));
        figures.output_tps.expect("a figure")
    }

    fn nccl(names: &[(&str, &str)]) -> SimConfig {
        parse(crate::Engine::Sglang, &[], names)
    }

    fn meets(config: &SimConfig, recorded: Recorded) {
        let (one, many) = (single(config), at(config, 128));
        assert!(
            (one / recorded.single_tps - 1.0).abs() < 0.003,
            "single stream {one}, recorded {recorded:?}"
        );
        assert!(
            (many / recorded.concurrent_tps - 1.0).abs() < 0.003,
            "C = 128 {many}, recorded {recorded:?}"
        );
    }

    #[test]
    fn every_recorded_figure_is_met() {
        meets(&vllm(&[]), model::VLLM);
        meets(&sglang(&["--attention-backend", "triton"]), model::SGLANG);
        meets(&nccl(&NCCL_SET), model::SGLANG_TUNED);
        meets(&sglang(&AQ), model::SGLANG_AQ_MEDAI);
        meets(&sglang(&OWN), model::SGLANG_OWN_DRAFTER);
        let spec = r#"{"method":"eagle3","model":"/shared/own-eagle3","num_speculative_tokens":3}"#;
        meets(&vllm(&["--speculative-config", spec]), model::VLLM_EAGLE3);
    }

    #[test]
    fn the_table_is_the_recorded_one() {
        let table = [
            (model::VLLM, 82.5, 1536.0),
            (model::SGLANG, 63.6, 2370.0),
            (model::SGLANG_TUNED, 90.0, 2320.0),
            (model::SGLANG_AQ_MEDAI, 62.9, 849.0),
            (model::SGLANG_OWN_DRAFTER, 40.8, 597.0),
            (model::VLLM_EAGLE3, 54.45, 1013.76),
        ];
        for (recorded, one, many) in table {
            assert!((recorded.single_tps - one).abs() < 1e-6);
            assert!((recorded.concurrent_tps - many).abs() < 1e-6);
        }
    }

    #[test]
    fn the_figures_hold_under_any_seed_and_for_18_to_20_prompt_tokens() {
        for seed in ["1", "2", "99"] {
            let flags = [&AQ[..], &["--sim-seed", seed]].concat();
            meets(&sglang(&flags), model::SGLANG_AQ_MEDAI);
        }
        let config = nccl(&NCCL_SET);
        for prompt_tokens in [18, 20] {
            let plan = ClosedLoop {
                prompt_tokens,
                ..ClosedLoop::founding(128)
            };
            let figures = stage_figures(&plan.asked(), &simulate(&config, &plan));
            let tps = figures.output_tps.expect("a figure");
            assert!((tps / 2320.0 - 1.0).abs() < 0.001, "{tps}");
        }
    }

    #[test]
    fn continuous_decode_changes_nothing() {
        for env in [&[] as &[(&str, &str)], &NCCL_SET] {
            let without = parse(crate::Engine::Sglang, &[], env);
            let flag = ["--num-continuous-decode-steps", "4"];
            let with = parse(crate::Engine::Sglang, &flag, env);
            for concurrency in [1, 32] {
                let plan = ClosedLoop::founding(concurrency);
                assert_eq!(simulate(&with, &plan), simulate(&without, &plan));
            }
        }
    }

    #[test]
    fn each_variable_has_its_own_effect_and_none_the_whole() {
        let (untuned, tuned) = (single(&nccl(&[])), single(&nccl(&NCCL_SET)));
        let alone: Vec<f64> = NCCL_SET.map(|one| single(&nccl(&[one]))).to_vec();
        for tps in &alone {
            assert!(*tps > untuned && *tps < tuned, "{alone:?}");
        }
        let best = alone.iter().copied().fold(0.0, f64::max);
        assert!((best - alone[0]).abs() < 1e-9, "PROTO has most: {alone:?}");
    }

    #[test]
    fn speculation_is_capped_at_48_unless_told_otherwise() {
        let capped = sglang(&AQ);
        assert_eq!(capped.max_running, 48);
        let wide = sglang(&[&AQ[..], &["--max-running-requests", "128"]].concat());
        assert_eq!(wide.max_running, 128);
        assert!(at(&wide, 128) > at(&capped, 128));
        assert!((single(&wide) - single(&capped)).abs() < 1e-9);
    }

    #[test]
    fn throughput_rises_smoothly_with_concurrency() {
        for config in [vllm(&[]), sglang(&[]), nccl(&NCCL_SET)] {
            let figures: Vec<f64> = [1, 2, 4, 8, 16, 32, 64, 128]
                .map(|concurrency| at(&config, concurrency.max(2)))
                .to_vec();
            assert!(figures.is_sorted(), "{figures:?}");
            let step = crate::model::StepModel::new(&config);
            for batch in 1..128 {
                let (here, next) = (step.decode_ms(batch), step.decode_ms(batch + 1));
                assert!(next > here && next < here * 1.1, "{batch}: {here} {next}");
            }
        }
    }

    #[test]
    fn speed_scales_all_times() {
        let plan = ClosedLoop::founding(8);
        let normal = simulate(&sglang(&[]), &plan);
        let fast = simulate(&sglang(&["--sim-speed", "10"]), &plan);
        for ((slow, _), (fast, _)) in normal.iter().zip(&fast) {
            let ratio = slow.e2el_ns.expect("time") as f64 / fast.e2el_ns.expect("time") as f64;
            assert!((ratio - 10.0).abs() < 0.001, "{ratio}");
        }
    }

    #[test]
    fn noise_is_seeded_and_off_by_default() {
        let noisy = |seed| {
            sglang(&[
                "--sim-seed",
                seed,
                "--sim-noise-launch",
                "3",
                "--sim-noise-request",
                "2",
            ])
        };
        assert_eq!(single(&noisy("1")).to_bits(), single(&noisy("1")).to_bits());
        assert_ne!(single(&noisy("1")).to_bits(), single(&noisy("2")).to_bits());
        assert_eq!(
            single(&sglang(&["--sim-seed", "1"])).to_bits(),
            single(&sglang(&["--sim-seed", "2"])).to_bits()
        );
    }
}
