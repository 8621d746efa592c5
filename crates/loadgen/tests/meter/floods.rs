//! Replies that are too large, endless, or chopped to pieces.

use std::{io::Write, net::TcpStream, time::Duration};

use crate::{
    faults::{failure, with_fault},
    support::{Server, Then, done, event, level, proper, run, stream_head, text, total, write},
};
use tokdyno_domain::{meter::MeterOutcome, record::FailureKind};

#[test]
fn a_megabyte_in_one_event_is_one_chunk() {
    let server = Server::start(|asked, stream| {
        if asked.number == 0 {
            return proper(asked, stream);
        }
        stream_head(stream);
        let long = "x".repeat(1 << 20);
        event(
            stream,
            &format!(r#"{{"choices":[{{"text":"{long}"}}],"usage":{{"completion_tokens":3}}}}"#),
        );
        event(stream, &text(Some(4)));
        event(stream, &total(4));
        done(stream)
    });
    let told = run(server.spec(vec![level(2, 4)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    for record in told.records() {
        assert!(record.is_success(), "{record:?}");
        assert_eq!((record.chunks, record.completion_tokens), (2, Some(4)));
        // The second chunk may come in the read that ends the first.
        assert_eq!(record.first_chunk_tokens, Some(3 + record.coalesced_chunks));
    }
}

#[test]
fn an_event_without_end_is_given_up() {
    let told = with_fault(|_, stream| {
        stream_head(stream);
        write(stream, "4000000\r\ndata: ");
        let block = [b'x'; 1 << 16];
        // Until the meter hangs up, and bounded.
        for _ in 0..1000 {
            if stream.write_all(&block).is_err() {
                break;
            }
        }
        Then::Close
    });
    let failure = failure(&told);
    assert_eq!(failure.kind, FailureKind::BadReply);
    assert!(
        failure.message.contains("larger than"),
        "{}",
        failure.message
    );
}

/// Ten times a second, for much longer than the time-out.
fn for_ever(stream: &mut TcpStream, say: impl Fn(&mut TcpStream)) -> Then {
    for _ in 0..80 {
        say(stream);
        std::thread::sleep(Duration::from_millis(100));
    }
    Then::Close
}

#[test]
fn events_that_say_nothing_do_not_keep_a_reply_alive() {
    for nothing in [
        r#"{"choices":[]}"#,
        r#"{"choices":[{"index":0,"text":""}],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        // The count that came with the only token, again and again.
        r#"{"choices":[{"index":0,"text":""}],"usage":{"completion_tokens":1}}"#,
    ] {
        let told = with_fault(move |_, stream| {
            stream_head(stream);
            event(stream, &text(Some(1)));
            for_ever(stream, |stream| event(stream, nothing))
        });
        assert_eq!(failure(&told).kind, FailureKind::Stalled, "{nothing}");
        let record = told.records()[1];
        assert_eq!(record.chunks, 1);
        assert!(record.end_ns < 4_000_000_000, "{}", record.end_ns);
    }
}

#[test]
fn a_stream_that_stalls_holds_up_no_other() {
    let server = Server::start(|asked, stream| {
        // The trial and four warm-ups come first.
        if asked.number != 6 {
            return proper(asked, stream);
        }
        stream_head(stream);
        event(stream, &text(Some(1)));
        std::thread::sleep(Duration::from_secs(6));
        Then::Close
    });
    let mut spec = server.spec(vec![level(4, 40)]);
    spec.workload.idle_timeout_s = 2.0;
    let told = run(spec);
    assert_eq!(told.outcome, MeterOutcome::Complete);
    let figures = told.figures()[0];
    assert_eq!((figures.completed, figures.failed), (39, 1));
    assert_eq!(figures.failures.get(&FailureKind::Stalled), Some(&1));
    let stalled = told.records().last().copied().expect("records");
    assert!(!stalled.is_success(), "it is over last");
}

#[test]
fn carriage_returns_comments_and_single_bytes() {
    let server = Server::start(|asked, stream| {
        let count = asked.body["max_tokens"].as_u64().expect("max_tokens");
        write(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream;charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        let mut body = ": hello\r\n\r\n".to_owned();
        for token in 1..=u32::try_from(count).expect("few") {
            body += &format!(
                ": ping\r\nid: {token}\r\nretry: 5\r\ndata: {}\r\n\r\n",
                text(Some(token))
            );
        }
        body += &format!(
            "data: {}\r\n\r\ndata: [DONE]\r\n\r\n: bye\r\n\r\n",
            total(u32::try_from(count).expect("few"))
        );
        for byte in body.bytes() {
            write(stream, [b"1\r\n".as_slice(), &[byte], b"\r\n"].concat());
        }
        write(stream, "0\r\n\r\n");
        Then::Keep
    });
    let told = run(server.spec(vec![level(1, 2)]));
    assert_eq!(told.outcome, MeterOutcome::Complete);
    for record in told.records() {
        assert!(record.is_success(), "{record:?}");
        assert_eq!((record.chunks, record.completion_tokens), (4, Some(4)));
    }
}
