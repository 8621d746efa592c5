//! Comparisons: live from an address, and frozen.

use serde::{Deserialize, Serialize};

use super::ChartView;
use crate::{
    comparison::Difference,
    ids::{ComparisonSlug, RunId},
    statistics::Estimate,
    timestamp::Timestamp,
    verdict::Verdict,
    views::run::RunSummary,
    workload::StageKind,
};

/// Two to twelve runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompareView<C = ChartView> {
    /// The runs, the baseline first.
    pub runs: Vec<RunSummary>,
    /// The configurations that they are runs of, the baseline's first. Empty in
    /// documents of before analysis version 4.
    #[serde(default)]
    pub groups: Vec<CompareGroup>,
    /// A figure a row, a run a column.
    pub rows: Vec<CompareRow>,
    /// What else differs.
    pub differences: Vec<Difference>,
    /// How many keys are equal.
    pub equal_settings: u32,
    /// `controlled`, `confounded` or `invalid`, in a sentence.
    pub class: ComparisonClass,
    /// Of a confounded comparison: which single changes would separate the factors,
    /// in sentences.
    #[serde(default)]
    pub separating: Vec<String>,
    /// One per pair with the baseline's configuration and metric that matters; of
    /// runs of one configuration, per pair with the baseline.
    pub verdicts: Vec<Verdict>,
    /// Where two throughput or speed curves cross, in sentences.
    pub crossovers: Vec<String>,
    /// Curves over each other.
    pub charts: Vec<C>,
}

/// Runs of one configuration: alike in name, workload and all that is known of
/// model, hardware, engine and settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompareGroup {
    /// Name of the configuration, with its runs if another has the same.
    pub name: String,
    /// Its runs, in their order.
    pub runs: Vec<RunId>,
    /// Launches that they are of. Runs without a launch of their own are of one.
    pub launches: u32,
    /// What a reader must know of how they were taken together, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// How far the runs can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonClass {
    /// The class.
    pub kind: ClassKind,
    /// Why, in a sentence.
    pub sentence: String,
}

/// The class of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassKind {
    /// Nothing that is known differs.
    Repeat,
    /// One thing differs.
    Controlled,
    /// Several things differ: what made the difference cannot be told.
    Confounded,
    /// Workload or metric definition differ.
    Invalid,
}

/// A figure over the compared runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompareRow {
    /// Load level.
    #[serde(flatten)]
    pub kind: StageKind,
    /// Name of the metric.
    pub metric: String,
    /// Unit.
    pub unit: String,
    /// Is more better?
    pub more_is_better: bool,
    /// One per run, in their order.
    pub cells: Vec<Option<CompareCell>>,
    /// One per group, in their order. Empty in documents of before analysis
    /// version 4.
    #[serde(default)]
    pub groups: Vec<Option<GroupCell>>,
}

/// A configuration's figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GroupCell {
    /// The figure over its launches, each the geometric mean of its repeats; of a
    /// single launch, over the repeats.
    pub estimate: Estimate,
    /// Launches with such a figure.
    pub launches: u32,
    /// Ratio to the baseline's; none for the baseline itself.
    pub ratio: Option<f64>,
    /// Flagged or disputed in all of its runs.
    pub doubtful: bool,
}

/// A cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CompareCell {
    /// The figure over its repeats.
    pub estimate: Estimate,
    /// Ratio to the baseline's; none for the baseline itself.
    pub ratio: Option<f64>,
    /// Flagged or disputed.
    pub doubtful: bool,
}

/// A frozen comparison as its page shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenView {
    /// Its address.
    pub slug: ComparisonSlug,
    /// SHA-256 of its canonical bytes.
    pub hash: String,
    /// What it was called.
    pub title: String,
    /// When it was frozen.
    pub frozen_at: Timestamp,
    /// Rules by which verdicts were reached.
    pub analysis_version: u32,
    /// Metric definitions.
    pub metric_version: u32,
    /// What it shows.
    pub view: CompareView,
}

/// Which runs a live comparison shows, as its address has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompareQuery {
    /// Run numbers, the baseline first.
    pub runs: Vec<RunId>,
}

impl<C> CompareView<C> {
    /// A difference with a value per group, in their order: the runs of a group agree.
    pub fn by_group<'a>(
        &'a self,
        difference: &'a Difference,
    ) -> impl Iterator<Item = Option<&'a str>> {
        self.groups.iter().map(|group| {
            let first = group.runs.first()?;
            let place = self.runs.iter().position(|run| run.id == *first)?;
            difference.values.get(place)?.as_deref()
        })
    }

    /// The same view with every chart drawn otherwise.
    #[must_use]
    pub fn map_charts<D>(self, draw: impl FnMut(C) -> D) -> CompareView<D> {
        CompareView {
            charts: self.charts.into_iter().map(draw).collect(),
            runs: self.runs,
            groups: self.groups,
            rows: self.rows,
            differences: self.differences,
            equal_settings: self.equal_settings,
            class: self.class,
            separating: self.separating,
            verdicts: self.verdicts,
            crossovers: self.crossovers,
        }
    }
}
