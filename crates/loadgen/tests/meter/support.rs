//! A small server that behaves, or misbehaves as a test asks, on loopback.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokdyno_domain::{
    conditions::StageConditions,
    endpoint::TlsTrust,
    meter::{Certify, METER_SCHEMA, MeterEvent, MeterEventKind, MeterOutcome, MeterSpec},
    metrics::StageFigures,
    record::RequestRecord,
    workload::{LoadLevel, StageKind, StageSize, Workload},
};
use tokdyno_loadgen::{CancelFlag, run_blocking};

/// What the server read of a request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// `POST /v1/completions`.
    pub(crate) route: String,
    /// The head, as it came.
    pub(crate) head: String,
    /// The body as JSON; null without one.
    pub(crate) body: Value,
    /// Number of this generating request, from 0.
    pub(crate) number: u32,
}

/// What becomes of the connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
}

/// A server in threads; it lives as long as the test process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
    /// Connections that carried a request, but for those that asked for metrics.
    pub(crate) connections: Arc<AtomicU32>,
}

impl Server {
    /// Starts a server that lists the model `tiny` and answers everything else
    /// with `answer`.
    pub(crate) fn start(
        answer: impl Fn(&Asked, &mut TcpStream) -> Then + Send + Sync + 'static,
    ) -> Self {
        Self::start_raw(move |asked, stream| {
            if asked.route == "GET /v1/models" {
                return json(
                    stream,
                    200,
                    r#"{"object":"list","data":[{"id":"tiny"},{"id":"other"}]}"#,
                );
            }
            answer(asked, stream)
        })
    }

    /// Starts a server that answers everything with `answer`.
    pub(crate) fn start_raw(
        answer: impl Fn(&Asked, &mut TcpStream) -> Then + Send + Sync + 'static,
    ) -> Self {
        Self::start_for(usize::MAX, answer)
    }

    /// The same, and nobody listens any more after so many connections.
    pub(crate) fn start_for(
        most: usize,
        answer: impl Fn(&Asked, &mut TcpStream) -> Then + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = Self {
            address: listener.local_addr().expect("an address"),
            asked: Arc::default(),
            connections: Arc::default(),
        };
        let (asked, connections) = (Arc::clone(&server.asked), Arc::clone(&server.connections));
        let answer = Arc::new(answer);
        let numbers = Arc::new(AtomicU32::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming().take(most) {
                let Ok(stream) = stream else { break };
                let (asked, answer, numbers, connections) = (
                    Arc::clone(&asked),
                    Arc::clone(&answer),
                    Arc::clone(&numbers),
                    Arc::clone(&connections),
                );
                std::thread::spawn(move || {
                    serve(stream, &asked, &*answer, &numbers, &connections);
                });
            }
        });
        server
    }

    /// A specification of `levels` against this server.
    pub(crate) fn spec(&self, levels: Vec<LoadLevel>) -> MeterSpec {
        spec(&format!("http://{}", self.address), levels)
    }

    /// The bodies of the generating requests.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        let asked = self.asked.lock().expect("no panic");
        asked
            .iter()
            .filter(|asked| asked.route.starts_with("POST"))
            .map(|asked| asked.body.clone())
            .collect()
    }
}

