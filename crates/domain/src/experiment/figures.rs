//! What an experiment's analysis rests on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ids::RunId, workload::StageKind};

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
