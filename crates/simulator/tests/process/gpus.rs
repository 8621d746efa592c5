use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{End, StandIn, gpu_folder, output, text, wait_for};

fn smi(folder: &tempfile::TempDir, args: &[&str]) -> String {
    let args = [&["nvidia-smi"], args].concat();
    let output = output(&args, &[("TOKDYNO_SIM_GPUS", text(folder.path()))]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn apps(folder: &tempfile::TempDir) -> String {
    smi(
        folder,
        &[
            "--query-compute-apps=pid,gpu_uuid,used_memory",
            "--format=csv,noheader,nounits",
        ],
    )
}

fn on(folder: &tempfile::TempDir) -> [(&str, &str); 1] {
    [("TOKDYNO_SIM_GPUS", text(folder.path()))]
}

#[test]
fn an_engine_holds_memory_from_its_weights_to_its_clean_end() {
    let folder = gpu_folder(4);
    let args = [
        "vllm",
        "--port",
        "0",
        "-tp",
        "2",
        "--gpu-memory-utilization",
        "0.9",
    ];
    let mut stand_in = StandIn::listening(&args, &on(&folder));
    let pid = stand_in.pid();
    assert_eq!(
        apps(&folder),
        format!("{pid}, GPU-0, 9000\n{pid}, GPU-1, 9000\n")
    );
    let used = smi(
        &folder,
        &["--query-gpu=memory.used", "--format=csv,noheader"],
    );
    assert_eq!(used, "9000 MiB\n9000 MiB\n0 MiB\n0 MiB\n");
    let file = folder.path().join(format!("{pid}.json"));
    let held: Value = serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(held["uuids"], serde_json::json!(["GPU-0", "GPU-1"]));
    assert_eq!(held["used_mib"], 9000);
    stand_in.signal(Signal::TERM);
    assert_eq!(stand_in.end(), End::Code(0));
    assert_eq!(apps(&folder), "");
    assert!(!file.exists());
}

#[test]
fn a_killed_engine_holds_nothing_though_its_file_stays() {
    let folder = gpu_folder(1);
    let mut stand_in = StandIn::listening(&["sglang", "--port", "0"], &on(&folder));
    assert_ne!(apps(&folder), "");
    stand_in.signal(Signal::KILL);
    assert_eq!(stand_in.end(), End::Signal(9));
    assert!(
        folder
            .path()
            .join(format!("{}.json", stand_in.pid()))
            .exists()
    );
    assert_eq!(apps(&folder), "");
}

#[test]
fn an_engine_without_enough_free_memory_fails_with_its_own_signature() {
    let folder = gpu_folder(2);
    let first = StandIn::listening(&["vllm", "--port", "0"], &on(&folder));
    for (engine, signature) in [
        ("vllm", "Free memory on device cuda:0 (0.78/9.77 GiB)"),
        ("sglang", "Not enough memory. Please try to increase"),
    ] {
        let mut second = StandIn::start(&[engine, "--port", "0"], &on(&folder));
        assert_eq!(second.end(), End::Code(1), "{}", second.log());
        let log = second.log();
        assert!(log.contains(signature), "{log}");
        assert!(
            log.contains(&format!("held by process {}", first.pid())),
            "{log}"
        );
        assert!(
            !log.contains("Memory pool end") && !log.contains("Available KV"),
            "{log}"
        );
    }
    // The other GPU is free.
    let env = [on(&folder)[0], ("CUDA_VISIBLE_DEVICES", "1")];
    let other = StandIn::listening(&["vllm", "--port", "0"], &env);
    assert!(apps(&folder).contains(&format!("{}, GPU-1", other.pid())));
    let mut more = StandIn::start(&["vllm", "--port", "0", "-tp", "4"], &on(&folder));
    assert_eq!(more.end(), End::Code(1));
    assert!(
        more.log().contains("wants 4 GPUs and sees 2"),
        "{}",
        more.log()
    );
}

#[test]
fn a_gpu_works_while_requests_run() {
    let folder = gpu_folder(1);
    let args = ["vllm", "--port", "0", "--sim-step-ms", "20"];
    let stand_in = StandIn::listening(&args, &on(&folder));
    let use_of = || {
        smi(
            &folder,
            &["--query-gpu=utilization.gpu", "--format=csv,noheader"],
        )
    };
    assert_eq!(use_of(), "0 %\n");
    let address = stand_in.address();
    let request = std::thread::spawn(move || crate::support::complete(&address, 150));
    wait_for("a GPU at work", || use_of() == "97 %\n");
    assert_eq!(request.join().expect("joined").expect("a reply").0, 200);
    wait_for("a GPU at rest", || use_of() == "0 %\n");
}

#[test]
fn the_tool_repeats_itself_until_nobody_listens() {
    let folder = gpu_folder(1);
    let mut child = Command::new(env!("CARGO_BIN_EXE_stand-in"))
        .args([
            "nvidia-smi",
            "--query-gpu=index,timestamp",
            "--format=csv",
            "-lms",
            "20",
        ])
        .env("TOKDYNO_SIM_GPUS", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let lines: Vec<String> = lines.take(4).map(|line| line.expect("a line")).collect();
    assert_eq!(lines[0], "index, timestamp");
    assert!(
        lines[1..].iter().all(|line| line.starts_with("0, 20")),
        "{lines:?}"
    );
    // The pipe is closed now.
    assert!(child.wait().expect("an end").success());
}

#[test]
fn without_gpus_the_tool_fails_as_without_a_driver() {
    let output = output(&["nvidia-smi"], &[]);
    assert_eq!(output.status.code(), Some(9));
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(stdout.starts_with("NVIDIA-SMI has failed because it couldn't communicate"));
}
