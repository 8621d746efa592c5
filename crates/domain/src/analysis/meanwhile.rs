//! What went on around a level, over its repeats.

use crate::{
    conditions::{Certificate, ClientLoad, EngineReport, Speculation},
    views::run::StageView,
};

/// What the engine said: counts added up, maxima of all, means of means. None where
/// it said nothing.
pub(super) fn engine(stages: &[&StageView]) -> Option<EngineReport> {
    let reports: Vec<&EngineReport> = stages
        .iter()
        .filter_map(|stage| stage.conditions.engine.as_ref())
        .collect();
    if reports.is_empty() {
        return None;
    }
    let most = |figure: fn(&EngineReport) -> Option<f64>| {
        most(reports.iter().filter_map(|report| figure(report)))
    };
    let mean = |figure: fn(&EngineReport) -> Option<f64>| {
        mean(reports.iter().filter_map(|report| figure(report)))
    };
    let sum = |count: fn(&EngineReport) -> Option<u64>| {
        reports
            .iter()
            .filter_map(|report| count(report))
            .reduce(u64::saturating_add)
    };
    // A rate over the repeats needs both of its counts from the same ones.
    let looked_up = |count: fn(&EngineReport) -> Option<u64>| {
        reports
            .iter()
            .filter(|report| report.prefix_queries.is_some() && report.prefix_hits.is_some())
            .filter_map(|report| count(report))
            .reduce(u64::saturating_add)
    };
    Some(EngineReport {
        samples: reports
            .iter()
            .fold(0, |all, report| all.saturating_add(report.samples)),
        running_mean: mean(|report| report.running_mean),
        running_max: most(|report| report.running_max),
        waiting_max: most(|report| report.waiting_max),
        kv_use_max: most(|report| report.kv_use_max),
        max_running: reports.iter().filter_map(|report| report.max_running).min(),
        finished: sum(|report| report.finished),
        prompt_tokens: sum(|report| report.prompt_tokens),
        generation_tokens: sum(|report| report.generation_tokens),
        prefix_queries: looked_up(|report| report.prefix_queries),
        prefix_hits: looked_up(|report| report.prefix_hits),
        preemptions: sum(|report| report.preemptions),
        ttft_mean_ms: mean(|report| report.ttft_mean_ms),
        e2el_mean_ms: mean(|report| report.e2el_mean_ms),
        speculation: speculation(&reports),
        counters_fell: reports.iter().any(|report| report.counters_fell),
        // Of a moment, not of a level.
        generated_before: None,
        generated_after: None,
        process_started_s: None,
    })
}

/// Our own mean time to first token, in ms, in the repeats for which the engine told
/// its own.
pub(super) fn ttft_beside_engine(stages: &[&StageView]) -> Option<f64> {
    mean(
        stages
            .iter()
            .filter(|stage| {
                let engine = stage.conditions.engine.as_ref();
                engine.is_some_and(|engine| engine.ttft_mean_ms.is_some())
            })
            .filter_map(|stage| stage.ttft_ms.mean),
    )
}

/// How the measuring machine fared: the worst of the repeats.
pub(super) fn client(stages: &[&StageView]) -> Option<ClientLoad> {
    let loads: Vec<&ClientLoad> = stages
        .iter()
        .filter_map(|stage| stage.conditions.client.as_ref())
        .collect();
    let most =
        |figure: fn(&ClientLoad) -> Option<f64>| most(loads.iter().filter_map(|load| figure(load)));
    loads.first().map(|first| ClientLoad {
        thread_busy: most(|load| load.thread_busy),
        stolen: most(|load| load.stolen),
        wake_lag_p99_ms: most(|load| load.wake_lag_p99_ms),
        wake_lag_max_ms: most(|load| load.wake_lag_max_ms),
        stood_still_ms: most(|load| load.stood_still_ms),
        kernel_times: loads
            .iter()
            .filter_map(|load| load.kernel_times)
            .reduce(f64::min),
        send_lag_p99_ms: most(|load| load.send_lag_p99_ms),
        governor: first.governor.clone(),
    })
}

/// What the measuring machine was seen to time truthfully: the least of the repeats.
pub(super) fn certificate(stages: &[&StageView]) -> Option<Certificate> {
    stages
        .iter()
        .filter_map(|stage| stage.conditions.certificate.as_ref())
        .min_by(|one, other| one.chunks_per_s.total_cmp(&other.chunks_per_s))
        .cloned()
}

/// Token chunks per second of the repeat that had most.
pub(super) fn chunks_per_s(stages: &[&StageView]) -> Option<f64> {
    most(stages.iter().filter_map(|stage| {
        let seconds = stage.duration_s.filter(|seconds| *seconds > 0.0)?;
        Some(stage.chunks? as f64 / seconds)
    }))
}

