use std::{thread, time::Duration};

use rustix::process::Signal;

use crate::support::{End, StandIn, get, status};

const KILLED: End = End::Signal(9);

#[test]
fn each_start_fault_ends_as_its_engine_does() {
    for (engine, fault, end, signature) in [
        ("vllm", "oom", End::Code(1), "torch.OutOfMemoryError"),
        ("sglang", "oom", End::Code(1), "Capture cuda graph failed"),
        (
            "vllm",
            "vllm-memory",
            End::Code(1),
            "is less than desired GPU memory utilization",
        ),
        (
            "sglang",
            "sglang-memory",
            End::Code(1),
            "Not enough memory. Please try to increase --mem-fraction-static",
        ),
        ("vllm", "nccl-error", End::Code(1), "unhandled system error"),
        ("sglang", "nccl-error", End::Code(1), "NCCL WARN"),
        ("vllm", "arch", End::Code(1), "no kernel image is available"),
        ("sglang", "arch", End::Code(1), "Unsupported architecture"),
        ("vllm", "crash", KILLED, "Model loading took"),
        ("sglang", "crash", KILLED, "Load weight end."),
        (
            "vllm",
            "worker-died",
            End::Code(1),
            "Engine core initialization failed. See root cause above",
        ),
        (
            "sglang",
            "worker-died",
            KILLED,
            "Scheduler hit an exception:",
        ),
        ("vllm", "die-after:50", End::Code(1), "EngineDeadError"),
        (
            "sglang",
            "die-after:50",
            KILLED,
            "Received sigquit from a child process",
        ),
    ] {
        let args = [engine, "--port", "0", "--sim-start-fault", fault];
        let mut stand_in = StandIn::start(&args, &[]);
        assert_eq!(stand_in.end(), end, "{engine} {fault}");
        let log = stand_in.log();
        assert!(log.contains(signature), "{engine} {fault}:\n{log}");
        let listened = log.contains("listening on");
        assert_eq!(
            listened,
            fault.starts_with("die-after"),
            "{engine} {fault}:\n{log}"
        );
        // Nothing that comes later in a good start.
        let later = if fault == "oom" {
            "took 1.38 GiB"
        } else {
            "Graph capturing finished"
        };
        assert!(listened || !log.contains(later), "{engine} {fault}:\n{log}");
    }
}

#[test]
fn a_hang_says_nothing_more_and_still_obeys_sigterm() {
    for engine in ["vllm", "sglang"] {
        let args = [engine, "--port", "0", "--sim-start-fault", "nccl-hang"];
        let mut stand_in = StandIn::start(&args, &[]);
        stand_in.logs("using nccl==");
        thread::sleep(Duration::from_millis(700));
        let log = stand_in.log();
        assert!(
            log.trim_end()
                .lines()
                .last()
                .expect("lines")
                .contains("using nccl=="),
            "{log}"
        );
        assert!(stand_in.running());
        stand_in.signal(Signal::TERM);
        assert_eq!(stand_in.end(), End::Code(0));
    }
}

#[test]
fn what_never_becomes_ready_goes_on_logging() {
    for (engine, line) in [
        ("vllm", "Waiting for 1 local engine"),
        ("sglang", "Warm-up request has no answer yet"),
    ] {
        let args = [engine, "--port", "0", "--sim-start-fault", "no-ready"];
        let mut stand_in = StandIn::start(&args, &[]);
        stand_in.logs(line);
        let first = stand_in.log().len();
        thread::sleep(Duration::from_millis(1200));
        assert!(stand_in.log().len() > first, "{engine} went silent");
        if engine == "sglang" {
            assert_eq!(status(&stand_in.address(), "/health"), Some(503));
        }
        stand_in.signal(Signal::TERM);
        assert_eq!(stand_in.end(), End::Code(0));
    }
}

#[test]
fn another_model_is_served_than_asked_for() {
    for engine in ["vllm", "sglang"] {
        let args = [
            engine,
            "--port",
            "0",
            "--served-model-name",
            "kimi",
            "--sim-start-fault",
            "wrong-model",
        ];
        let stand_in = StandIn::listening(&args, &[]);
        let models = get(&stand_in.address(), "/v1/models");
        assert_eq!(models["data"][0]["id"], "some-other-model");
        assert!(!models.to_string().contains("\"kimi\""));
    }
}

#[test]
fn a_fault_that_is_not_understood_is_explained_with_exit_code_2() {
    for (fault, hint) in [
        ("explode", "Kinds are"),
        ("vllm-memory", "the other engine"),
    ] {
        let args = ["sglang", "--sim-start-fault", fault];
        let mut stand_in = StandIn::start(&args, &[]);
        assert_eq!(stand_in.end(), End::Code(2));
        assert!(stand_in.log().contains(hint), "{}", stand_in.log());
    }
}
