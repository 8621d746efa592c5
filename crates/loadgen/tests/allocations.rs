//! The hot path takes no memory per chunk: neither the decoding by itself, nor a
//! measuring thread with its sockets.

#![expect(
    unsafe_code,
    reason = "an allocator that counts cannot be written without"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::atomic::{AtomicU64, Ordering},
};

use tokdyno_domain::{
    endpoint::TlsTrust,
    meter::{Certify, METER_SCHEMA, MeterEvent, MeterEventKind, MeterOutcome, MeterSpec},
    workload::{Api, LoadLevel, StageKind, StageSize, Workload},
};
use tokdyno_loadgen::{CancelFlag, Replay, run_blocking};

struct Counting;

/// Allocations of all threads that are not left out.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LEFT_OUT: Cell<bool> = const { Cell::new(false) };
    /// Allocations of this thread: what runs the test has threads, too.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    // Refused while a thread ends, when nothing is measured on it any more.
    let _ = OWN.try_with(|own| own.set(own.get() + 1));
    if !LEFT_OUT.try_with(Cell::get).unwrap_or(true) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn leave_this_thread_out() {
    LEFT_OUT.with(|left_out| left_out.set(true));
}

/// A chunk with what costs memory where it is unescaped.
fn chunk(count: u32) -> String {
    let data = format!(
        r#"{{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"reasoning_content":null,"content":" \"a\u00e9\n"}},"logprobs":null,"finish_reason":null}}],"usage":{{"prompt_tokens":7,"completion_tokens":{count:>5},"prompt_tokens_details":null}}}}"#
    );
    format!("{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8)
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const END: &str = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

/// One test: the count is of the whole process.
#[test]
fn no_memory_is_taken_per_chunk() {
    decoding();
    measuring();
}

fn decoding() {
    let chunks: Vec<String> = (1..=1000).map(chunk).collect();
    let mut reply = Replay::new(1000);
    reply.read(HEAD.as_bytes(), 1);
    let mut at_ns = 1;
    let mut feed = |chunks: &[String], cut: usize| {
        for chunk in chunks {
            for piece in chunk.as_bytes().chunks(cut) {
                at_ns += 1000;
                reply.read(piece, at_ns);
            }
        }
    };
    let (first, rest) = chunks.split_at(2);
    // Buffers grow to their working size once: for whole reads, and for cut ones.
    feed(&first[..1], 100);
    feed(&first[1..], 4096);
    let before = OWN.with(Cell::get);
    for (place, chunk) in rest.iter().enumerate() {
        feed(std::slice::from_ref(chunk), [4096, 100, 7][place % 3]);
    }
    let taken = OWN.with(Cell::get) - before;
    reply.read(END.as_bytes(), at_ns + 1);
    let (record, _) = reply.finish(at_ns + 2);
    assert!(record.is_success(), "{record:?}");
    assert_eq!(
        (record.chunks, record.completion_tokens),
        (1000, Some(1000))
    );
    assert_eq!(taken, 0, "998 chunks");
}

const STREAMS: u32 = 4;

fn measuring() {
    leave_this_thread_out();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        leave_this_thread_out();
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            std::thread::spawn(|| serve(stream));
        }
    });
    let (few, many) = (taken_for(address, 100), taken_for(address, 1000));
    let chunks = u64::from(STREAMS * 2 * 900);
    let more = many.saturating_sub(few);
    // Progress is told four times a second, so a slow machine takes a few more.
    assert!(
        more < chunks / 20,
        "{more} allocations more for {chunks} chunks more ({few}, {many})"
    );
}

/// What the measuring thread takes for replies of so many chunks.
fn taken_for(address: std::net::SocketAddr, tokens: u32) -> u64 {
    let mut workload = Workload::with_levels(
        "allocations",
        vec![LoadLevel {
            kind: StageKind::ClosedLoop {
                concurrency: STREAMS,
            },
            size: StageSize::Requests {
                requests: STREAMS * 2,
            },
        }],
    );
    workload.api = Api::Chat;
    workload.output_tokens = tokens;
    let spec = MeterSpec {
        schema: METER_SCHEMA,
        endpoint: format!("http://{address}").parse().expect("an address"),
        model: Some("m".to_owned()),
        tls: TlsTrust::System,
        api_key: None,
        workload,
        certify: Certify::Off,
        spool: None,
    };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let mut chunks = 0;
    let outcome = run_blocking(spec, &CancelFlag::new(), |event: MeterEvent| {
        if let MeterEventKind::Request(request) = event.kind {
            chunks += request.record.chunks;
        }
    });
    assert_eq!(outcome.expect("a specification"), MeterOutcome::Complete);
    assert_eq!(chunks, STREAMS * 2 * tokens);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// Answers each request with as many chunks as it asks for, one write each.
fn serve(mut stream: TcpStream) {
    leave_this_thread_out();
    stream.set_nodelay(true).expect("no delay");
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    loop {
        let mut length = 0;
        let mut posted = false;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            posted |= line.starts_with("POST");
            if let Some(text) = line.strip_prefix("Content-Length: ") {
                length = text.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let written = if posted {
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            let tokens = body["max_tokens"].as_u64().expect("max_tokens");
            stream.write_all(HEAD.as_bytes()).and_then(|()| {
                (1..=u32::try_from(tokens).expect("few"))
                    .try_for_each(|count| stream.write_all(chunk(count).as_bytes()))?;
                stream.write_all(END.as_bytes())
            })
        } else {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n{\"data\":[{\"id\":\"m\"}]}   ",
            )
        };
        if written.is_err() {
            return;
        }
    }
}
