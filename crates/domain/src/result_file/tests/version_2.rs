//! What version 2 brought, and that version 1 is still read.

use super::*;

/// As version 1 wrote it: no conditions, and a concurrency for the single stream.
fn old(value: &mut serde_json::Value) {
    value["schema_version"] = 1.into();
    let stage = value["stages"][0].as_object_mut().expect("a stage");
    stage.insert("concurrency".to_owned(), 1.into());
    for field in [
        "conditions",
        "peak_output_tps",
        "request_throughput",
        "peak_in_flight",
        "chunks",
        "ttft_intended_ms",
        "first_answer_ms",
    ] {
        assert!(stage.remove(field).is_some(), "{field}");
    }
}

#[test]
fn files_of_version_1_are_read() {
    let file = edited(old).expect("a file");
    assert_eq!(file.schema_version, RESULT_SCHEMA);
    assert_eq!(file.stages[0].kind, StageKind::SingleStream);
    assert_eq!(file.hash(), edited(|_| ()).expect("a file").hash());
    let without_records = edited(|value| {
        old(value);
        value["stages"][0]["records"] = serde_json::json!([]);
    });
    let file = without_records.expect("a file");
    assert_eq!(file.stages[0].histograms, None);
    let one_slot = edited(|value| {
        old(value);
        closed(&mut value["workload"]["levels"][0]);
        closed(&mut value["stages"][0]);
    });
    let kind = one_slot.expect("a file").stages[0].kind;
    assert_eq!(kind, StageKind::ClosedLoop { concurrency: 1 });
    for version in [0, RESULT_SCHEMA + 1] {
        assert!(edited(|value| value["schema_version"] = version.into()).is_err());
    }
}

#[test]
fn histograms_follow_from_the_requests_and_must_be_some() {
    let file = edited(|_| ()).expect("a file");
    let histograms = file.stages[0].histograms.as_ref().expect("histograms");
    assert_eq!(histograms.e2el.len(), 1);
    let mut value = serde_json::to_value(&file).expect("serialises");
    value["stages"][0]["histograms"]["ttft"]["counts"] = serde_json::json!([[5, 7]]);
    let parse = |value: &serde_json::Value| ResultFile::parse(value.to_string().as_bytes());
    assert_eq!(parse(&value).expect("a file"), file, "edited in vain");
    value["stages"][0]["histograms"]["ttft"]["counts"] = serde_json::json!([[5, 0]]);
    let said = parse(&value).expect_err("a refusal").to_string();
    assert!(said.contains("counted 0 times"), "{said}");
}

#[test]
fn open_loops_ramps_and_replays_stand_in_files() {
    for kind in [
        serde_json::json!({"kind": "open_loop", "rate": 2.5, "arrivals": "poisson"}),
        serde_json::json!({
            "kind": "ramp", "from": 1.0, "to": 2.0, "arrivals": "gamma", "burstiness": 0.5,
        }),
    ] {
        let with = |stage: &serde_json::Value| {
            edited(|value| {
                for (name, part) in kind.as_object().expect("an object") {
                    value["workload"]["levels"][0][name] = part.clone();
                }
                for (name, part) in stage.as_object().expect("an object") {
                    value["stages"][0][name] = part.clone();
                }
                value["stages"][0]["records"][0]["record"]["intended_ns"] = 0.into();
            })
        };
        let file = with(&kind).expect("a file");
        assert!(file.stages[0].kind.is_open());
        assert_eq!(file.stages[0].figures.ttft_intended_ms.count, 1);
        let mut other = kind.clone();
        other["arrivals"] = "constant".into();
        let said = with(&other).expect_err("a refusal").to_string();
        assert!(said.contains("not the one its workload plans"), "{said}");
    }
}

/// A climb of four steps in three repeats, which ran these stages and skipped those.
fn long_climb(
    outcome: MeterOutcome,
    ran: &[u32],
    skipped: &[u32],
) -> Result<ResultFile, ResultFileError> {
    let mut file = sample();
    let level = |concurrency| LoadLevel {
        kind: StageKind::ClosedLoop { concurrency },
        size: StageSize::Requests { requests: 8 },
    };
    file.workload.levels = vec![level(1), level(2), level(4), level(8)];
    file.workload.repeats = 3;
    file.workload.saturation = Some(crate::workload::Saturation {
        min_gain_percent: 5,
    });
    let stage = file.stages.remove(0);
    file.stages = file
        .workload
        .plan()
        .into_iter()
        .filter(|planned| ran.contains(&planned.index))
        .map(|planned| ResultStage {
            index: planned.index,
            repeat: planned.repeat,
            kind: planned.level.kind,
            records: vec![],
            ..stage.clone()
        })
        .collect();
    file.outcome = outcome;
    file.skipped = skipped.to_vec();
    ResultFile::parse(&serde_json::to_vec(&file).expect("serialises"))
}

