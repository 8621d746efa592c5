//! What the store knows of a run: the input of every analysis.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    comparison::Fingerprint,
    views::run::{AcceptanceView, RunSummary, StageView},
};

/// A run as stored. Figures over repeats (the summary's `single_stream`,
/// `peak_output` and `flagged`) are worked out by [`super::summarise`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The row.
    pub summary: RunSummary,
    /// Its stages, in their order.
    pub stages: Vec<StageView>,
    /// The engine's settings, secrets masked; empty if they could not be read.
    pub settings: BTreeMap<String, String>,
    /// Version of the metric definitions.
    pub metric_version: u32,
    /// Where the client was, in words; empty if not known.
    pub client: String,
    /// What a reader must know.
    pub remarks: Vec<String>,
    /// Acceptance as read.
    pub acceptance: Option<AcceptanceView>,
}

impl RunFacts {
    /// What two runs are compared by.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let run = &self.summary;
        let pairs = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<String, String>>()
        };
        Fingerprint {
            definition: pairs(&[
                ("workload", run.workload_hash.short()),
                ("metric definitions", &self.metric_version.to_string()),
            ]),
            environment: pairs(&[
                ("engine", run.engine.name()),
                (
                    "engine version",
                    run.engine_version.as_deref().unwrap_or(""),
                ),
                ("model", &run.model),
                ("hardware", &run.hardware),
                ("client", &self.client),
                ("source", run.source.word()),
            ]),
            settings: self.settings.clone(),
        }
    }
}

/// A request, as far as distribution and timeline need it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestPoint {
    /// Index of its stage.
    pub stage: u32,
    /// When it was sent, in seconds since the start of the run.
    pub sent_s: f64,
    /// Time to first token, in ms.
    pub ttft_ms: Option<f64>,
    /// End-to-end latency, in ms.
    pub e2el_ms: Option<f64>,
    /// n / e2el, in tok/s.
    pub e2e_tps: Option<f64>,
    /// It failed.
    pub failed: bool,
}
