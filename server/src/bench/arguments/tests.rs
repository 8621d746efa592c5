use clap::Parser;
use tokdyno_domain::{
    meter::ApiKey,
    prompts::TraceRequest,
    workload::{Api, Arrivals, CachePolicy, Preset, Saturation, StageKind, StageSize, Thousandths},
};

use super::*;

const SEED: u64 = 4711;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchArguments,
}

fn parsed(words: &[&str]) -> BenchArguments {
    let line = ["bench", "--url", "http://127.0.0.1:8000"]
        .iter()
        .chain(words);
    Line::try_parse_from(line).expect("arguments").bench
}

fn refused_line(words: &[&str]) -> String {
    let line = ["bench"].iter().chain(words);
    Line::try_parse_from(line).expect_err("refused").to_string()
}

fn workload(words: &[&str]) -> Workload {
    parsed(words).workload(SEED).expect("a workload")
}

fn shape(words: &[&str]) -> Vec<(u32, String)> {
    let shown = |size| match size {
        StageSize::Requests { requests } => format!("{requests}"),
        StageSize::Duration { seconds } => format!("{seconds} s"),
    };
    workload(words)
        .levels
        .iter()
        .map(|level| {
            let concurrency = level.kind.closed_loop().unwrap_or(0);
            (concurrency, shown(level.size))
        })
        .collect()
}

fn number(value: f64) -> Thousandths {
    Thousandths::new(value).expect("a number")
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("a path").to_owned()
}

fn levels(expected: &[(u32, &str)]) -> Vec<(u32, String)> {
    expected
        .iter()
        .map(|(c, size)| (*c, (*size).to_owned()))
        .collect()
}

#[test]
fn what_is_measured_where_nothing_is_said() {
    assert_eq!(
        shape(&[]),
        levels(&[(0, "5"), (1, "4"), (8, "32"), (32, "128"), (128, "512")])
    );
    let workload = parsed(&[]).workload(SEED).expect("a workload");
    assert_eq!((workload.output_tokens, workload.repeats), (256, 1));
    assert_eq!(workload.prompts, PromptSet::Varied);
}

#[test]
fn the_single_stream_is_measured_unless_it_is_left_out() {
    assert_eq!(shape(&["--single-stream-only"]), levels(&[(0, "5")]));
    assert_eq!(
        shape(&["--single-stream-only", "--requests", "3"]),
        levels(&[(0, "3")])
    );
    assert_eq!(
        shape(&["--concurrency", "4,2", "--requests", "9"]),
        levels(&[(0, "5"), (4, "9"), (2, "9")])
    );
    let alone = ["--no-single-stream", "--concurrency", "4"];
    assert_eq!(
        shape(&[&alone[..], &["--duration", "2.5"]].concat()),
        levels(&[(4, "2.5 s")])
    );
    assert_eq!(
        shape(&["--no-single-stream"]),
        levels(&[(1, "4"), (8, "32"), (32, "128"), (128, "512")])
    );
    assert_eq!(
        shape(&["--duration", "2"])[0],
        (0, "5".to_owned()),
        "the single stream stays a number of requests"
    );
}

#[test]
fn presets_can_be_refined() {
    let workload = parsed(&[
        "--quick",
        "--output-tokens",
        "16",
        "--repeats",
        "2",
        "--chat",
    ])
    .workload(SEED)
    .expect("a workload");
    assert_eq!(workload.levels, Preset::Quick.workload().levels);
    assert_eq!(
        (workload.output_tokens, workload.repeats, workload.api),
        (16, 2, Api::Chat)
    );
    for words in [
        &["--quick", "--concurrency", "1"][..],
        &["--quick", "--requests", "9"],
        &["--quick", "--no-single-stream"],
        &["--single-stream-only", "--no-single-stream"],
    ] {
        let line = ["bench", "--url", "x"].iter().chain(words);
        assert!(Line::try_parse_from(line).is_err(), "{words:?}");
    }
}

#[test]
fn impossible_ones_say_why() {
    let refused = |words: &[&str]| {
        parsed(words)
            .workload(SEED)
            .expect_err("refused")
            .to_string()
    };
    assert!(refused(&["--concurrency", "0"]).contains("concurrency of 0"));
    assert!(refused(&["--concurrency", "100000"]).contains("100000"));
    assert!(refused(&["--concurrency", "a"]).contains("list of concurrencies"));
    assert!(refused(&["--requests", "8"]).contains("cannot keep 32"));
    assert!(refused(&["--repeats", "0"]).contains("0 repeats"));
    assert!(refused(&["--prompts", "/nowhere/p"]).contains("cannot be read"));
}

#[test]
fn an_empty_prompt_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("empty.txt");
    std::fs::write(&path, "\n\n").expect("written");
    let arguments = parsed(&["--prompts", path.to_str().expect("a path")]);
    let error = arguments.workload(SEED).expect_err("refused").to_string();
    assert!(error.contains("holds no prompt"), "{error}");
    assert!(!error.contains(folder.path().to_str().expect("a path")));
}

