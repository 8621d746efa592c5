//! A server that writes chunks at known times. It speaks as much HTTP/1.1 and as many
//! server-sent events as the meter reads, and notes when it wrote.
//!
//! A request names its reply: `POST /ID/FIRST/INTERVAL/CHUNKS`, times in ns.

use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    io::{self, Write as _},
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{self, AtomicU64},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::net::{SendFlags, Shutdown};
use tokio::{
    io::Interest,
    net::{TcpListener, TcpStream},
    task::LocalSet,
};

use super::steps::MOST_STREAMS;
use crate::{cancel::CancelFlag, load::nanos};

/// Threads that write, at most.
const MOST_THREADS: usize = 4;
/// Most bytes of a request.
const MOST_REQUEST: usize = 1024;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The running server. Dropped, it ends.
pub(super) struct Pacing {
    pub(super) address: SocketAddr,
    over: CancelFlag,
    threads: Vec<JoinHandle<()>>,
}

/// When the first and the last chunk of each request were written.
pub(super) struct Written {
    origin: Instant,
    times: Vec<[AtomicU64; 2]>,
}

impl Written {
    pub(super) fn new(requests: usize) -> Self {
        Self {
            origin: Instant::now(),
            times: std::iter::repeat_with(Default::default)
                .take(requests)
                .collect(),
        }
    }

    /// From which the times count.
    pub(super) const fn origin(&self) -> Instant {
        self.origin
    }

    /// First and last chunk, in ns; none while not both are written.
    pub(super) fn times(&self, id: usize) -> Option<(u64, u64)> {
        let [first, last] = self.times.get(id)?;
        let (first, last) = (
            first.load(atomic::Ordering::Acquire),
            last.load(atomic::Ordering::Acquire),
        );
        (first > 0 && last > 0).then_some((first, last))
    }

