use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{End, StandIn, ask, free_port, get, output, status, text, wait_for};

#[test]
fn vllm_holds_its_port_while_loading_and_refuses_connections() {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let args = ["vllm", "--port", &port, "--sim-start-fault", "nccl-hang"];
    let mut stand_in = StandIn::start(&args, &[]);
    stand_in.logs("vLLM is using nccl==");
    assert_eq!(status(&address, "/health"), None);
    std::net::TcpListener::bind(&address).expect_err("the port is taken");
    let mut other = StandIn::start(&["vllm", "--port", &port], &[]);
    assert_eq!(other.end(), End::Code(1), "two cannot load on one port");
    assert!(stand_in.running());
}

#[test]
fn sglang_takes_its_port_only_when_it_has_loaded() {
    let port = free_port();
    let args = ["sglang", "--port", &port, "--sim-start-fault", "nccl-hang"];
    let mut stand_in = StandIn::start(&args, &[]);
    stand_in.logs("sglang is using nccl==");
    std::net::TcpListener::bind(format!("127.0.0.1:{port}")).expect("the port is free");
}

#[test]
fn a_start_up_takes_its_time() {
    let begun = Instant::now();
    let args = ["vllm", "--port", "0", "--sim-startup-ms", "1500"];
    let mut stand_in = StandIn::start(&args, &[]);
    stand_in.logs("Loading safetensors checkpoint shards:  25%");
    stand_in.logs("Application startup complete.");
    assert!(begun.elapsed() >= Duration::from_millis(1500));
    assert_eq!(status(&stand_in.address(), "/health"), Some(200));
    let log = stand_in.log();
    assert!(log.lines().all(|line| line.contains("simulated")), "{log}");
    stand_in.signal(Signal::TERM);
    assert_eq!(stand_in.end(), End::Code(0));
    assert!(stand_in.log().contains("Application shutdown complete."));
}

#[test]
fn sglang_is_unhealthy_until_it_has_tried_itself() {
    let args = ["sglang", "--port", "0", "--sim-start-fault", "no-ready"];
    let starting = StandIn::listening(&args, &[]);
    for path in ["/health", "/health_generate", "/ready"] {
        assert_eq!(status(&starting.address(), path), Some(503), "{path}");
    }
    let info = get(&starting.address(), "/server_info");
    assert_eq!(info["status"], "starting");
    assert_eq!(get(&starting.address(), "/v1/models")["object"], "list");

    let mut ready = StandIn::start(&["sglang", "--port", "0", "--sim-speed", "50"], &[]);
    ready.logs("The server is fired up and ready to roll!");
    wait_for("readiness", || {
        status(&ready.address(), "/ready") == Some(200)
    });
    assert_eq!(status(&ready.address(), "/health"), Some(200));
    assert_eq!(get(&ready.address(), "/server_info")["status"], "ready");
}

#[test]
fn without_a_start_up_time_all_lines_come_at_once() {
    for (engine, last) in [
        ("vllm", "Application startup complete."),
        ("sglang", "fired up"),
    ] {
        let mut stand_in = StandIn::listening(&[engine, "--port", "0"], &[]);
        stand_in.logs(last);
        let log = stand_in.log();
        assert!(log.contains("using nccl=="), "{log}");
        // The port that the kernel chose.
        let said = format!("on http://{}", stand_in.address());
        assert_eq!(log.matches(&said).count(), 2, "{log}");
    }
}

#[test]
fn the_first_line_on_standard_output_says_where_it_listens() {
    let place = tempfile::tempdir().expect("a folder");
    let missing = place.path().join("no/such/folder/%h.log");
    let output = output(
        &["sglang", "--port", "0", "--sim-start-fault", "die-after:1"],
        &[("NCCL_DEBUG", "INFO")],
    );
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(stdout.starts_with("Tokdyno stand-in (simulated) listening on http://127.0.0.1:"));
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(stderr.contains("NCCL INFO NCCL version"), "{stderr}");

    let output = crate::support::output(
        &["vllm", "--port", "0"],
        &[("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_FILE", text(&missing))],
    );
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(stderr.contains("NCCL's log"), "{stderr}");
}

#[test]
fn a_taken_port_ends_with_the_engines_signature() {
    let first = StandIn::listening(&["vllm", "--port", "0"], &[]);
    let address = first.address();
    let (_, port) = address.split_once(':').expect("a port");
    for engine in ["vllm", "sglang"] {
        let mut second = StandIn::start(&[engine, "--port", port], &[]);
        assert_eq!(second.end(), End::Code(1));
        let log = second.log();
        assert!(log.contains("[Errno 98]"), "{log}");
        assert!(log.contains("Choose another --port"), "{log}");
    }
}

#[test]
fn an_address_can_be_taken_again_at_once() {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    for _ in 0..3 {
        let mut stand_in = StandIn::listening(&["vllm", "--port", &port], &[]);
        // A connection that the stand-in closes last lingers in the system.
        assert_eq!(status(&address, "/health"), Some(200));
        stand_in.signal(Signal::TERM);
        assert_eq!(stand_in.end(), End::Code(0));
    }
}

#[test]
fn a_flag_that_the_engine_does_not_know_ends_it_at_once() {
    let mut stand_in = StandIn::start(&["sglang", "--no-such-flag"], &[]);
    assert_eq!(stand_in.end(), End::Code(2));
    assert!(
        stand_in
            .log()
            .contains("unrecognized arguments: --no-such-flag")
    );
}

#[test]
fn nccl_writes_its_own_log_with_what_conf_files_set() {
    let place = tempfile::tempdir().expect("a folder");
    let conf = place.path().join("nccl.conf");
    std::fs::write(
        &conf,
        "# site settings\nNCCL_PROTO=Simple\nNCCL_ALGO=Ring\n",
    )
    .expect("written");
    let pattern = place.path().join("nccl.%h.%p.log");
    let env = [
        ("NCCL_CONF_FILE", text(&conf)),
        ("NCCL_PROTO", "LL"),
        ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG_FILE", text(&pattern)),
        ("VLLM_SERVER_DEV_MODE", "1"),
    ];
    let mut stand_in = StandIn::listening(&["vllm", "--port", "0", "-tp", "8"], &env);
    let suffix = format!(".{}.log", stand_in.pid());
    let file = std::fs::read_dir(place.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| text(path).ends_with(&suffix))
        .expect("NCCL's log");
    let nccl = std::fs::read_to_string(file).expect("text");
    for line in [
        "NCCL_PROTO set by environment to LL\n",
        "NCCL_ALGO set by environment to Ring\n",
    ] {
        assert!(nccl.contains(line), "{nccl}");
    }
    // What a conf file sets is in no environment that others can see.
    let info = ask(
        &stand_in.address(),
        "GET",
        "/server_info?config_format=json",
        "",
    );
    let (_, info) = info.expect("a reply");
    assert!(
        info.contains("NCCL_PROTO=LL") && !info.contains("NCCL_ALGO"),
        "{info}"
    );
    assert!(stand_in.running());
}