/// Counts over the repeats. Those that not all repeats have are left out: what is
/// made of them would rest on other steps than its whole.
fn speculation(reports: &[&EngineReport]) -> Option<Speculation> {
    let counted: Vec<&Speculation> = reports
        .iter()
        .filter_map(|report| report.speculation.as_ref())
        .collect();
    let places = counted.first()?.accepted_at.len();
    let mut all = Speculation {
        drafted: Some(0),
        accepted_at: vec![0; places],
        ..Speculation::default()
    };
    for one in counted {
        all.steps = all.steps.saturating_add(one.steps);
        all.accepted = all.accepted.saturating_add(one.accepted);
        all.drafted = all
            .drafted
            .zip(one.drafted)
            .map(|(all, one)| all.saturating_add(one));
        if all.accepted_at.len() == one.accepted_at.len() {
            for (sum, count) in all.accepted_at.iter_mut().zip(&one.accepted_at) {
                *sum = sum.saturating_add(*count);
            }
        } else {
            all.accepted_at.clear();
        }
    }
    Some(all)
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.filter(|value| value.is_finite()).reduce(f64::max)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values
        .filter(|value| value.is_finite())
        .fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analysis::samples::closed, conditions::StageConditions, metrics::Distribution};

    fn stage(report: EngineReport) -> StageView {
        StageView {
            conditions: StageConditions {
                engine: Some(report),
                ..StageConditions::default()
            },
            ..closed(8, 0, 100.0)
        }
    }

    fn spoke(steps: u64, accepted: u64, drafted: Option<u64>) -> EngineReport {
        EngineReport {
            running_max: Some(steps as f64),
            speculation: Some(Speculation {
                steps,
                drafted,
                accepted,
                accepted_at: vec![accepted],
            }),
            ..EngineReport::default()
        }
    }

    #[test]
    fn counts_add_up_and_maxima_stay_maxima() {
        let stages = [
            stage(spoke(100, 60, Some(300))),
            stage(spoke(300, 140, Some(900))),
        ];
        let all = engine(&stages.iter().collect::<Vec<_>>()).expect("a report");
        assert_eq!(all.running_max, Some(300.0));
        let speculation = all.speculation.expect("acceptance");
        assert_eq!(speculation.accept_length(), Some(1.5));
        assert_eq!(speculation.accept_rate(), Some(200.0 / 1200.0));
        assert_eq!(speculation.rates_at(), [0.5]);
        assert_eq!(all.preemptions, None, "nobody counted");
    }

    #[test]
    fn a_count_that_one_repeat_lacks_is_left_out() {
        let stages = [
            stage(spoke(100, 60, Some(300))),
            stage(spoke(100, 60, None)),
        ];
        let all = engine(&stages.iter().collect::<Vec<_>>()).expect("a report");
        assert_eq!(all.speculation.and_then(|all| all.accept_rate()), None);
        let lookups = |queries, hits| {
            stage(EngineReport {
                prefix_queries: queries,
                prefix_hits: hits,
                ..EngineReport::default()
            })
        };
        let stages = [lookups(Some(100), Some(50)), lookups(Some(900), None)];
        let all = engine(&stages.iter().collect::<Vec<_>>()).expect("a report");
        assert_eq!(all.prefix_hit_rate(), Some(0.5));
    }

    #[test]
    fn times_to_first_token_are_compared_over_the_same_repeats() {
        let told = StageView {
            ttft_ms: Distribution::of(vec![40.0]),
            ..stage(EngineReport {
                ttft_mean_ms: Some(35.0),
                ..EngineReport::default()
            })
        };
        let untold = StageView {
            ttft_ms: Distribution::of(vec![400.0]),
            ..stage(EngineReport::default())
        };
        assert_eq!(ttft_beside_engine(&[&told, &untold]), Some(40.0));
        assert_eq!(ttft_beside_engine(&[&untold]), None);
        assert_eq!(engine(&[&closed(8, 0, 1.0)]), None);
    }

    #[test]
    fn the_worst_repeat_speaks_for_the_machine() {
        let with = |busy, kernel_times, chunks| StageView {
            chunks: Some(chunks),
            duration_s: Some(2.0),
            conditions: StageConditions {
                client: Some(ClientLoad {
                    thread_busy: Some(busy),
                    kernel_times: Some(kernel_times),
                    ..ClientLoad::default()
                }),
                ..StageConditions::default()
            },
            ..closed(8, 0, 100.0)
        };
        let (calm, busy) = (with(0.1, 1.0, 100), with(0.4, 0.9, 500));
        let all = client(&[&calm, &busy]).expect("a load");
        assert_eq!((all.thread_busy, all.kernel_times), (Some(0.4), Some(0.9)));
        assert_eq!(chunks_per_s(&[&calm, &busy]), Some(250.0));
        assert_eq!(client(&[]), None);
        assert_eq!(certificate(&[&calm]), None);
    }
}
