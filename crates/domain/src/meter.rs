//! What crosses between the measuring process and whoever started it.
//!
//! The meter reads one line of JSON from standard input, the [`MeterSpec`], and
//! then only the word `cancel`; the end of its input means that its parent is
//! gone. It writes [`MeterEvent`]s, one JSON object a line, to standard output
//! and, where asked, appends the same lines to a spool file. Sequence numbers
//! start at 1 and have no gaps, so a reader that knows the last one it stored
//! can go on after any crash.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    conditions::StageConditions,
    endpoint::{EndpointUrl, TlsTrust},
    metrics::StageFigures,
    record::{ChunkTrace, RequestRecord},
    timestamp::Timestamp,
    workload::{StagePlan, Workload},
};

/// Version of the specification and of the events.
pub const METER_SCHEMA: u32 = 2;

/// The word that makes a meter stop: in-flight requests are dropped, what is
/// finished is kept.
pub const CANCEL_WORD: &str = "cancel";

/// A key for an endpoint. Never shown: its `Debug` is a row of dots, and nothing
/// but the specification on the meter's standard input serialises it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key; blank is none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the `Authorization` header alone.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(•••)")
    }
}

/// What to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeterSpec {
    /// [`METER_SCHEMA`].
    pub schema: u32,
    /// Where.
    pub endpoint: EndpointUrl,
    /// Under which model name; none means the first that `/v1/models` lists.
    pub model: Option<String>,
    /// Whose certificates are believed.
    #[serde(default)]
    pub tls: TlsTrust,
    /// The key, if the endpoint wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<ApiKey>,
    /// What is sent.
    pub workload: Workload,
    /// Whether the meter first measures what this machine can time truthfully.
    #[serde(default)]
    pub certify: Certify,
    /// File to append the events to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool: Option<String>,
}

/// Whether the meter measures itself before a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certify {
    /// Yes, unless it did so on this machine at this concurrency not long ago.
    #[default]
    Remembered,
    /// Yes, in any case.
    Anew,
    /// No.
    Off,
}

/// One line of the meter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeterEvent {
    /// 1, 2, 3 …
    pub seq: u64,
    /// When it was written, by the wall clock.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub kind: MeterEventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum MeterEventKind {
    /// The meter is about to send its first request.
    Started {
        /// The meter's version.
        meter_version: String,
        /// The machine it runs on.
        client: ClientInfo,
        /// The model name that is sent.
        model: String,
        /// Number of stages planned.
        stages: u32,
        /// Request fields the server refused before timing began, and which are
        /// therefore not sent (such as `stream_options.continuous_usage_stats`).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped_fields: Vec<String>,
    },
    /// A stage begins, with its warm-up.
    StageStarted {
        /// The plan.
        stage: StagePlan,
    },
    /// A request is over. Boxed: it is by far the commonest and largest.
    Request(Box<RequestEvent>),
    /// How far it is, about four times a second. Not kept.
    Progress(Progress),
    /// A stage is over.
    StageFinished {
        /// Which.
        stage: u32,
        /// Its figures.
        figures: Box<StageFigures>,
        /// What went on around it.
        #[serde(default)]
        conditions: Box<StageConditions>,
    },
    /// A stage of the plan is left out, by a rule of the workload.
    StageSkipped {
        /// Which.
        stage: u32,
        /// A sentence.
        reason: String,
    },
    /// Nothing more will come.
    Finished {
        /// How it ended.
        outcome: MeterOutcome,
    },
}

/// A request that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestEvent {
    /// Its record.
    pub record: RequestRecord,
    /// Its chunk times, if it had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<ChunkTrace>,
}

/// The machine that measures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientInfo {
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Logical processors.
    pub cpus: u32,
    /// Frequency governor of the first processor, where readable.
    pub governor: Option<String>,
}

/// What a stage is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Warm-up requests, thrown away.
    WarmUp,
    /// Requests that count.
    Measuring,
    /// No more are sent; those in flight are waited for.
    Draining,
}

/// How far a stage is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Index of the stage.
    pub stage: u32,
    /// Number of stages.
    pub stages: u32,
    /// What it is doing.
    pub phase: Phase,
    /// Requests over, failed ones too.
    pub done: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Requests planned; none for a stage bounded by time.
    pub planned: Option<u64>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Tokens per second over about the last second.
    pub current_tps: Option<f64>,
    /// Seconds since the meter started.
    pub elapsed_s: f64,
    /// Seconds until all stages are over, as well as can be told.
    pub left_s: Option<f64>,
}

/// How a measurement ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum MeterOutcome {
    /// All stages ran.
    Complete,
    /// Stopped by the word or by a lost parent; what was finished is kept.
    Cancelled,
    /// It could not go on (address wrong, every warm-up request failed, …).
    Failed {
        /// A sentence with cause and remedy.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Preset;

    #[test]
    fn a_key_is_never_shown() {
        let key = ApiKey::new(" sk-secret ").expect("a key");
        assert_eq!(format!("{key:?}"), "ApiKey(•••)");
        assert_eq!(key.reveal(), "sk-secret");
        assert_eq!(ApiKey::new("  "), None);
    }

    #[test]
    fn specification_and_events_read_back() {
        let spec = MeterSpec {
            schema: METER_SCHEMA,
            endpoint: "http://127.0.0.1:8000".parse().expect("an address"),
            model: None,
            tls: TlsTrust::System,
            api_key: ApiKey::new("k"),
            certify: Certify::Off,
            workload: Preset::Standard.workload(),
            spool: None,
        };
        let text = serde_json::to_string(&spec).expect("serialises");
        assert_eq!(
            serde_json::from_str::<MeterSpec>(&text).expect("reads back"),
            spec
        );

        let stage = spec.workload.plan()[1];
        for kind in [
            MeterEventKind::StageStarted { stage },
            MeterEventKind::Finished {
                outcome: MeterOutcome::Failed {
                    reason: "no".to_owned(),
                },
            },
            MeterEventKind::StageFinished {
                stage: 1,
                figures: Box::default(),
                conditions: Box::default(),
            },
        ] {
            let event = MeterEvent {
                seq: 3,
                at: Timestamp(5),
                kind,
            };
            let text = serde_json::to_string(&event).expect("serialises");
            assert!(!text.contains('\n'));
            assert_eq!(
                serde_json::from_str::<MeterEvent>(&text).expect("reads back"),
                event
            );
        }
    }
}
