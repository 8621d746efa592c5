//! Launching from the command line: a real server, this machine as the host, and the
//! stand-in as the engine.

use std::{io::Write, net::TcpListener, process::Stdio};

use serde_json::Value;

use crate::support::{DataDir, Finished, Server, tokdyno};

/// A port nobody listens on now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A command that asks this server.
struct Twin<'a>(&'a Server);

impl Twin<'_> {
    fn run(&self, arguments: &[&str]) -> Finished {
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> Finished {
        let mut child = tokdyno(arguments)
            .env("TOKDYNO_SERVER", format!("http://{}", self.0.address))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut pipe = child.stdin.take().expect("piped");
        // One that does not read has ended by itself, which the code tells.
        let _ = pipe.write_all(input.as_bytes());
        drop(pipe);
        Finished::wait(child)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let finished = self.run(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
        serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {finished:?}"))
    }

    fn fails(&self, arguments: &[&str], code: i32, sentence: &str) {
        let finished = self.run(arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
        assert!(
            finished.stderr.contains(sentence),
            "{arguments:?}: {finished:?}"
        );
    }
}

#[test]
fn a_profile_is_pasted_launched_measured_and_stopped() {
    let data = DataDir::new();
    let server = Server::start(data.path(), &["--no-founding"]);
    let twin = Twin(&server);

    let added = twin.json(&["hosts", "add", "--local", "--name", "here", "--json"]);
    assert!(added["host"].is_i64(), "{added}");
    let checked = twin.run(&["hosts", "check", "here"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("answers after"), "{checked:?}");
    let listed = twin.run(&["hosts"]);
    assert!(listed.stdout.contains("here"), "{listed:?}");
    assert!(listed.stdout.contains("this machine"), "{listed:?}");

    let port = free_port();
    let program = env!("CARGO_BIN_EXE_tokdyno");
    let command = format!(
        "export NCCL_PROTO=LL\n{program} simulate sglang --model-path test-model \\\n  --port {port} --sim-speed 50"
    );
    let pasted = twin.run_with(&["profiles", "paste", "--name", "stand-in"], &command);
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    assert!(pasted.stdout.contains("NCCL_PROTO=LL"), "{pasted:?}");
    let shown = twin.run(&["profiles", "show", "stand-in"]);
    assert!(shown.stdout.contains("simulate sglang"), "{shown:?}");
    let list = twin.json(&["profiles", "--json"]);
    assert_eq!(list["profiles"][0]["name"], "stand-in");

    let launched = twin.run(&["launch", "stand-in", "here", "--wait"]);
    assert_eq!(launched.code, Some(0), "{launched:?}");
    assert!(launched.stderr.contains("✓ load"), "{launched:?}");
    assert!(launched.stdout.contains("ready"), "{launched:?}");
    assert!(launched.stdout.contains("verified"), "{launched:?}");

    let measured = twin.run(&[
        "measure", "stand-in", "--preset", "quick", "--wait", "--json",
    ]);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let run: Value = serde_json::from_str(&measured.stdout).expect("JSON alone");
    assert_eq!(run["summary"]["state"], "finished");
    assert_eq!(run["summary"]["source"], "simulated");
    assert_eq!(run["host"]["launch"]["stamp"]["stamp"], "verified");

    let launches = twin.json(&["stop", "stand-in", "--wait", "--json"]);
    assert_eq!(launches["summary"]["state"], "stopped", "{launches}");
    let pid = launches["pid"].as_i64().expect("a process");
    let gone = !std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(gone, "nothing of it is left");
    let log = server.get(&format!("/servers/{}/log", launches["summary"]["id"]));
    assert_eq!(log.headers["content-type"], "application/octet-stream");
    assert!(log.headers["content-disposition"].starts_with("attachment"));
    assert!(!log.body.is_empty());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_cannot_be_launched_says_why() {
    let data = DataDir::new();
    let server = Server::start(data.path(), &["--no-founding"]);
    let twin = Twin(&server);
    twin.json(&["hosts", "add", "--local", "--name", "here", "--json"]);
    let port = free_port().to_string();
    let added = twin.json(&[
        "profiles",
        "add-builtin",
        "sglang-base",
        "--model",
        "m",
        "--port",
        &port,
        "--json",
    ]);
    assert_eq!(added["name"], "sglang-base");

    twin.fails(&["launch", "nothing", "here"], 1, "no profile `nothing`");
    twin.fails(&["launch", "sglang-base", "there"], 1, "no host `there`");
    twin.fails(&["stop", "sglang-base"], 1, "No launch of a profile");
    twin.fails(&["stop", "999"], 1, "999");
    twin.fails(&["profiles", "show", "nothing"], 1, "no profile");
    twin.fails(&["profiles", "add-builtin", "nothing"], 1, "sglang-base");
    twin.fails(
        &["launch", "sglang-base", "here", "--give-back-by", "noon"],
        2,
        "no time of day",
    );
    for blank in ["", "  "] {
        twin.fails(&["hosts", "add", blank], 2, "--local");
    }
    twin.fails(
        &["launch", "sglang-base", "here", "--stop", "--keep"],
        2,
        "--keep",
    );
    let empty = twin.run_with(&["profiles", "paste"], "");
    assert_eq!(empty.code, Some(1), "{empty:?}");

    // A program that is not on the host: the launch fails, and nothing is left.
    let command = format!("/nowhere/engine -m sglang.launch_server --model-path m --port {port}");
    let pasted = twin.run_with(&["profiles", "paste", "--name", "nowhere"], &command);
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    twin.fails(
        &["launch", "nowhere", "here", "--wait"],
        1,
        "/nowhere/engine",
    );

    let mut away = tokdyno(&["hosts", "--server", "http://127.0.0.1:9"]);
    away.stdin(Stdio::null());
    let away = Finished::of(away);
    assert_eq!(away.code, Some(1), "{away:?}");
    assert!(away.stderr.contains("tokdyno serve"), "{away:?}");
    assert_eq!(server.stop(), Some(0));
}
