use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::support::{End, StandIn, complete, get, gpu_folder, status, text, wait_for};

const SLOW: [&str; 4] = ["--port", "0", "--sim-step-ms", "20"];

/// Asks for so many tokens and waits until the engine works on them.
fn busy(stand_in: &StandIn, tokens: u32) -> thread::JoinHandle<Option<(u16, String)>> {
    let address = stand_in.address();
    let request = thread::spawn(move || complete(&address, tokens));
    let address = stand_in.address();
    wait_for("a running request", || {
        if stand_in.log().contains("SGLang stand-in") {
            get(&address, "/v1/loads")["loads"][0]["num_running_reqs"] == 1
        } else {
            get(&address, "/load")["server_load"] == 1
        }
    });
    request
}

#[test]
fn vllm_lets_requests_end_within_its_time_and_takes_no_new_ones() {
    let args = [
        "vllm",
        "--enable-server-load-tracking",
        "--shutdown-timeout",
        "20",
    ];
    let mut stand_in = StandIn::listening(&[&args[..], &SLOW].concat(), &[]);
    let request = busy(&stand_in, 150);
    let address = stand_in.address();
    stand_in.signal(Signal::TERM);
    stand_in.logs("Shutting down");
    wait_for("a closed port", || status(&address, "/health").is_none());
    assert!(
        !request.is_finished(),
        "the machine is too slow for this test"
    );
    let (status, body) = request.join().expect("joined").expect("a reply");
    assert_eq!(status, 200);
    assert!(body.contains("\"completion_tokens\":150"), "{body}");
    assert_eq!(stand_in.end(), End::Code(0));
    assert!(stand_in.log().contains("0 requests were cut off"));
}

#[test]
fn vllm_cuts_requests_off_without_a_time_for_them() {
    let args = ["vllm", "--enable-server-load-tracking"];
    let mut stand_in = StandIn::listening(&[&args[..], &SLOW].concat(), &[]);
    let request = busy(&stand_in, 5000);
    stand_in.signal(Signal::TERM);
    assert_eq!(stand_in.end(), End::Code(0));
    assert_eq!(request.join().expect("joined"), None);
    assert!(
        stand_in.log().contains("1 requests were cut off"),
        "{}",
        stand_in.log()
    );
}

#[test]
fn sglang_lets_requests_end_and_then_kills_itself() {
    let mut stand_in = StandIn::listening(&[&["sglang"], &SLOW[..]].concat(), &[]);
    let request = busy(&stand_in, 100);
    stand_in.signal(Signal::TERM);
    assert_eq!(request.join().expect("joined").expect("a reply").0, 200);
    assert_eq!(stand_in.end(), End::Signal(9));
    assert!(
        stand_in
            .log()
            .contains("Gracefully exiting: 1 requests remain")
    );

    let mut stand_in = StandIn::listening(&["sglang", "--port", "0"], &[]);
    stand_in.signal(Signal::INT);
    assert_eq!(stand_in.end(), End::Code(0));
}

#[test]
fn both_metrics_and_loads_tell_what_runs() {
    for (engine, gauge) in [
        ("vllm", "vllm:num_requests_running{"),
        ("sglang", "sglang:num_running_reqs{"),
    ] {
        let flag = if engine == "vllm" {
            "--enable-server-load-tracking"
        } else {
            "--enable-metrics"
        };
        let stand_in = StandIn::listening(&[&[engine, flag], &SLOW[..]].concat(), &[]);
        let request = busy(&stand_in, 5000);
        let metrics = crate::support::ask(&stand_in.address(), "GET", "/metrics", "");
        let (_, metrics) = metrics.expect("a reply");
        let line = metrics
            .lines()
            .find(|line| line.starts_with(gauge))
            .expect("a gauge");
        assert!(line.ends_with(" 1.0"), "{line}");
        drop(stand_in);
        assert_eq!(request.join().expect("joined"), None);
    }
}

