//! The result of `tokdyno bench` as a file: documented in `docs/result-file.md`,
//! versioned, and readable by `tokdyno import`.

mod check;
mod figures;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    conditions::StageConditions,
    engine::EngineKind,
    histogram::StageHistograms,
    ids::ContentHash,
    meter::{ClientInfo, MeterOutcome, RequestEvent},
    metrics::{StageAsked, StageFigures, StageFlag, Traced, whole_stage},
    timestamp::Timestamp,
    validity::{self, Own, RunParts, StagePart},
    workload::{StageKind, Workload},
};

pub use self::check::{MAX_ADDRESS, MAX_MODEL};

/// Version of the file's form.
///
/// 2: load shapes without a fixed concurrency, `conditions`, `histograms` and
/// `skipped`; a single stream has no `concurrency` any more.
pub const RESULT_SCHEMA: u32 = 2;

/// The oldest version that is still read.
const OLDEST_SCHEMA: u32 = 1;

/// The name by which a file says whose it is.
pub const TOOL: &str = "tokdyno";

/// A result file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// [`RESULT_SCHEMA`].
    pub schema_version: u32,
    /// [`TOOL`].
    pub tool: String,
    /// Version of the program that measured.
    pub tool_version: String,
    /// Version of the metric definitions.
    pub metric_version: u32,
    /// When measuring began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// What the configuration is called, if somebody said so.
    #[serde(default)]
    pub configuration: Option<String>,
    /// Hardware the server ran on, if somebody said so.
    #[serde(default)]
    pub hardware: Option<String>,
    /// What was measured.
    pub endpoint: ResultEndpoint,
    /// The machine that measured.
    pub client: ClientInfo,
    /// What was sent.
    pub workload: Workload,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: MeterOutcome,
    /// One per load level and repeat, in the order of execution.
    pub stages: Vec<ResultStage>,
    /// Stages of the plan that were left out by a rule of the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<u32>,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultEndpoint {
    /// Base address.
    pub url: String,
    /// Model name that was sent.
    pub model: String,
    /// Which engine, if it could be told.
    #[serde(default)]
    pub engine: Option<EngineKind>,
    /// Its version.
    #[serde(default)]
    pub engine_version: Option<String>,
    /// Its settings, secrets masked.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// It was the stand-in.
    #[serde(default)]
    pub simulated: bool,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultStage {
    /// Place in the order of execution, from 0.
    pub index: u32,
    /// What was asked: `single_stream`, `closed_loop` with its concurrency, …
    #[serde(flatten)]
    pub kind: StageKind,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Did it run to its end?
    pub complete: bool,
    /// Its figures, one field each.
    #[serde(flatten)]
    pub figures: StageFigures,
    /// What went on around it.
    #[serde(default)]
    pub conditions: StageConditions,
    /// Its times as histograms, for pooling; worked out from the requests where they
    /// are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histograms: Option<StageHistograms>,
    /// Its requests. May be left out; the figures are then taken as stated.
    #[serde(default)]
    pub records: Vec<RequestEvent>,
}

/// Why a file cannot be imported. Each says the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ResultFileError {
    /// No JSON at all.
    #[error("The file is not JSON ({0}). Import the file that `tokdyno bench --json FILE` wrote.")]
    NotJson(serde_json::Error),
    /// Somebody else's file.
    #[error(
        "This looks like a result of {0}, which is not read yet. Measure with `tokdyno bench --json FILE`, or enter the figures by hand."
    )]
    OtherTool(&'static str),
    /// JSON, but no result.
    #[error(
        "The file is JSON but no Tokdyno result: it has no \"schema_version\". Import the file that `tokdyno bench --json FILE` wrote."
    )]
    NoSchema,
    /// Another version.
    #[error(
        "The file has schema version {found}; this program reads versions {OLDEST_SCHEMA} to {RESULT_SCHEMA}. Import it with the version of Tokdyno that wrote it, or a newer one."
    )]
    OtherVersion {
        /// The version in the file.
        found: u64,
    },
    /// A field is missing or of another type.
    #[error(
        "The file is a Tokdyno result but cannot be read: {0}. It may have been cut off or edited; write it again."
    )]
    Malformed(serde_json::Error),
    /// It contradicts itself.
    #[error("The file contradicts itself: {0}. It may have been edited; write it again.")]
    Inconsistent(String),
}

