//! Who may: the person at this machine, whoever else reaches the program, and the
//! operator with the password.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::support::{DataDir, Finished, Reply, Server, get_with, post, tokdyno};

const PASSWORD: &str = "correct horse battery";
const PUBLIC: &str = "tok.example.org";
/// As a proxy on this machine passes a request on.
const PASSED_ON: (&str, &str) = ("x-forwarded-for", "203.0.113.7");
const JSON: (&str, &str) = ("content-type", "application/json");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn set_password(data: &DataDir, password: &str) -> Finished {
    let mut command: Command = tokdyno(&["set-password", "--stdin", "--data-dir"]);
    let mut child = command
        .arg(data.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("piped");
    writeln!(input, "{password}").expect("written");
    drop(input);
    Finished::wait(child)
}

fn add_host(server: &Server, name: &str, headers: &[(&str, &str)]) -> Reply {
    // Nothing is connected to: adding a host only writes it down.
    let body = format!("{{\"name\": \"{name}\", \"destination\": \"{name}.example\"}}");
    let headers = [&[JSON], headers].concat();
    post(&server.address, "/api/v1/hosts", &headers, body.as_bytes())
}

fn sign_in(server: &Server, password: &str, headers: &[(&str, &str)]) -> Reply {
    let body = format!(
        "password={}&next=%2Fservers%3Fx%3D1",
        password.replace(' ', "+")
    );
    let headers = [&[FORM], headers].concat();
    post(&server.address, "/sign-in", &headers, body.as_bytes())
}

/// The cookie as a browser sends it back.
fn cookie(reply: &Reply) -> String {
    let set = &reply.headers["set-cookie"];
    set.split(';').next().expect("a cookie").to_owned()
}

#[test]
fn launching_from_elsewhere_needs_the_password() {
    let data = DataDir::new();
    let public = format!("https://{PUBLIC}");
    let server = Server::start(data.path(), &["--no-founding", "--public-url", &public]);
    let address = server.address.clone();

    // Reading and measuring as ever, and nothing of hosts. A proxy that says nothing of
    // itself looks like somebody at this machine, so with one in front nobody is.
    for from_elsewhere in [
        ("accept", "application/json"),
        PASSED_ON,
        ("host", PUBLIC),
        ("forwarded", "for=203.0.113.7"),
    ] {
        let page = get_with(&address, "/api/v1/runs", &[from_elsewhere]);
        assert_eq!(page.status, 200, "{from_elsewhere:?}: {}", page.body);
        let refused = add_host(&server, "there", &[from_elsewhere]);
        assert_eq!(refused.status, 403, "{from_elsewhere:?}: {}", refused.body);
        assert!(refused.error().contains("password"), "{}", refused.body);
        for (path, body) in [
            ("/api/v1/launches", r#"{"profile": "x", "host": "here"}"#),
            ("/api/v1/hosts/here/check", "{}"),
            ("/api/v1/profiles", r#"{"builtin": "sglang-base"}"#),
        ] {
            let refused = post(&address, path, &[JSON, from_elsewhere], body.as_bytes());
            assert!(
                matches!(refused.status, 403 | 404),
                "{path}: {}",
                refused.body
            );
        }
        let audit = get_with(&address, "/api/v1/audit", &[from_elsewhere]);
        assert_eq!(audit.status, 403, "{}", audit.body);
    }
    let measured = post(
        &address,
        "/api/v1/runs",
        &[JSON, PASSED_ON],
        br#"{"endpoint": {"url": "http://127.0.0.1:9"}}"#,
    );
    assert_eq!(measured.status, 201, "{}", measured.body);

    // Nobody can sign in before there is a password.
    let early = sign_in(&server, PASSWORD, &[PASSED_ON]);
    assert_eq!(early.status, 409, "{}", early.body);
    assert!(
        early.body.contains("tokdyno set-password"),
        "{}",
        early.body
    );
    let short = set_password(&data, "short");
    assert_eq!(short.code, Some(1), "{short:?}");
    assert!(short.stderr.contains("at least"), "{short:?}");
    let set = set_password(&data, PASSWORD);
    assert_eq!(set.code, Some(0), "{set:?}");

    let wrong = sign_in(&server, "another password", &[PASSED_ON]);
    assert_eq!(wrong.status, 401, "{}", wrong.body);
    for expected in [
        "This is not the operator's password",
        "value=\"/servers?x=1\"",
    ] {
        assert!(wrong.body.contains(expected), "{expected}: {}", wrong.body);
    }
    assert!(!wrong.headers.contains_key("set-cookie"));

    let right = sign_in(&server, PASSWORD, &[PASSED_ON]);
    assert_eq!(right.status, 303, "{}", right.body);
    assert_eq!(right.headers["location"], "/servers?x=1");
    let set = right.headers["set-cookie"].as_str();
    for flag in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(flag), "{set}");
    }
    assert!(
        !set.contains("Secure"),
        "it was not reached by https: {set}"
    );
    let encrypted = sign_in(&server, PASSWORD, &[("host", PUBLIC)]);
    assert!(encrypted.headers["set-cookie"].ends_with("; Secure"));

    let session = cookie(&right);
    let signed_in = [PASSED_ON, ("cookie", session.as_str())];
    let added = add_host(&server, "there", &signed_in);
    assert_eq!(added.status, 201, "{}", added.body);
    let audit = get_with(&address, "/api/v1/audit", &signed_in);
    let entries = audit.json()["entries"].as_array().expect("entries").clone();
    let of = |action: &str, origin: &str| {
        entries
            .iter()
            .any(|entry| entry["action"] == action && entry["origin"] == origin)
    };
    assert!(of("host_add", PASSED_ON.1), "{}", audit.body);
    assert!(of("password", "the command line"), "{}", audit.body);
    assert!(of("sign_in_refused", PASSED_ON.1), "{}", audit.body);
    assert!(!audit.body.contains(PASSWORD));

    // The command line gives the password as well, or is refused.
    let listed = |password: &str| {
        let mut command = tokdyno(&["hosts", "add", "gpu9.example", "--json", "--server"]);
        command
            .arg(format!("http://{address}"))
            .env("TOKDYNO_PASSWORD", password);
        Finished::of(command)
    };
    let without = listed("");
    assert_eq!(without.code, Some(1), "{without:?}");
    let wrong = listed("not the password");
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("TOKDYNO_PASSWORD"), "{wrong:?}");
    let with = listed(PASSWORD);
    assert_eq!(with.code, Some(0), "{with:?}");

    // A made-up cookie is none, and signing out ends the session, not the cookie alone.
    let made_up = format!("tokdyno_session={}", "0".repeat(64));
    let refused = add_host(&server, "third", &[PASSED_ON, ("cookie", &made_up)]);
    assert_eq!(refused.status, 403, "{}", refused.body);
    let out = post(&address, "/sign-out", &signed_in, b"");
    assert_eq!(out.status, 303, "{}", out.body);
    assert!(out.headers["set-cookie"].contains("Max-Age=0"));
    let refused = add_host(&server, "third", &signed_in);
    assert_eq!(refused.status, 403, "{}", refused.body);

    // Guessing is slow, for the one who guesses.
    let guesses: Vec<u16> = (0..6)
        .map(|_| sign_in(&server, "a wrong password", &[PASSED_ON]).status)
        .collect();
    assert_eq!(guesses[..3], [401, 401, 401], "{guesses:?}");
    assert_eq!(guesses[5], 429, "{guesses:?}");
    let throttled = sign_in(&server, PASSWORD, &[PASSED_ON]);
    assert_eq!(throttled.status, 429, "{}", throttled.body);
    assert!(throttled.headers.contains_key("retry-after"));
    let other = sign_in(&server, PASSWORD, &[("x-forwarded-for", "203.0.113.8")]);
    assert_eq!(other.status, 303, "{}", other.body);

    // Another site's page can neither sign in nor out.
    let foreign = ("origin", "http://evil.example");
    assert_eq!(sign_in(&server, PASSWORD, &[foreign]).status, 403);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn who_may_not_launch_reads_no_secret_and_no_log() {
    const SECRET: &str = "Zq7wXk2LmN";
    let data = DataDir::new();
    let server = Server::start(data.path(), &["--no-founding"]);
    let address = server.address.clone();
    let text = format!("HF_TOKEN={SECRET} vllm serve /m --api-key {SECRET} --port 8001");
    let pasted = post(
        &address,
        "/api/v1/profiles/paste",
        &[JSON],
        serde_json::json!({ "text": text }).to_string().as_bytes(),
    );
    let body = serde_json::json!({ "name": "keyed", "spec": pasted.json()["spec"] });
    let added = post(
        &address,
        "/api/v1/profiles",
        &[JSON],
        body.to_string().as_bytes(),
    );
    assert_eq!(added.status, 201, "{}", added.body);
    for path in [
        "/api/v1/profiles",
        "/api/v1/profiles/keyed",
        "/profiles",
        "/profiles/keyed",
    ] {
        let here = get_with(&address, path, &[]);
        assert!(here.body.contains(SECRET), "{path}");
        let elsewhere = get_with(&address, path, &[PASSED_ON]);
        assert_eq!(elsewhere.status, 200, "{path}");
        assert!(elsewhere.body.contains("keyed"), "{path}");
        assert!(!elsewhere.body.contains(SECRET), "{path}");
    }
    for path in ["/api/v1/launches/1/log", "/servers/1/log"] {
        let refused = get_with(&address, path, &[PASSED_ON]);
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
        assert!(refused.body.contains("password"), "{}", refused.body);
        assert_eq!(get_with(&address, path, &[]).status, 404, "{path}");
    }
    let body = br#"{"launch": 1, "start": 0, "most": 9, "find": ""}"#;
    let refused = post(&address, "/api/fn/launch_log", &[JSON, PASSED_ON], body);
    assert_eq!(refused.status, 403, "{}", refused.body);
    // A host that is not named is none, and not this machine.
    for body in [
        r#"{"name": "x"}"#,
        r#"{"destination": " "}"#,
        r#"{"destination": "gpu1", "local": true}"#,
    ] {
        let refused = post(&address, "/api/v1/hosts", &[JSON], body.as_bytes());
        assert_eq!(refused.status, 400, "{body}: {}", refused.body);
        assert!(refused.error().contains("local"), "{}", refused.body);
    }
    assert_eq!(server.stop(), Some(0));
}
