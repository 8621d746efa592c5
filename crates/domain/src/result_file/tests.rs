//! What is read, and what is refused.

mod validity;
mod version_2;

use std::collections::BTreeMap;

use super::{
    check::{MAX_ADDRESS, MAX_MODEL, MAX_SETTING, MAX_SETTINGS, TIMES},
    figures::impossible_figure,
    *,
};
use crate::{
    metrics::METRIC_VERSION,
    record::{RequestRecord, TokenCount},
    views::measure::MAX_NAME,
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
        intended_ns: None,
        turn: None,
        asked_tokens: None,
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
        skipped: vec![],
        stages: vec![ResultStage {
            index: 0,
            kind: StageKind::SingleStream,
            conditions: StageConditions::default(),
            repeat: 0,
            complete: true,
            figures: StageFigures {
                requests: 1,
                completed: 1,
                ..Default::default()
            },
            histograms: None,
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
    let file = edited(|value| value["stages"][0]["output_tps"] = 9999.0.into()).expect("a file");
    let output_tps = file.stages[0].figures.output_tps.expect("a figure");
    assert!((output_tps - 256.0 / 2.844).abs() < 1e-9, "{output_tps}");
}

fn closed(place: &mut serde_json::Value) {
    place["kind"] = "closed_loop".into();
    place["concurrency"] = 1.into();
}

#[test]
fn the_promised_fields_stand_in_each_stage() {
    let file = edited(|value| {
        closed(&mut value["workload"]["levels"][0]);
        closed(&mut value["stages"][0]);
    })
    .expect("a file");
    let value = serde_json::to_value(&file).expect("serialises");
    let stage = &value["stages"][0];
    for field in [
        "concurrency",
        "request_throughput",
        "peak_in_flight",
        "chunks",
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
    let refused =
        |result: Result<ResultFile, ResultFileError>| result.expect_err("a refusal").to_string();
    assert!(refused(ResultFile::parse(b"hello")).contains("not JSON"));
    assert!(refused(ResultFile::parse(b"{}")).contains("no Tokdyno result"));
    assert!(
        refused(ResultFile::parse(
            br#"{"output_throughput":1,"total_token_throughput":2}"#
        ))
        .contains("vllm bench serve")
    );
    assert!(
        refused(edited(|value| value["schema_version"] = 7.into())).contains("schema version 7")
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
    assert!(refused(edited(|value| value["stages"][0]["repeat"] = 3.into())).contains("stage 0"));
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
            "peak_output_tps",
            "request_throughput",
            "coalesced_share",
        ] {
            assert_refused(field, |value| value["stages"][0][field] = number.into());
        }
        for field in [
            "ttft_ms",
            "ttft_intended_ms",
            "first_answer_ms",
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