impl ResultFile {
    /// Reads and checks a file. Where requests are included, figures are worked
    /// out again from them, so that what is stored always follows from records.
    ///
    /// # Errors
    /// [`ResultFileError`], a sentence with cause and remedy.
    pub fn parse(bytes: &[u8]) -> Result<Self, ResultFileError> {
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(ResultFileError::NotJson)?;
        let Some(version) = value.get("schema_version") else {
            return Err(
                other_tool(&value).map_or(ResultFileError::NoSchema, ResultFileError::OtherTool)
            );
        };
        if value.get("tool").and_then(serde_json::Value::as_str) != Some(TOOL) {
            return Err(
                other_tool(&value).map_or(ResultFileError::NoSchema, ResultFileError::OtherTool)
            );
        }
        let version = version.as_u64().unwrap_or(0);
        if !(u64::from(OLDEST_SCHEMA)..=u64::from(RESULT_SCHEMA)).contains(&version) {
            return Err(ResultFileError::OtherVersion { found: version });
        }
        check::stage_count(&value)?;
        let mut file: Self = serde_json::from_value(value).map_err(ResultFileError::Malformed)?;
        // As it will be written again.
        file.schema_version = RESULT_SCHEMA;
        file.check()?;
        file.refigure();
        // What follows from the requests must be possible as well.
        file.check_figures()?;
        Ok(file)
    }

    /// The hash by which one result is stored once, however often it is brought.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(serde_json::to_vec(self).unwrap_or_default().as_slice())
    }

    /// Adds the flags that follow from the run as a whole. Once more is as good as
    /// once.
    pub fn heed_run(&mut self) {
        let parts: Vec<StagePart<'_>> = self.stages.iter().map(StagePart::from).collect();
        let found = validity::check(&RunParts {
            stages: &parts,
            cold_prompts: self.workload.has_cold_prompts(),
            settings: &self.endpoint.settings,
            // No file holds any.
            samples: &[],
            own: &Own::default(),
        });
        for (index, flag) in found {
            if let Some(stage) = self.stages.iter_mut().find(|stage| stage.index == index) {
                stage.figures.flag(flag);
            }
        }
    }

    fn refigure(&mut self) {
        for stage in &mut self.stages {
            if stage.records.is_empty() {
                let asked = StageAsked::of(&self.workload, stage.kind, stage.complete);
                stage.figures.heed_counts(&asked);
                stage.figures.heed(&asked, &stage.conditions);
                continue;
            }
            let requests: Vec<Traced> = stage
                .records
                .iter()
                .map(|request| (request.record.clone(), request.trace.clone()))
                .collect();
            let stated = std::mem::take(&mut stage.figures.flags);
            stage.figures = whole_stage(
                &self.workload,
                stage.kind,
                stage.complete,
                &requests,
                &stage.conditions,
            );
            for flag in stated.into_iter().filter(StageFlag::is_of_host) {
                stage.figures.flag(flag);
            }
            stage.histograms = StageHistograms::of_events(&stage.records);
        }
        self.heed_run();
        let marked = |request: &RequestEvent| request.record.simulated;
        self.endpoint.simulated |= self
            .stages
            .iter()
            .any(|stage| stage.records.iter().any(marked));
    }
}

/// Recognises the files of tools that people are likely to drop here.
fn other_tool(value: &serde_json::Value) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
    if has(&["total_token_throughput", "output_throughput"])
        || has(&["backend", "max_output_tokens_per_s"])
    {
        Some("`vllm bench serve`")
    } else if has(&["total_throughput", "output_throughput"])
        || has(&["server_info", "output_throughput"])
    {
        Some("`sglang.bench_serving`")
    } else if has(&["aiperf_version"]) {
        Some("aiperf")
    } else if has(&["benchmarks", "metadata"]) {
        Some("guidellm")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
