//! `tokdyno serve` and `tokdyno import` as processes, with a real PostgreSQL.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
};

use crate::support::{
    DataDir, Finished, Server, Simulator, get, get_with, is_alive, post, tokdyno,
};

/// A small result file, measured against the stand-in.
fn result_file(folder: &std::path::Path) -> std::path::PathBuf {
    let simulator = Simulator::start(1);
    let path = folder.join("result.json");
    let mut command = tokdyno(&[
        "bench",
        "--url",
        &simulator.url,
        "--no-single-stream",
        "--concurrency",
        "2",
        "--requests",
        "4",
        "--output-tokens",
        "4",
        "--name",
        "tuned, with a comma",
    ]);
    command.arg("--json").arg(&path);
    let finished = Finished::of(command);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    path
}

fn import(data_dir: &DataDir, file: &std::path::Path) -> Finished {
    let mut command = tokdyno(&["import"]);
    command.arg(file).arg("--data-dir").arg(data_dir.path());
    Finished::of(command)
}

#[test]
fn a_server_with_its_own_database_from_start_to_stop() {
    let data = DataDir::new();
    let server = Server::start(
        data.path(),
        &["--no-founding", "--share-listen", "127.0.0.1:0"],
    );
    let address = server.address.clone();
    let own = format!("http://{address}");
    assert!(
        server.greeting.contains("private PostgreSQL"),
        "{}",
        server.greeting
    );
    assert_eq!(server.get("/healthz").body, "up\n");
    assert_eq!(server.get("/readyz").body, "ready\n");

    // Pages, and what a browser is told about them.
    let page = get_with(&address, "/", &[("accept", "text/html")]);
    assert_eq!(page.status, 200, "{}", page.body);
    let policy = &page.headers["content-security-policy"];
    assert!(policy.contains("'nonce-"), "{policy}");
    assert_eq!(page.headers["cache-control"], "no-store");
    assert_eq!(get(&address, "/no/such/page").status, 404);
    assert_eq!(get(&address, "/runs/999999").status, 404);
    assert!(
        get(&address, "/runs/999999.json")
            .error()
            .contains("no run 999999")
    );

    // Names that are not ours.
    for host in ["evil.example", "127.0.0.1:1", "evil.example:4000"] {
        let reply = get_with(&address, "/", &[("host", host)]);
        assert_eq!(reply.status, 421, "{host}");
        assert!(reply.error().contains("--public-url"), "{}", reply.body);
    }

    // Changes that other sites ask for.
    for header in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let reply = post(&address, "/api/v1/import", &[header], b"{}");
        assert_eq!(reply.status, 403, "{header:?}");
    }
    for header in [("origin", own.as_str()), ("x-anything", "1")] {
        let reply = post(&address, "/api/v1/import", &[header], b"{}");
        assert_eq!(reply.status, 422, "{header:?}: {}", reply.body);
        assert!(reply.error().contains("schema_version"), "{}", reply.body);
    }
    assert_eq!(
        get(&address, "/api/v1/runs").json()["total"],
        0,
        "no half-written rows"
    );

    // A file by command line and by REST is stored once.
    let file = result_file(data.path());
    let first = import(&data, &file);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.contains("stored as run "), "{first:?}");
    let second = import(&data, &file);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(
        second.stdout.contains("already there as run "),
        "{second:?}"
    );
    let bytes = std::fs::read(&file).expect("read");
    let third = post(&address, "/api/v1/import", &[], &bytes);
    assert_eq!(
        (third.status, &third.json()["already_there"]),
        (200, &true.into())
    );
    let runs = get(&address, "/api/v1/runs").json();
    assert_eq!(runs["total"], 1);
    assert_eq!(runs["runs"][0]["source"], "simulated");

    // What came in goes out.
    let run = third.json()["run"].as_i64().expect("a run");
    let stages = get(&address, &format!("/runs/{run}.csv"));
    assert_eq!(stages.status, 200);
    assert_eq!(stages.body.lines().count(), 2, "{}", stages.body);
    assert!(
        stages.body.contains("\"tuned, with a comma\""),
        "{}",
        stages.body
    );
    assert_eq!(server.record_keys(run).len(), 4);
    let exported = get(&address, &format!("/runs/{run}.json"));
    assert_eq!(exported.json()["stages"][0]["completed"], 4);

    // A file of another version.
    let text = String::from_utf8(bytes).expect("UTF-8");
    let newer = text.replace("\"schema_version\": 2", "\"schema_version\": 9");
    let other = data.path().join("newer.json");
    std::fs::write(&other, newer).expect("written");
    let refused = import(&data, &other);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("schema version 9"), "{refused:?}");

    // Events: a stream that stays open and names what it is.
    let mut stream = TcpStream::connect(&address).expect("connected");
    write!(stream, "GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("sent");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.next().expect("a status").contains("200"));
    assert!(lines.any(|line| line.eq_ignore_ascii_case("content-type: text/event-stream")));
    assert!(lines.any(|line| line.starts_with("retry:")));

    // The listener for shared links shows nothing else.
    let share = server.share.clone().expect("an address");
    for path in [
        "/",
        "/runs",
        "/events",
        "/api/v1/runs",
        "/healthz",
        "/runs/1.json",
    ] {
        assert_eq!(get(&share, path).status, 404, "{path}");
    }
    for path in ["/api/v1/import", "/api/fn/board", "/api/fn/load_founding"] {
        assert_eq!(post(&share, path, &[], b"{}").status, 404, "{path}");
    }
    let nowhere = "/c/000102030405060708090a0b0c0d0e0f";
    assert_eq!(get(&share, nowhere).status, 404);
    assert_eq!(get(&share, &format!("{nowhere}.json")).status, 404);
    assert_eq!(get(&share, "/pkg/t.css").status, 200);

    // Stopping ends the open stream, the server and its database.
    let postmaster = data.postmaster().expect("a postmaster");
    assert_eq!(server.stop(), Some(0));
    assert!(!is_alive(postmaster), "the database was stopped");
    assert!(lines.last().is_none_or(|line| !line.contains("error")));

    // Without a server the import starts the database for the time being.
    let later = import(&data, &file);
    assert!(later.stdout.contains("already there"), "{later:?}");
    assert!(!data.postmaster().is_some_and(is_alive));
}

