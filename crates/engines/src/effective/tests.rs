//! What is concluded from which evidence.

use std::collections::BTreeMap;

use tokdyno_domain::{
    effective::Stamp,
    engine::EngineKind,
    host::{Gpu, Keeper, ProcessIdentity},
};

use super::*;
use crate::{builtin, shell::paste};

/// A launch that runs as asked, to be changed by each test.
struct Case {
    spec: ProfileSpec,
    command: CommandLine,
    process: Option<ProcessFacts>,
    info: Option<EngineInfo>,
    log: LogReader,
    nccl_log: Option<String>,
    conf: Vec<NcclConf>,
    inventory: Option<Inventory>,
    container: Option<ContainerFacts>,
    verify_nccl: bool,
}

impl Case {
    fn of(text: &str, settings: &[(&str, &str)]) -> Self {
        Self::new(paste(text).expect(text).spec, settings)
    }

    fn new(spec: ProfileSpec, settings: &[(&str, &str)]) -> Self {
        let command = spec.started_command("tokdyno-1");
        let words: Vec<String> = spec.command().words().map(str::to_owned).collect();
        let info = EngineInfo {
            kind: spec.engine,
            version: Some("0.5.23".to_owned()),
            models: vec![spec.served_name().to_owned()],
            max_model_len: None,
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            max_running_requests: Some(48),
            simulated: false,
        };
        Self {
            process: Some(ProcessFacts {
                identity: ProcessIdentity {
                    boot_id: "b".to_owned(),
                    pid: 7,
                    start_ticks: 1,
                    pgid: 7,
                },
                user: "ml".to_owned(),
                command: words,
                directory: None,
                environment: Some(spec.command().environment),
                withheld: Vec::new(),
                ports: Vec::new(),
                gpu_mib: 0,
                gpus: vec![0, 1],
                keeper: Keeper::Process,
                nccl_conf: Vec::new(),
            }),
            log: LogReader::new(spec.engine),
            command,
            spec,
            info: Some(info),
            nccl_log: None,
            conf: Vec::new(),
            inventory: None,
            container: None,
            verify_nccl: false,
        }
    }

    fn conclude(&self) -> EffectiveConfiguration {
        effective(&Evidence {
            spec: &self.spec,
            command: &self.command,
            process: self.process.as_ref(),
            info: self.info.as_ref(),
            log: &self.log,
            nccl_log: self.nccl_log.as_deref(),
            nccl_conf: &self.conf,
            inventory: self.inventory.as_ref(),
            container: self.container.as_ref(),
            at: Timestamp(1),
            verify_nccl: self.verify_nccl,
        })
    }

    fn process(&mut self) -> &mut ProcessFacts {
        self.process.as_mut().expect("a process")
    }

    fn info(&mut self) -> &mut EngineInfo {
        self.info.as_mut().expect("what the engine says")
    }

    fn environment(&mut self) -> &mut Vec<(String, String)> {
        self.process().environment.as_mut().expect("readable")
    }
}

fn finding(concluded: &EffectiveConfiguration, name: &str) -> Option<Finding> {
    let mut named = concluded.items.iter().filter(|item| item.name == name);
    let found = named.next().map(|item| item.finding);
    assert!(
        named.next().is_none(),
        "{name} stands twice: {:?}",
        concluded.items
    );
    found
}

fn one<'a>(concluded: &'a EffectiveConfiguration, name: &str) -> &'a Item {
    concluded
        .items
        .iter()
        .find(|item| item.name == name)
        .unwrap_or_else(|| panic!("{name}: {:?}", concluded.items))
}

