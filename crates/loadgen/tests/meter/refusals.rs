//! Servers that answer something else than a reply.

use crate::{
    faults::{failure, with_fault},
    support::{Server, Then, json, level, proper, run, write},
};
use tokdyno_domain::{meter::MeterOutcome, metrics::StageFlag, record::FailureKind};

#[test]
fn a_server_that_asks_for_patience_is_counted_and_not_asked_again() {
    let told = with_fault(|_, stream| {
        write(
            stream,
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 31\r\n\r\n{\"error\":{\"message\":\"slow it\"}}",
        );
        Then::Keep
    });
    let failure = failure(&told);
    assert_eq!(
        (failure.kind, failure.http_status),
        (FailureKind::Status, Some(429))
    );
    assert!(
        failure.message.contains("Retry-After: 7") && failure.message.contains("slow it"),
        "{}",
        failure.message
    );
    assert!(
        told.records()[2].connect_ns.is_none(),
        "the connection is kept"
    );
}

#[test]
fn a_server_that_still_loads_is_named_as_such() {
    let loading = r#"{"error":{"message":"Model is loading"}}"#;
    let no_list = Server::start_raw(move |_, stream| json(stream, 503, loading));
    let told = run(no_list.spec(vec![level(1, 1)]));
    assert!(told.reason().contains("503"), "{}", told.reason());
    assert!(told.reason().contains("ready"), "{}", told.reason());
    let no_reply = Server::start(move |_, stream| json(stream, 503, loading));
    let told = run(no_reply.spec(vec![level(1, 1)]));
    assert!(
        told.reason().contains("may still be loading"),
        "{}",
        told.reason()
    );
    assert_eq!(no_reply.bodies().len(), 1, "nothing is sent twice");
}

const MOVED: &str = "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.example/v1/completions\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_redirect_is_named_and_not_followed() {
    let told = with_fault(|_, stream| {
        write(stream, MOVED);
        Then::Keep
    });
    let failure = failure(&told);
    assert_eq!(
        (failure.kind, failure.http_status),
        (FailureKind::Status, Some(307))
    );
    assert!(failure.message.contains("http://elsewhere.example/"));
    let always = Server::start(|_, stream| {
        write(stream, MOVED);
        Then::Keep
    });
    let told = run(always.spec(vec![level(1, 1)]));
    assert!(
        told.reason().contains("redirects are not followed"),
        "{}",
        told.reason()
    );
}

#[test]
fn a_server_that_changes_to_http_2_is_recognised() {
    let told = with_fault(|_, stream| {
        write(stream, b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64");
        Then::Close
    });
    let failure = failure(&told);
    assert_eq!(failure.kind, FailureKind::BadReply);
    assert!(failure.message.contains("HTTP/2"), "{}", failure.message);
}

#[test]
fn half_of_all_requests_failing_leaves_the_other_half() {
    // After the trial and four warm-ups.
    let server = Server::start(|asked, stream| match asked.number {
        number if number < 5 || number % 2 == 1 => proper(asked, stream),
        number if number % 4 == 0 => json(stream, 500, r#"{"detail":"no"}"#),
        _ => Then::Close,
    });
    let told = run(server.spec(vec![level(4, 400)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    assert_eq!(told.records().len(), 400);
    let figures = told.figures()[0];
    assert_eq!((figures.completed, figures.failed), (200, 200));
    assert_eq!(figures.failures.get(&FailureKind::Status), Some(&100));
    assert_eq!(figures.failures.get(&FailureKind::Broken), Some(&100));
    assert_eq!(figures.output_tokens, 800);
    assert_eq!(figures.ttft_ms.count, 200, "failures are no sample");
    assert!(!figures.supports_verdict());
    assert!(figures.flags.contains(&StageFlag::Failures {
        failed: 200,
        requests: 400
    }));
    assert_eq!(server.bodies().len(), 405, "nothing is sent twice");
}
