//! The result of `tokdyno bench` as a file: documented in `docs/result-file.md`,
//! versioned, and readable by `tokdyno import`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    engine::EngineKind,
    ids::ContentHash,
    meter::{ClientInfo, MeterOutcome, RequestEvent},
    metrics::{METRIC_VERSION, StageAsked, StageFigures, Traced, stage_figures},
    timestamp::Timestamp,
    workload::{StageKind, Workload},
};

/// Version of the file's form.
pub const RESULT_SCHEMA: u32 = 1;

/// The name by which a file says whose it is.
pub const TOOL: &str = "tokdyno";

/// No run lasts as long: 36 years, in nanoseconds. Sums of such times still fit.
const LONGEST_NS: u64 = 1 << 60;

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
    /// `single_stream` or `closed_loop`.
    pub kind: ResultStageKind,
    /// Requests in flight.
    pub concurrency: u32,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Did it run to its end?
    pub complete: bool,
    /// Its figures, one field each.
    #[serde(flatten)]
    pub figures: StageFigures,
    /// Its requests. May be left out; the figures are then taken as stated.
    #[serde(default)]
    pub records: Vec<RequestEvent>,
}

/// The word of a [`StageKind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStageKind {
    /// [`StageKind::SingleStream`].
    SingleStream,
    /// [`StageKind::ClosedLoop`].
    ClosedLoop,
}

impl ResultStage {
    /// Its kind with its concurrency.
    #[must_use]
    pub const fn stage_kind(&self) -> StageKind {
        match self.kind {
            ResultStageKind::SingleStream => StageKind::SingleStream,
            ResultStageKind::ClosedLoop => StageKind::ClosedLoop {
                concurrency: self.concurrency,
            },
        }
    }
}

impl From<StageKind> for ResultStageKind {
    fn from(kind: StageKind) -> Self {
        match kind {
            StageKind::SingleStream => Self::SingleStream,
            StageKind::ClosedLoop { .. } => Self::ClosedLoop,
        }
    }
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
        "The file has schema version {found}; this program reads version {RESULT_SCHEMA}. Import it with the version of Tokdyno that wrote it, or a newer one."
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
        if version != u64::from(RESULT_SCHEMA) {
            return Err(ResultFileError::OtherVersion { found: version });
        }
        let mut file: Self = serde_json::from_value(value).map_err(ResultFileError::Malformed)?;
        file.check()?;
        file.refigure();
        Ok(file)
    }

    /// The hash by which one result is stored once, however often it is brought.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(serde_json::to_vec(self).unwrap_or_default().as_slice())
    }

    fn check(&self) -> Result<(), ResultFileError> {
        let inconsistent = |text: String| Err(ResultFileError::Inconsistent(text));
        if self.metric_version != METRIC_VERSION {
            return inconsistent(format!(
                "its metric definitions are version {}, this program's are {METRIC_VERSION}",
                self.metric_version
            ));
        }
        if let Err(error) = self.workload.validate() {
            return inconsistent(format!("its workload is not possible ({error})"));
        }
        let plan = self.workload.plan();
        for (place, stage) in self.stages.iter().enumerate() {
            let planned = plan.iter().find(|planned| planned.index == stage.index);
            if stage.index as usize != place
                || planned.is_none_or(|planned| {
                    planned.level.kind != stage.stage_kind() || planned.repeat != stage.repeat
                })
            {
                return inconsistent(format!(
                    "stage {place} is not the one its workload plans there"
                ));
            }
            let figures = &stage.figures;
            let counts = [figures.completed, figures.failed, figures.cancelled];
            if counts.into_iter().map(u128::from).sum::<u128>() != u128::from(figures.requests) {
                return inconsistent(format!("the request counts of stage {place} do not add up"));
            }
            if !stage.records.is_empty() && stage.records.len() as u64 != figures.requests {
                return inconsistent(format!(
                    "stage {place} states {} requests and lists {}",
                    figures.requests,
                    stage.records.len()
                ));
            }
            let mut seen = std::collections::HashSet::new();
            for request in &stage.records {
                let record = &request.record;
                if record.stage != stage.index || !seen.insert(record.seq) {
                    return inconsistent(format!(
                        "a request of stage {place} stands there twice or belongs elsewhere"
                    ));
                }
                let times = [
                    Some(record.sent_ns),
                    Some(record.end_ns),
                    record.connect_ns,
                    record.headers_ns,
                    record.first_answer_ns,
                    record.e2el_ns,
                ];
                if times.into_iter().flatten().any(|time| time > LONGEST_NS)
                    || record.prompt > LONGEST_NS
                {
                    return inconsistent(format!(
                        "request {} of stage {place} holds a number that no measurement reaches",
                        record.seq
                    ));
                }
                if record.ttft_ns > record.e2el_ns
                    || record.e2el_ns.is_some_and(|e2el| e2el > record.end_ns)
                {
                    return inconsistent(format!(
                        "request {} of stage {place} ends before it begins",
                        record.seq
                    ));
                }
                if !counts_agree(request) {
                    return inconsistent(format!(
                        "the chunks and tokens of request {} of stage {place} do not add up",
                        record.seq
                    ));
                }
            }
        }
        Ok(())
    }

    fn refigure(&mut self) {
        for stage in &mut self.stages {
            if stage.records.is_empty() {
                continue;
            }
            let asked = StageAsked {
                kind: stage.stage_kind(),
                output_tokens: self.workload.output_tokens,
                exact_length: self.workload.ignore_eos,
                complete: stage.complete,
            };
            let requests: Vec<Traced> = stage
                .records
                .iter()
                .map(|request| (request.record.clone(), request.trace.clone()))
                .collect();
            stage.figures = stage_figures(&asked, &requests);
        }
        let marked = |request: &RequestEvent| request.record.simulated;
        self.endpoint.simulated |= self
            .stages
            .iter()
            .any(|stage| stage.records.iter().any(marked));
    }
}