#[test]
fn the_founding_figures_come_once_and_can_be_shared() {
    let data = DataDir::new();
    let total = |server: &Server| server.get("/api/v1/runs").json()["total"].as_i64();
    let server = Server::start(data.path(), &["--share-listen", "127.0.0.1:0"]);
    let loaded = total(&server).expect("a number");
    assert!(loaded >= 5, "{loaded} runs");
    let chart = server.get("/compare/charts/throughput.csv?runs=1,2");
    assert_eq!(chart.status, 200, "{}", chart.body);
    assert!(chart.body.starts_with("series,"), "{}", chart.body);
    assert_eq!(
        server.get("/compare/charts/throughput.csv?runs=1").status,
        400
    );

    let shared = post(
        &server.address,
        "/api/fn/share",
        &[("content-type", "application/x-www-form-urlencoded")],
        b"query[runs][0]=1&query[runs][1]=2&title=For+the+manager",
    );
    assert_eq!(shared.status, 200, "{}", shared.body);
    let link = format!("/c/{}", shared.json().as_str().expect("an address"));
    let share = server.share.clone().expect("an address");
    let page = get_with(&share, &link, &[("accept", "text/html")]);
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("For the manager"));
    // Any name leads there: the link is the secret.
    let named = get_with(&share, &link, &[("host", "links.example.org")]);
    assert_eq!(named.status, 200);
    for extension in ["json", "csv", "svg"] {
        let file = format!("{link}.{extension}");
        let first = get(&share, &file);
        assert_eq!(first.status, 200, "{file}");
        let tag = first.headers["etag"].as_str();
        let again = get_with(&share, &file, &[("if-none-match", tag)]);
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{file}");
    }
    let before = get(&share, &format!("{link}.json")).body;
    assert_eq!(server.stop(), Some(0));

    let server = Server::start(data.path(), &[]);
    assert_eq!(total(&server), Some(loaded));
    assert_eq!(
        server.get(&format!("{link}.json")).body,
        before,
        "the same bytes"
    );
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_cannot_be_served_says_why() {
    let data = DataDir::new();
    let refused = |arguments: &[&str], site: bool| {
        let mut command = tokdyno(&["serve"]);
        command.args(arguments).arg("--data-dir").arg(data.path());
        // Any program will do: none of these servers gets as far as starting one.
        command.env("TOKDYNO_METER", env!("CARGO_BIN_EXE_tokdyno"));
        command.env("TOKDYNO_AGENT", env!("CARGO_BIN_EXE_tokdyno"));
        if site {
            command.env("TOKDYNO_SITE", crate::support::site(data.path()));
        } else {
            command.env("TOKDYNO_SITE", data.path().join("nowhere"));
        }
        let finished = Finished::of(command);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.stdout, "");
        finished.stderr
    };
    let open = refused(&["--listen", "0.0.0.0:0"], true);
    assert!(open.contains("--trust-network"), "{open}");

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let busy = refused(&["--listen", &address], true);
    assert!(busy.contains("already in use"), "{busy}");

    let listen = ["--listen", "127.0.0.1:0"];
    let missing = refused(&listen, false);
    assert!(missing.contains("make web"), "{missing}");

    let ssh = refused(
        &[&listen[..], &["--ssh-config", "/nowhere/config"]].concat(),
        true,
    );
    assert!(ssh.contains("/nowhere/config"), "{ssh}");

    // A port that was free a moment ago: nobody listens there.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let url = format!("postgres://someone:secret-word@127.0.0.1:{port}/x");
    let away = refused(&[&listen[..], &["--database-url", &url]].concat(), true);
    assert!(away.contains("does not answer"), "{away}");
    assert!(!away.contains("secret-word"), "{away}");
}
