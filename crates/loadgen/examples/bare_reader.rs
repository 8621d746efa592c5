//! The cheapest client there can be, to hold the meter against: one thread, one
//! epoll, one buffer. It sends requests, reads what comes and notes when; it
//! neither decodes HTTP nor looks into an event, takes the word of the server
//! for the number of tokens, and knows only this protocol of the stand-in: the
//! head comes before the first token, and a reply ends with its last chunk.
//!
//! `bare_reader HOST:PORT chat|completions CONCURRENCY REQUESTS TOKENS` prints
//! its figures as a line of JSON.

use std::{
    error::Error,
    io::Write as _,
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{Timespec, epoll},
    io::Errno,
    net::{RecvFlags, recv},
};

/// The end of a chunked body.
const END: &[u8] = b"\r\n0\r\n\r\n";
/// With which the first event begins.
const DATA: &[u8] = b"data:";
/// As large as the meter's.
const BUFFER: usize = 64 << 10;
/// Events taken from the kernel at a time, as many as the meter's runtime takes.
const EVENTS: usize = 1024;
/// A server that is silent for so long is gone.
const SILENCE: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

type Failure = Box<dyn Error>;

struct Asked {
    address: SocketAddr,
    request: Vec<u8>,
    /// Sent once by each stream before the clock starts.
    warm_up: Vec<u8>,
    concurrency: usize,
    requests: usize,
    tokens: u32,
}

struct Stream {
    tcp: TcpStream,
    sent: Instant,
    first: Option<Instant>,
    last: Instant,
}

/// When a finished request was sent, heard from first, and heard from last.
struct Finished {
    sent: Instant,
    first: Instant,
    last: Instant,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, api, concurrency, requests, tokens] = arguments.as_slice() else {
        return Err("HOST:PORT chat|completions CONCURRENCY REQUESTS TOKENS".into());
    };
    let tokens = tokens.parse()?;
    let asked = Asked {
        address: address.parse()?,
        request: request(address, api, tokens)?,
        warm_up: request(address, api, 2)?,
        concurrency: concurrency.parse()?,
        requests: requests.parse()?,
        tokens,
    };
    println!("{}", figures(&asked, &drive(&asked)?));
    Ok(())
}

/// The request that all send: what is asked for costs a pacing server nothing.
fn request(host: &str, api: &str, tokens: u32) -> Result<Vec<u8>, Failure> {
    let (path, prompt) = match api {
        "chat" => (
            "/v1/chat/completions",
            r#""messages":[{"role":"user","content":"Count."}]"#,
        ),
        "completions" => ("/v1/completions", r#""prompt":"Count.""#),
        other => return Err(format!("no kind of API: {other}").into()),
    };
    let body = format!(
        r#"{{"model":"stand-in",{prompt},"max_tokens":{tokens},"temperature":0,"ignore_eos":true,"stream":true,"stream_options":{{"include_usage":true,"continuous_usage_stats":true}}}}"#
    );
    Ok(format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes())
}

/// Opens the connections, warms them up, and keeps so many requests in flight
/// until all are answered.
fn drive(asked: &Asked) -> Result<Vec<Finished>, Failure> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut streams = Vec::with_capacity(asked.concurrency);
    for place in 0..asked.concurrency {
        let tcp = TcpStream::connect(asked.address)?;
        tcp.set_nodelay(true)?;
        tcp.set_nonblocking(true)?;
        let data = epoll::EventData::new_u64(u64::try_from(place)?);
        epoll::add(&poll, &tcp, data, epoll::EventFlags::IN)?;
        let now = Instant::now();
        streams.push(Stream {
            tcp,
            sent: now,
            first: None,
            last: now,
        });
    }
    let mut rounds = Rounds {
        poll,
        streams,
        buffer: vec![0; BUFFER],
        events: Vec::with_capacity(EVENTS),
    };
    rounds.run(&asked.warm_up, asked.concurrency)?;
    rounds.run(&asked.request, asked.requests)
}

/// The open connections, and what reading them takes.
struct Rounds {
    poll: OwnedFd,
    streams: Vec<Stream>,
    buffer: Vec<u8>,
    events: Vec<epoll::Event>,
}

impl Rounds {
    fn run(&mut self, request: &[u8], requests: usize) -> Result<Vec<Finished>, Failure> {
        let mut finished = Vec::with_capacity(requests);
        let mut issued = 0;
        for stream in self.streams.iter_mut().take(requests) {
            stream.send(request)?;
            issued += 1;
        }
        while finished.len() < requests {
            self.events.clear();
            epoll::wait(
                &self.poll,
                rustix::buffer::spare_capacity(&mut self.events),
                Some(&SILENCE),
            )?;
            if self.events.is_empty() {
                return Err("the server has fallen silent".into());
            }
            for event in &self.events {
                let place = usize::try_from(event.data.u64())?;
                let stream = self.streams.get_mut(place).ok_or("no such stream")?;
                let Some(ended) = stream.read(&mut self.buffer)? else {
                    continue;
                };
                finished.push(ended);
                if issued < requests {
                    stream.send(request)?;
                    issued += 1;
                }
            }
        }
        Ok(finished)
    }
}

impl Stream {
    fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.first = None;
        self.sent = Instant::now();
        // A request is far smaller than the buffer of an idle socket.
        Ok(self.tcp.write_all(request)?)
    }

    /// One read. Gives the times of the request that ended with it.
    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<Finished>, Failure> {
        let count = match recv(&self.tcp, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let now = Instant::now();
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Err("the server closed a connection".into());
        }
        // Looked for once a reply: the head may come by itself.
        if self.first.is_none() && bytes.windows(DATA.len()).any(|window| window == DATA) {
            self.first = Some(now);
        }
        self.last = now;
        Ok(self
            .first
            .filter(|_| bytes.ends_with(END))
            .map(|first| Finished {
                sent: self.sent,
                first,
                last: self.last,
            }))
    }
}

fn figures(asked: &Asked, finished: &[Finished]) -> serde_json::Value {
    let after_first = f64::from(asked.tokens.saturating_sub(1));
    let mut ttft: Vec<f64> = Vec::with_capacity(finished.len());
    ttft.extend(finished.iter().map(|one| ms(one.first - one.sent)));
    ttft.sort_by(f64::total_cmp);
    let count = finished.len() as f64;
    let tpot: f64 = finished
        .iter()
        .map(|one| ms(one.last - one.first) / after_first)
        .sum();
    let began = finished.iter().map(|one| one.sent).min();
    let ended = finished.iter().map(|one| one.last).max();
    let seconds = began
        .zip(ended)
        .map(|(began, ended)| (ended - began).as_secs_f64());
    serde_json::json!({
        "requests": finished.len(),
        "ttft_ms": ttft.iter().sum::<f64>() / count,
        "ttft_p99_ms": ttft.get((0.99 * (count - 1.0)).round() as usize),
        "tpot_ms": tpot / count,
        "output_tps": seconds.map(|seconds| count * f64::from(asked.tokens) / seconds),
    })
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
