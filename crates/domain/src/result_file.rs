//! The result of `tokdyno bench` as a file: documented in `docs/result-file.md`,
//! versioned, and readable by `tokdyno import`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    endpoint::EndpointUrl,
    engine::EngineKind,
    ids::ContentHash,
    meter::{ClientInfo, MeterOutcome, RequestEvent},
    metrics::{Distribution, METRIC_VERSION, StageAsked, StageFigures, Traced, stage_figures},
    timestamp::Timestamp,
    views::measure::MAX_NAME,
    workload::{StageKind, Workload},
};

/// Version of the file's form.
pub const RESULT_SCHEMA: u32 = 1;

/// The name by which a file says whose it is.
pub const TOOL: &str = "tokdyno";

/// No run lasts as long: 36 years, in nanoseconds. Sums of such times still fit.
const LONGEST_NS: u64 = 1 << 60;

/// No figure of a measurement is larger, whatever its unit.
const LARGEST_FIGURE: f64 = 1e12;

/// 2000-01-01 and 2200-01-01, in UTC: no run is older, and a later one is a
/// clock's fault.
const TIMES: std::ops::Range<Timestamp> =
    Timestamp(946_684_800_000_000)..Timestamp(7_258_118_400_000_000);

/// Most characters of a model's name.
const MAX_MODEL: usize = 500;
/// Most characters of an address.
const MAX_ADDRESS: usize = 2000;
/// Most settings of a server.
const MAX_SETTINGS: usize = 1000;
/// Most characters of a setting's value.
const MAX_SETTING: usize = 10_000;

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
        // What follows from the requests must be possible as well.
        file.check_figures()?;
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
        self.check_times()?;
        self.check_names()?;
        self.check_endpoint()?;
        self.check_figures()?;
        let plan = self.workload.plan();
        if self.outcome == MeterOutcome::Complete && self.stages.len() < plan.len() {
            return inconsistent(format!(
                "it says that it is complete and holds {} of the {} stages of its workload",
                self.stages.len(),
                plan.len()
            ));
        }
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
                if record.failure.is_none()
                    && (record.completion_tokens.unwrap_or(0) == 0
                        || record.ttft_ns.is_none()
                        || record.e2el_ns.is_none())
                {
                    return inconsistent(format!(
                        "request {} of stage {place} succeeded without tokens or without their times",
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

    fn check_times(&self) -> Result<(), ResultFileError> {
        let inconsistent = |text: &str| Err(ResultFileError::Inconsistent(text.to_owned()));
        if !TIMES.contains(&self.started_at) || !TIMES.contains(&self.finished_at) {
            return inconsistent("it was not measured between the years 2000 and 2200");
        }
        if self.finished_at < self.started_at {
            return inconsistent("it ended before it began");
        }
        Ok(())
    }

    fn check_endpoint(&self) -> Result<(), ResultFileError> {
        self.endpoint
            .url
            .parse::<EndpointUrl>()
            .map(drop)
            .map_err(|error| {
                let sentence = error.to_string();
                let sentence = sentence.trim_end_matches('.');
                ResultFileError::Inconsistent(format!(
                    "its endpoint's address is none ({sentence})"
                ))
            })
    }

    fn check_names(&self) -> Result<(), ResultFileError> {
        let inconsistent = |text: String| Err(ResultFileError::Inconsistent(text));
        for (what, text, max) in [
            (
                "configuration's name",
                self.configuration.as_deref(),
                MAX_NAME,
            ),
            ("hardware's name", self.hardware.as_deref(), MAX_NAME),
            (
                "model's name",
                Some(self.endpoint.model.as_str()),
                MAX_MODEL,
            ),
            ("address", Some(self.endpoint.url.as_str()), MAX_ADDRESS),
        ] {
            let length = text.map_or(0, |text| text.chars().count());
            if length > max {
                return inconsistent(format!(
                    "its {what} is {length} characters long and at most {max} are kept"
                ));
            }
        }
        let settings = &self.endpoint.settings;
        if settings.len() > MAX_SETTINGS {
            return inconsistent(format!(
                "it lists {} settings and at most {MAX_SETTINGS} are kept",
                settings.len()
            ));
        }
        let long = |text: &String| text.chars().count() > MAX_SETTING;
        if settings
            .iter()
            .any(|(name, value)| long(name) || long(value))
        {
            return inconsistent(format!(
                "one of its settings is longer than {MAX_SETTING} characters"
            ));
        }
        Ok(())
    }

    fn check_figures(&self) -> Result<(), ResultFileError> {
        for (place, stage) in self.stages.iter().enumerate() {
            if let Some((name, value)) = impossible_figure(&stage.figures) {
                return Err(ResultFileError::Inconsistent(format!(
                    "{name} of stage {place} is {value:e}, which no measurement yields"
                )));
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

/// The first figure that is negative, not finite or beyond [`LARGEST_FIGURE`].
fn impossible_figure(figures: &StageFigures) -> Option<(&'static str, f64)> {
    let single = |name, value: Option<f64>| value.map(|value| (name, value));
    let of = |name, spread: &Distribution| {
        [
            spread.mean,
            spread.min,
            spread.p50,
            spread.p90,
            spread.p95,
            spread.p99,
            spread.max,
        ]
        .map(|value| single(name, value))
    };
    [
        single("duration_s", figures.duration_s),
        single("output_tps", figures.output_tps),
        single("steady_output_tps", figures.steady_output_tps),
        single("achieved_concurrency", figures.achieved_concurrency),
        single("coalesced_share", figures.coalesced_share),
    ]
    .into_iter()
    .chain(of("ttft_ms", &figures.ttft_ms))
    .chain(of("tpot_ms", &figures.tpot_ms))
    .chain(of("itl_ms", &figures.itl_ms))
    .chain(of("icl_ms", &figures.icl_ms))
    .chain(of("e2el_ms", &figures.e2el_ms))
    .chain(of("e2e_tps", &figures.e2e_tps))
    .chain(of("decode_tps", &figures.decode_tps))
    .flatten()
    .find(|(_, value)| !(0.0..=LARGEST_FIGURE).contains(value))
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
            started_at: Timestamp(1_795_968_039_000_000),
            finished_at: Timestamp(1_795_968_042_000_000),
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

    fn assert_refused(word: &str, change: impl Fn(&mut serde_json::Value)) {
        let said = edited(change).expect_err(word).to_string();
        assert!(said.contains("contradicts itself"), "{said}");
        assert!(said.contains(word), "{word}: {said}");
    }

    #[test]
    fn figures_that_no_measurement_yields_are_refused() {
        for number in [-1.0, 2e12, f64::MIN, f64::MAX] {
            for field in [
                "duration_s",
                "output_tps",
                "steady_output_tps",
                "achieved_concurrency",
                "coalesced_share",
            ] {
                assert_refused(field, |value| value["stages"][0][field] = number.into());
            }
            for field in [
                "ttft_ms",
                "tpot_ms",
                "itl_ms",
                "icl_ms",
                "e2el_ms",
                "e2e_tps",
                "decode_tps",
            ] {
                for part in ["mean", "min", "p50", "p90", "p95", "p99", "max"] {
                    // Requests or none: what is stated must be possible.
                    assert_refused(field, |value| {
                        value["stages"][0][field][part] = number.into();
                    });
                    assert_refused(field, |value| {
                        value["stages"][0]["records"] = serde_json::json!([]);
                        value["stages"][0][field][part] = number.into();
                    });
                }
            }
        }
        let figures = StageFigures {
            output_tps: Some(f64::NAN),
            ..Default::default()
        };
        assert!(impossible_figure(&figures).is_some());
        assert!(edited(|value| value["stages"][0]["output_tps"] = 0.0.into()).is_ok());
    }

    #[test]
    fn figures_worked_out_from_impossible_requests_are_refused() {
        assert_refused("which no measurement yields", |value| {
            let record = &mut value["stages"][0]["records"][0]["record"];
            record["completion_tokens"] = u32::MAX.into();
            record["ttft_ns"] = 1.into();
            record["e2el_ns"] = 1.into();
        });
    }

    #[test]
    fn a_success_needs_tokens_and_times() {
        for field in ["completion_tokens", "ttft_ns", "e2el_ns"] {
            assert!(
                edited(|value| {
                    value["stages"][0]["records"][0]["record"][field] = serde_json::Value::Null;
                })
                .is_err(),
                "{field}"
            );
        }
        assert_refused("without tokens or without their times", |value| {
            let record = &mut value["stages"][0]["records"][0]["record"];
            record["completion_tokens"] = 0.into();
            record["first_chunk_tokens"] = serde_json::Value::Null;
        });
        let failed = edited(|value| {
            let record = &mut value["stages"][0]["records"][0]["record"];
            for field in [
                "completion_tokens",
                "first_chunk_tokens",
                "ttft_ns",
                "e2el_ns",
            ] {
                record[field] = serde_json::Value::Null;
            }
            record["failure"] =
                serde_json::json!({"kind": "stalled", "message": "m", "http_status": null});
        });
        assert!(failed.is_ok(), "{failed:?}");
    }

    #[test]
    fn complete_means_every_stage() {
        let none = |value: &mut serde_json::Value| value["stages"] = serde_json::json!([]);
        assert_refused("0 of the 1 stages", none);
        assert!(
            edited(|value| {
                none(value);
                value["outcome"] = "cancelled".into();
            })
            .is_ok()
        );
    }

    #[test]
    fn times_that_no_clock_shows_are_refused() {
        for field in ["started_at", "finished_at"] {
            for time in [i64::MIN, -1, 1, TIMES.start.0 - 1, TIMES.end.0, i64::MAX] {
                assert_refused("2000 and 2200", |value| value[field] = time.into());
            }
        }
        assert_refused("ended before it began", |value| {
            value["finished_at"] = TIMES.start.0.into();
        });
        assert_eq!(TIMES.start.to_datetime().year(), 2000);
        assert_eq!(TIMES.end.to_datetime().year(), 2200);
        assert_eq!(Timestamp(TIMES.end.0 - 1).to_datetime().year(), 2199);
    }

    #[test]
    fn addresses_that_cannot_be_measured_are_refused() {
        for (url, word) in [
            ("", "No address"),
            ("javascript:alert(1)", "is not an address"),
            ("javascript://a/%0aalert(1)", "scheme `javascript`"),
            ("file:///etc/passwd", "scheme `file`"),
            ("http://me:secret@127.0.0.1:8000", "user name or password"),
            ("http://127.0.0.1:8000/?key=1", "cannot have"),
        ] {
            assert_refused(word, |value| value["endpoint"]["url"] = url.into());
        }
        let said = edited(|value| value["endpoint"]["url"] = "http://me:secret@a".into())
            .expect_err("a refusal")
            .to_string();
        assert!(!said.contains("secret"), "{said}");
    }

    #[test]
    fn names_and_settings_have_bounds() {
        let long = |length: usize| serde_json::Value::from("é".repeat(length));
        for field in ["configuration", "hardware"] {
            assert!(edited(|value| value[field] = long(MAX_NAME)).is_ok());
            assert_refused(field, |value| value[field] = long(MAX_NAME + 1));
        }
        let model =
            |length| move |value: &mut serde_json::Value| value["endpoint"]["model"] = long(length);
        assert!(edited(model(MAX_MODEL)).is_ok());
        assert_refused("model", model(MAX_MODEL + 1));
        assert_refused("address", |value| {
            value["endpoint"]["url"] = format!("http://a/{}", "b".repeat(MAX_ADDRESS)).into();
        });
        let setting = |length| {
            move |value: &mut serde_json::Value| {
                value["endpoint"]["settings"]["a"] = long(length);
            }
        };
        assert!(edited(setting(MAX_SETTING)).is_ok());
        assert_refused("settings is longer", setting(MAX_SETTING + 1));
        let settings = |count: usize| {
            move |value: &mut serde_json::Value| {
                for number in 0..count {
                    value["endpoint"]["settings"][number.to_string()] = "1".into();
                }
            }
        };
        assert!(edited(settings(MAX_SETTINGS)).is_ok());
        assert_refused("1001 settings", settings(MAX_SETTINGS + 1));
    }
}