fn mismatched(names: &[&str]) -> Stamp {
    Stamp::Mismatched {
        items: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

const SGLANG: &str = "NCCL_PROTO=LL python3 -m sglang.launch_server --model /m --tp 8 --port 8000 --served-model-name k --attention-backend triton --mem-fraction-static 0.90 --disable-radix-cache --num-continuous-decode-steps 4 --kv-cache-dtype auto";
const SGLANG_INFO: &[(&str, &str)] = &[
    ("model_path", "/m"),
    ("tp_size", "8"),
    ("port", "8000"),
    ("served_model_name", "k"),
    ("attention_backend", "triton"),
    ("mem_fraction_static", "0.9"),
    ("disable_radix_cache", "true"),
    ("num_continuous_decode_steps", "4"),
    ("kv_cache_dtype", "bf16"),
    ("weight_version", "default"),
];

#[test]
fn what_the_engine_resolved_as_asked_is_verified() {
    let concluded = Case::of(SGLANG, SGLANG_INFO).conclude();
    assert_eq!(concluded.stamp, Stamp::Verified, "{:?}", concluded.items);
    for name in [
        "command",
        "--model-path",
        "--tp-size",
        "--port",
        "--served-model-name",
        "--attention-backend",
        "--mem-fraction-static",
        "--disable-radix-cache",
        "engine",
        "served name",
        "--kv-cache-dtype",
    ] {
        assert_eq!(finding(&concluded, name), Some(Finding::AsAsked), "{name}");
    }
    assert_eq!(finding(&concluded, "NCCL_PROTO"), Some(Finding::Passed));
    assert_eq!(finding(&concluded, "version"), Some(Finding::Noted));
    assert_eq!(
        one(&concluded, "--kv-cache-dtype").found.as_deref(),
        Some("bf16")
    );
}

#[test]
fn an_inert_flag_is_inert_even_if_it_is_echoed() {
    let concluded = Case::of(SGLANG, SGLANG_INFO).conclude();
    let inert = one(&concluded, "--num-continuous-decode-steps");
    assert_eq!(inert.finding, Finding::Inert);
    assert_eq!(inert.found.as_deref(), Some("4"));
    assert!(
        inert
            .remark
            .as_ref()
            .is_some_and(|why| why.contains("uses it"))
    );
}

#[test]
fn a_value_resolved_otherwise_is_named_with_both_values() {
    let mut case = Case::of(SGLANG, SGLANG_INFO);
    case.info()
        .settings
        .insert("attention_backend".to_owned(), "flashinfer".to_owned());
    case.info()
        .settings
        .insert("disable_radix_cache".to_owned(), "false".to_owned());
    let concluded = case.conclude();
    assert_eq!(
        concluded.stamp,
        mismatched(&["--attention-backend", "--disable-radix-cache"])
    );
    let item = one(&concluded, "--attention-backend");
    assert_eq!(
        (
            item.asked.as_deref(),
            item.found.as_deref(),
            item.read_from.as_str()
        ),
        (Some("triton"), Some("flashinfer"), "/server_info")
    );
}

#[test]
fn words_in_another_order_or_missing_are_a_mismatch() {
    let mut case = Case::of(SGLANG, SGLANG_INFO);
    case.process().command.swap(5, 7);
    assert_eq!(finding(&case.conclude(), "command"), Some(Finding::Differs));
    let mut shorter = Case::of(SGLANG, SGLANG_INFO);
    shorter.process().command.pop();
    assert_eq!(
        finding(&shorter.conclude(), "command"),
        Some(Finding::Differs)
    );
}

#[test]
fn interpreters_and_paths_in_front_are_no_difference() {
    for running in [
        "/venv/bin/python3 /venv/bin/vllm serve /m",
        "/venv/bin/vllm serve /m",
        "vllm serve /m",
    ] {
        let mut case = Case::of("vllm serve /m", &[("model_config.model", "/m")]);
        case.process().command = running.split(' ').map(str::to_owned).collect();
        let concluded = case.conclude();
        assert_eq!(
            finding(&concluded, "command"),
            Some(Finding::AsAsked),
            "{running}"
        );
        assert_eq!(
            finding(&concluded, "model"),
            Some(Finding::AsAsked),
            "{running}"
        );
    }
    let mut other = Case::of("/a/vllm serve /m", &[]);
    other.process().command[0] = "/b/vllm".to_owned();
    assert_eq!(
        finding(&other.conclude(), "command"),
        Some(Finding::Differs)
    );
}

#[test]
fn secrets_are_neither_compared_nor_shown() {
    let mut case = Case::of("vllm serve /m --api-key sk-0123456789abcdef --port=1", &[]);
    let masked = case
        .process()
        .command
        .iter_mut()
        .find(|word| word.starts_with("sk-"))
        .expect("the key");
    *masked = "•••".to_owned();
    let concluded = case.conclude();
    assert_eq!(concluded.stamp, Stamp::Verified, "{:?}", concluded.items);
    assert_eq!(finding(&concluded, "--api-key"), Some(Finding::Passed));
    assert!(!format!("{concluded:?}").contains("0123456789abcdef"));
}

#[test]
fn the_mask_in_a_profile_is_never_as_asked() {
    let text =
        "HF_HOME=•••  NCCL_X=http://•••@h vllm serve /m --api-key ••• --port=1 --chat-template •••";
    let mut case = Case::of(text, &[("chat_template", "•••")]);
    let both = case.conclude();
    for name in [
        "command",
        "--api-key",
        "--chat-template",
        "HF_HOME",
        "NCCL_X",
    ] {
        assert_eq!(finding(&both, name), Some(Finding::NotReadable), "{name}");
        assert!(one(&both, name).remark.is_some(), "{name}");
    }
    assert_eq!(finding(&both, "--port"), Some(Finding::Passed));
    for word in &mut case.process().command {
        *word = word.replace("•••", "real");
    }
    for (_, value) in case.environment() {
        *value = value.replace("•••", "real");
    }
    let unmasked = case.conclude();
    for name in [
        "command",
        "--api-key",
        "--chat-template",
        "HF_HOME",
        "NCCL_X",
    ] {
        assert_eq!(finding(&unmasked, name), Some(Finding::Differs), "{name}");
    }
}

#[test]
fn the_conf_file_that_the_process_itself_names_is_listed() {
    let mut case = Case::of("NCCL_ALGO=Ring sglang serve --model /m", &[]);
    let conf = |path: &str, name: &str| NcclConf {
        path: path.to_owned(),
        variables: vec![(name.to_owned(), "1".to_owned())],
    };
    case.environment()
        .push(("NCCL_CONF_FILE".to_owned(), "/w/nccl.conf".to_owned()));
    let mut own = conf("/w/nccl.conf", "NCCL_NTHREADS");
    own.variables
        .push(("NCCL_ALGO".to_owned(), "Tree".to_owned()));
    case.process().nccl_conf = vec![own];
    case.conf = vec![
        conf("/home/ml/.nccl.conf", "NCCL_BUFFSIZE"),
        conf("/login/named.conf", "NCCL_PROTO"),
        conf("/etc/nccl.conf", "NCCL_MAX_CTAS"),
    ];
    let concluded = case.conclude();
    let nthreads = one(&concluded, "NCCL_NTHREADS");
    assert_eq!(nthreads.finding, Finding::NotAsked);
    assert_eq!(nthreads.read_from, "/w/nccl.conf");
    // The profile's own value holds over a file's.
    assert_eq!(finding(&concluded, "NCCL_ALGO"), Some(Finding::Passed));
    assert_eq!(
        finding(&concluded, "NCCL_MAX_CTAS"),
        Some(Finding::NotAsked)
    );
    for unused in ["NCCL_BUFFSIZE", "NCCL_PROTO"] {
        assert_eq!(finding(&concluded, unused), None, "{unused}");
    }
    // A wrapper's child names it: the launched process's own environment does not.
    case.environment()
        .retain(|(name, _)| name != "NCCL_CONF_FILE");
    let wrapped = case.conclude();
    assert_eq!(finding(&wrapped, "NCCL_NTHREADS"), Some(Finding::NotAsked));
}

#[test]
fn a_script_may_become_another_program_with_the_same_arguments() {
    let mut case = Case::of("/opt/serve.sh serve /m --port=1", &[]);
    case.process().command[0] = "/venv/bin/vllm".to_owned();
    let concluded = case.conclude();
    let command = one(&concluded, "command");
    assert_eq!(command.finding, Finding::Noted);
    let remark = command.remark.as_deref().expect("a remark");
    assert!(remark.contains("became /venv/bin/vllm"), "{remark}");
    case.process().command[1] = "bench".to_owned();
    assert_eq!(finding(&case.conclude(), "command"), Some(Finding::Differs));
    let mut engine = Case::of("/a/vllm serve /m --port=1", &[]);
    engine.process().command[0] = "/b/sglang".to_owned();
    assert_eq!(
        finding(&engine.conclude(), "command"),
        Some(Finding::Differs)
    );
}

#[test]
fn vllm_without_its_settings_falls_back_on_its_log_and_its_command_line() {
    let text = "vllm serve /m -tp 8 --port 8000 --gpu-memory-utilization 0.90 --max-num-seqs 128 --enable-prompt-tokens-details --no-enable-prefix-caching --speculative-config '{\"method\":\"eagle3\",\"num_speculative_tokens\":3}'";
    let mut case = Case::of(text, &[]);
    case.log.push(b"INFO 11-29 20:03:03 [utils.py:1] non-default args: {'model_tag': '/m', 'tensor_parallel_size': 8, 'gpu_memory_utilization': 0.9, 'max_num_seqs': 64, 'enable_prefix_caching': False, 'speculative_config': {'method': 'eagle3', 'num_speculative_tokens': 3}}\n");
    let concluded = case.conclude();
    for (name, expected) in [
        ("model", Finding::AsAsked),
        ("--tensor-parallel-size", Finding::AsAsked),
        ("--gpu-memory-utilization", Finding::AsAsked),
        ("--no-enable-prefix-caching", Finding::AsAsked),
        ("--speculative-config", Finding::AsAsked),
        ("--max-num-seqs", Finding::Differs),
        ("--port", Finding::Passed),
        ("--enable-prompt-tokens-details", Finding::Passed),
    ] {
        assert_eq!(finding(&concluded, name), Some(expected), "{name}");
    }
    assert_eq!(concluded.stamp, mismatched(&["--max-num-seqs"]));
    case.log = LogReader::new(EngineKind::Vllm);
    let silent = case.conclude();
    assert_eq!(silent.stamp, Stamp::Verified, "{:?}", silent.items);
    assert_eq!(finding(&silent, "--max-num-seqs"), Some(Finding::Passed));
    assert_eq!(finding(&silent, "model"), Some(Finding::Passed));
}

#[test]
fn vllms_settings_are_found_in_their_sections() {
    let text = "NCCL_PROTO=LL VLLM_SERVER_DEV_MODE=1 vllm serve /m --tensor-parallel-size 8 --max-model-len 32k --dtype bfloat16 --enforce-eager --stream-interval 1 --speculative-config '{\"method\":\"eagle3\",\"model\":\"/d\",\"x\":1}' --attention-backend TRITON_MLA";
    let settings = [
        ("model_config.model", "/m"),
        ("model_config.max_model_len", "32000"),
        ("model_config.dtype", "torch.bfloat16"),
        ("model_config.enforce_eager", "true"),
        ("parallel_config.tensor_parallel_size", "4"),
        ("scheduler_config.stream_interval", "1"),
        ("speculative_config.method", "eagle3"),
        ("speculative_config.model", "/d"),
        (
            "attention_config.backend",
            "AttentionBackendEnum.TRITON_MLA",
        ),
        ("env.NCCL_PROTO", "LL"),
        ("env.VLLM_SERVER_DEV_MODE", "true"),
        ("env.VLLM_USE_V1", "true"),
    ];
    let concluded = Case::of(text, &settings).conclude();
    assert_eq!(
        concluded.stamp,
        mismatched(&["--tensor-parallel-size"]),
        "{:?}",
        concluded.items
    );
    for name in [
        "model",
        "--max-model-len",
        "--dtype",
        "--enforce-eager",
        "--speculative-config",
        "--attention-backend",
        "NCCL_PROTO",
        "VLLM_SERVER_DEV_MODE",
    ] {
        assert_eq!(finding(&concluded, name), Some(Finding::AsAsked), "{name}");
    }
    let speculation = one(&concluded, "--speculative-config");
    assert_eq!(
        speculation.remark.as_deref(),
        Some("1 of its values are not reported.")
    );
    assert_eq!(finding(&concluded, "VLLM_USE_V1"), None);
}

#[test]
fn sglangs_new_and_old_names_of_a_setting_are_one() {
    let text = "sglang serve --model /m --cuda-graph-backend-decode disabled --speculative-algorithm NEXTN --return-aux-hidden-state-layer-ids 2 30 58 --enable-return-hidden-states --cuda-graph-bs-decode 1 2";
    let settings = [
        ("model_path", "/m"),
        ("cuda_graph_config.decode.backend", "disabled"),
        ("cuda_graph_config.decode.bs", "[1,2]"),
        ("speculative_algorithm", "EAGLE"),
        ("return_aux_hidden_state_layer_ids", "[2,30,58]"),
        ("return_hidden_states_mode", "full"),
    ];
    let concluded = Case::of(text, &settings).conclude();
    assert_eq!(concluded.stamp, Stamp::Verified, "{:?}", concluded.items);
    for item in concluded
        .items
        .iter()
        .filter(|item| item.subject == Subject::Argument)
    {
        assert_eq!(item.finding, Finding::AsAsked, "{item:?}");
    }
}

#[test]
fn of_a_flag_given_twice_the_last_holds() {
    let text = "sglang serve --model /m --tp 2 --tp-size 8";
    let concluded = Case::of(text, &[("model_path", "/m"), ("tp_size", "8")]).conclude();
    assert_eq!(finding(&concluded, "--tp-size"), Some(Finding::AsAsked));
}

#[test]
fn variables_are_passed_different_missing_or_hidden() {
    let text =
        "A_1=x NCCL_PROTO=LL NCCL_ALGO=Ring HF_TOKEN=t NCCL_NTHREADS=512 sglang serve --model /m";
    let mut case = Case::of(text, &[("model_path", "/m")]);
    *case.environment() = vec![
        ("A_1".to_owned(), "x".to_owned()),
        ("NCCL_PROTO".to_owned(), "Simple".to_owned()),
        ("NCCL_NTHREADS".to_owned(), "512".to_owned()),
    ];
    case.process().withheld = vec!["HF_TOKEN".to_owned()];
    let concluded = case.conclude();
    assert_eq!(finding(&concluded, "A_1"), Some(Finding::Passed));
    assert_eq!(finding(&concluded, "NCCL_PROTO"), Some(Finding::Differs));
    assert_eq!(finding(&concluded, "NCCL_ALGO"), Some(Finding::Differs));
    assert_eq!(finding(&concluded, "HF_TOKEN"), Some(Finding::NotReadable));
    assert_eq!(one(&concluded, "HF_TOKEN").asked.as_deref(), Some("•••"));
    assert_eq!(concluded.stamp, mismatched(&["NCCL_ALGO", "NCCL_PROTO"]));
    case.process().environment = None;
    let hidden = case.conclude();
    assert_eq!(finding(&hidden, "NCCL_PROTO"), Some(Finding::NotReadable));
    assert_eq!(hidden.stamp, Stamp::Verified);
}

#[test]
fn nccls_own_log_confirms_or_contradicts() {
    let text = "NCCL_PROTO=LL NCCL_ALGO=Ring NCCL_NTHREADS=512 sglang serve --model /m --tp 8 --enable-deterministic-inference";
    let mut case = Case::of(
        text,
        &[
            ("model_path", "/m"),
            ("tp_size", "8"),
            ("enable_deterministic_inference", "true"),
        ],
    );
    case.verify_nccl = true;
    for (name, value) in [
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG_FILE", "/x/nccl.%h.%p.log"),
    ] {
        case.command
            .environment
            .push((name.to_owned(), value.to_owned()));
        case.environment().push((name.to_owned(), value.to_owned()));
    }
    case.nccl_log = Some("h:1:1 [0] NCCL INFO NCCL_PROTO set by environment to LL\nh:1:2 [1] NCCL INFO NCCL_PROTO set by environment to LL.\nh:1:1 [0] NCCL INFO NCCL_ALGO set by environment to allreduce:tree\nh:1:1 [0] NCCL INFO NCCL_CUMEM_ENABLE set by environment to 0\nh:1:1 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 1\nh:1:1 NCCL INFO NCCL_DEBUG_FILE set by environment to /x\n".to_owned());
    let concluded = case.conclude();
    assert_eq!(finding(&concluded, "NCCL_PROTO"), Some(Finding::Confirmed));
    let overwritten = one(&concluded, "NCCL_ALGO");
    assert_eq!(overwritten.finding, Finding::Differs);
    assert!(
        overwritten
            .remark
            .as_ref()
            .is_some_and(|why| why.contains("deterministic"))
    );
    assert_eq!(
        finding(&concluded, "NCCL_CUMEM_ENABLE"),
        Some(Finding::Noted)
    );
    assert_eq!(
        finding(&concluded, "NCCL_BUFFSIZE"),
        Some(Finding::NotAsked)
    );
    assert_eq!(finding(&concluded, "NCCL_DEBUG_FILE"), Some(Finding::Noted));
    let unmentioned = one(&concluded, "NCCL_NTHREADS");
    assert_eq!(unmentioned.finding, Finding::Passed);
    assert!(
        unmentioned
            .remark
            .as_ref()
            .is_some_and(|why| why.contains("not mention"))
    );
    assert_eq!(concluded.stamp, mismatched(&["NCCL_ALGO", "NCCL_BUFFSIZE"]));
}

#[test]
fn a_conf_file_that_sets_a_variable_is_named_unless_the_profile_sets_it_too() {
    let mut case = Case::of(
        "NCCL_PROTO=LL sglang serve --model /m",
        &[("model_path", "/m")],
    );
    let conf = |path: &str, list: &[(&str, &str)]| NcclConf {
        path: path.to_owned(),
        variables: list
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    case.conf = vec![
        conf(
            "/etc/nccl.conf",
            &[("NCCL_ALGO", "Tree"), ("NCCL_PROTO", "Simple")],
        ),
        conf("/root/.nccl.conf", &[("NCCL_ALGO", "Ring")]),
        conf(
            "login environment",
            &[("CUDA_VISIBLE_DEVICES", "0"), ("PATH", "/x")],
        ),
    ];
    let concluded = case.conclude();
    let algorithm = one(&concluded, "NCCL_ALGO");
    assert_eq!(
        (
            algorithm.finding,
            algorithm.found.as_deref(),
            algorithm.read_from.as_str()
        ),
        (Finding::NotAsked, Some("Ring"), "/root/.nccl.conf")
    );
    assert_eq!(finding(&concluded, "NCCL_PROTO"), Some(Finding::Passed));
    // The process was started without what logins set.
    assert_eq!(
        finding(&concluded, "CUDA_VISIBLE_DEVICES"),
        Some(Finding::Noted)
    );
    assert_eq!(concluded.stamp, mismatched(&["NCCL_ALGO"]));
    case.environment()
        .push(("CUDA_VISIBLE_DEVICES".to_owned(), "0".to_owned()));
    let inherited = case.conclude();
    assert_eq!(
        finding(&inherited, "CUDA_VISIBLE_DEVICES"),
        Some(Finding::NotAsked)
    );
    case.command
        .environment
        .push(("NCCL_CONF_FILE".to_owned(), "/other".to_owned()));
    let another = case.conclude();
    assert_eq!(one(&another, "NCCL_ALGO").read_from, "/etc/nccl.conf");
}

#[test]
fn another_model_or_another_engine_is_a_mismatch() {
    let mut case = Case::of(SGLANG, SGLANG_INFO);
    case.info().models = vec!["other".to_owned()];
    case.info().kind = EngineKind::Vllm;
    // In the order of subjects.
    assert_eq!(
        case.conclude().stamp,
        mismatched(&["served name", "engine"])
    );
}

#[test]
fn nothing_readable_is_unverifiable_and_one_of_the_two_is_enough() {
    let mut case = Case::of(SGLANG, SGLANG_INFO);
    case.process = None;
    let by_settings = case.conclude();
    assert_eq!(
        by_settings.stamp,
        Stamp::Verified,
        "{:?}",
        by_settings.items
    );
    assert_eq!(finding(&by_settings, "command"), Some(Finding::NotReadable));
    case.info().settings.clear();
    let none = case.conclude();
    assert_eq!(none.stamp.word(), "unverifiable");
    assert_eq!(finding(&none, "--tp-size"), Some(Finding::NotReadable));
    case.info = None;
    assert_eq!(case.conclude().stamp.word(), "unverifiable");
    let mut by_process = Case::of(SGLANG, SGLANG_INFO);
    by_process.info = None;
    assert_eq!(by_process.conclude().stamp, Stamp::Verified);
}

#[test]
fn a_container_is_compared_with_what_its_runtime_tells() {
    let text =
        "docker run --network host -e NCCL_PROTO=LL img:1 sglang serve --model-path /m --port 8000";
    let mut case = Case::of(text, &[("model_path", "/m"), ("port", "8000")]);
    case.process = None;
    case.container = Some(ContainerFacts {
        image: "img:2".to_owned(),
        image_id: Some("sha256:1".to_owned()),
        command: "sglang serve --model-path /m --port 8000"
            .split(' ')
            .map(str::to_owned)
            .collect(),
        pid: None,
    });
    let concluded = case.conclude();
    assert_eq!(finding(&concluded, "command"), Some(Finding::AsAsked));
    assert_eq!(finding(&concluded, "image"), Some(Finding::Differs));
    assert_eq!(
        finding(&concluded, "NCCL_PROTO"),
        Some(Finding::NotReadable)
    );
    assert_eq!(concluded.stamp, mismatched(&["image"]));
}

#[test]
fn a_containers_client_shows_the_command_as_it_was_started() {
    let text = "docker run --network host img:1 sglang serve --model-path /m --port 8000";
    let mut case = Case::of(text, &[]);
    case.process().command = case.command.words().map(str::to_owned).collect();
    let concluded = case.conclude();
    assert_eq!(finding(&concluded, "command"), Some(Finding::AsAsked));
    assert_eq!(finding(&concluded, "--port"), Some(Finding::Passed));
    case.process().command.insert(2, "--privileged".to_owned());
    assert_eq!(finding(&case.conclude(), "command"), Some(Finding::Differs));
}

#[test]
fn what_the_profiles_script_sets_is_no_surprise() {
    let mut case = Case::of("ulimit -n 9; sglang serve --model-path /m", &[]);
    let set = ("NCCL_ALGO".to_owned(), "Tree".to_owned());
    case.environment().push(set);
    assert_eq!(
        finding(&case.conclude(), "NCCL_ALGO"),
        Some(Finding::NotAsked)
    );
    case.spec.activation = Activation::Script {
        text: "export NCCL_ALGO=Tree".to_owned(),
    };
    assert_eq!(finding(&case.conclude(), "NCCL_ALGO"), Some(Finding::Noted));
}

#[test]
fn the_hardware_and_the_notices_are_kept_for_the_record() {
    let mut case = Case::of(SGLANG, SGLANG_INFO);
    let gpu = |index| Gpu {
        index,
        name: "RTX PRO 6000".to_owned(),
        clocks_mhz: Some((2400, 14001)),
        power_limit_w: Some(600),
        ..Gpu::default()
    };
    case.inventory = Some(Inventory {
        driver: Some("580.1".to_owned()),
        gpus: vec![gpu(0), gpu(1), gpu(2)],
        ..Inventory::default()
    });
    case.log
        .push(b"[simulated] Max running requests is reset to 48\n[simulated] x\n");
    let concluded = case.conclude();
    assert_eq!(
        one(&concluded, "GPUs").found.as_deref(),
        Some("2 × RTX PRO 6000")
    );
    assert_eq!(one(&concluded, "driver").found.as_deref(), Some("580.1"));
    assert_eq!(
        one(&concluded, "GPU 1 clocks").found.as_deref(),
        Some("2400 MHz, memory 14001 MHz")
    );
    assert_eq!(finding(&concluded, "weight version"), Some(Finding::Noted));
    assert!(
        concluded
            .notes
            .iter()
            .any(|note| note.contains("reset to 48")),
        "{:?}",
        concluded.notes
    );
    assert!(
        concluded
            .notes
            .iter()
            .any(|note| note.contains("simulated")),
        "{:?}",
        concluded.notes
    );
    assert_eq!(concluded.stamp, Stamp::Verified);
}

#[test]
fn settings_of_the_stand_in_are_told_as_simulated() {
    let text = "tokdyno simulate sglang --model-path /m --sim-seed 3";
    let concluded = Case::of(text, &[("model_path", "/m")]).conclude();
    let seed = one(&concluded, "--sim-seed");
    assert_eq!(seed.finding, Finding::Passed);
    assert!(
        seed.remark
            .as_ref()
            .is_some_and(|remark| remark.starts_with("Simulated"))
    );
}

#[test]
fn every_built_in_profile_that_runs_as_it_stands_is_verified() {
    for builtin in builtin::all() {
        let case = Case::new(builtin.spec, &[]);
        let concluded = case.conclude();
        assert_eq!(
            concluded.stamp,
            Stamp::Verified,
            "{}: {:?}",
            builtin.id,
            concluded.items
        );
    }
}