    fn note(&self, id: usize, place: usize) {
        if let Some(time) = self.times.get(id).and_then(|times| times.get(place)) {
            let now = nanos(self.origin.elapsed());
            time.store(now, atomic::Ordering::Release);
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    id: usize,
    first: Duration,
    interval: Duration,
    chunks: u32,
}

/// A reply under way, ordered by when its next chunk is due: the soonest is greatest.
struct Due {
    at: Instant,
    asked: Asked,
    written: u32,
    tcp: Arc<TcpStream>,
}

impl Pacing {
    /// Starts listening on a loopback port of the system's choice.
    pub(super) fn start(written: &Arc<Written>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let over = CancelFlag::new();
        let mut pacing = Self {
            address,
            over: over.clone(),
            threads: Vec::new(),
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let mut pacers = Vec::new();
        for _ in 0..(cpus / 2).clamp(1, MOST_THREADS) {
            let (sender, receiver) = sync_channel(MOST_STREAMS as usize);
            let written = Arc::clone(written);
            let thread = std::thread::Builder::new().name("tokdyno-pacing".to_owned());
            pacing
                .threads
                .push(thread.spawn(move || pace(&receiver, &written))?);
            pacers.push(sender);
        }
        let thread = std::thread::Builder::new().name("tokdyno-accept".to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        pacing.threads.push(thread.spawn(move || {
            let serving = serve(listener, pacers);
            LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    _ = serving => {}
                    () = over.cancelled() => {}
                }
            });
        })?);
        Ok(pacing)
    }
}

impl Drop for Pacing {
    fn drop(&mut self) {
        self.over.cancel();
        for thread in self.threads.drain(..) {
            // A panic there shows as chunks that did not arrive.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, pacers: Vec<SyncSender<Due>>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let pacers = Rc::new(pacers);
    let mut count = 0_usize;
    loop {
        let (tcp, _) = listener.accept().await?;
        tcp.set_nodelay(true)?;
        let (pacers, place) = (Rc::clone(&pacers), count % pacers.len().max(1));
        count += 1;
        tokio::task::spawn_local(async move {
            let Some(pacer) = pacers.get(place) else {
                return;
            };
            // A reader that closes has no more to ask.
            let _ = requests(Arc::new(tcp), pacer).await;
        });
    }
}

/// Takes the requests of a connection and hands them to its pacer.
async fn requests(tcp: Arc<TcpStream>, pacer: &SyncSender<Due>) -> io::Result<()> {
    let mut head = Vec::new();
    loop {
        tcp.ready(Interest::READABLE).await?;
        let mut buffer = [0; MOST_REQUEST];
        match tcp.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => head.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        if !head.ends_with(b"\r\n\r\n") {
            if head.len() > MOST_REQUEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
            continue;
        }
        let received = Instant::now();
        let asked = Asked::read(&head).ok_or(io::ErrorKind::InvalidData)?;
        head.clear();
        send(&tcp, HEAD)?;
        let due = Due {
            at: received + asked.first,
            asked,
            written: 0,
            tcp: Arc::clone(&tcp),
        };
        pacer
            .try_send(due)
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
    }
}

/// Writes what is due until nobody can ask any more.
fn pace(requests: &Receiver<Due>, written: &Written) {
    let mut waiting: BinaryHeap<Due> = BinaryHeap::with_capacity(MOST_STREAMS as usize);
    let mut scratch = Vec::with_capacity(2048);
    loop {
        while waiting.peek().is_some_and(|due| due.at <= Instant::now()) {
            let next = waiting
                .pop()
                .and_then(|due| due.write(written, &mut scratch));
            waiting.extend(next);
            match requests.try_recv() {
                Ok(due) => waiting.push(due),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let wait = waiting.peek().map_or(Duration::from_secs(3600), |due| {
            due.at.saturating_duration_since(Instant::now())
        });
        match requests.recv_timeout(wait) {
            Ok(due) => waiting.push(due),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Due {
    /// Writes the next chunk. Gives what is still to be written. A socket that is full
    /// is closed: its reader did not keep up.
    fn write(mut self, written: &Written, bytes: &mut Vec<u8>) -> Option<Self> {
        self.written += 1;
        let last = self.written == self.asked.chunks;
        encode(self.asked.id, self.written, last, bytes);
        // Before the write: the kernel notes the arrival within it.
        if self.written == 1 {
            written.note(self.asked.id, 0);
        }
        if last {
            written.note(self.asked.id, 1);
        }
        if send(&self.tcp, bytes).is_err() {
            // Gone already is as good.
            let _ = rustix::net::shutdown(&*self.tcp, Shutdown::Both);
            return None;
        }
        // Deadlines follow from deadlines: one that is late delays none after it.
        self.at += self.asked.interval;
        (!last).then_some(self)
    }
}

impl Asked {
    fn read(head: &[u8]) -> Option<Self> {
        let line = head.split(|byte| *byte == b'\r').next()?;
        let path = std::str::from_utf8(line).ok()?.split(' ').nth(1)?;
        let mut numbers = path.split('/').skip(1).map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        Some(Self {
            id: usize::try_from(next()?).ok()?,
            first: Duration::from_nanos(next()?),
            interval: Duration::from_nanos(next()?),
            chunks: u32::try_from(next()?).ok()?.max(2),
        })
    }

    /// A whole request.
    #[cfg(test)]
    fn request(&self) -> Vec<u8> {
        request(self.id, self.first, self.interval, self.chunks)
    }
}

/// A whole request for reply `id`.
pub(super) fn request(id: usize, first: Duration, interval: Duration, chunks: u32) -> Vec<u8> {
    format!(
        "POST /{id}/{}/{}/{chunks} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nContent-Length: 0\r\n\r\n",
        first.as_nanos(),
        interval.as_nanos()
    )
    .into_bytes()
}

/// Writes the chunk as an engine would send it: one token, with the running count.
fn encode(id: usize, count: u32, last: bool, bytes: &mut Vec<u8>) {
    let finish = if last { "\"length\"" } else { "null" };
    let event = format!(
        "data: {{\"id\":\"chatcmpl-{id:032x}\",\"object\":\"chat.completion.chunk\",\"created\":1764400000,\"model\":\"pacing\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" token\"}},\"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":{{\"prompt_tokens\":18,\"total_tokens\":{},\"completion_tokens\":{count}}}}}\n\n",
        18 + count
    );
    let end = if last {
        "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
    } else {
        ""
    };
    bytes.clear();
    // Writing to memory does not fail.
    let _ = write!(bytes, "{:x}\r\n{event}\r\n{end}", event.len());
}

/// Hands all bytes to the kernel at once, or fails.
fn send(tcp: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let sent = rustix::net::send(tcp, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let asked = Asked {
            id: 7,
            first: Duration::from_millis(2),
            interval: Duration::from_micros(200),
            chunks: 50,
        };
        assert_eq!(Asked::read(&asked.request()), Some(asked));
        for other in ["GET / HTTP/1.1\r\n\r\n", "POST /1/2 HTTP/1.1\r\n\r\n", ""] {
            assert_eq!(Asked::read(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_meter_understands_a_reply() {
        let mut reply = Reply::new(3);
        reply.on_bytes(HEAD, 1);
        let mut bytes = Vec::new();
        for count in 1..=3 {
            encode(1, count, count == 3, &mut bytes);
            reply.on_bytes(&bytes, 10 * u64::from(count));
        }
        assert!(reply.is_over() && reply.is_reusable());
        let sent = super::super::reader::sent(0);
        let (record, _) = reply.into_record(&sent, None);
        assert!(record.is_success(), "{record:?}");
        assert_eq!((record.chunks, record.completion_tokens), (3, Some(3)));
        assert_eq!(record.first_chunk_tokens, Some(1));
    }
}
