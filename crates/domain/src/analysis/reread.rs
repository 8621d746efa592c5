//! A frozen comparison read by the rules of today, beside what it says itself.

use std::collections::BTreeMap;

use super::{RunFacts, compare};
use crate::{
    chart::ChartSpec,
    comparison::{DifferenceKind, FrozenComparison},
    metrics::Distribution,
    source::Source,
    statistics::Estimate,
    text,
    verdict::Verdict,
    views::{
        compare::{CompareCell, CompareView},
        run::{RunSummary, StageView},
    },
    workload::StageKind,
};

/// Of more repeats the values do not follow from mean, smallest and largest.
const KNOWN_REPEATS: u32 = 3;

/// What the document of a frozen comparison says when its figures are judged by the
/// rules of today. It holds mean, smallest and largest of each figure's repeats, from
/// which up to three repeats follow; of more, the mean speaks. What differs and the
/// class stay as frozen: which keys were equal is not in it.
///
/// # Errors
/// A sentence, if the document does not hold two to twelve runs.
pub fn reread(frozen: &FrozenComparison) -> Result<CompareView<ChartSpec>, String> {
    let view = compare(&facts(frozen))?;
    Ok(CompareView {
        class: frozen.view.class.clone(),
        differences: frozen.view.differences.clone(),
        equal_settings: frozen.view.equal_settings,
        separating: frozen.view.separating.clone(),
        ..view
    })
}

/// Does [`reread`] know all repeats of all figures?
#[must_use]
pub fn holds_all_repeats<C>(view: &CompareView<C>) -> bool {
    view.rows
        .iter()
        .flat_map(|row| row.cells.iter().flatten())
        .all(|cell| cell.estimate.n <= KNOWN_REPEATS)
}

/// What became of the verdicts, in sentences: a sentence for each that is another, and
/// one for all that are not.
#[must_use]
pub fn verdicts_changed<C, D>(then: &CompareView<C>, now: &CompareView<D>) -> Vec<String> {
    let mut metrics: Vec<&str> = Vec::new();
    for verdict in then.verdicts.iter().chain(&now.verdicts) {
        if !metrics.contains(&verdict.metric.as_str()) {
            metrics.push(&verdict.metric);
        }
    }
    let others = others(now);
    let mut sentences = Vec::new();
    let mut same = 0_u64;
    for metric in metrics {
        let old = of_metric(&then.verdicts, metric);
        let new = of_metric(&now.verdicts, metric);
        if old.len() != new.len() {
            sentences.push(format!(
                "{metric}: then {}, by today's rules {}.",
                words(&old),
                words(&new)
            ));
            continue;
        }
        for (place, (old, new)) in old.iter().zip(&new).enumerate() {
            if (old.kind, old.relevant) == (new.kind, new.relevant) {
                same += 1;
                continue;
            }
            let who = others
                .get(place)
                .filter(|_| others.len() > 1)
                .map_or_else(String::new, |name| format!(", {name}"));
            sentences.push(format!(
                "{metric}{who}: then {}, by today's rules {}.",
                word(old),
                word(new)
            ));
        }
    }
    match (same, sentences.is_empty()) {
        (0, _) => {}
        (_, true) => sentences.push("By today's rules every verdict is the same.".to_owned()),
        (same, false) => sentences.push(format!(
            "{} the same.",
            text::plural(same, "verdict is", "verdicts are")
        )),
    }
    sentences
}

/// What is judged against the baseline, in the order of the verdicts.
fn others<C>(view: &CompareView<C>) -> Vec<&str> {
    if view.groups.len() > 1 {
        let groups = view.groups.iter().skip(1);
        groups.map(|group| group.name.as_str()).collect()
    } else {
        let runs = view.runs.iter().skip(1);
        runs.map(|run| run.configuration.as_str()).collect()
    }
}

fn of_metric<'a>(verdicts: &'a [Verdict], metric: &str) -> Vec<&'a Verdict> {
    verdicts
        .iter()
        .filter(|verdict| verdict.metric == metric)
        .collect()
}

fn word(verdict: &Verdict) -> String {
    let relevant = if verdict.relevant {
        " and relevant"
    } else {
        ""
    };
    format!("{}{relevant}", verdict.kind.words())
}