/// Do the parts of a request's counts fit into their wholes? What reads records
/// relies on it.
fn counts_agree(request: &RequestEvent) -> bool {
    let record = &request.record;
    let total = u64::from(record.completion_tokens.unwrap_or(0));
    let first = u64::from(record.first_chunk_tokens.unwrap_or(0));
    let coalesced_fit = record.coalesced_chunks == 0 || record.coalesced_chunks < record.chunks;
    let trace_fits = request.trace.as_ref().is_none_or(|trace| {
        let told: u64 = trace.tokens.iter().map(|count| u64::from(*count)).sum();
        trace.gaps_us.len() <= record.chunks as usize
            && trace.tokens.len() <= trace.gaps_us.len()
            && told <= total
    });
    first <= total && coalesced_fit && trace_fits
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
mod tests {
    use super::*;
    use crate::{
        record::{RequestRecord, TokenCount},
        workload::{LoadLevel, StageSize},
    };

    pub(crate) fn sample() -> ResultFile {
        let level = LoadLevel {
            kind: StageKind::SingleStream,
            size: StageSize::Requests { requests: 1 },
        };
        let record = RequestRecord {
            stage: 0,
            seq: 0,
            prompt: 0,
            sent_ns: 0,
            connect_ns: None,
            headers_ns: Some(1),
            ttft_ns: Some(20_000_000),
            first_answer_ns: None,
            e2el_ns: Some(2_844_000_000),
            end_ns: 2_845_000_000,
            prompt_tokens: Some(18),
            completion_tokens: Some(256),
            first_chunk_tokens: Some(1),
            cached_tokens: None,
            reasoning_tokens: None,
            chunks: 256,
            coalesced_chunks: 0,
            counted_by: TokenCount::Usage,
            done_seen: true,
            finish_reason: Some("length".to_owned()),
            simulated: false,
            failure: None,
        };
        ResultFile {
            schema_version: RESULT_SCHEMA,
            tool: TOOL.to_owned(),
            tool_version: "0.1.0".to_owned(),
            metric_version: METRIC_VERSION,
            started_at: Timestamp(1),
            finished_at: Timestamp(2),
            configuration: None,
            hardware: None,
            endpoint: ResultEndpoint {
                url: "http://127.0.0.1:8000".to_owned(),
                model: "m".to_owned(),
                engine: Some(EngineKind::Vllm),
                engine_version: None,
                settings: BTreeMap::new(),
                simulated: false,
            },
            client: ClientInfo::default(),
            workload: Workload::with_levels("one", vec![level]),
            outcome: MeterOutcome::Complete,
            stages: vec![ResultStage {
                index: 0,
                kind: ResultStageKind::SingleStream,
                concurrency: 1,
                repeat: 0,
                complete: true,
                figures: StageFigures {
                    requests: 1,
                    completed: 1,
                    ..Default::default()
                },
                records: vec![RequestEvent {
                    record,
                    trace: None,
                }],
            }],
        }
    }

    fn edited(change: impl Fn(&mut serde_json::Value)) -> Result<ResultFile, ResultFileError> {
        let mut value = serde_json::to_value(sample()).expect("serialises");
        change(&mut value);
        ResultFile::parse(value.to_string().as_bytes())
    }

    #[test]
    fn figures_are_worked_out_again_from_the_requests() {
        let file =
            edited(|value| value["stages"][0]["output_tps"] = 9999.0.into()).expect("a file");
        let output_tps = file.stages[0].figures.output_tps.expect("a figure");
        assert!((output_tps - 256.0 / 2.844).abs() < 1e-9, "{output_tps}");
    }

    #[test]
    fn the_promised_fields_stand_in_each_stage() {
        let file = edited(|_| ()).expect("a file");
        let value = serde_json::to_value(&file).expect("serialises");
        let stage = &value["stages"][0];
        for field in [
            "concurrency",
            "repeat",
            "completed",
            "failed",
            "duration_s",
            "output_tokens",
            "output_tps",
        ] {
            assert!(stage[field].is_number(), "{field}");
        }
        for object in ["ttft_ms", "tpot_ms", "e2el_ms", "e2e_tps", "decode_tps"] {
            for field in ["mean", "p50", "p90", "p95", "p99"] {
                assert!(stage[object].get(field).is_some(), "{object}.{field}");
            }
        }
        assert!(stage["ttft_ms"]["p99"].is_null(), "one request has no p99");
    }

    #[test]
    fn a_marked_request_makes_the_file_simulated() {
        let file =
            edited(|value| value["stages"][0]["records"][0]["record"]["simulated"] = true.into())
                .expect("a file");
        assert!(file.endpoint.simulated);
    }

    #[test]
    fn what_cannot_be_imported_says_why() {
        let refused = |result: Result<ResultFile, ResultFileError>| {
            result.expect_err("a refusal").to_string()
        };
        assert!(refused(ResultFile::parse(b"hello")).contains("not JSON"));
        assert!(refused(ResultFile::parse(b"{}")).contains("no Tokdyno result"));
        assert!(
            refused(ResultFile::parse(
                br#"{"output_throughput":1,"total_token_throughput":2}"#
            ))
            .contains("vllm bench serve")
        );
        assert!(
            refused(edited(|value| value["schema_version"] = 7.into()))
                .contains("schema version 7")
        );
        assert!(
            refused(edited(|value| {
                value.as_object_mut().expect("an object").remove("workload");
            }))
            .contains("cannot be read")
        );
        assert!(
            refused(edited(|value| value["stages"][0]["completed"] = 5.into()))
                .contains("do not add up")
        );
        assert!(
            refused(edited(|value| value["stages"][0]["repeat"] = 3.into())).contains("stage 0")
        );
        assert!(
            refused(edited(|value| value["stages"][0]["records"][0]["record"]
                ["ttft_ns"] = 9_000_000_000_u64.into()))
            .contains("ends before it begins")
        );
        assert!(
            refused(edited(
                |value| value["stages"][0]["records"][0]["record"]["sent_ns"] = u64::MAX.into()
            ))
            .contains("no measurement reaches")
        );
        assert!(
            refused(edited(|value| {
                value["stages"][0]["failed"] = u64::MAX.into();
                value["stages"][0]["cancelled"] = 1.into();
            }))
            .contains("do not add up")
        );
    }

    #[test]
    fn counts_beyond_their_wholes_are_refused() {
        let change = |field: &str, number: u32| {
            edited(|value| {
                value["stages"][0]["records"][0]["record"][field] = number.into();
            })
        };
        let trace = |gaps_us: Vec<u32>, tokens: Vec<u32>| {
            edited(|value| {
                value["stages"][0]["records"][0]["trace"] =
                    serde_json::json!({"gaps_us": gaps_us, "tokens": tokens});
            })
        };
        for result in [
            change("first_chunk_tokens", 257),
            change("coalesced_chunks", 256),
            change("coalesced_chunks", u32::MAX),
            trace(vec![1, 1], vec![1, 4_000_000_000]),
            trace(vec![1, 1], vec![u32::MAX, u32::MAX]),
            trace(vec![1], vec![1, 1]),
            trace(vec![1; 257], vec![]),
        ] {
            let said = result.expect_err("a refusal").to_string();
            assert!(said.contains("do not add up"), "{said}");
        }
        assert!(change("coalesced_chunks", 255).is_ok());
        let file = trace(vec![20_000, 100, 100], vec![1, 2, 253]).expect("a file");
        assert_eq!(file.stages[0].figures.itl_ms.count, 255);
    }
}
