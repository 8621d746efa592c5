//! Each kind of failure, kept apart, against a server that misbehaves.

use std::{
    io::Write,
    net::TcpListener,
    time::{Duration, Instant},
};

use crate::support::{
    Asked, Server, Then, Told, done, event, json, level, proper, run, spec, stream_head, text,
    total, write,
};
use tokdyno_domain::{
    meter::MeterOutcome,
    metrics::StageFlag,
    record::{Failure, FailureKind, TokenCount},
};

/// Requests before the measured ones: one trial, one warm-up.
const BEFORE: u32 = 2;

/// Measures 3 requests one after another; the second is answered by `fault`.
pub(crate) fn with_fault(
    fault: impl Fn(&Asked, &mut std::net::TcpStream) -> Then + Send + Sync + 'static,
) -> Told {
    let server = Server::start(move |asked, stream| {
        if asked.number == BEFORE + 1 {
            fault(asked, stream)
        } else {
            proper(asked, stream)
        }
    });
    let mut spec = server.spec(vec![level(1, 3)]);
    spec.workload.idle_timeout_s = 1.0;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert_eq!(told.records().len(), 3);
    assert!(told.records()[0].is_success());
    assert!(
        told.records()[2].is_success(),
        "the run goes on after a failure"
    );
    assert_eq!(server.bodies().len(), 5, "nothing is sent twice");
    told
}

pub(crate) fn failure(told: &Told) -> &Failure {
    let failure = told.records()[1].failure.as_ref().expect("a failure");
    let figures = told.figures()[0];
    assert_eq!((figures.completed, figures.failed), (2, 1));
    assert_eq!(figures.failures.get(&failure.kind), Some(&1));
    failure
}

#[test]
fn a_status_with_the_servers_words() {
    let told = with_fault(|_, stream| json(stream, 503, r#"{"error":{"message":"overloaded"}}"#));
    let failure = failure(&told);
    assert_eq!(failure.kind, FailureKind::Status);
    assert_eq!(failure.http_status, Some(503));
    assert!(failure.message.contains("overloaded"));
}

#[test]
fn closed_before_a_reply() {
    let told = with_fault(|_, _| Then::Close);
    assert_eq!(failure(&told).kind, FailureKind::Broken);
    assert!(
        told.records()[2].connect_ns.is_some(),
        "the next one had to connect"
    );
}

#[test]
fn closed_in_the_middle_of_an_event() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        event(stream, &text(Some(1)));
        write(stream, "40\r\ndata: {\"choi");
        Then::Close
    });
    assert_eq!(failure(&told).kind, FailureKind::Broken);
    assert_eq!(told.records()[1].chunks, 1);
    assert!(told.records()[1].ttft_ns.is_some());
}

#[test]
fn ended_without_done() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        event(stream, &text(None));
        write(stream, "0\r\n\r\n");
        Then::Keep
    });
    assert_eq!(failure(&told).kind, FailureKind::Broken);
}

#[test]
fn silent_for_too_long() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        event(stream, &text(Some(1)));
        std::thread::sleep(Duration::from_secs(3));
        Then::Close
    });
    let failure = failure(&told);
    assert_eq!(failure.kind, FailureKind::Stalled);
    assert!(told.records()[1].end_ns >= 1_000_000_000);
}

#[test]
fn comments_for_ever() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        event(stream, &text(Some(1)));
        // Well beyond the time-out, and bounded.
        for _ in 0..80 {
            if stream.write_all(b"8\r\n: ping\n\n\r\n").is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Then::Close
    });
    assert_eq!(failure(&told).kind, FailureKind::Stalled);
    assert_eq!(told.records()[1].chunks, 1);
}

#[test]
fn tokens_for_ever() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        let chunk = format!("data: {}\n\n", text(None));
        let piece = format!("{:x}\r\n{chunk}\r\n", chunk.len()).repeat(100);
        // Until the meter hangs up, and bounded.
        for _ in 0..10_000 {
            if stream.write_all(piece.as_bytes()).is_err() {
                break;
            }
        }
        Then::Close
    });
    let failure = failure(&told);
    assert_eq!(failure.kind, FailureKind::BadReply);
    assert!(
        failure.message.contains("max_tokens"),
        "{}",
        failure.message
    );
}

#[test]
fn an_error_object_in_the_stream() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        event(stream, &text(Some(1)));
        event(stream, r#"{"error":{"message":"engine died","code":500}}"#);
        done(stream)
    });
    let failure = failure(&told);
    assert_eq!(failure.kind, FailureKind::BadReply);
    assert!(failure.message.contains("engine died"));
}

#[test]
fn no_json_in_the_stream() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        event(stream, "hello");
        done(stream)
    });
    assert_eq!(failure(&told).kind, FailureKind::BadReply);
}

#[test]
fn a_compressed_reply() {
    let told = with_fault(|_, stream| {
        write(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        Then::Close
    });
    let failure = failure(&told);
    assert_eq!(failure.kind, FailureKind::BadReply);
    assert!(failure.message.contains("gzip"));
}

#[test]
fn a_proper_reply_without_a_token() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        event(
            stream,
            r#"{"choices":[{"text":"","finish_reason":"stop"}]}"#,
        );
        event(stream, &total(0));
        done(stream)
    });
    assert_eq!(failure(&told).kind, FailureKind::Empty);
}