fn words(verdicts: &[&Verdict]) -> String {
    if verdicts.is_empty() {
        return "no verdict".to_owned();
    }
    let words: Vec<String> = verdicts.iter().map(|verdict| word(verdict)).collect();
    format!(
        "{} ({})",
        text::plural(words.len() as u64, "verdict", "verdicts"),
        words.join("; ")
    )
}

/// What the document tells of its runs.
fn facts(frozen: &FrozenComparison) -> Vec<RunFacts> {
    let view = &frozen.view;
    view.runs
        .iter()
        .enumerate()
        .map(|(place, run)| {
            let value = |kind: DifferenceKind| {
                view.differences
                    .iter()
                    .filter(move |difference| difference.kind == kind)
                    .filter_map(move |difference| {
                        let value = difference.values.get(place)?.clone()?;
                        Some((difference.key.clone(), value))
                    })
            };
            let client = value(DifferenceKind::Environment)
                .find_map(|(key, value)| (key == "client").then_some(value));
            RunFacts {
                summary: run.clone(),
                stages: stages(view, place, run),
                settings: value(DifferenceKind::Setting).collect(),
                metric_version: value(DifferenceKind::Definition)
                    .find_map(|(key, value)| (key == "metric definitions").then_some(value))
                    .and_then(|version| version.parse().ok())
                    .unwrap_or(frozen.metric_version),
                client: client.unwrap_or_default(),
                remarks: Vec::new(),
                acceptance: None,
            }
        })
        .collect()
}

/// A stage per load level and repeat that the figures of a run tell of.
fn stages<C>(view: &CompareView<C>, place: usize, run: &RunSummary) -> Vec<StageView> {
    let mut stages: BTreeMap<(StageKind, u32), StageView> = BTreeMap::new();
    for row in &view.rows {
        let Some(cell) = row.cells.get(place).copied().flatten() else {
            continue;
        };
        for (repeat, value) in (0..).zip(repeats(&cell.estimate)) {
            let stage = stages
                .entry((row.kind, repeat))
                .or_insert_with(|| stage(row.kind, repeat, run.source, &cell));
            set(stage, &row.metric, value);
        }
    }
    (0..)
        .zip(stages.into_values())
        .map(|(index, stage)| StageView { index, ..stage })
        .collect()
}

/// The values behind an estimate, as far as they follow from it.
fn repeats(estimate: &Estimate) -> Vec<f64> {
    match estimate.n {
        2 => vec![estimate.low, estimate.high],
        KNOWN_REPEATS => {
            let middle = 3.0 * estimate.mean - estimate.low - estimate.high;
            // Rounding may put it a hair outside.
            let middle = middle.max(estimate.low).min(estimate.high);
            vec![estimate.low, middle, estimate.high]
        }
        _ => vec![estimate.mean],
    }
}

/// Puts a figure where the metric's name, in brackets, says.
fn set(stage: &mut StageView, metric: &str, value: f64) {
    let median = Distribution {
        count: 1,
        p50: Some(value),
        ..Distribution::default()
    };
    match metric
        .rsplit_once('(')
        .map(|(_, name)| name.trim_end_matches(')'))
    {
        Some("e2e_tps") => stage.e2e_tps = median,
        Some("decode_tps") => stage.decode_tps = median,
        Some("ttft") => stage.ttft_ms = median,
        Some("tpot") => stage.tpot_ms = median,
        Some("output_tps") => stage.output_tps = Some(value),
        Some("steady_output_tps") => stage.steady_output_tps = Some(value),
        _ => {}
    }
}

