//! Comparisons: live from an address, and frozen.

use serde::{Deserialize, Serialize};

use super::ChartView;
use crate::{
    comparison::{Difference, Override},
    ids::{ComparisonSlug, RunId},
    statistics::{Estimate, RatioInterval},
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
    /// What speculative decoding brings, for configurations whose engine tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speculation: Vec<SpeculationView>,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The runs that it is of: doubtful ones are left out where there is a sound one.
    /// Empty in documents that were written before it was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
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

/// A speculative configuration, beside one of the same model that does not speculate
/// if there is one among the compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeculationView {
    /// Name of the configuration.
    pub name: String,
    /// Its runs.
    pub runs: Vec<RunId>,
    /// Name and runs of the other.
    pub base: Option<(String, Vec<RunId>)>,
    /// By load level, the single stream first.
    pub levels: Vec<SpeculationLevel>,
}

/// Speculation at a load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeculationLevel {
    /// The load level.
    #[serde(flatten)]
    pub kind: StageKind,
    /// Tokens per verify step, the bonus included.
    pub accept_length: Estimate,
    /// Flagged or disputed in all of its runs.
    #[serde(default)]
    pub doubtful: bool,
    /// Share of steps in which the draft was accepted up to each place; empty where
    /// the engine does not tell.
    pub accepted_at: Vec<f64>,
    /// Where there is another to compare with: from which accept length on it pays.
    pub break_even: Option<BreakEven>,
}

/// From which accept length on speculation pays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BreakEven {
    /// Time of a verify step, in ms.
    pub step_ms: f64,
    /// Time of a step without speculation, in ms.
    pub plain_step_ms: f64,
    /// The one over the other: the accept length at which both are equally fast.
    pub accept_length: RatioInterval,
    /// Does it pay? None where the data do not decide it.
    pub pays: Option<bool>,
    /// All of it in a sentence.
    pub sentence: String,
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
    /// Who vouches for it in spite of its class.
    #[serde(default)]
    pub overridden: Option<Override>,
    /// What it shows.
    pub view: CompareView,
    /// The same figures by the rules of today, where those it was frozen under are
    /// older.
    #[serde(default)]
    pub today: Option<Box<TodayView>>,
}

/// A frozen comparison read by the rules of today.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TodayView<C = ChartView> {
    /// The version of these rules.
    pub analysis_version: u32,
    /// What was read, in a sentence.
    pub read_from: String,
    /// What became of the verdicts, in sentences.
    pub changes: Vec<String>,
    /// What the comparison says now.
    pub view: CompareView<C>,
}

impl<C> TodayView<C> {
    /// The same with every chart drawn otherwise.
    #[must_use]
    pub fn map_charts<D>(self, draw: impl FnMut(C) -> D) -> TodayView<D> {
        TodayView {
            analysis_version: self.analysis_version,
            read_from: self.read_from,
            changes: self.changes,
            view: self.view.map_charts(draw),
        }
    }
}

/// Why somebody compares in spite of the class, as the form has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverrideForm {
    /// Why; blank for no override.
    pub reason: String,
    /// The name of whoever signs; blank for the account's.
    pub name: String,
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
            speculation: self.speculation,
        }
    }
}