#[test]
fn a_stubborn_group_ends_only_when_the_whole_of_it_is_killed() {
    let folder = gpu_folder(2);
    let args = [
        "sglang",
        "--port",
        "0",
        "--tp",
        "2",
        "--sim-children",
        "2",
        "--sim-ignore-term",
    ];
    let mut stand_in = StandIn::listening(&args, &[("TOKDYNO_SIM_GPUS", text(folder.path()))]);
    wait_for("both workers", || workers(&folder).len() == 2);
    stand_in.signal(Signal::TERM);
    stand_in.logs("--sim-ignore-term");
    stand_in.signal_group(Signal::TERM);
    thread::sleep(Duration::from_millis(300));
    assert!(stand_in.running());
    assert_eq!(status(&stand_in.address(), "/ready"), Some(200));
    assert_eq!(workers(&folder).len(), 2);

    stand_in.signal(Signal::KILL);
    assert_eq!(stand_in.end(), End::Signal(9));
    let left = workers(&folder);
    assert_eq!(left.len(), 2, "workers outlive their launcher");
    for (at, pid) in left.iter().enumerate() {
        let words = fs::read(format!("/proc/{pid}/cmdline")).expect("a process");
        let words = String::from_utf8(words).expect("UTF-8");
        assert!(words.starts_with("sglang::scheduler_TP"), "{words}");
        let environment = fs::read(format!("/proc/{pid}/environ")).expect("a process");
        assert!(environment.is_empty(), "worker {at} shows its environment");
    }
    stand_in.signal_group(Signal::KILL);
    wait_for("an empty group", || workers(&folder).is_empty());
}

#[test]
fn a_clean_end_takes_the_workers_along_and_a_lost_worker_the_engine() {
    let folder = gpu_folder(4);
    let args = ["vllm", "--port", "0", "-tp", "4", "--sim-children", "2"];
    let env = [("TOKDYNO_SIM_GPUS", text(folder.path()))];
    let mut stand_in = StandIn::listening(&args, &env);
    wait_for("both workers", || workers(&folder).len() == 2);
    stand_in.signal(Signal::TERM);
    assert_eq!(stand_in.end(), End::Code(0));
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        1,
        "only gpus.json"
    );

    let mut stand_in = StandIn::listening(&args, &env);
    wait_for("both workers", || workers(&folder).len() == 2);
    let pid = i32::try_from(workers(&folder)[0]).expect("a pid");
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, Signal::KILL).expect("a signal");
    assert_eq!(stand_in.end(), End::Code(1));
    assert!(
        stand_in.log().contains("EngineDeadError"),
        "{}",
        stand_in.log()
    );
    assert!(workers(&folder).is_empty());
}

#[test]
fn a_crash_leaves_its_workers_behind() {
    let folder = gpu_folder(1);
    let args = [
        "sglang",
        "--port",
        "0",
        "--sim-children",
        "1",
        "--sim-start-fault",
        "crash",
    ];
    let mut stand_in = StandIn::start(&args, &[("TOKDYNO_SIM_GPUS", text(folder.path()))]);
    assert_eq!(stand_in.end(), End::Signal(9));
    wait_for("the worker that is left", || workers(&folder).len() == 1);
    stand_in.signal_group(Signal::TERM);
    wait_for("an empty group", || workers(&folder).is_empty());
}

#[test]
fn stopping_during_the_start_up_is_quick() {
    let args = ["sglang", "--port", "0", "--sim-startup-ms", "60000"];
    let mut stand_in = StandIn::start(&args, &[]);
    stand_in.logs("using nccl==");
    let begun = Instant::now();
    stand_in.signal(Signal::TERM);
    assert_eq!(stand_in.end(), End::Code(0));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// Living processes that hold memory, by what the tool says.
fn workers(folder: &tempfile::TempDir) -> Vec<u32> {
    let query = [
        "nvidia-smi",
        "--query-compute-apps=pid",
        "--format=csv,noheader",
    ];
    let output = crate::support::output(&query, &[("TOKDYNO_SIM_GPUS", text(folder.path()))]);
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let mut pids: Vec<u32> = stdout
        .lines()
        .map(|line| line.parse().expect("a pid"))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}
