//! Flags that follow from more than one stage, or from figures that a file states.

use super::*;

fn flags(file: Result<ResultFile, ResultFileError>) -> Vec<StageFlag> {
    file.expect("a file").stages.remove(0).figures.flags
}

#[test]
fn a_p99_of_few_requests_is_left_out_and_said() {
    let stated = |completed: u64, count: u64| {
        edited(|value| {
            let stage = &mut value["stages"][0];
            stage["records"] = serde_json::json!([]);
            stage["requests"] = completed.into();
            stage["completed"] = completed.into();
            for metric in ["ttft_ms", "itl_ms"] {
                stage[metric]["p99"] = 40.0.into();
                stage[metric]["count"] = count.into();
            }
        })
    };
    let few = stated(99, 5000).expect("a file");
    let figures = &few.stages[0].figures;
    assert_eq!((figures.ttft_ms.p99, figures.itl_ms.p99), (None, None));
    assert_eq!(figures.flags, [StageFlag::FewForP99 { requests: 99 }]);
    let enough = stated(100, 100).expect("a file");
    let figures = &enough.stages[0].figures;
    assert_eq!(figures.ttft_ms.p99, Some(40.0));
    assert_eq!(figures.flags, []);
}

/// Three repeats of a single stream, the first at another speed.
fn repeats(first: f64) -> ResultFile {
    let mut file = sample();
    file.workload.repeats = 3;
    let stage = file.stages.remove(0);
    file.stages = [first, 90.0, 90.0]
        .into_iter()
        .zip(0..)
        .map(|(speed, repeat)| {
            let mut stage = ResultStage {
                index: repeat,
                repeat,
                records: vec![],
                ..stage.clone()
            };
            stage.figures.e2e_tps.p50 = Some(speed);
            stage
        })
        .collect();
    file
}

fn parsed(file: &ResultFile) -> Result<ResultFile, ResultFileError> {
    ResultFile::parse(&serde_json::to_vec(file).expect("serialises"))
}

#[test]
fn stages_are_held_against_each_other_as_a_file_is_read() {
    assert_eq!(flags(parsed(&repeats(90.0))), []);
    let slow = parsed(&repeats(80.0));
    assert!(
        matches!(flags(slow)[..], [StageFlag::SlowBeginning { .. }]),
        "the first repeat wears it"
    );
    let again = parsed(&parsed(&repeats(80.0)).expect("a file")).expect("a file");
    assert_eq!(again.stages[0].figures.flags.len(), 1, "once is enough");
}

#[test]
fn what_a_host_showed_stays_though_the_figures_are_worked_out_again() {
    let host = StageFlag::HotGpu {
        gpu: 1,
        celsius: 90,
    };
    let file = edited(|value| {
        value["stages"][0]["flags"] =
            serde_json::to_value([&host, &StageFlag::NoDone { requests: 1 }]).expect("flags");
    });
    assert_eq!(flags(file), [host]);
}

#[test]
fn more_loops_than_replies_are_refused() {
    let replies = |looping: u64| {
        edited(|value| {
            value["stages"][0]["conditions"]["replies"] =
                serde_json::json!({"judged": 3, "looping": looping});
        })
    };
    assert_eq!(
        flags(replies(3)),
        [StageFlag::LoopingReplies {
            requests: 3,
            of: 3,
            speculative: false
        }]
    );
    let said = replies(4).expect_err("a refusal").to_string();
    assert!(said.contains("looping of stage 0"), "{said}");
}

#[test]
fn the_schema_names_the_flags_of_a_whole_run() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../docs/result-file.schema.json"))
            .expect("a schema");
    let known = schema["$defs"]["flag"]["oneOf"].as_array().expect("a list");
    let gpus = || vec![0, 1];
    for flag in [
        StageFlag::FewForP99 { requests: 1 },
        StageFlag::LoopingReplies {
            requests: 1,
            of: 2,
            speculative: true,
        },
        StageFlag::BundledTokens { per_chunk: 9.0 },
        StageFlag::ClientStopped {
            stood_ms: 900.0,
            share: 0.09,
        },
        StageFlag::BodiesLeftOpen { requests: 1, of: 2 },
        StageFlag::EngineQueue {
            running: 1,
            waiting: 1,
            asked: 3,
        },
        StageFlag::HeldBack {
            at_engine: 1,
            in_flight: 8.0,
        },
        StageFlag::EngineRestarted { after: 0 },
        StageFlag::SlowBeginning {
            slower: 0.1,
            bias: 0.03,
        },
        StageFlag::ClockDrift {
            gpus: gpus(),
            low_mhz: 1,
            high_mhz: 2,
        },
        StageFlag::ClocksHeldDown {
            gpus: gpus(),
            reasons: vec!["power cap".to_owned()],
            share: 0.5,
        },
        StageFlag::HotGpu {
            gpu: 0,
            celsius: 90,
        },
        StageFlag::TemperatureDrift {
            gpu: 0,
            from: 50,
            to: 70,
        },
        StageFlag::OtherProcesses {
            processes: vec!["Process 8 (python3)".to_owned()],
            mib: 100,
            share: 0.5,
        },
        StageFlag::OtherRequests {
            most: 1,
            share: 0.5,
        },
    ] {
        let written = serde_json::to_value(&flag).expect("serialises");
        let of_name = known
            .iter()
            .find(|known| known["properties"]["flag"]["const"] == written["flag"])
            .unwrap_or_else(|| panic!("{written}"));
        let written = written.as_object().expect("an object");
        let properties = of_name["properties"].as_object().expect("an object");
        assert!(written.keys().eq(properties.keys()), "{flag:?}");
    }
}