#[test]
fn a_key_is_sent_only_when_asked_for() {
    let variable = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk".to_owned());
    assert_eq!(parsed(&[]).server.key(variable).expect("none"), None);
    let key = parsed(&["--api-key-env"])
        .server
        .key(variable)
        .expect("a key");
    assert_eq!(key, ApiKey::new("sk"));
    let error = parsed(&["--api-key-env", "MINE"])
        .server
        .key(variable)
        .expect_err("missing");
    assert!(error.to_string().contains("MINE"));
}

#[test]
fn rates_are_stages_without_a_concurrency() {
    let levels = workload(&["--rate", "2,8.5", "--burstiness", "0.5"]).levels;
    let arrivals = Arrivals::Gamma {
        burstiness: number(0.5),
    };
    assert_eq!(
        levels.iter().map(|level| level.kind).collect::<Vec<_>>(),
        [2.0, 8.5].map(|rate| StageKind::OpenLoop {
            rate: number(rate),
            arrivals
        })
    );
    assert!(
        levels
            .iter()
            .all(|level| level.size == StageSize::Duration { seconds: 60.0 })
    );
    let levels = workload(&[
        "--ramp",
        "1:20",
        "--arrivals",
        "constant",
        "--requests",
        "50",
    ])
    .levels;
    assert_eq!(
        levels[0].kind,
        StageKind::Ramp {
            from: number(1.0),
            to: number(20.0),
            arrivals: Arrivals::Constant
        }
    );
    assert_eq!(levels[0].size, StageSize::Requests { requests: 50 });
    let both = workload(&["--rate", "2", "--concurrency", "4"]).levels;
    assert_eq!(both.len(), 3, "single stream, C = 4, and the rate");
}

#[test]
fn a_ladder_is_climbed_until_it_saturates() {
    let ladder = workload(&["--saturation", "--max-concurrency", "12", "--min-gain", "3"]);
    assert_eq!(
        ladder.saturation,
        Some(Saturation {
            min_gain_percent: 3
        })
    );
    let steps: Vec<u32> = ladder
        .levels
        .iter()
        .filter_map(|level| level.kind.closed_loop())
        .collect();
    assert_eq!(steps, [1, 2, 4, 8, 12]);
    assert_eq!(workload(&[]).saturation, None);
    let usual = workload(&["--saturation"]);
    assert_eq!(
        usual.levels.last().expect("a level").kind.closed_loop(),
        Some(512)
    );
}

#[test]
fn a_trace_brings_prompts_times_and_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = file(
        &folder,
        "t.jsonl",
        "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 4}\n{\"timestamp\": 500, \"input_length\": 20, \"output_length\": 8}\n",
    );
    let replayed = workload(&["--replay", &trace, "--speed", "2"]);
    assert_eq!(replayed.levels.len(), 1);
    assert_eq!(
        replayed.levels[0].kind,
        StageKind::Replay { speed: number(2.0) }
    );
    assert_eq!(replayed.levels[0].size, StageSize::Requests { requests: 2 });
    let PromptSet::Trace { name, requests } = &replayed.prompts else {
        panic!("{:?}", replayed.prompts);
    };
    assert_eq!(name, "t.jsonl");
    assert_eq!(
        requests[1],
        TraceRequest {
            at_ms: 500,
            input_tokens: 20,
            output_tokens: 8
        }
    );
}

#[test]
fn prompts_of_every_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(
        workload(&["--input-tokens", "512"]).prompts,
        PromptSet::Random { tokens: 512 }
    );
    assert_eq!(
        workload(&["--shared-prefix", "8:1024:128"]).prompts,
        PromptSet::SharedPrefix {
            groups: 8,
            prefix_tokens: 1024,
            tokens: 128
        }
    );
    let chats = file(
        &folder,
        "chats.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}\n",
    );
    let chat = workload(&["--prompts", &chats]);
    assert!(matches!(chat.prompts, PromptSet::Chats { .. }));
    assert_eq!(chat.api, Api::Chat, "chats go the chat way by themselves");
    let share = file(
        &folder,
        "share.json",
        r#"[{"conversations": [{"from": "human", "value": "One?"}, {"from": "gpt", "value": "1"}, {"from": "human", "value": "Two?"}]}]"#,
    );
    let talk = workload(&["--conversations", &share]);
    assert!(matches!(talk.prompts, PromptSet::Conversations { .. }));
    assert_eq!(talk.api, Api::Chat);
}