/// A stage without figures. That a figure was doubtful is known, but not why: without
/// a request behind it a measured one is flagged, any other is disputed.
fn stage(kind: StageKind, repeat: u32, source: Source, cell: &CompareCell) -> StageView {
    let has_requests = matches!(source, Source::Measured | Source::Simulated);
    StageView {
        disputed: cell.doubtful && !has_requests,
        completed: u64::from(!cell.doubtful),
        ..StageView::blank(kind, repeat, source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::samples::{closed, launched, run, single},
        comparison::COMPARISON_SCHEMA,
        metrics::METRIC_VERSION,
        timestamp::Timestamp,
        verdict::VerdictKind,
    };

    fn frozen(view: CompareView<ChartSpec>) -> FrozenComparison {
        FrozenComparison {
            schema_version: COMPARISON_SCHEMA,
            title: "t".to_owned(),
            frozen_at: Timestamp(1),
            analysis_version: 3,
            metric_version: METRIC_VERSION,
            overridden: None,
            view,
        }
    }

    fn runs() -> Vec<RunFacts> {
        let side = |id: i64, name: &str, share: f64| {
            let stages = [60.0, 60.6, 59.7]
                .into_iter()
                .zip(0..)
                .map(|(speed, repeat)| single(repeat, speed * share))
                .chain([closed(8, 0, 400.0 * share + 2.0 * id as f64)])
                .collect();
            let mut facts = launched(id, name, id, stages);
            facts
                .settings
                .insert("page_size".to_owned(), name.to_owned());
            facts
        };
        vec![
            side(1, "slow", 1.0),
            side(2, "slow", 1.002),
            side(3, "fast", 1.3),
            side(4, "fast", 1.304),
        ]
    }

    #[test]
    fn a_document_that_holds_all_repeats_says_the_same_as_its_runs() {
        let view = compare(&runs()).expect("a comparison");
        let again = reread(&frozen(view.clone())).expect("a reading");
        assert!(holds_all_repeats(&view));
        assert_eq!(again.groups, view.groups);
        let said = |view: &CompareView<ChartSpec>| -> Vec<String> {
            let verdicts = view.verdicts.iter();
            verdicts.map(|verdict| verdict.sentence.clone()).collect()
        };
        assert_eq!(said(&again), said(&view));
        assert_eq!(
            verdicts_changed(&view, &again),
            ["By today's rules every verdict is the same."]
        );
    }

    #[test]
    fn of_many_repeats_the_mean_speaks() {
        let side = |id, name: &str, share: f64| {
            let stages = (0..4).map(|repeat| single(repeat, (60.0 + f64::from(repeat)) * share));
            run(id, name, stages.collect())
        };
        let view = compare(&[side(1, "a", 1.0), side(2, "b", 1.1)]).expect("a comparison");
        assert!(!holds_all_repeats(&view));
        let again = reread(&frozen(view)).expect("a reading");
        assert!(
            again.verdicts[0]
                .sentence
                .contains("is +10.0 % as measured, one launch each"),
            "{}",
            again.verdicts[0].sentence
        );
    }

    #[test]
    fn doubts_stay_doubts() {
        let mut runs = runs();
        for facts in &mut runs[2..] {
            for stage in &mut facts.stages {
                stage.disputed = true;
            }
        }
        let view = compare(&runs).expect("a comparison");
        let again = reread(&frozen(view)).expect("a reading");
        assert_eq!(again.verdicts[0].kind, VerdictKind::NotEstablished);
        assert!(
            again.verdicts[0]
                .sentence
                .ends_with("Not established: fast is flagged."),
            "{}",
            again.verdicts[0].sentence
        );
    }

    #[test]
    fn a_document_of_analysis_version_2_has_a_reading_of_today() {
        let stored = include_str!("../comparison/frozen_v2.json");
        let frozen: FrozenComparison = serde_json::from_str(stored).expect("a document");
        let today = reread(&frozen).expect("a reading");
        assert_eq!(today.class, frozen.view.class);
        assert_eq!(today.groups.len(), 2);
        let sentence = &today.verdicts[0].sentence;
        assert!(
            sentence.contains("+41.5 % within these launches")
                && sentence.contains("one launch each, launch-to-launch variation unknown"),
            "{sentence}"
        );
        // Throughput at C = 4, which both have, was not judged then.
        assert_eq!(
            verdicts_changed(&frozen.view, &today),
            [
                "Output throughput at C = 4: then no verdict, by today's rules 1 verdict (not established).",
                "2 verdicts are the same."
            ]
        );
    }

    #[test]
    fn each_verdict_that_is_another_is_said() {
        let now = compare(&runs()).expect("a comparison");
        let mut then = now.clone();
        then.verdicts[0].kind = VerdictKind::NotEstablished;
        then.verdicts[0].relevant = false;
        assert_eq!(
            verdicts_changed(&then, &now),
            [
                "Single stream: then not established, by today's rules better and relevant.",
                "1 verdict is the same."
            ]
        );
    }
}
