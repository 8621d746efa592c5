//! Stages over their repeats.

use super::{RunFacts, meanwhile};
use crate::{
    metrics::StageFlag,
    source::Source,
    statistics::Estimate,
    views::run::{LevelView, RunSummary, StageView},
    workload::StageKind,
};

/// The load levels of a run, single stream first, then rising concurrency. A
/// level's figures are taken over its complete repeats; only where there is none,
/// over what an early end has left.
#[must_use]
pub fn levels(stages: &[StageView]) -> Vec<LevelView> {
    let mut kinds: Vec<StageKind> = stages.iter().map(|stage| stage.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
        .into_iter()
        .map(|kind| {
            let all: Vec<&StageView> = stages.iter().filter(|stage| stage.kind == kind).collect();
            let complete: Vec<&StageView> =
                all.iter().copied().filter(|stage| stage.complete).collect();
            level(kind, if complete.is_empty() { &all } else { &complete })
        })
        .collect()
}

fn level(kind: StageKind, stages: &[&StageView]) -> LevelView {
    let over = |figure: &dyn Fn(&StageView) -> Option<f64>| {
        Estimate::of(stages.iter().filter_map(|stage| figure(stage)))
    };
    let flags: Vec<&StageFlag> = stages.iter().flat_map(|stage| &stage.flags).collect();
    let mut sentences: Vec<String> = flags.iter().map(|flag| flag.sentence()).collect();
    sentences.extend(stages.iter().filter_map(|stage| stage.remark.clone()));
    sentences.dedup();
    let completed = stages.iter().map(|stage| stage.completed).sum();
    // The least trustworthy source speaks for all.
    let source = stages
        .iter()
        .map(|stage| stage.source)
        .max()
        .unwrap_or(Source::Measured);
    let has_requests = matches!(source, Source::Measured | Source::Simulated);
    LevelView {
        kind,
        source,
        disputed: stages.iter().any(|stage| stage.disputed),
        repeats: u32::try_from(stages.iter().filter(|stage| stage.complete).count())
            .unwrap_or(u32::MAX),
        single_stream: (kind == StageKind::SingleStream)
            .then(|| over(&|stage| stage.e2e_tps.p50))
            .flatten(),
        decode_tps: over(&|stage| stage.decode_tps.p50),
        output_tps: over(&|stage| stage.output_tps),
        steady_output_tps: over(&|stage| stage.steady_output_tps),
        ttft_ms: over(&|stage| stage.ttft_ms.p50),
        tpot_ms: over(&|stage| stage.tpot_ms.p50),
        achieved_concurrency: over(&|stage| stage.achieved_concurrency),
        request_throughput: over(&|stage| stage.request_throughput),
        ttft_p99_ms: over(&|stage| stage.ttft_ms.p99),
        ttft_intended_ms: over(&|stage| stage.ttft_intended_ms.p50),
        ttft_intended_p99_ms: over(&|stage| stage.ttft_intended_ms.p99),
        peak_in_flight: stages.iter().filter_map(|stage| stage.peak_in_flight).max(),
        goodput: over(&|stage| stage.goodput?.requests_per_s),
        chunks_per_s: meanwhile::chunks_per_s(stages),
        engine: meanwhile::engine(stages),
        ttft_beside_engine_ms: meanwhile::ttft_beside_engine(stages),
        client: meanwhile::client(stages),
        certificate: meanwhile::certificate(stages),
        completed,
        failed: stages.iter().map(|stage| stage.failed).sum(),
        flags: sentences,
        supports_verdict: (completed > 0 || !has_requests)
            && !flags.iter().any(|flag| flag.forbids_verdict()),
    }
}

impl LevelView {
    /// Must a figure of this level be drawn hollow and never be called best?
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.disputed || !self.supports_verdict || self.source == Source::Estimated
    }
}

/// The run's summary with its figures over repeats filled in.
#[must_use]
pub fn summarise(facts: &RunFacts) -> RunSummary {
    let levels = levels(&facts.stages);
    let single_stream = levels.iter().find_map(|level| level.single_stream);
    let peak_output = levels
        .iter()
        .filter_map(|level| Some((level.kind.closed_loop()?, level.output_tps?)))
        .max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean));
    let peak_rate = levels
        .iter()
        .rfind(|level| level.kind.is_open())
        .filter(|_| levels.iter().all(|level| level.kind.is_open()))
        .map(|level| (level.kind, level.request_throughput));
    RunSummary {
        single_stream,
        peak_output,
        peak_rate,
        flagged: levels.iter().any(LevelView::is_doubtful),
        ..facts.summary.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::samples::{closed, open, recorded, run, single};

    #[test]
    fn repeats_of_a_level_are_taken_together() {
        let stages = vec![
            closed(8, 0, 100.0),
            single(0, 90.0),
            closed(8, 1, 110.0),
            single(1, 92.0),
        ];
        let levels = levels(&stages);
        assert_eq!(levels.len(), 2);
        assert_eq!(levels[0].kind, StageKind::SingleStream);
        let single = levels[0].single_stream.expect("a figure");
        assert_eq!((single.mean, single.bar()), (91.0, Some((90.0, 92.0))));
        assert_eq!(levels[1].output_tps.expect("a figure").n, 2);
        assert_eq!(levels[1].single_stream, None);
        assert!(!levels[1].is_doubtful());
    }

    #[test]
    fn a_run_at_rates_only_says_its_highest() {
        let rates = summarise(&run(1, "a", vec![open(4.0, 0), open(10.0, 1)]));
        let (kind, answered) = rates.peak_rate.expect("a rate");
        assert_eq!(kind.to_string(), "10 req/s (evenly spaced)");
        assert_eq!(answered.map(|answered| answered.mean), Some(9.0));
        assert_eq!((rates.single_stream, rates.peak_output), (None, None));
        let mixed = summarise(&run(2, "a", vec![open(4.0, 0), closed(8, 0, 100.0)]));
        assert_eq!(mixed.peak_rate, None);
        assert_eq!(summarise(&run(3, "a", vec![])).peak_rate, None);
    }

    #[test]
    fn a_partial_stage_counts_only_where_nothing_else_does() {
        let mut partial = closed(8, 1, 50.0);
        partial.complete = false;
        partial.flags = vec![StageFlag::Partial];
        let with_whole = levels(&[closed(8, 0, 100.0), partial.clone()]);
        assert_eq!(with_whole[0].output_tps.expect("a figure").mean, 100.0);
        assert!(!with_whole[0].is_doubtful());
        let alone = levels(&[partial]);
        assert_eq!((alone[0].repeats, alone[0].is_doubtful()), (0, true));
    }

    #[test]
    fn a_disputed_estimate_is_doubtful_and_a_record_is_not() {
        let facts = run(
            1,
            "SGLang",
            vec![recorded(128, 2320.0, Source::Estimated, true)],
        );
        assert!(summarise(&facts).flagged);
        let facts = run(
            2,
            "vLLM",
            vec![recorded(128, 1536.0, Source::Recorded, false)],
        );
        let summary = summarise(&facts);
        assert!(!summary.flagged);
        assert_eq!(
            summary.peak_output.map(|(c, estimate)| (c, estimate.mean)),
            Some((128, 1536.0))
        );
    }
}