fn serve(
    stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    answer: &dyn Fn(&Asked, &mut TcpStream) -> Then,
    numbers: &AtomicU32,
    connections: &AtomicU32,
) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let _ = stream.set_nodelay(true);
    let Ok(mut writer) = stream.try_clone() else {
        return;
    };
    let mut reader = BufReader::new(stream);
    let mut counted = false;
    while let Some(mut asked) = read_request(&mut reader) {
        // This engine shows no metrics; who asks for them sends no load.
        if asked.route == "GET /metrics" {
            json(&mut writer, 404, r#"{"detail":"Not Found"}"#);
            continue;
        }
        if !std::mem::replace(&mut counted, true) {
            connections.fetch_add(1, Ordering::SeqCst);
        }
        if asked.route.starts_with("POST") {
            asked.number = numbers.fetch_add(1, Ordering::SeqCst);
        }
        log.lock().expect("no panic").push(asked.clone());
        if answer(&asked, &mut writer) == Then::Close {
            let _ = writer.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |length| length.trim().parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let route = head.split(" HTTP/").next().unwrap_or_default().to_owned();
    Some(Asked {
        route,
        head,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        number: 0,
    })
}

/// Writes and ignores a client that has gone.
pub(crate) fn write(stream: &mut TcpStream, bytes: impl AsRef<[u8]>) {
    let _ = stream.write_all(bytes.as_ref());
    let _ = stream.flush();
}

/// A JSON reply with a length.
pub(crate) fn json(stream: &mut TcpStream, status: u16, body: &str) -> Then {
    write(
        stream,
        format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    Then::Keep
}

/// The head of a chunked event stream.
pub(crate) fn stream_head(stream: &mut TcpStream) {
    write(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
}

/// One event in a chunk of its own.
pub(crate) fn event(stream: &mut TcpStream, data: &str) {
    let event = format!("data: {data}\n\n");
    write(stream, format!("{:x}\r\n{event}\r\n", event.len()));
}

/// `[DONE]` and the end of the body.
pub(crate) fn done(stream: &mut TcpStream) -> Then {
    event(stream, "[DONE]");
    write(stream, "0\r\n\r\n");
    Then::Keep
}

/// A chunk with text and, if given, running usage.
pub(crate) fn text(usage: Option<u32>) -> String {
    match usage {
        Some(count) => format!(
            r#"{{"choices":[{{"index":0,"text":" a"}}],"usage":{{"prompt_tokens":7,"completion_tokens":{count}}}}}"#
        ),
        None => r#"{"choices":[{"index":0,"text":" a"}],"usage":null}"#.to_owned(),
    }
}

/// The last chunk before `[DONE]`.
pub(crate) fn total(count: u32) -> String {
    format!(r#"{{"choices":[],"usage":{{"prompt_tokens":7,"completion_tokens":{count}}}}}"#)
}

/// A proper reply of as many tokens as were asked for, one per chunk.
pub(crate) fn proper(asked: &Asked, stream: &mut TcpStream) -> Then {
    paced(asked, stream, Duration::ZERO)
}

/// The same, with a pause before each token.
pub(crate) fn paced(asked: &Asked, stream: &mut TcpStream, pause: Duration) -> Then {
    let count = u32::try_from(asked.body["max_tokens"].as_u64().expect("max_tokens")).expect("few");
    stream_head(stream);
    for token in 1..=count {
        std::thread::sleep(pause);
        event(stream, &text(Some(token)));
    }
    event(
        stream,
        r#"{"choices":[{"index":0,"text":"","finish_reason":"length"}]}"#,
    );
    event(stream, &total(count));
    done(stream)
}

/// A specification of `levels` against `address`: 4 tokens each.
pub(crate) fn spec(address: &str, levels: Vec<LoadLevel>) -> MeterSpec {
    let mut workload = Workload::with_levels("test", levels);
    workload.output_tokens = 4;
    workload.warmup_output_tokens = 2;
    workload.idle_timeout_s = 20.0;
    MeterSpec {
        schema: METER_SCHEMA,
        endpoint: address.parse().expect("an address"),
        model: None,
        tls: TlsTrust::System,
        api_key: None,
        workload,
        certify: Certify::Off,
        spool: None,
    }
}

/// `requests` at `concurrency`.
pub(crate) fn level(concurrency: u32, requests: u32) -> LoadLevel {
    LoadLevel {
        kind: StageKind::ClosedLoop { concurrency },
        size: StageSize::Requests { requests },
    }
}

/// All that a run told.
pub(crate) struct Told {
    pub(crate) events: Vec<MeterEvent>,
    pub(crate) outcome: MeterOutcome,
}

/// Runs a specification to its end; the events must be numbered without gaps
/// and end with the outcome.
pub(crate) fn run(spec: MeterSpec) -> Told {
    run_with(spec, &CancelFlag::new(), |_| {})
}

/// The same, with a look at every event.
pub(crate) fn run_with(
    spec: MeterSpec,
    cancel: &CancelFlag,
    mut look: impl FnMut(&MeterEvent),
) -> Told {
    let mut events = Vec::new();
    let outcome = run_blocking(spec, cancel, |event| {
        look(&event);
        events.push(event);
    })
    .expect("a good specification");
    let told = Told { events, outcome };
    told.check();
    told
}

impl Told {
    /// What must hold of every run.
    pub(crate) fn check(&self) {
        let seqs: Vec<u64> = self.events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=self.events.len() as u64).collect::<Vec<_>>());
        let last = &self.events.last().expect("an event").kind;
        assert_eq!(
            last,
            &MeterEventKind::Finished {
                outcome: self.outcome.clone()
            }
        );
    }

    /// The records, in the order in which they came.
    pub(crate) fn records(&self) -> Vec<&RequestRecord> {
        self.events
            .iter()
            .filter_map(|event| match &event.kind {
                MeterEventKind::Request(request) => Some(&request.record),
                _ => None,
            })
            .collect()
    }

    /// The figures of the stages.
    pub(crate) fn figures(&self) -> Vec<&StageFigures> {
        self.events
            .iter()
            .filter_map(|event| match &event.kind {
                MeterEventKind::StageFinished { figures, .. } => Some(&**figures),
                _ => None,
            })
            .collect()
    }

    /// What went on around the stages.
    pub(crate) fn conditions(&self) -> Vec<&StageConditions> {
        self.events
            .iter()
            .filter_map(|event| match &event.kind {
                MeterEventKind::StageFinished { conditions, .. } => Some(&**conditions),
                _ => None,
            })
            .collect()
    }

    /// Why the run failed.
    pub(crate) fn reason(&self) -> &str {
        match &self.outcome {
            MeterOutcome::Failed { reason } => reason,
            other => panic!("not failed but {other:?}"),
        }
    }
}