#[test]
fn no_usage_means_counted_by_chunk() {
    let server = Server::start(|_, stream| {
        stream_head(stream);
        for _ in 0..4 {
            event(stream, &text(None));
        }
        done(stream)
    });
    let told = run(server.spec(vec![level(1, 2)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    for record in told.records() {
        assert!(record.is_success());
        assert_eq!(record.counted_by, TokenCount::Chunks);
        assert_eq!(record.completion_tokens, Some(4));
    }
    assert!(
        told.figures()[0]
            .flags
            .contains(&StageFlag::CountedByChunk { requests: 2 })
    );
}

#[test]
fn a_missing_done_is_flagged() {
    let server = Server::start(|_, stream| {
        stream_head(stream);
        event(
            stream,
            r#"{"choices":[{"text":"abcd","finish_reason":"length"}]}"#,
        );
        event(stream, &total(4));
        write(stream, "0\r\n\r\n");
        Then::Keep
    });
    let told = run(server.spec(vec![level(1, 2)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert!(
        told.records()
            .iter()
            .all(|record| record.is_success() && !record.done_seen)
    );
    assert!(
        told.figures()[0]
            .flags
            .contains(&StageFlag::NoDone { requests: 2 })
    );
}

#[test]
fn bodies_that_do_not_end_hold_up_little_and_are_flagged() {
    let server = Server::start(|asked, stream| {
        let count = u32::try_from(asked.body["max_tokens"].as_u64().expect("max_tokens"));
        stream_head(stream);
        for token in 1..=count.expect("few") {
            event(stream, &text(Some(token)));
        }
        event(stream, "[DONE]");
        // Longer than anybody wants to wait.
        std::thread::sleep(Duration::from_secs(20));
        Then::Close
    });
    let began = Instant::now();
    let told = run(server.spec(vec![level(2, 12)]));
    assert!(began.elapsed() < Duration::from_secs(15), "{began:?}");
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let records = told.records();
    assert_eq!(records.len(), 12);
    assert!(records.iter().all(|record| record.is_success()));
    let reconnected = records.iter().filter(|record| record.connect_ns.is_some());
    assert_eq!(reconnected.count(), 10, "no such connection is used again");
    let replies = told.conditions()[0].replies.expect("seen");
    assert_eq!(replies.left_open, 12);
    let figures = told.figures()[0];
    assert!(figures.flags.contains(&StageFlag::BodiesLeftOpen {
        requests: 12,
        of: 12
    }));
    let asks_for_more = |flag: &StageFlag| matches!(flag, StageFlag::LowConcurrency { .. });
    assert!(!figures.flags.iter().any(asks_for_more), "no remedy");
}

#[test]
fn running_usage_that_cannot_be_is_flagged() {
    type Running = fn(u32, u32) -> u32;
    let measured = |running: Running| {
        let server = Server::start(move |asked, stream| {
            let count = u32::try_from(asked.body["max_tokens"].as_u64().expect("max_tokens"));
            let count = count.expect("few");
            stream_head(stream);
            for token in 1..=count {
                event(stream, &text(Some(running(token, count))));
            }
            event(stream, &total(count));
            done(stream)
        });
        let told = run(server.spec(vec![level(1, 3)]));
        assert_eq!(told.outcome, MeterOutcome::Complete);
        assert!(told.records().iter().all(|record| record.is_success()));
        let odd = StageFlag::UsageInconsistent { requests: 3 };
        told.figures()[0].flags.contains(&odd)
    };
    assert!(!measured(|token, _| token));
    assert!(measured(|token, _| 100 * token), "beyond the end");
    assert!(measured(|token, count| count + 1 - token), "falling");
    assert!(measured(|token, _| token / 2), "short of the end");
}

#[test]
fn a_server_that_goes_away_ends_the_run() {
    // Every connection is closed at once, and after the trial and the warm-up
    // nobody listens any more.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        // The model list, the trial, the warm-up, the first measured request.
        let mut generated = 0;
        while generated < 3 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let head = read_one(&mut stream);
            if head.starts_with("GET") {
                let body = r#"{"data":[{"id":"tiny"}]}"#;
                write(
                    &mut stream,
                    format!(
                        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    ),
                );
            } else {
                generated += 1;
                write(
                    &mut stream,
                    format!(
                        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\ndata: {}\n\ndata: [DONE]\n\n",
                        text(None)
                    ),
                );
            }
        }
    });
    let told = run(spec(&format!("http://{address}"), vec![level(1, 200)]));
    server.join().expect("no panic");
    assert!(told.reason().contains("refused"), "{}", told.reason());
    let records = told.records();
    assert_eq!(
        records.len(),
        101,
        "one that worked, and a hundred refusals"
    );
    assert!(records[0].is_success());
    let refused = records[1];
    assert_eq!(
        refused.failure.as_ref().map(|failure| failure.kind),
        Some(FailureKind::Connect)
    );
    assert!(refused.connect_ns.is_some() && refused.ttft_ns.is_none());
    assert!(told.figures()[0].flags.contains(&StageFlag::Partial));
}

fn read_one(stream: &mut std::net::TcpStream) -> String {
    use std::io::Read;
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).expect("a request");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse::<usize>().expect("a length"));
        if body.len() >= length {
            return text;
        }
    }
}