#[test]
fn what_goes_beside_the_prompt() {
    let asked = workload(&[
        "--chat",
        "--thinking",
        "off",
        "--extra-body",
        r#"{"top_k": 1}"#,
        "--reset-cache",
        "--goodput",
        "ttft:200,tpot:50",
    ]);
    assert_eq!(asked.thinking, Some(false));
    assert_eq!(asked.extra_body["top_k"], 1);
    assert_eq!(asked.cache, CachePolicy::ResetBeforeStage);
    assert_eq!(asked.goodput.and_then(|bounds| bounds.tpot_ms), Some(50.0));
    assert_eq!(parsed(&["--certify", "off"]).certify(), Certify::Off);
    assert_eq!(parsed(&[]).certify(), Certify::Remembered);
}

#[test]
fn a_seed_is_fresh_unless_it_is_given() {
    assert_eq!(workload(&[]).seed, SEED);
    let again = workload(&["--seed", "7"]);
    assert_eq!(again.seed, 7);
    assert_eq!(again.hash(), workload(&[]).hash(), "the same workload");
}

#[test]
fn one_task_at_a_time() {
    for (words, says) in [
        (&["--quick"][..], "--url"),
        (
            &["--url", "x", "--compare", "a", "b"],
            "cannot be used with",
        ),
        (&["--compare", "a"], "2 values"),
        (
            &["--compare", "a", "b", "--concurrency", "8"],
            "cannot be used with",
        ),
        (
            &["--compare", "a", "b", "--model", "m"],
            "cannot be used with",
        ),
        (
            &["--compare", "a", "b", "--seed", "7"],
            "cannot be used with",
        ),
        (&["--recover", "e"], "--json"),
        (
            &["--recover", "e", "--json", "r", "--fail-if", "failures>0"],
            "cannot be used with",
        ),
        (&["--help-metrics", "--json", "r"], "cannot be used with"),
    ] {
        let refused = refused_line(words);
        assert!(refused.contains(says), "{words:?}: {refused}");
    }
    let line = ["bench", "--compare", "a", "b", "--json", "-"];
    let compared = Line::try_parse_from(line).expect("arguments").bench;
    assert_eq!(compared.task.compare.expect("files").len(), 2);
    assert!(Line::try_parse_from(["bench", "--help-metrics"]).is_ok());
    assert!(Line::try_parse_from(["bench", "--recover", "e", "--json", "-"]).is_ok());
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for words in [
        &["--saturation", "--concurrency", "8"][..],
        &["--max-concurrency", "8"],
        &["--min-gain", "3"],
        &["--speed", "2"],
        &["--arrivals", "constant"],
        &["--burstiness", "2"],
        &["--rate", "2", "--quick"],
        &["--single-stream-only", "--rate", "2"],
        &["--replay", "t", "--prompts", "founding"],
        &["--replay", "t", "--rate", "2"],
        &["--prompts", "founding", "--random-prompts", "8"],
        &["--shared-prefix", "1:2:3", "--conversations", "c"],
        &["--rate", "fast"],
        &["--ramp", "2"],
        &["--goodput", "itl:3"],
        &["--extra-body", "[]"],
        &["--fail-if", "tpot>12"],
    ] {
        refused_line(&[&["--url", "x"], words].concat());
    }
    let refused = |words: &[&str]| {
        let error = parsed(words).workload(SEED).expect_err("refused");
        error.to_string()
    };
    assert!(refused(&["--rate", "2", "--arrivals", "gamma"]).contains("--burstiness"));
    assert!(
        refused(&["--rate", "2", "--arrivals", "poisson", "--burstiness", "2"]).contains("Poisson")
    );
    assert!(refused(&["--thinking", "on"]).contains("chat"));
    assert!(refused(&["--extra-body", r#"{"model": "m"}"#]).contains("`model`"));
    assert!(refused(&["--saturation", "--min-gain", "90"]).contains("90"));
    assert!(refused(&["--fail-if", "c9.output_tps<1"]).contains("not measured"));
    assert!(refused(&["--replay", "/nowhere/t"]).contains("cannot be read"));
}

#[test]
fn a_name_that_no_result_may_have_is_refused_before_measuring() {
    let long = "n".repeat(201);
    for option in ["--name", "--hardware"] {
        let error = parsed(&[option, &long]).check_names().expect_err("refused");
        let sentence = error.to_string();
        assert!(
            sentence.contains(option) && sentence.contains("201"),
            "{sentence}"
        );
        assert!(parsed(&[option, &long[1..]]).check_names().is_ok());
    }
}

#[test]
fn fields_of_the_workload_are_not_set_beside_it() {
    for field in ["temperature", "ignore_eos", "model", "stream"] {
        let body = format!("{{\"{field}\": 1}}");
        let refused = parsed(&["--extra-body", &body]).workload(1);
        assert!(refused.is_err(), "{field}");
    }
    let switched = ["--chat", "--thinking", "on", "--extra-body"];
    let kwargs = "{\"chat_template_kwargs\": {}}";
    let both = parsed(&[&switched[..], &[kwargs]].concat());
    assert!(both.workload(1).is_err());
    assert!(
        parsed(&["--chat", "--extra-body", kwargs])
            .workload(1)
            .is_ok()
    );
}
