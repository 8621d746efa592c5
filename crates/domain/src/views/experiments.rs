//! Experiments: the form of a new one, what it would cost, the list, and one of them.

use serde::{Deserialize, Serialize};

use crate::{
    chart::ChartSpec,
    experiment::{
        Budget, Design, EarlyStop, Estimate, ExperimentSpec, ExperimentState, Factor, Step,
        TrialState,
        results::{Doubt, ExperimentResults},
    },
    ids::{ContentHash, ExperimentId, HostId, LaunchId, ProfileId, RunId},
    source::Source,
    timestamp::Timestamp,
    views::measure::WorkloadForm,
    workload::Workload,
};

/// What is varied, as asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "design")]
pub enum DesignForm {
    /// One factor after another, the others at their first level.
    OneAtATime {
        /// What is varied.
        factors: Vec<Factor>,
    },
    /// Every level with every other.
    FullGrid {
        /// What is varied.
        factors: Vec<Factor>,
    },
    /// From the base profile to another one, step by step.
    Ablation {
        /// Where it leads.
        to: ProfileId,
        /// Changes that are credited together; empty for the usual grouping (all NCCL
        /// variables one step, all of speculation one step, anything else its own).
        #[serde(default)]
        steps: Vec<Step>,
    },
    /// The base profile and these, as they are.
    Profiles {
        /// The others.
        profiles: Vec<ProfileId>,
    },
}

/// An experiment as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentForm {
    /// The name people see.
    pub name: String,
    /// On which host.
    pub host: HostId,
    /// What changes are made to; its newest revision is taken.
    pub base: ProfileId,
    /// What is varied.
    pub design: DesignForm,
    /// What is sent to each launch.
    pub workload: WorkloadForm,
    /// Launches of each configuration.
    pub launches_per_cell: u32,
    /// After how many complete blocks the figures are looked at; empty for the end
    /// only.
    #[serde(default)]
    pub looks: Vec<u32>,
    /// What it may cost, in GPU minutes.
    #[serde(default)]
    pub gpu_minutes: Option<f64>,
    /// The host is given back by then.
    #[serde(default)]
    pub give_back_at: Option<Timestamp>,
    /// The adopted server that is stopped before and started again afterwards.
    #[serde(default)]
    pub restore: Option<LaunchId>,
    /// Measure through a port forward rather than on the host.
    #[serde(default)]
    pub through_forward: bool,
    /// Smallest effect that matters, in percent.
    pub relevant_effect_percent: f64,
    /// Seed of the order; none draws one.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Take over what earlier experiments on this host measured under the same hashes.
    #[serde(default)]
    pub skip_measured: bool,
}

impl ExperimentForm {
    /// What is ordered, once it is known what is varied, what is sent and in which
    /// order.
    #[must_use]
    pub fn spec(&self, design: Design, workload: Workload, seed: u64) -> ExperimentSpec {
        ExperimentSpec {
            name: self.name.trim().to_owned(),
            design,
            workload,
            launches_per_cell: self.launches_per_cell,
            seed,
            early_stop: (!self.looks.is_empty()).then(|| EarlyStop {
                looks: self.looks.clone(),
            }),
            budget: Budget {
                gpu_minutes: self.gpu_minutes,
                give_back_at: self.give_back_at,
            },
            through_forward: self.through_forward,
            relevant_effect: self.relevant_effect_percent / 100.0,
        }
    }
}

/// What an experiment would do and cost, before it is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentPreview {
    /// The configurations, the first is what others are compared with.
    pub cells: Vec<PreviewCell>,
    /// Steps of an ablation as grouped; empty for other designs.
    pub steps: Vec<Step>,
    /// Launches in all.
    pub launches: u32,
    /// Of these, measured before and taken over.
    pub measured: u32,
    /// Loads, hours, GPU minutes and finish, from past launches.
    pub estimate: Estimate,
    /// What to know before it is started.
    pub cautions: Vec<String>,
}