#[test]
fn every_warm_up_failing_ends_the_run() {
    let server = Server::start(|asked, stream| {
        if asked.number == 0 {
            proper(asked, stream)
        } else {
            json(stream, 500, r#"{"detail":"no memory"}"#)
        }
    });
    let told = run(server.spec(vec![level(2, 4)]));
    assert!(
        told.reason().contains("All 2 warm-up requests failed"),
        "{}",
        told.reason()
    );
    assert!(told.reason().contains("no memory"));
    assert_eq!(told.records().len(), 0);
    assert!(told.figures()[0].flags.contains(&StageFlag::Partial));
}

#[test]
fn a_warm_up_that_fails_is_tried_once_more() {
    // A trial; in each repeat one warm-up and two that count: 4 is the second warm-up.
    let server = Server::start(|asked, stream| match asked.number {
        4 => json(stream, 503, r#"{"detail":"overloaded"}"#),
        _ => proper(asked, stream),
    });
    let mut spec = server.spec(vec![level(1, 2)]);
    spec.workload.repeats = 3;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert_eq!(told.records().len(), 6);
    assert_eq!(server.bodies().len(), 1 + 3 * 3 + 1);
    for (figures, conditions) in told.figures().into_iter().zip(told.conditions()) {
        assert_eq!((figures.completed, figures.failed), (2, 0));
        assert_eq!(conditions.ended_early, None);
    }
}

#[test]
fn a_server_that_fails_every_warm_up_of_a_later_stage_ends_the_run() {
    let server = Server::start(|asked, stream| match asked.number {
        0..4 => proper(asked, stream),
        _ => json(stream, 503, r#"{"detail":"overloaded"}"#),
    });
    let mut spec = server.spec(vec![level(1, 2)]);
    spec.workload.repeats = 3;
    let told = run(spec);
    assert!(told.reason().contains("overloaded"), "{}", told.reason());
    assert_eq!(told.records().len(), 2);
    assert_eq!(server.bodies().len(), 6, "two rounds, and nothing more");
}

#[test]
fn trials_that_cannot_succeed_say_what_to_do() {
    let reason = |server: &Server| run(server.spec(vec![level(1, 1)])).reason().to_owned();
    let not_found = Server::start_raw(|_, stream| json(stream, 404, r#"{"detail":"Not Found"}"#));
    assert!(
        reason(&not_found).contains("/v1/models"),
        "{}",
        reason(&not_found)
    );
    let locked = Server::start_raw(|_, stream| json(stream, 401, "{}"));
    assert!(reason(&locked).contains("wants a key"));
    let mut with_key = locked.spec(vec![level(1, 1)]);
    with_key.api_key = tokdyno_domain::meter::ApiKey::new("sk-secret");
    let told = run(with_key);
    assert!(told.reason().contains("does not accept the key"));
    assert!(!told.reason().contains("sk-secret"));
    let no_route =
        Server::start(|_, stream| json(stream, 404, r#"{"error":{"message":"no such route"}}"#));
    let text = reason(&no_route);
    assert!(
        text.contains("no such route") && text.contains("/v1/completions"),
        "{text}"
    );
    let at_once = Server::start(|_, stream| json(stream, 200, r#"{"choices":[{"text":"a"}]}"#));
    assert!(reason(&at_once).contains("without streaming"));
    let page = Server::start_raw(|_, stream| {
        write(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        );
        Then::Keep
    });
    assert!(
        reason(&page).contains("no list of models"),
        "{}",
        reason(&page)
    );
    let http2 = Server::start_raw(|_, stream| {
        write(stream, b"\0\0\0\x04\0\0\0\0\0");
        Then::Close
    });
    assert!(reason(&http2).contains("HTTP/2"), "{}", reason(&http2));
    let empty = Server::start_raw(|_, stream| json(stream, 200, r#"{"data":[]}"#));
    assert!(reason(&empty).contains("lists no model"));
}

#[test]
fn an_unknown_model_is_answered_with_the_known_ones() {
    let server = Server::start(proper);
    let mut spec = server.spec(vec![level(1, 1)]);
    spec.model = Some("nope".to_owned());
    let told = run(spec);
    assert!(
        told.reason().contains("`nope`") && told.reason().contains("tiny, other"),
        "{}",
        told.reason()
    );
    assert_eq!(server.bodies().len(), 0);
}

#[test]
fn nobody_there() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let told = run(spec(&format!("http://127.0.0.1:{port}"), vec![level(1, 1)]));
    assert!(told.reason().contains("refused"), "{}", told.reason());
    let told = run(spec("http://no-such-host.invalid", vec![level(1, 1)]));
    assert!(told.reason().contains("no-such-host.invalid"));
}
