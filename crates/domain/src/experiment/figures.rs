//! What an experiment's analysis rests on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    analysis::repeats, ids::RunId, statistics::geometric_mean, views::run::StageView,
    workload::StageKind,
};

/// What a figure is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FigureKey {
    /// Name of the metric, such as `output_tps`.
    pub metric: String,
    /// At which load level.
    pub level: StageKind,
}

/// The figures of one trial: one value per metric and level, since the launch is the
/// unit. What is undefined is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Which cell.
    pub cell: u32,
    /// Which block; figures of one block are paired.
    pub block: u32,
    /// The run that they come from.
    pub run: RunId,
    /// The figures, in the metric's unit; repeats of a level are put together already.
    #[serde(with = "entries")]
    pub figures: BTreeMap<FigureKey, f64>,
}

/// A figure of a stage, by the name of its metric.
type OfStage = (&'static str, fn(&StageView) -> Option<f64>);

/// What is kept of a single stream.
const SINGLE: [OfStage; 3] = [
    ("e2e_tps", |stage| stage.e2e_tps.p50),
    ("decode_tps", |stage| stage.decode_tps.p50),
    ("ttft_ms", |stage| stage.ttft_ms.p50),
];

/// What is kept of any other level.
const LOADED: [OfStage; 5] = [
    ("output_tps", |stage| stage.output_tps),
    ("steady_output_tps", |stage| stage.steady_output_tps),
    ("decode_tps", |stage| stage.decode_tps.p50),
    ("ttft_ms", |stage| stage.ttft_ms.p50),
    ("tpot_ms", |stage| stage.tpot_ms.p50),
];

impl TrialFigures {
    /// The figures of a launch from the stages of its run. Repeats of a level are put
    /// together by their geometric mean, as wherever launches are compared.
    #[must_use]
    pub fn of_stages(cell: u32, block: u32, run: RunId, stages: &[StageView]) -> Self {
        let mut levels: Vec<StageKind> = stages.iter().map(|stage| stage.kind).collect();
        levels.sort_unstable();
        levels.dedup();
        let mut figures = BTreeMap::new();
        for level in levels {
            let metrics: &[OfStage] = if level == StageKind::SingleStream {
                &SINGLE
            } else {
                &LOADED
            };
            for (metric, of_stage) in metrics {
                let Some(value) = geometric_mean(&repeats(stages, level, of_stage)) else {
                    continue;
                };
                let metric = (*metric).to_owned();
                figures.insert(FigureKey { metric, level }, value);
            }
        }
        Self {
            cell,
            block,
            run,
            figures,
        }
    }
}

/// Keys of several parts are no names of JSON, so the figures cross as a list.
mod entries {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::FigureKey;

    #[derive(Serialize, Deserialize)]
    struct Entry {
        #[serde(flatten)]
        key: FigureKey,
        value: f64,
    }

    pub(super) fn serialize<S: Serializer>(
        figures: &BTreeMap<FigureKey, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // JSON has no word for what is not finite.
        serializer.collect_seq(figures.iter().filter(|(_, value)| value.is_finite()).map(
            |(key, value)| Entry {
                key: key.clone(),
                value: *value,
            },
        ))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<FigureKey, f64>, D::Error> {
        let entries = Vec::<Entry>::deserialize(deserializer)?;
        Ok(entries
            .into_iter()
            .map(|entry| (entry.key, entry.value))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::samples::{closed, single};

    #[test]
    fn repeats_of_a_level_are_one_figure_of_the_launch() {
        let mut partial = closed(8, 2, 1.0);
        partial.complete = false;
        let stages = [
            single(0, 80.0),
            closed(8, 0, 50.0),
            closed(8, 1, 200.0),
            partial,
        ];
        let trial = TrialFigures::of_stages(2, 1, RunId(7), &stages);
        assert_eq!((trial.cell, trial.block, trial.run), (2, 1, RunId(7)));
        let figure = |metric: &str, level| {
            let key = FigureKey {
                metric: metric.to_owned(),
                level,
            };
            trial.figures.get(&key).copied()
        };
        let loop_of_8 = StageKind::ClosedLoop { concurrency: 8 };
        assert_eq!(figure("e2e_tps", StageKind::SingleStream), Some(80.0));
        let together = figure("output_tps", loop_of_8).expect("a figure");
        assert!((together - 100.0).abs() < 1e-9, "{together}");
        assert_eq!(figure("output_tps", StageKind::SingleStream), None);
        assert_eq!(figure("e2e_tps", loop_of_8), None);
        let none = TrialFigures::of_stages(0, 0, RunId(1), &[]);
        assert!(none.figures.is_empty());
    }

    #[test]
    fn figures_cross_the_wire_unchanged() {
        let key = |level| FigureKey {
            metric: "output_tps".to_owned(),
            level,
        };
        let loop_of_8 = StageKind::ClosedLoop { concurrency: 8 };
        let mut trial = TrialFigures {
            cell: 3,
            block: 1,
            run: RunId(7),
            figures: BTreeMap::from([
                (key(StageKind::SingleStream), 90.0),
                (key(loop_of_8), 0.1 + 0.2),
            ]),
        };
        let wire = serde_json::to_string(&trial).expect("JSON");
        assert_eq!(
            serde_json::from_str::<TrialFigures>(&wire).expect("it reads back"),
            trial
        );
        trial
            .figures
            .insert(key(StageKind::SingleStream), f64::INFINITY);
        let wire = serde_json::to_string(&trial).expect("JSON");
        let read: TrialFigures = serde_json::from_str(&wire).expect("it reads back");
        assert_eq!(read.figures.len(), 1, "what is not finite is absent");
    }
}