/// A configuration before it is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewCell {
    /// What people see.
    pub title: String,
    /// The command as a shell would take it.
    pub command: String,
    /// Hash of its profile.
    pub hash: ContentHash,
}

/// An experiment in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentSummary {
    /// Its identity.
    pub id: ExperimentId,
    /// The name people see.
    pub name: String,
    /// Where it stands.
    pub state: ExperimentState,
    /// Why it failed or paused, or what it waits for; blank if there is nothing to say.
    pub reason: String,
    /// Host: identity and name.
    pub host: (HostId, String),
    /// Base profile: identity and name.
    pub base: (ProfileId, String),
    /// The design in a few words, such as `full grid of NCCL_PROTO × NCCL_ALGO`.
    pub design: String,
    /// Configurations.
    pub cells: u32,
    /// Launches that are over.
    pub over: u32,
    /// Launches in all.
    pub launches: u32,
    /// Who asked for it.
    pub by: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its first launch was queued.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
}

/// The page of experiments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentList {
    /// The newest first, at most a hundred.
    pub experiments: Vec<ExperimentSummary>,
    /// May this reader plan and stop?
    pub may_operate: bool,
}

/// One launch of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialView {
    /// Its place in the order, from 0.
    pub number: u32,
    /// Its block, from 0.
    pub block: u32,
    /// Where it stands.
    pub state: TrialState,
    /// How often it failed.
    pub failures: u32,
    /// Why it failed last; blank if it did not.
    pub reason: String,
    /// Its newest launch.
    pub launch: Option<LaunchId>,
    /// Its newest run.
    pub run: Option<RunId>,
}

/// A configuration and its launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellView {
    /// Its place, from 0; others are compared with 0.
    pub index: u32,
    /// What people see.
    pub title: String,
    /// The level of each factor, by name.
    pub levels: Vec<(String, String)>,
    /// Its launches, in order.
    pub trials: Vec<TrialView>,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentView<C = ChartSpec> {
    /// As in the list.
    pub summary: ExperimentSummary,
    /// The workload in a line.
    pub workload: String,
    /// Launches of each configuration.
    pub launches_per_cell: u32,
    /// Declared looks; empty for the end only.
    pub looks: Vec<u32>,
    /// Seed of the order.
    pub seed: u64,
    /// Smallest effect that matters, as a share.
    pub relevant_effect: f64,
    /// Budget in GPU minutes, and what is used up of it.
    pub gpu_minutes: Option<f64>,
    /// GPU minutes used up.
    pub spent_gpu_minutes: f64,
    /// The host is given back by then.
    pub give_back_at: Option<Timestamp>,
    /// The adopted server that is brought back at the end.
    pub restore: Option<LaunchId>,
    /// What is still to come; none when it is over.
    pub estimate: Option<Estimate>,
    /// The configurations.
    pub cells: Vec<CellView>,
    /// Where the figures come from.
    pub source: Source,
    /// Runs on which no verdict rests, and why.
    pub doubts: Vec<Doubt>,
    /// What it found so far; none before the first figure.
    pub results: Option<ExperimentResults<C>>,
    /// May this reader pause, resume and cancel?
    pub may_operate: bool,
}

impl<C> ExperimentView<C> {
    /// The same with every chart drawn otherwise.
    #[must_use]
    pub fn map_charts<D>(self, draw: impl FnMut(C) -> D) -> ExperimentView<D> {
        ExperimentView {
            results: self.results.map(|results| results.map_charts(draw)),
            summary: self.summary,
            workload: self.workload,
            launches_per_cell: self.launches_per_cell,
            looks: self.looks,
            seed: self.seed,
            relevant_effect: self.relevant_effect,
            gpu_minutes: self.gpu_minutes,
            spent_gpu_minutes: self.spent_gpu_minutes,
            give_back_at: self.give_back_at,
            restore: self.restore,
            estimate: self.estimate,
            cells: self.cells,
            source: self.source,
            doubts: self.doubts,
            may_operate: self.may_operate,
        }
    }
}