#[test]
fn a_climb_skips_all_above_one_step_in_every_repeat() {
    let complete = |ran: &[u32], skipped: &[u32]| long_climb(MeterOutcome::Complete, ran, skipped);
    let two = [0, 1, 4, 5, 8, 9];
    assert!(complete(&two, &[2, 3, 6, 7, 10, 11]).is_ok());
    let three = [0, 1, 2, 4, 5, 6, 8, 9, 10];
    assert!(complete(&three, &[3, 7, 11]).is_ok());
    for (ran, skipped) in [
        // Only a middle step.
        (&[0, 1, 3, 4, 5, 7, 8, 9, 11][..], &[2, 6, 10][..]),
        // In one repeat, or in none of the first.
        (&[0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11], &[3]),
        (&[0, 1, 2, 3, 4, 5, 6, 8, 9, 10], &[7, 11]),
        // All of it.
        (&[], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ] {
        let said = complete(ran, skipped).expect_err("a refusal").to_string();
        assert!(said.contains("it skipped"), "{said}");
    }
    let cancelled =
        |ran: &[u32], skipped: &[u32]| long_climb(MeterOutcome::Cancelled, ran, skipped);
    assert!(cancelled(&[0, 1, 4], &[2, 3]).is_ok());
    assert!(cancelled(&[0, 1, 4, 5], &[2, 3, 6]).is_ok());
    assert!(cancelled(&[0, 1, 4, 5], &[2, 3, 7]).is_err());
    assert!(cancelled(&[0, 1, 2, 4], &[3]).is_ok());
    assert!(cancelled(&[0, 1, 2, 4, 5, 6, 7], &[3]).is_err());
}

#[test]
fn more_stages_than_planned_are_refused_before_they_are_read() {
    let many = |count: usize, workload: bool| {
        edited(|value| {
            // No stage at all, which reading them would find out.
            value["stages"] = serde_json::json!(vec![serde_json::json!({}); count]);
            if !workload {
                value["workload"] = serde_json::json!({});
            }
        })
        .expect_err("a refusal")
        .to_string()
    };
    let said = many(10_000, true);
    assert!(said.contains("holds 10000 stages"), "{said}");
    assert!(said.contains("can have 1 at most"), "{said}");
    assert!(many(2, true).contains("holds 2 stages"));
    assert!(many(10_000, false).contains("can have 6400 at most"));
    assert!(many(6400, false).contains("cannot be read"));
}

#[test]
fn stated_counts_are_heeded_without_requests() {
    use crate::metrics::StageFlag;
    let flags = |failed: u64, complete: bool| {
        let file = edited(|value| {
            let stage = &mut value["stages"][0];
            stage["records"] = serde_json::json!([]);
            stage["complete"] = complete.into();
            stage["requests"] = 1000.into();
            stage["failed"] = failed.into();
            stage["completed"] = (1000 - failed).into();
        });
        file.expect("a file").stages[0].figures.flags.clone()
    };
    assert_eq!(flags(10, true), []);
    let failures = StageFlag::Failures {
        failed: 11,
        requests: 1000,
    };
    assert_eq!(flags(0, false), [StageFlag::Partial]);
    let both = [failures, StageFlag::Partial];
    assert_eq!(flags(11, false), both);
    assert_eq!(flags(11, true), both[..1]);
}

/// A climb of two steps in two repeats, of which the last is left out.
fn climb(skipped: &[u32]) -> Result<ResultFile, ResultFileError> {
    let mut file = sample();
    let level = |concurrency| LoadLevel {
        kind: StageKind::ClosedLoop { concurrency },
        size: StageSize::Requests { requests: 2 },
    };
    file.workload.levels = vec![level(1), level(2)];
    file.workload.repeats = 2;
    file.workload.saturation = Some(crate::workload::Saturation {
        min_gain_percent: 5,
    });
    let stage = file.stages.remove(0);
    file.stages = [(0, 1, 0), (1, 2, 0), (2, 1, 1)]
        .into_iter()
        .map(|(index, concurrency, repeat)| ResultStage {
            index,
            repeat,
            kind: StageKind::ClosedLoop { concurrency },
            records: vec![],
            ..stage.clone()
        })
        .collect();
    file.skipped = skipped.to_vec();
    ResultFile::parse(&serde_json::to_vec(&file).expect("serialises"))
}

#[test]
fn only_steps_of_a_climb_are_skipped() {
    for skipped in [&[][..], &[2], &[3], &[3, 3], &[4], &[0, 3]] {
        assert!(climb(skipped).is_err(), "{skipped:?}");
    }
    assert_refused("no rule for", |value| {
        value["skipped"] = serde_json::json!([0]);
    });
}

fn conditions(conditions: serde_json::Value) -> impl Fn(&mut serde_json::Value) {
    move |value| value["stages"][0]["conditions"] = conditions.clone()
}

fn certificate(chunks_per_s: f64) -> serde_json::Value {
    serde_json::json!({"certificate": {
        "at": 1_795_968_039_000_000_i64, "concurrency": 1, "chunks_per_s": chunks_per_s,
        "is_limit": true, "ttft_error_p50_ms": -0.01, "ttft_error_p99_ms": 0.1,
        "tpot_error": -0.001,
    }})
}

#[test]
fn conditions_are_heeded_with_records_and_without() {
    let flagged = |without_records: bool| {
        let file = edited(|value| {
            conditions(certificate(10.0))(value);
            if without_records {
                value["stages"][0]["records"] = serde_json::json!([]);
                value["stages"][0]["chunks"] = 256.into();
                value["stages"][0]["duration_s"] = 2.844.into();
            }
        });
        file.expect("a file").stages[0].figures.flags.clone()
    };
    for flags in [flagged(false), flagged(true)] {
        assert!(
            matches!(
                flags.as_slice(),
                [crate::metrics::StageFlag::BeyondCertificate { .. }]
            ),
            "{flags:?}"
        );
    }
}

#[test]
fn conditions_that_cannot_have_been_are_refused() {
    assert!(edited(conditions(certificate(1e5))).is_ok());
    assert_refused("chunks_per_s", conditions(certificate(-1.0)));
    for (part, field, number) in [
        ("engine", "running_mean", -1.0),
        ("engine", "kv_use_max", 7.0),
        ("engine", "ttft_mean_ms", 1e13),
        ("client", "thread_busy", 3.0),
        ("client", "stolen", 1.1),
        ("client", "kernel_times", -0.1),
        ("client", "wake_lag_p99_ms", f64::MAX),
        ("client", "send_lag_p99_ms", -1e-9),
    ] {
        let said = |number: f64| {
            let part = if part == "engine" {
                serde_json::json!({"engine": {
                    "samples": 1, "finished": u64::from(number < 0.0), field: number,
                }})
            } else {
                serde_json::json!({"client": {field: number}})
            };
            edited(conditions(part))
        };
        assert!(said(0.5).is_ok(), "{field}");
        let refused = said(number).expect_err(field).to_string();
        assert!(refused.contains(field), "{field}: {refused}");
    }
    assert_refused(
        "finished",
        conditions(serde_json::json!({"engine": {"samples": 1, "finished": u64::MAX}})),
    );
    assert_refused(
        "longer than any",
        conditions(serde_json::json!({"ended_early": "a".repeat(10_001)})),
    );
    assert_refused(
        "years 2000 and 2200",
        conditions({
            let mut old = certificate(1.0);
            old["certificate"]["at"] = 0.into();
            old
        }),
    );
}

/// The published schema must know what is written.
#[test]
fn the_schema_names_every_field() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../docs/result-file.schema.json"))
            .expect("a schema");
    assert_eq!(
        schema["properties"]["schema_version"]["const"],
        RESULT_SCHEMA
    );
    let file = edited(|value| {
        conditions(certificate(1e5))(value);
        let stage = &mut value["stages"][0];
        stage["conditions"]["engine"] = serde_json::json!({
            "samples": 1, "generated_before": 0, "generated_after": 256,
            "process_started_s": 1_795_960_000.5,
        });
        stage["conditions"]["replies"] = serde_json::json!({
            "judged": 1, "looping": 0, "left_open": 1, "odd_usage": 1,
        });
        stage["conditions"]["client"] = serde_json::json!({"stood_still_ms": 60.0});
        value["workload"]["goodput"] = serde_json::json!({"ttft_ms": 5.0});
    });
    let value = serde_json::to_value(file.expect("a file")).expect("serialises");
    let defs = &schema["$defs"];
    let stage = &value["stages"][0];
    let conditions = &stage["conditions"];
    for (written, known) in [
        (&value, &schema),
        (&value["workload"], &defs["workload"]),
        (&value["endpoint"], &defs["endpoint"]),
        (&value["client"], &defs["client"]),
        (
            &stage["goodput"],
            &defs["stage"]["allOf"][1]["properties"]["goodput"],
        ),
        (&stage["ttft_ms"], &defs["distribution"]),
        (&stage["histograms"], &defs["histograms"]),
        (&stage["records"][0]["record"], &defs["record"]),
        (conditions, &defs["conditions"]),
        (&conditions["engine"], &defs["engine_report"]),
        (&conditions["client"], &defs["client_load"]),
        (
            &conditions["replies"],
            &defs["conditions"]["properties"]["replies"],
        ),
        (&conditions["certificate"], &defs["certificate"]),
        (stage, &defs["stage"]["allOf"][1]),
    ] {
        let written = written.as_object().expect("an object");
        assert!(!written.is_empty());
        for field in written.keys().filter(|field| *field != "kind") {
            assert!(known["properties"][field].is_object(), "{field}");
        }
        for field in known["required"].as_array().expect("a list") {
            let field = field.as_str().expect("a name");
            assert!(written.contains_key(field), "{field}");
        }
    }
}
