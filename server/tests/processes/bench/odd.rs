//! Servers that name things as nobody should, and refuse to work.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::bench;
use crate::support::{DataDir, Finished};

/// What it says of every request to generate.
const REFUSAL: &str = "the drive is full";

/// The reply to the one request that it answers: the trial before anything is timed.
const REPLY: &str = r#"data: {"choices": [{"index": 0, "text": "w"}]}

data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}

data: [DONE]

"#;

/// Serves a model of this name, and refuses to generate after the first request, as
/// long as the tests run. Returns its address.
fn serve(model: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let models = serde_json::json!({"object": "list", "data": [{"id": model}]}).to_string();
    let tried = Arc::new(AtomicBool::new(false));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (models, tried) = (models.clone(), Arc::clone(&tried));
            std::thread::spawn(move || answer(stream, &models, &tried));
        }
    });
    url
}

/// Answers one request, and closes.
fn answer(stream: TcpStream, models: &str, tried: &AtomicBool) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {
        let line = head.lines().last().unwrap_or("").to_ascii_lowercase();
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let (status, kind, body) = if head.starts_with("GET /v1/models ") {
        ("200 OK", "application/json", models.to_owned())
    } else if head.starts_with("GET") {
        ("404 Not Found", "application/json", "{}".to_owned())
    } else if !tried.swap(true, Ordering::SeqCst) {
        ("200 OK", "text/event-stream", REPLY.to_owned())
    } else {
        let error = serde_json::json!({"error": {"message": REFUSAL}});
        (
            "503 Service Unavailable",
            "application/json",
            error.to_string(),
        )
    };
    let _ = write!(
        reader.get_mut(),
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn measured(url: &str, more: &[&str]) -> Finished {
    let common = [
        "--url",
        url,
        "--certify",
        "off",
        "--single-stream-only",
        "--requests",
        "3",
        "--warmup",
        "0",
    ];
    bench(&[&common[..], more].concat())
}

#[test]
fn why_nothing_succeeded_is_said_with_the_servers_words() {
    let finished = measured(&serve("m"), &[]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished
            .stdout
            .contains("Why requests failed\n  3 requests: ")
            && finished.stdout.contains(REFUSAL),
        "{finished:?}"
    );
    let last = finished.stderr.lines().last().expect("a line");
    assert!(
        last.starts_with("tokdyno: Not one request succeeded. Most often (3 requests): ")
            && last.contains(REFUSAL),
        "{last}"
    );
}

#[test]
fn no_name_moves_the_cursor() {
    for more in [
        &["--name", "tu\u{1b}]0;ned"][..],
        &["--name", "tu\u{1b}]0;ned", "--json", "-"],
        &["--model", "an\u{1b}other"],
    ] {
        let url = serve("ev\u{1b}[2Jil\u{7}\nrow\u{202e}");
        let finished = measured(&url, more);
        // JSON has escapes of its own.
        let is_json = more.contains(&"-");
        let table = if is_json { "" } else { &finished.stdout };
        for text in [table, &finished.stderr] {
            let obeyed = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            assert!(!text.contains(obeyed), "{more:?}: {text:?}");
        }
        let all = finished.stdout + &finished.stderr;
        assert!(all.contains("ev␛[2Jil␇␊row\\u{202e}"), "{more:?}: {all}");
    }
}

#[test]
fn what_no_result_may_hold_is_refused_before_anything_is_sent() {
    let folder = DataDir::new();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    let long = "x".repeat(600);
    let url = serve("m");
    let far = format!("{url}/{}", "x".repeat(3000));
    let prompts = at("prompts.txt", "one\ntw\0o\n");
    let passwords = at("ca.pem", "root:x:0:0\n");
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(100), "]".repeat(100));
    for (url, more, says) in [
        (serve(&long), &[][..], "a name of 600 characters"),
        (url.clone(), &["--model", &long], "--model is 600"),
        (far, &[], "--url is 30"),
        (url.clone(), &["--prompts", &prompts], "holds a NUL"),
        (
            url.clone(),
            &["--extra-body", r#"{"stop": ["a\u0000"]}"#],
            "further field `stop` holds a NUL",
        ),
        (
            url.clone(),
            &["--extra-body", &deep],
            "field `a` is nested too deeply",
        ),
        (
            url,
            &["--ca-file", &passwords],
            "The CA file cannot be used",
        ),
    ] {
        let finished = measured(&url, more);
        assert_eq!(finished.code, Some(2), "{more:?}: {finished:?}");
        assert!(finished.stderr.contains(says), "{more:?}: {finished:?}");
        assert_eq!(finished.stdout, "", "{more:?}");
    }
}

#[test]
fn the_longest_names_that_are_taken_are_read_back() {
    let folder = DataDir::new();
    let result = folder.path().join("r.json");
    let result = result.to_str().expect("a path");
    let (model, name) = ("x".repeat(500), "é".repeat(200));
    let named = ["--name", &name, "--hardware", &name, "--json", result];
    let finished = measured(&serve(&model), &named);
    assert!(finished.stdout.contains("The result is in"), "{finished:?}");
    let compared = bench(&["--compare", result, result]);
    assert_eq!(compared.code, Some(0), "{compared:?}");
}
